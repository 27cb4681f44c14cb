//! Traces that go through several processes: taken up from the caller, handed on to whoever is called.

use std::sync::atomic::{AtomicBool, Ordering};

use http::HeaderMap;
use opentelemetry::propagation::{Extractor, Injector, TextMapPropagator};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// Whether traces are sent anywhere; without a receiver no work is done for them.
static ENABLED: AtomicBool = AtomicBool::new(false);

/// Says that traces are sent somewhere from now on.
pub fn enable() {
    ENABLED.store(true, Ordering::Relaxed);
}

fn is_enabled() -> bool {
    ENABLED.load(Ordering::Relaxed)
}

/// Makes the span a part of the trace that the caller began.
pub fn continue_trace(span: &tracing::Span, headers: &HeaderMap) {
    if is_enabled() && headers.contains_key("traceparent") {
        // A span that has not been recorded has no parent to set.
        let _ = span.set_parent(TraceContextPropagator::new().extract(&Headers(headers)));
    }
}

/// Hands the current trace on to the next process: ours when traces are sent, else the caller's own as it came.
pub fn pass_trace(incoming: &HeaderMap, outgoing: &mut HeaderMap) {
    if is_enabled() {
        let context = tracing::Span::current().context();
        TraceContextPropagator::new().inject_context(&context, &mut HeadersMut(outgoing));
    } else if let Some(parent) = incoming.get("traceparent") {
        outgoing.insert("traceparent", parent.clone());
    }
}

struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(http::HeaderName::as_str).collect()
    }
}

struct HeadersMut<'a>(&'a mut HeaderMap);

impl Injector for HeadersMut<'_> {
    fn set(&mut self, key: &str, value: String) {
        if let (Ok(name), Ok(value)) = (http::HeaderName::try_from(key), http::HeaderValue::try_from(value)) {
            self.0.insert(name, value);
        }
    }
}
