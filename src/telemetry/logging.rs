//! Logs on standard error: levels by `-v`, `-q` and `THRONG_LOG`, as text or as JSON lines; spans also to OpenTelemetry.

use std::io::{self, IsTerminal, Write};

use clap::ValueEnum;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::{FilterExt, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt};

use super::progress::above_bars;

/// How log lines are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    #[default]
    Text,
    /// One JSON object per line, for log collectors
    Json,
}

/// What is flushed when the command ends.
#[derive(Default)]
pub(crate) struct Logging {
    #[cfg(feature = "otel")]
    spans: Option<super::otel::Exporter>,
}

impl Logging {
    /// Starts logging. Spans are exported when the environment names a collector; this needs the runtime to be entered.
    pub(crate) fn start(format: LogFormat, verbose: u8, quiet: bool) -> Result<Self, String> {
        let layer = fmt::layer().with_writer(|| AboveBars);
        let filter = level_filter(verbose, quiet)?.and(discreet_targets());
        let lines: Box<dyn Layer<Registry> + Send + Sync> = match format {
            LogFormat::Text => layer.with_ansi(wants_colours()).with_target(false).with_filter(filter).boxed(),
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
    pub(crate) fn finish(self) {
        #[cfg(feature = "otel")]
        if let Some(spans) = self.spans {
            spans.flush();
        }
    }
}

fn level_filter(verbose: u8, quiet: bool) -> Result<EnvFilter, String> {
    if let Ok(directives) = std::env::var("THRONG_LOG") {
        return EnvFilter::try_new(&directives)
            .map_err(|error| format!("THRONG_LOG is not valid ({error}); try THRONG_LOG=throng=debug"));
    }
    Ok(EnvFilter::new(match (quiet, verbose) {
        (true, _) => "throng=error",
        (false, 0) => "throng=warn",
        (false, 1) => "throng=info,ballista_scheduler=warn,ballista_executor=warn",
        (false, 2) => "throng=debug,ballista_scheduler=warn,ballista_executor=info,ballista_core=warn",
        (false, _) => "throng=trace,ballista_scheduler=warn,ballista_executor=info,ballista_core=warn",
    }))
}

/// What may be written at any level, whatever `-v` and `THRONG_LOG` ask for.
///
/// Lines of other crates below a warning hold plans, statistics, statements, requests and rows: the names of folders,
/// which may be values of identifiers, and the smallest and largest values of columns. What Ballista's executors say of
/// the tasks that they take is all right.
fn discreet_targets() -> Targets {
    Targets::new()
        .with_default(LevelFilter::WARN)
        .with_target("throng", LevelFilter::TRACE)
        .with_target("ballista_executor::executor_server", LevelFilter::INFO)
}

/// Whether standard error wants colours: on a terminal, unless `NO_COLOR` is set.
fn wants_colours() -> bool {
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

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Whatever is asked for, plans of other crates are not written.
    #[test]
    fn no_level_shows_the_plans_of_other_crates() {
        for directives in ["trace", "ballista_scheduler=debug", "datafusion=trace,throng=info", "ballista_core=info"] {
            let lines = Lines::default();
            let written = lines.clone();
            let layer = fmt::layer().with_writer(move || written.clone()).with_ansi(false);
            let filter = EnvFilter::new(directives).and(discreet_targets());
            tracing::subscriber::with_default(Registry::default().with(layer.with_filter(filter)), || {
                tracing::info!(target: "ballista_scheduler::state::task_manager", "Submitting: age=canary");
                tracing::debug!(target: "ballista_executor::metrics", "Min=Exact(Int64(canary))");
                tracing::debug!(target: "datafusion::physical_planner", "Min=Exact(Int64(canary))");
                tracing::info!(target: "datafusion", "name=canary");
                tracing::info!(target: "throng::release", "ours");
            });
            let lines = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
            assert!(!lines.contains("canary"), "{directives}: {lines}");
            assert_eq!(lines.contains("ours"), ["trace", "datafusion=trace,throng=info"].contains(&directives));
        }
    }
}
