//! The report of a release: one HTML page for those who sign it and those who work with it.
//!
//! The page stands alone: no network, no script, charts as inline SVG (`chart`), light and dark, on paper and on a
//! phone (`style.css`). It is made from the manifest and the published files. Where a job says where the source is, the
//! release is verified against it, and the page says whether it holds; nothing else of the source is shown, because
//! whoever reads the page would learn more than from the release. What is shown is binned, every bin of at least k rows
//! (`bins`).

mod answers;
mod bins;
mod chart;
mod column_reports;
mod margin;
mod page;
mod population;
mod series;
mod text;

use std::path::Path;

use datafusion::prelude::{DataFrame, SessionContext};

pub(crate) use bins::Histogram;
#[cfg(feature = "cli")]
pub(crate) use text::format_count;

use crate::agreement::{open_readable, verify_release};
use crate::audit::SeriesAttack;
use crate::binding::published_fields;
use crate::engine::SessionOptions;
use crate::error::{Error, Result};
use crate::explore::{LossBound, Trial};
use crate::ledger::manifest::PeopleCounts;
use crate::measure::{Classes, risk};
use crate::policy::{Job, Role};
use crate::release::{Manifest, ReleaseCheck, Run, RunOptions, find_release};
use crate::storage::Location;
use crate::verify::{Finding, InProcess};

/// Everything that the page shows.
#[derive(Debug, Clone)]
pub(crate) struct Report {
    /// The release, as described by its manifest.
    pub manifest: Manifest,
    /// Where it lies.
    pub sink: String,
    /// The findings of a fresh verification; empty if all is well.
    pub findings: Vec<Finding>,
    /// What was done to every published column.
    pub columns: Vec<ColumnReport>,
    /// How varied sensitive columns are in the classes.
    pub varieties: Vec<Variety>,
    /// How exposed people are in the release.
    pub exposure: Exposure,
    /// Whether the release was compared with its source row by row.
    pub compared: bool,
    /// Trials of other settings, when there are any.
    pub sweep: Vec<Trial>,
    /// An attack on several releases, when there is one.
    pub series: Option<SeriesAttack>,
    /// What was proven of the published rows, in words, when a bound was given.
    pub bound: Option<String>,
}

/// What was done to a column.
#[derive(Debug, Clone)]
pub(crate) struct ColumnReport {
    /// Name.
    pub name: String,
    /// Its role, where that is known.
    pub role: String,
    /// Mean loss of a published value.
    pub loss: Option<f64>,
    /// Its values, as published.
    pub histogram: Histogram,
}

/// How varied a sensitive column is in the classes; classes are identified by their size alone.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Variety {
    /// The column.
    pub column: String,
    /// Fewest different values of any class.
    pub fewest: u64,
    /// Size of that class.
    pub fewest_size: u64,
    /// Largest share of one value in any class.
    pub largest_share: f64,
    /// Size of that class.
    pub largest_size: u64,
}

/// How exposed people are, by class sizes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Exposure {
    /// Chance to pick the right row of the most exposed person.
    pub most: f64,
    /// The same over all people.
    pub mean: f64,
    /// Share of rows that are alone in their class.
    pub unique: f64,
    /// Share of rows in classes of fewer than k.
    pub below_k: f64,
}

impl Exposure {
    fn new(classes: &Classes, k: u32) -> Self {
        let above = |threshold: f64| risk::share_above(classes, threshold).unwrap_or(0.0);
        let rows = classes.rows().max(1) as f64;
        let below: u64 =
            classes.histogram().filter(|(size, _)| *size < u64::from(k)).map(|(size, count)| size * count).sum();
        Self {
            most: risk::prosecutor_max(classes).unwrap_or(0.0),
            mean: risk::prosecutor_mean(classes).unwrap_or(0.0),
            unique: above(0.5),
            below_k: below as f64 / rows,
        }
    }
}

/// What to make a report of.
#[derive(Debug, Clone, Default)]
pub(crate) struct Options {
    /// The run. Defaults to the newest.
    pub run: Option<String>,
    /// Limits of the session.
    pub session: SessionOptions,
    /// Trials to show.
    pub sweep: Vec<Trial>,
    /// An attack on several releases to show.
    pub series: Option<SeriesAttack>,
    /// Bounds on the loss, of which the one of the release is shown.
    pub bounds: Vec<LossBound>,
}

impl Options {
    /// What the bounds say of a release, if there are any. Those of other rows or another k say nothing.
    fn judge_release(&self, manifest: &Manifest) -> Result<Option<String>> {
        if self.bounds.is_empty() {
            return Ok(None);
        }
        let judged = |bound: &LossBound| bound.judge_release(manifest.k, manifest.rows, manifest.scores.gcp);
        self.bounds.iter().find_map(judged).map(Some).ok_or_else(|| {
            Error::input(format!(
                "none of the bounds is for k = {} and the {} rows of the release; run `throng bound` on its job",
                manifest.k, manifest.rows
            ))
        })
    }
}

