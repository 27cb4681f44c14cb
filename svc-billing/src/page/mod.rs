//! The web page of a document, behind its `web_url`: the document, its state, its PDF, and a button to accept a quote or
//! to pay an invoice. No script, nothing from another host. Also small pages (`notice`) in the same style for payments.
//!
//! Not a resource: it stores nothing, so its files are named after the parts of a page. Its service is `document_page`.

mod html;
mod notice;
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

/// A page as the answer of an rpc.
#[expect(clippy::unnecessary_wraps, reason = "an answer is what a handler returns")]
pub(crate) fn html_answer(page: Page) -> Result<Response<HttpBody>, Status> {
    Ok(Response::new(HttpBody {
        content_type: "text/html; charset=utf-8".to_owned(),
        data: page.html.into(),
        content_security_policy: page.policy,
        ..HttpBody::default()
    }))
}
