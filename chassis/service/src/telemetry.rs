//! Logs, metrics and traces. Logs go to stderr, metrics to the operators' port, traces to OTLP when configured.

use std::convert::Infallible;
use std::sync::OnceLock;
use std::time::Duration;

use chassis_rpc::trace;
use clap::{Args, ValueEnum};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::WithExportConfig;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::time::MissedTickBehavior;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Text for people.
    Pretty,
    /// One JSON object per line.
    Json,
}

/// The settings of logs and traces.
#[derive(Args, Clone, Debug)]
pub struct TelemetrySettings {
    /// What to log: a level (error, warn, info, debug, trace) or a filter such as info,gateway=debug
    #[arg(long, env = "LOG", default_value = "info", global = true)]
    pub log: String,

    /// How to log
    #[arg(long, env = "LOG_FORMAT", default_value = "pretty", global = true)]
    pub log_format: LogFormat,

    /// OTLP/gRPC endpoint that receives traces, for example http://localhost:4317; when empty, no traces are sent
    #[arg(long, env = "OTLP_ENDPOINT", default_value = "", global = true)]
    pub otlp_endpoint: String,
}

/// Upper bounds of the buckets of every duration, in seconds.
const BUCKETS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];

/// How often measured durations are moved into their buckets, and freed memory is given back.
pub(crate) const UPKEEP: Duration = Duration::from_secs(5);

/// The exporter of traces; unset when no endpoint is configured.
static TRACING: OnceLock<SdkTracerProvider> = OnceLock::new();

/// Sets up logs and traces for the process. Call it once, inside the runtime.
pub fn init(service: &'static str, settings: &TelemetrySettings) -> Result<(), String> {
    let filter: Targets = settings.log.parse().map_err(|error| format!("LOG is not usable: {error}"))?;
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
    trace::enable();
    // This cannot fail: a second call of `init` has failed above.
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

/// Sends the buffered traces.
pub fn flush() {
    if let Some(provider) = TRACING.get()
        && let Err(error) = provider.force_flush()
    {
        tracing::warn!(%error, "the last traces could not be sent");
    }
}

/// The metrics of the process. The first call installs the recorder; `None` when that fails.
pub fn metrics() -> Option<&'static PrometheusHandle> {
    static METRICS: OnceLock<Option<PrometheusHandle>> = OnceLock::new();
    METRICS
        .get_or_init(|| PrometheusBuilder::new().set_buckets(&BUCKETS).ok()?.install_recorder().ok())
        .as_ref()
}

/// The allocator keeps blocks of this size for nobody: they go back as soon as they are freed.
const BLOCK: usize = 4 << 20;

/// Keeps a process small, again and again.
///
/// Moves measured durations into their buckets: otherwise each takes 16 bytes until the metrics are read, and a process whose
/// metrics nobody reads grows with every request. And frees a block, which nobody has touched: the allocator gives what was
/// freed before (see `MIMALLOC_PURGE_DELAY`) back to the system only when such a block is freed, so that a process that rests
/// after a burst would keep the memory of the burst.
pub async fn keep_up(every: Duration) -> Infallible {
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Some(metrics) = metrics() {
            metrics.run_upkeep();
        }
        drop(std::hint::black_box(Vec::<u8>::with_capacity(BLOCK)));
    }
}