impl Report {
    /// Creates the report of a release of a sink from the published files alone.
    pub(crate) async fn of_sink(sink: &str, options: Options) -> Result<Self> {
        let (context, _spill) = options.session.open()?;
        let location = Location::open(Path::new("."), sink)?;
        let manifest = find_release(&location, options.run.as_deref()).await?;
        let (classes, findings) = verify_release(&context, &location, &manifest).await?;
        let rows = open_published(&context, &location, &manifest).await?;
        let columns = plain_columns(&rows, &manifest, |_| true).await?;
        let bound = options.judge_release(&manifest)?;
        let (sweep, series) = (options.sweep, options.series);
        let exposure = Exposure::new(&classes, manifest.k);
        let (varieties, sink) = (Vec::new(), sink.to_owned());
        let report =
            Self { manifest, sink, findings, columns, varieties, exposure, compared: false, sweep, series, bound };
        report.complete_report(&rows, &classes).await
    }

    /// Creates the report of a release of a job, which is verified against its source.
    pub(crate) async fn of_job(job: &Job, base: &Path, options: Options) -> Result<Self> {
        let run =
            Run::new(job.clone(), base, RunOptions { session: options.session.clone(), ..RunOptions::default() })?;
        let ReleaseCheck { manifest, classes, findings, .. } = run.verify_latest(options.run.as_deref()).await?;
        let foreign = findings.iter().find(|finding| finding.rule == "policy" || finding.rule == "source");
        if let Some(finding) = foreign {
            return Err(Error::input(format!("{}; report on the sink alone instead", finding.message)));
        }
        let (_, bound_policy) = run.inspect().await?;
        let location = Location::open(base, &job.sink.url)?;
        let rows = open_published(run.context(), &location, &manifest).await?;
        let mut columns = Vec::new();
        let mut quasi = manifest.class_columns.clone();
        // Where quasi-identifiers are published as they are, they need no reading.
        if !bound_policy.form().is_exact() {
            columns = column_reports::report_quasi(&rows, &bound_policy, &manifest).await?;
            quasi.extend(bound_policy.quasi.iter().flat_map(published_fields).map(|field| field.name().clone()));
        }
        columns.extend(plain_columns(&rows, &manifest, |name| !quasi.contains(name)).await?);
        let bound = options.judge_release(&manifest)?;
        let (sweep, series) = (options.sweep, options.series);
        let exposure = Exposure::new(&classes, manifest.k);
        let (varieties, sink) = (Vec::new(), job.sink.url.clone());
        let report =
            Self { manifest, sink, findings, columns, varieties, exposure, compared: true, sweep, series, bound };
        report.complete_report(&rows, &classes).await
    }

    /// Adds what is read from the published rows, whichever way they were verified.
    async fn complete_report(mut self, rows: &DataFrame, classes: &Classes) -> Result<Self> {
        let manifest = &self.manifest;
        // A policy may allow dependencies to expose people with a warning; the page must not call that well.
        if !self.findings.iter().any(|finding| finding.rule == "inference") {
            let inferred = manifest.verification.inference.as_ref();
            self.findings.extend(inferred.and_then(|inferred| inferred.finding(manifest.k)));
            let undecided = inferred.and_then(|inferred| Some((inferred.undecided_rows, inferred.undecided()?)));
            self.findings.extend(undecided.map(|(rows, message)| Finding::new("inference", rows, message)));
        }
        for (name, role) in &manifest.roles {
            if *role == Role::Sensitive {
                self.varieties.push(column_reports::class_variety(rows, &manifest.class_columns, name).await?);
            }
        }
        // Whoever looks for a person chooses among people, not rows.
        let counted = |people: &&PeopleCounts| !people.classes.by_size.is_empty();
        let people = manifest.verification.people.as_ref().filter(counted).map(|people| {
            let mut classes = Classes::default();
            people.classes.by_size.iter().for_each(|(&size, &number)| classes.add_classes(size, number));
            classes
        });
        self.exposure = Exposure::new(people.as_ref().unwrap_or(classes), manifest.k);
        Ok(self)
    }

    /// Returns the page as HTML.
    pub(crate) fn to_html(&self) -> String {
        page::render_page(self)
    }
}

async fn open_published(context: &SessionContext, sink: &Location, manifest: &Manifest) -> Result<DataFrame> {
    Ok(open_readable(&InProcess, context, sink, &manifest.files, manifest.form(), None).await?.0)
}

/// Published columns as they stand.
async fn plain_columns(
    rows: &DataFrame,
    manifest: &Manifest,
    wanted: impl Fn(&String) -> bool,
) -> Result<Vec<ColumnReport>> {
    let mut columns = Vec::new();
    for field in rows.schema().fields() {
        let name = field.name();
        if !wanted(name) {
            continue;
        }
        let role = match manifest.roles.get(name) {
            _ if manifest.class_columns.contains(name) => "quasi",
            Some(Role::Sensitive) => "sensitive",
            Some(Role::Kept) => "kept",
            _ => "",
        };
        columns.push(ColumnReport {
            name: name.clone(),
            role: role.into(),
            loss: manifest.scores.by_column.get(name).copied(),
            histogram: column_reports::published_histogram(rows, name, field.data_type(), f64::from(manifest.k))
                .await?,
        });
    }
    // What was changed comes first.
    columns.sort_by_key(|column| !manifest.class_columns.contains(&column.name));
    Ok(columns)
}
