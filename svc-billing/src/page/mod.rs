//! What the receiver of a document sees behind its `web_url`: a page with the document, where it stands, its PDF, and a
//! button to accept a quote. No script, nothing from another host. It changes documents through their operations only.

mod html;
pub(crate) mod rpc;
mod state;
mod style;
mod words;

pub use html::{Page, page};
pub use state::State;
