//! The templates of pages. They escape every text that is placed in them.

use std::sync::OnceLock;

use minijinja::{Environment, UndefinedBehavior};
use serde::Serialize;

use crate::Error;

/// The end of a name says how texts are escaped.
const TEMPLATES: [(&str, &str); 2] =
    [("page.html", include_str!("page.html")), ("notice.html", include_str!("notice.html"))];

pub fn render(name: &str, view: &impl Serialize) -> Result<String, Error> {
    let html = environment().get_template(name).and_then(|template| template.render(view));
    html.map_err(|error| chassis_base::Error::Internal(format!("a page: {error:#}")).into())
}

fn environment() -> &'static Environment<'static> {
    static ENVIRONMENT: OnceLock<Environment<'static>> = OnceLock::new();
    ENVIRONMENT.get_or_init(|| {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        for (name, template) in TEMPLATES {
            // A template that cannot be read fails every test of the page; without it rendering answers with an error.
            if let Err(error) = environment.add_template(name, template) {
                tracing::error!(%error, name, "a template cannot be read");
            }
        }
        environment
    })
}
