//! A series that has been published: its ledger against source and sink, and subjects that must not be published again.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::DFSchema;
use datafusion::logical_expr::{Expr, ident};
use datafusion::prelude::DataFrame;
use serde::Serialize;

use super::nightly::Continued;
use super::shown::{read_shown, with_cohorts};
use super::{Opened, Run};
use crate::agreement::verify_neighbours;
use crate::audit::histories::check_histories;
use crate::binding::BoundPolicy;
use crate::error::{Error, Result};
use crate::ledger;
use crate::ledger::manifest::Manifest;
use crate::policy::SeriesMode;
use crate::series::key::Purpose;
use crate::series::night::{Night, kind};
use crate::series::scratch::Scratch;
use crate::series::state::ledger_schema;
use crate::source::Source;
use crate::storage::Location;
use crate::verify::{Finding, InProcess, verify_against_source};

/// What is known of subjects that must not be published again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Forgotten {
    /// Subjects in the table.
    pub(crate) subjects: u64,
    /// Those of them that have been published.
    pub(crate) published: u64,
    /// Those of them that wait, and have not been published.
    pub(crate) waiting: u64,
    /// Every release by its run, and how many of the subjects were first published in it or before.
    pub(crate) releases: Vec<(String, u64)>,
}

impl Run {
    /// Checks the newest release of a series against its ledger and its source.
    pub(super) async fn verify_series(
        &self,
        manifest: &Manifest,
        source: &Source,
        opened: &Opened,
    ) -> Result<Vec<Finding>> {
        let Some(series) = &self.job.series else {
            return Err(Error::job(
                "series: the release is one of a series, and the job has no [series]; verify it with the job that made it",
            ));
        };
        let sink = self.sink()?;
        let continued = Continued::open_series(self, series, &sink).await?;
        let (Some(ledger), Some(newest)) = (&continued.ledger, &continued.manifest) else {
            return Err(Error::conflict("the series has no ledger; restore series.state from its backup"));
        };
        if newest.run != manifest.run {
            return Ok(Vec::new());
        }
        let floor = self.floor_policy(&ledger.version, &opened.bound_policy)?;
        let number = ledger.version.number + 1;
        let state = &continued.state;
        let setting = self.night_setting(series, &continued, &opened.bound_policy, number);
        let rows = state.read_rows(&self.local, ledger).await?;
        let arrivals = self.arrivals(series, &continued, source).await?;
        let night = if arrivals.is_some() {
            // Whatever was read is published, waiting or suppressed; nobody can be told from others.
            Night::begin_with_arrivals(setting, &source.scan_files(&self.local, &[]).await?, None, rows).await?
        } else {
            Night::begin(setting, &opened.scanned, rows, state.forgotten_subjects(&self.local).await?).await?
        };
        let context = night.scratch.context();
        let born = manifest.series.as_ref().map(|series| series.born.clone()).unwrap_or_default();
        let files = &manifest.files;
        let ledger_rows = state.read_rows(context, ledger).await?;
        let shown = read_shown(&night, &sink, files, &born).await?;
        let mut findings = check_histories(&InProcess, context, ledger_rows, shown, &floor).await?;
        if let Some(arrivals) = arrivals {
            let read = DataFrame::new(self.local.state(), source.scan_files(&self.local, &arrivals.old).await?);
            let waiting: u64 = ledger.version.waiting.iter().map(|file| file.rows).sum();
            let known = manifest.rows + waiting + ledger.version.suppressed;
            let off = known.abs_diff(read.count().await? as u64);
            findings.extend(Finding::if_any("series", off, |rows| {
                format!(
                    "{rows} rows of the files that were read are not accounted for as published, waiting or suppressed"
                )
            }));
        }
        // Whoever was forgotten since is gone here, and was not to the run.
        let is_as_then = manifest.series.as_ref().is_some_and(|series| series.counts.forgotten == night.forgotten);
        if is_as_then && self.is_release_of(manifest, source) {
            findings.extend(check_counts(&night, manifest).await?);
        }
        if series.mode == SeriesMode::Snapshot {
            let published = self.live_rows(&night, &sink, manifest).await?;
            let live = format!("SELECT subject FROM merged WHERE kind = {}", kind::LIVE);
            let live = night.scratch.sql(&live).await?;
            let live = night.of_subjects(live)?;
            findings.extend(verify_against_source(&InProcess, &published, &live, &opened.bound_policy, 0).await?);
        }
        Ok(findings)
    }

