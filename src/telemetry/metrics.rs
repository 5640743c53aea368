//! The figures of a run in the text form of Prometheus, for a textfile collector or a push gateway; of a failed run too.

use std::fmt::{Display, Write};
use std::path::{Path, PathBuf};

use super::run_stats::ResourceUsage;
use crate::error::{Error, Result, io_reason};
use crate::ledger::Manifest;

/// The outcome of a run.
pub(crate) struct Ended<'a> {
    /// Name of the pipeline: the job file's, without its ending.
    pub(crate) pipeline: String,
    /// The release, if there is one.
    pub(crate) manifest: Option<&'a Manifest>,
    /// Whether the release was there before.
    pub(crate) done_before: bool,
    /// The failure, if it failed.
    pub(crate) error: Option<&'a Error>,
    /// The exit code.
    pub(crate) exit_code: u8,
    /// What it took.
    pub(crate) effort: &'a ResourceUsage,
}

impl Ended<'_> {
    /// All metrics as text.
    pub(crate) fn to_text(&self, now: f64) -> String {
        let mut page = Page { text: String::new(), pipeline: escape_label(&self.pipeline) };
        let reason = match (self.error, self.done_before) {
            (Some(error), _) => error.kind().name(),
            (None, true) => "already-done",
            (None, false) => "done",
        };
        page.write_metric(
            "throng_run_success",
            "1 if the last run succeeded, 0 if it failed",
            u8::from(self.error.is_none()),
        );
        let labels = [("reason", reason), ("version", env!("CARGO_PKG_VERSION"))];
        page.write_head("throng_run_info", "How the last run ended");
        page.write_line("throng_run_info", &labels, 1);
        page.write_metric("throng_run_exit_code", "Exit code of the last run", self.exit_code);
        page.write_metric("throng_run_timestamp_seconds", "When the last run ended, in Unix time", now);
        page.write_metric("throng_run_seconds", "Duration of the last run", self.effort.seconds);
        page.write_head("throng_phase_seconds", "Duration of every phase of the last run");
        for (phase, seconds) in &self.effort.phases {
            page.write_line("throng_phase_seconds", &[("phase", phase)], seconds);
        }
        page.write_metric("throng_spilled_bytes", "Bytes that the last run spilled to disk", self.effort.spilled_bytes);
        if let Some(bytes) = self.effort.peak_memory_bytes {
            page.write_metric("throng_peak_memory_bytes", "Peak resident memory of the process", bytes);
        }
        let rows = self.manifest.map(|manifest| manifest.rows_read).or(self.effort.rows_read);
        if let Some(rows) = rows {
            page.write_metric("throng_rows_read", "Rows of the input", rows);
        }
        if let Some(manifest) = self.manifest {
            release_metrics(&mut page, manifest);
        }
        page.text
    }

    /// Writes the metrics: whole or not at all.
    pub(crate) fn write_file(&self, file: &Path) -> Result<()> {
        let now = jiff::Timestamp::now().as_millisecond() as f64 / 1e3;
        let mut name = file.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.tmp", std::process::id()));
        let part: PathBuf = file.with_file_name(name);
        std::fs::write(&part, self.to_text(now)).and_then(|()| std::fs::rename(&part, file)).map_err(|error| {
            let _ = std::fs::remove_file(&part);
            Error::resources(format!("metrics file {} cannot be written: {}", file.display(), io_reason(&error)))
        })
    }
}

/// The figures of a release.
fn release_metrics(page: &mut Page, manifest: &Manifest) {
    page.write_metric("throng_rows_published", "Rows that were published", manifest.rows);
    page.write_metric("throng_rows_suppressed", "Rows that were suppressed", manifest.suppressed);
    let classes = &manifest.verification.classes;
    page.write_metric("throng_classes", "Groups of equal published quasi-identifiers", classes.count);
    let smallest = manifest.verification.smallest();
    page.write_metric("throng_smallest_class", "Rows of the smallest group, or people where k counts them", smallest);
    page.write_metric("throng_k", "Smallest group that the policy allows", manifest.k);
    if let Some(series) = &manifest.series {
        page.write_metric("throng_series_release", "Number of the release in its series", series.number);
        let counts = &series.counts;
        page.write_head("throng_series_rows", "Rows of a release of a series by what became of them");
        let rows = [
            ("new", counts.new),
            ("returned", counts.returned),
            ("published", manifest.rows),
            ("waiting", counts.waiting),
            ("suppressed", counts.suppressed),
            ("stale", counts.stale()),
            ("retired", counts.retired),
            ("withheld", counts.withheld),
            ("forgotten", counts.forgotten),
        ];
        rows.iter().for_each(|(state, rows)| page.write_line("throng_series_rows", &[("state", state)], rows));
    }
    let scores = &manifest.scores;
    page.write_head("throng_score", "Measures of loss, protection and risk; what they mean is in the summary of a run");
    let shares = [
        ("gcp", scores.gcp),
        ("um", scores.um),
        ("wgu", scores.wgu),
        ("mpm", scores.mpm),
        ("wgp", scores.wgp),
        ("dm", Some(scores.dm)),
        ("c_avg", scores.c_avg),
        ("risk_max", scores.risk_max),
        ("risk_mean", scores.risk_mean),
    ];
    for (measure, score) in shares {
        if let Some(score) = score {
            page.write_line("throng_score", &[("measure", measure)], score);
        }
    }
    page.write_head("throng_column_loss", "Mean loss of a published value by column: 0 as it was, 1 all lost");
    for (column, loss) in &manifest.scores.by_column {
        page.write_line("throng_column_loss", &[("column", column)], loss);
    }
}

/// Text of metrics, each with the name of the pipeline.
struct Page {
    text: String,
    pipeline: String,
}

impl Page {
    fn write_head(&mut self, name: &str, help: &str) {
        // Writing to a text cannot fail.
        let _ = write!(self.text, "# HELP {name} {help}\n# TYPE {name} gauge\n");
    }

    fn write_line(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let labels: String =
            labels.iter().map(|(label, value)| format!(",{label}=\"{}\"", escape_label(value))).collect();
        let _ = writeln!(self.text, "{name}{{pipeline=\"{}\"{labels}}} {value}", self.pipeline);
    }

    fn write_metric(&mut self, name: &str, help: &str, value: impl Display) {
        self.write_head(name, help);
        self.write_line(name, &[], value);
    }
}

/// The value of a label as Prometheus reads it.
fn escape_label(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_run_has_metrics_too() {
        let error = Error::privacy("too few");
        let mut effort =
            ResourceUsage { seconds: 1.5, spilled_bytes: 7, rows_read: Some(12), ..ResourceUsage::default() };
        effort.phases.insert("survey".into(), 0.25.into());
        let ended = Ended {
            pipeline: "a \"b\"\\c".into(),
            manifest: None,
            done_before: false,
            error: Some(&error),
            exit_code: 5,
            effort: &effort,
        };
        let text = ended.to_text(1000.5);
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let label = r#"pipeline="a \"b\"\\c""#;
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(
            lines,
            [
                format!("throng_run_success{{{label}}} 0"),
                format!("throng_run_info{{{label},reason=\"privacy\",version=\"{version}\"}} 1"),
                format!("throng_run_exit_code{{{label}}} 5"),
                format!("throng_run_timestamp_seconds{{{label}}} 1000.5"),
                format!("throng_run_seconds{{{label}}} 1.5"),
                format!("throng_phase_seconds{{{label},phase=\"survey\"}} 0.25"),
                format!("throng_spilled_bytes{{{label}}} 7"),
                format!("throng_rows_read{{{label}}} 12"),
            ]
        );
    }
}
