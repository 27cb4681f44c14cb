//! Trace propagation: a call continues the trace of its caller and passes it to the services that it calls.

use std::sync::atomic::{AtomicBool, Ordering};

use http::HeaderMap;
use opentelemetry::propagation::{Extractor, Injector, TextMapPropagator};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// Whether traces are exported. Without an exporter, propagation costs nothing.
static ENABLED: AtomicBool = AtomicBool::new(false);

/// Turns propagation on, once an exporter exists.
pub fn enable() {
    ENABLED.store(true, Ordering::Relaxed);
}

fn is_enabled() -> bool {
    ENABLED.load(Ordering::Relaxed)
}

/// Makes the span a child of the caller's trace.
pub fn continue_trace(span: &tracing::Span, headers: &HeaderMap) {
    if is_enabled() && headers.contains_key("traceparent") {
        // This fails for a span that is not recorded, which needs no parent.
        let _ = span.set_parent(TraceContextPropagator::new().extract(&Headers(headers)));
    }
}

/// Passes the current trace to the next process. A process that exports no traces passes the caller's unchanged.
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
