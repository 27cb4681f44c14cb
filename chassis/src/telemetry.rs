//! Logs, metrics and traces. Logs go to stderr, metrics to the process' own port, traces to OTLP when configured.

use std::sync::OnceLock;

use http::HeaderMap;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use opentelemetry::propagation::{Extractor, Injector, TextMapPropagator};
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::WithExportConfig;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use crate::config::{LogFormat, Settings};

/// Upper bounds of the buckets of every duration, in seconds.
const BUCKETS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];

/// Whether traces are sent anywhere; without a receiver no work is done for them.
static TRACING: OnceLock<SdkTracerProvider> = OnceLock::new();

/// Sets up logs and traces for the process. To be called once, inside the runtime.
pub fn init(service: &'static str, settings: &Settings) -> Result<(), String> {
    let filter = EnvFilter::try_new(&settings.log).map_err(|error| format!("LOG is not usable: {error}"))?;
    let format = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let format = match settings.log_format {
        LogFormat::Pretty => format.boxed(),
        LogFormat::Json => format.json().flatten_event(true).with_span_list(false).boxed(),
    };
    let registry = tracing_subscriber::registry().with(filter).with(format);
    if settings.otlp_endpoint.is_empty() {
        return registry.try_init().map_err(|error| error.to_string());
    }
    let provider = tracer_provider(service, &settings.otlp_endpoint)?;
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer(service));
    registry.with(layer).try_init().map_err(|error| error.to_string())?;
    // Set once per process: a second init has failed above.
    let _ = TRACING.set(provider);
    Ok(())
}

fn tracer_provider(service: &'static str, endpoint: &str) -> Result<SdkTracerProvider, String> {
    let exporter = opentelemetry_otlp::SpanExporter::builder()
        .with_tonic()
        .with_endpoint(endpoint)
        .build()
        .map_err(|error| format!("OTLP_ENDPOINT is not usable: {error}"))?;
    let resource = Resource::builder().with_service_name(service).build();
    Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build())
}

/// Sends what is left of the traces.
pub fn flush() {
    if let Some(provider) = TRACING.get()
        && let Err(error) = provider.force_flush()
    {
        tracing::warn!(%error, "the last traces could not be sent");
    }
}

/// The metrics of the process, ready to be shown. May be called any number of times.
pub fn metrics() -> Option<&'static PrometheusHandle> {
    static METRICS: OnceLock<Option<PrometheusHandle>> = OnceLock::new();
    METRICS
        .get_or_init(|| PrometheusBuilder::new().set_buckets(&BUCKETS).ok()?.install_recorder().ok())
        .as_ref()
}

/// Makes the span a part of the trace that the caller began.
pub fn continue_trace(span: &tracing::Span, headers: &HeaderMap) {
    if TRACING.get().is_some() && headers.contains_key("traceparent") {
        // A span that has not been recorded has no parent to set.
        let _ = span.set_parent(TraceContextPropagator::new().extract(&Headers(headers)));
    }
}

/// Hands the current trace on to the next process: ours when traces are sent, else the caller's own as it came.
pub fn pass_trace(incoming: &HeaderMap, outgoing: &mut HeaderMap) {
    if TRACING.get().is_some() {
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
