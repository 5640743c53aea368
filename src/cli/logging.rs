//! Logs on standard error: levels by `-v`, `-q` and `THRONG_LOG`, as text or as JSON lines; spans also to OpenTelemetry.

use std::io::{self, IsTerminal, Write};

use clap::ValueEnum;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt};

use super::progress::above_bars;

/// How log lines are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum LogFormat {
    /// For people
    #[default]
    Text,
    /// One JSON object per line, for log collectors
    Json,
}

/// What is flushed when the command ends.
#[derive(Default)]
pub(super) struct Logging {
    #[cfg(feature = "otel")]
    spans: Option<super::otel::Exporter>,
}

impl Logging {
    /// Starts logging. Spans are exported when the environment names a collector; this needs the runtime to be entered.
    pub(super) fn start(format: LogFormat, verbose: u8, quiet: bool) -> Result<Self, String> {
        let layer = fmt::layer().with_writer(|| AboveBars);
        let filter = filter(verbose, quiet)?;
        let lines: Box<dyn Layer<Registry> + Send + Sync> = match format {
            LogFormat::Text => layer.with_ansi(colours()).with_target(false).with_filter(filter).boxed(),
            LogFormat::Json => layer.json().flatten_event(true).with_filter(filter).boxed(),
        };
        let registry = Registry::default().with(lines);
        #[cfg(feature = "otel")]
        {
            let (spans, failed) = match super::otel::Exporter::from_environment() {
                Ok(spans) => (spans, None),
                Err(message) => (None, Some(message)),
            };
            registry.with(spans.as_ref().map(super::otel::Exporter::layer)).init();
            if let Some(message) = failed {
                tracing::warn!("spans are not exported: {message}");
            }
            Ok(Self { spans })
        }
        #[cfg(not(feature = "otel"))]
        {
            registry.init();
            Ok(Self::default())
        }
    }

    /// Sends what is still waiting to be sent.
    pub(super) fn finish(self) {
        #[cfg(feature = "otel")]
        if let Some(spans) = self.spans {
            spans.flush();
        }
    }
}

fn filter(verbose: u8, quiet: bool) -> Result<EnvFilter, String> {
    if let Ok(directives) = std::env::var("THRONG_LOG") {
        return EnvFilter::try_new(&directives)
            .map_err(|error| format!("THRONG_LOG cannot be understood ({error}); try THRONG_LOG=throng=debug"));
    }
    Ok(EnvFilter::new(match (quiet, verbose) {
        (true, _) => "throng=error",
        (false, 0) => "throng=warn",
        (false, 1) => "throng=info,ballista_scheduler=warn,ballista_executor=warn",
        (false, 2) => "throng=debug,ballista_scheduler=info,ballista_executor=info,ballista_core=info",
        (false, _) => {
            "throng=trace,datafusion=debug,ballista_scheduler=debug,ballista_executor=debug,ballista_core=debug"
        }
    }))
}

/// Whether standard error wants colours: on a terminal, unless `NO_COLOR` is set.
fn colours() -> bool {
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Standard error, with progress bars out of the way while a line is written.
struct AboveBars;

impl Write for AboveBars {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        above_bars(|| io::stderr().write_all(bytes)).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
