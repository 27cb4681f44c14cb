//! What the receiver of a document sees behind its `web_url`: a page with the document, where it stands, its PDF, and a
//! button to accept a quote or to pay an invoice. No script, nothing from another host. It changes documents through
//! their operations only.

mod html;
mod notice;
pub(crate) mod rpc;
mod state;
mod style;
mod template;
mod words;

use proto::api::HttpBody;
use tonic::{Response, Status};

pub use html::{Page, page};
pub(crate) use notice::{Button, Link, Notice, notice};
pub use state::{Last, Pay, State};
pub(crate) use words::{Tone, pick};

/// A page as an answer.
#[expect(clippy::unnecessary_wraps, reason = "an answer is what a handler returns")]
pub(crate) fn html_answer(page: Page) -> Result<Response<HttpBody>, Status> {
    Ok(Response::new(HttpBody {
        content_type: "text/html; charset=utf-8".to_owned(),
        data: page.html.into(),
        content_security_policy: page.policy,
        ..HttpBody::default()
    }))
}
