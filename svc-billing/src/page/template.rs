//! The templates of pages. They escape every text that is inserted.

use std::sync::OnceLock;

use minijinja::{Environment, UndefinedBehavior};
use serde::Serialize;

use crate::error::Error;

/// The extension of a name decides how texts are escaped.
const TEMPLATES: [(&str, &str); 2] =
    [("page.html", include_str!("page.html")), ("notice.html", include_str!("notice.html"))];

pub(super) fn render(name: &str, view: &impl Serialize) -> Result<String, Error> {
    let html = environment().get_template(name).and_then(|template| template.render(view));
    html.map_err(|error| chassis_base::Error::Internal(format!("rendering a page failed: {error:#}")).into())
}

fn environment() -> &'static Environment<'static> {
    static ENVIRONMENT: OnceLock<Environment<'static>> = OnceLock::new();
    ENVIRONMENT.get_or_init(|| {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        for (name, template) in TEMPLATES {
            // A template that does not parse fails every test of the page. In production, rendering then returns an error.
            if let Err(error) = environment.add_template(name, template) {
                tracing::error!(%error, name, "a page template could not be parsed");
            }
        }
        environment
    })
}
