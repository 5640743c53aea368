//! Export of spans by OpenTelemetry (OTLP over gRPC), as the usual `OTEL_*` variables say; off unless one of them names a
//! collector. A collector that is not there is a warning: a release does not depend on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter as Export};
use tracing::Subscriber;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{EnvFilter, Layer};

/// Sends the spans of this process to a collector.
pub(super) struct Exporter {
    provider: SdkTracerProvider,
    lost: Arc<AtomicBool>,
}

impl Exporter {
    /// The exporter that the environment asks for, if it does.
    pub(super) fn from_environment() -> Result<Option<Self>, String> {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        let endpoint = set("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").or_else(|| set("OTEL_EXPORTER_OTLP_ENDPOINT"));
        let disabled = set("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"))
            || set("OTEL_TRACES_EXPORTER").is_some_and(|value| value == "none");
        if endpoint.is_none() || disabled {
            return Ok(None);
        }
        let protocol = set("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL").or_else(|| set("OTEL_EXPORTER_OTLP_PROTOCOL"));
        if let Some(other) = protocol.filter(|protocol| protocol != "grpc") {
            return Err(format!("OTEL_EXPORTER_OTLP_PROTOCOL is `{other}`, but only `grpc` is built in"));
        }
        let lost = Arc::new(AtomicBool::new(false));
        let inner = SpanExporter::builder().with_tonic().build().map_err(|error| error.to_string())?;
        let mut resource = Resource::builder();
        let named = set("OTEL_RESOURCE_ATTRIBUTES").is_some_and(|list| list.contains("service.name="));
        if set("OTEL_SERVICE_NAME").is_none() && !named {
            resource = resource.with_service_name("throng");
        }
        let resource = resource.with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION"))).build();
        let exporter = Attentive { inner, lost: Arc::clone(&lost) };
        let provider = SdkTracerProvider::builder().with_resource(resource).with_batch_exporter(exporter).build();
        Ok(Some(Self { provider, lost }))
    }

    /// The layer that turns our spans into those of OpenTelemetry.
    pub(super) fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer("throng"))
            .with_location(false)
            .with_threads(false)
            .with_filter(EnvFilter::new("throng=info"))
    }

    /// Sends what is left, and waits for it.
    pub(super) fn flush(self) {
        let ended = self.provider.shutdown();
        if ended.is_err() || self.lost.load(Ordering::Relaxed) {
            tracing::warn!("spans could not all be sent to the collector that OTEL_EXPORTER_OTLP_ENDPOINT names");
        }
    }
}

/// An exporter that remembers whether spans were lost: the one who hands them over does not hear of it.
#[derive(Debug)]
struct Attentive {
    inner: SpanExporter,
    lost: Arc<AtomicBool>,
}

impl Export for Attentive {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let sent = self.inner.export(batch).await;
        self.lost.fetch_or(sent.is_err(), Ordering::Relaxed);
        sent
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.inner.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}
