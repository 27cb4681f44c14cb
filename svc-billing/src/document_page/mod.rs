//! The service behind the `web_url` of a document: its page, acceptance, payment and PDF, for whoever has the link.
//! How a page looks is in `page`; this folder depends on the processing of payments, whose own pages are rendered by
//! `page` too.

pub(crate) mod rpc;