    /// Checks what differs between neighbours among all releases of the series in the job's sink. Returns how many there are.
    pub(crate) async fn verify_neighbours(&self) -> Result<(usize, Vec<Finding>)> {
        let source = Source::find(&self.options.stores, &self.base, &self.job).await?;
        let opened = self.open_source(&source).await?;
        let sink = self.sink()?;
        let bound_policy = match ledger::releases(&sink).await?.last() {
            Some(manifest) => self.judged_by(manifest, &opened).await?,
            None => Arc::clone(&opened.bound_policy),
        };
        verify_neighbours(&self.context, &sink, Some(&bound_policy)).await
    }

    /// The rules that a release is judged by: of a series, those that all of its classes meet.
    pub(super) async fn judged_by(&self, manifest: &Manifest, opened: &Opened) -> Result<Arc<BoundPolicy>> {
        let (Some(_), Some(series)) = (&manifest.series, &self.job.series) else {
            return Ok(Arc::clone(&opened.bound_policy));
        };
        let continued = Continued::open_series(self, series, &self.sink()?).await?;
        match &continued.ledger {
            Some(ledger) => self.floor_policy(&ledger.version, &opened.bound_policy),
            None => Ok(Arc::clone(&opened.bound_policy)),
        }
    }

    /// The published rows of subjects who are in the source as they were published. Rows of one class and content are alike,
    /// so it does not matter which of them are left out for those who are not.
    async fn live_rows(&self, night: &Night<'_>, sink: &Location, manifest: &Manifest) -> Result<DataFrame> {
        let born = manifest.series.as_ref().map(|series| series.born.clone()).unwrap_or_default();
        let names: Vec<String> =
            night.setting.bound_policy.output.fields().iter().map(|field| field.name().clone()).collect();
        let all = with_cohorts(night, sink, &manifest.files, &born, &names).await?;
        night.scratch.define_view("published", all)?;
        let live = format!(
            "SELECT p.* FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY \"__throng_cohort\", \"__throng_content\") AS \
             \"__throng_place\" FROM published) p LEFT JOIN (SELECT cohort, content, COUNT(*) AS stale FROM merged WHERE \
             kind IN ({}, {}) GROUP BY cohort, content) s ON p.\"__throng_cohort\" = s.cohort AND \
             p.\"__throng_content\" = s.content WHERE p.\"__throng_place\" > COALESCE(s.stale, 0)",
            kind::CHANGED,
            kind::GONE
        );
        Ok(night.scratch.sql(&live).await?.select(names.iter().map(ident).collect::<Vec<Expr>>())?)
    }

    /// Removes versions of the ledger that nobody needs any more; with `dry_run`, only finds them.
    pub(crate) async fn collect_versions(&self, age: Duration, dry_run: bool) -> Result<Vec<(String, u64)>> {
        let Some(series) = &self.job.series else { return Ok(Vec::new()) };
        // A version that a run has staged which died before it could move the pointer comes into force first.
        let continued = Continued::open_series(self, series, &self.sink()?).await?;
        continued.state.collect_versions(age, dry_run).await
    }

    /// Refuses subjects that are floating-point numbers where those of the source are not: many tools write whole numbers
    /// beside a null as floats, and these would be nobody's identity.
    async fn ensure_no_new_floats(&self, erased: &DataFrame, subject: &[String]) -> Result<()> {
        let is_float = |schema: &DFSchema, name: &str| {
            schema.field_with_unqualified_name(name).is_ok_and(|field| field.data_type().is_floating())
        };
        let floats: Vec<&String> = subject.iter().filter(|name| is_float(erased.schema(), name)).collect();
        if floats.is_empty() {
            return Ok(());
        }
        let source = Source::find(&self.options.stores, &self.base, &self.job).await?;
        let source = DataFrame::new(self.local.state(), source.scan(&self.local).await?.0);
        match floats.iter().find(|name| !is_float(source.schema(), name)) {
            Some(name) => Err(Error::input(format!(
                "column `{name}` of the table of subjects holds floating-point numbers, those of the source are of another type; \
                 write it with the type that the source has"
            ))),
            None => Ok(()),
        }
    }

