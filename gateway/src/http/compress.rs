//! Compression of answers, for callers that accept it: gzip, Brotli or Zstandard. Streams are compressed as they pass.
//!
//! Each with its fastest level: answers are made anew for every request, and a list is a fifth as long with it already.
//! Nothing of an answer is kept for it but the window of the encoder.

use http::{Extensions, HeaderMap, StatusCode, Version, header};
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{And, Predicate, SizeAbove};

/// Shorter answers gain nothing.
const MIN_BYTES: u16 = 1024;
/// Media types that are text, and so become much shorter. Pictures and PDFs are compressed already.
const TEXTS: [&str; 6] = ["json", "csv", "xml", "yaml", "html", "svg"];

type IsWorthIt = And<SizeAbove, fn(StatusCode, Version, &HeaderMap, &Extensions) -> bool>;

pub(super) fn layer() -> CompressionLayer<IsWorthIt> {
    let is_worth_it =
        SizeAbove::new(MIN_BYTES).and(is_text as fn(StatusCode, Version, &HeaderMap, &Extensions) -> bool);
    CompressionLayer::new().quality(CompressionLevel::Fastest).compress_when(is_worth_it)
}

fn is_text(_: StatusCode, _: Version, headers: &HeaderMap, _: &Extensions) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default();
    kind.starts_with("text/") || TEXTS.iter().any(|text| kind.ends_with(text))
}