    /// Keeps subjects from being published again, and returns what is known of them.
    pub(crate) async fn forget(&self, subjects: &str) -> Result<Forgotten> {
        let Some(series) = &self.job.series else {
            return Err(Error::job("series: is missing: without a ledger nobody knows whose rows were published"));
        };
        if series.is_by_file() {
            return Err(Error::job(
                "series.subject: names no column, so nobody can be told from others; withdraw the releases that hold their rows",
            ));
        }
        let continued = Continued::open_series(self, series, &self.sink()?).await?;
        let found = Source::at_url(&self.options.stores, Path::new("."), subjects).await?;
        let erased = DataFrame::new(self.local.state(), found.scan(&self.local).await?.0);
        for name in &series.subject {
            if erased.schema().field_with_unqualified_name(name).is_err() {
                return Err(Error::input(format!(
                    "the table of subjects has no column `{name}`, which [series] names"
                )));
            }
        }
        self.ensure_no_new_floats(&erased, &series.subject).await?;
        let columns = series.subject.iter().map(ident).collect();
        let digest = continued.state.key().digest(Purpose::Subject).call(columns).alias("subject");
        let erased = erased.select(vec![digest])?.filter(ident("subject").is_not_null())?.distinct()?;
        let scratch = Scratch::create(&self.local, self.spill.path())?;
        scratch.keep_rows("erased", erased).await?;
        if let Some(ledger) = &continued.ledger {
            scratch.define_view("ledger", continued.state.read_rows(scratch.context(), ledger).await?)?;
        } else {
            let nothing = RecordBatch::new_empty(ledger_schema());
            scratch.hold_rows("ledger", nothing)?;
        }
        let known = "SELECT l.state, l.since FROM erased e JOIN ledger l ON e.subject = l.subject";
        scratch.define_view("known", scratch.sql(known).await?)?;
        let counted = "SELECT (SELECT COUNT(*) FROM erased) AS erased, \
                       (SELECT COUNT(*) FROM known WHERE state <> 4) AS published, \
                       (SELECT COUNT(*) FROM known WHERE state = 4) AS waiting";
        let found = scratch.query_numbers(counted).await?;
        let mut releases = Vec::new();
        for manifest in ledger::releases(&self.sink()?).await? {
            let Some(number) = manifest.series.as_ref().map(|series| series.number) else { continue };
            let since = format!("SELECT COUNT(*) FROM known WHERE state <> 4 AND since <= {number}");
            releases.push((manifest.run, scratch.query_numbers(&since).await?[0]));
        }
        continued.state.forget_subjects(scratch.table("erased").await?, &self.uploads).await?;
        Ok(Forgotten { subjects: found[0], published: found[1], waiting: found[2], releases })
    }
}

/// Whether the manifest counts what the ledger knows of the source.
async fn check_counts(night: &Night<'_>, manifest: &Manifest) -> Result<Option<Finding>> {
    let Some(series) = manifest.series.as_ref().filter(|series| series.mode == SeriesMode::Snapshot) else {
        return Ok(None);
    };
    let is = |kind: i64| format!("SUM(CASE WHEN kind = {kind} THEN 1 ELSE 0 END)");
    let counted = format!("SELECT {}, {}, {} FROM merged", is(kind::GONE), is(kind::CHANGED), is(kind::WITHHELD));
    let found = night.scratch.query_numbers(&counted).await?;
    let said = [series.counts.gone, series.counts.changed, series.counts.withheld];
    let off: u64 = found.iter().zip(said).map(|(found, said)| found.abs_diff(said)).sum();
    Ok(Finding::if_any("series", off, |count| {
        format!("{count} rows are gone, changed or withheld other than the manifest says")
    }))
}
