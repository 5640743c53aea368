//! A release that has been made: verified again, and attacked.

use std::collections::BTreeMap;
use std::path::Path as LocalPath;
use std::sync::Arc;

use datafusion::prelude::DataFrame;
use object_store::ObjectStoreExt;
use serde_json::{Value, json};

use super::{Opened, Run};
use crate::agreement::files;
use crate::agreement::manifest::{check_attained, check_job};
use crate::agreement::{Tables, verify_release};
use crate::attack::confidence::ConfidenceHistogram;
use crate::attack::linkage::Linkage;
use crate::attack::overlap::Budget;
use crate::audit::buckets::{self, Buckets, Shown};
use crate::audit::{Attack, Membership, Risks, attack, inference, presence};
use crate::binding::BoundPolicy;
use crate::engine::{SessionOptions, Verifier};
use crate::error::{Error, Result};
use crate::ledger;
use crate::ledger::manifest::{Manifest, OutputFile};
use crate::measure::Classes;
use crate::permutation::Slices;
use crate::policy::{Form, Role};
use crate::privacy::Figures;
use crate::source::Source;
use crate::source::public::Public;
use crate::storage::Location;
use crate::verify::{
    Finding, Look, check_max_loss, check_permuted, classes_beside, compare_values, verify_against_source, verify_rows,
};

/// A release that is compared with the source it was made from.
struct Compared<'a> {
    plans: &'a Verifier<'a>,
    manifest: &'a Manifest,
    bound_policy: &'a Arc<BoundPolicy>,
    slices: &'a Slices,
}

impl Compared<'_> {
    /// What does not hold of the published rows beside those of the source: `input` is what the run has read, `source` its
    /// own rows; so many rows are in the classes of the files that are present.
    async fn with_source(
        &self,
        run: &Run,
        published: &DataFrame,
        input: &DataFrame,
        source: &DataFrame,
        rows: u64,
        present: &[OutputFile],
    ) -> Result<Vec<Finding>> {
        let Self { plans, manifest, bound_policy, slices } = *self;
        let lost = check_max_loss(plans, published, input, bound_policy).await?;
        let mut findings: Vec<Finding> = lost.into_iter().collect();
        let read = source.clone().count().await? as u64;
        findings.extend(check_suppression(manifest, read, bound_policy));
        let tables = Tables::open_tables(&run.context, &run.sink()?, present, manifest.form()).await?;
        let shown = tables.as_ref().map_or(published, Tables::quasi);
        findings.extend(files::check_raw(plans, shown, input, bound_policy, read - rows.min(read)).await?);
        let suppressed = manifest.suppressed;
        findings.extend(match (tables, manifest.form()) {
            (Some(tables), Form::Anatomy) => tables.check_source(plans, source, bound_policy, suppressed).await?,
            (None, Form::Generalise) => {
                verify_against_source(plans, published, source, bound_policy, suppressed).await?
            }
            (tables, _) => {
                let shown = Shown::new(tables.map(|tables| tables.qit), published);
                let mut found = check_places(&shown, source, bound_policy, slices).await?;
                for (rows, columns) in shown.slice_tables(bound_policy, slices, buckets::Look::All)? {
                    let raised = |column: &usize| bound_policy.roles[*column] == Role::Quasi;
                    if bound_policy.form().is_exact() || !columns.iter().any(raised) {
                        let name = |column: &usize| bound_policy.input.field(*column).name().clone();
                        let columns: Vec<String> = columns.iter().map(name).collect();
                        found.extend(compare_values(plans, source, &rows, &columns, suppressed).await?);
                    }
                }
                let buckets = Buckets::read_buckets(&shown, bound_policy, slices, buckets::Look::All).await?;
                let fits = buckets.fit_people(source).await?;
                found.extend(buckets.check_source(&fits, suppressed));
                let mut different = Vec::new();
                add_new(&mut different, found);
                different
            }
        });
        Ok(findings)
    }
}

impl Run {
    /// Verifies the newest release of the job's sink against its manifest, the policy and the source.
    pub async fn verify_latest(&self, release: Option<&str>) -> Result<ReleaseCheck> {
        let sink = self.sink()?;
        let manifest = find_release(&sink, release).await?;
        let plans = Verifier { engine: self.engine.as_ref(), rows: manifest.rows, watch: &|_| {} };
        let (classes, mut findings) = files::verify_release_with(&plans, &self.context, &sink, &manifest).await?;
        let source = Source::find(&self.options.stores, &self.base, &self.job).await?;
        let opened = self.open_source(&source).await?;
        let Opened { input, bound_policy, public, rows, .. } = &opened;
        let (input, bound_policy, rows) = (input.clone(), Arc::clone(bound_policy), rows.clone());
        let slices = bound_policy.resolve_slices(&manifest.slices);
        findings.extend(check_job(&manifest, &bound_policy, &slices));
        let bound_policy = self.judged_by(&manifest, &opened).await?;
        let present = existing_files(&sink, &manifest.files).await?;
        // Missing and unreadable files have been reported already.
        if present.is_empty() || classes.rows() == 0 && !findings.is_empty() {
            return Ok(ReleaseCheck { manifest, classes, findings, attained: BTreeMap::new() });
        }
        let columns = files::check_types(&self.context, &sink, &present, &bound_policy).await?;
        add_new(&mut findings, columns.findings);
        if !columns.readable || manifest.form() != bound_policy.form() {
            return Ok(ReleaseCheck { manifest, classes, findings, attained: BTreeMap::new() });
        }
        // Missing rows have been reported already.
        let (form, output) = (manifest.form(), Some(bound_policy.output.as_ref()));
        let (published, _) = files::open_readable(&plans, &self.context, &sink, &present, form, output).await?;
        let found = verify_rows(&plans, &published, &bound_policy, &slices, manifest.rows, Look::All).await?;
        add_new(&mut findings, found.findings);
        findings.extend(check_attained(&manifest, &found.figures, &bound_policy)?);
        let original = DataFrame::new(self.context.state(), rows.clone());
        if let Some(chased) = inference::chase_published(&published, &original, &bound_policy).await? {
            findings.extend(inference::judge_inferred(&chased.found, &bound_policy));
        }
        if bound_policy.person.is_some() && manifest.verification.people.is_none() {
            let message = "the people of this release were not counted".to_owned();
            findings.push(Finding { rule: "person".into(), count: 1, message });
        }
        if let Some(public) = public {
            findings.extend(presence::verify_presence(&published, public, &self.context, &bound_policy).await?.0);
        }
        if manifest.series.is_some() {
            findings.extend(self.verify_series(&manifest, &source, &opened).await?);
        } else if self.is_release_of(&manifest, &source) {
            let input = DataFrame::new(self.context.state(), input);
            let source = DataFrame::new(self.context.state(), rows);
            let read = Compared { plans: &plans, manifest: &manifest, bound_policy: &bound_policy, slices: &slices };
            findings.extend(read.with_source(self, &published, &input, &source, classes.rows(), &present).await?);
        } else {
            findings.push(Finding {
                rule: "source".into(),
                count: 1,
                message: "the source has changed since the release, so its rows cannot be compared".into(),
            });
        }
        Ok(ReleaseCheck { manifest, classes, findings, attained: found.figures })
    }

    /// Computes what an adversary learns from a release of the job's sink, with a public table (defaults to the job's) and
    /// the number of people in the whole population, as far as they are known.
    pub(crate) async fn attack(
        &self,
        release: Option<&str>,
        public: Option<&str>,
        population: Option<u64>,
    ) -> Result<Attack> {
        let sink = self.sink()?;
        let manifest = find_release(&sink, release).await?;
        let source = Source::find(&self.options.stores, &self.base, &self.job).await?;
        let Opened { bound_policy, public: of_job, rows, .. } = self.open_source(&source).await?;
        if manifest.form() != bound_policy.form() {
            return Err(Error::job(format!(
                "method.form: the release has the form `{}`, but the job would publish `{}`; attack it with the job that \
                 made it",
                manifest.form().as_str(),
                bound_policy.form().as_str()
            )));
        }
        let public = match public {
            Some(url) => Some(self.open_public(LocalPath::new("."), url).await?),
            None => of_job,
        };
        let tables = Tables::open_tables(&self.context, &sink, &manifest.files, manifest.form()).await?;
        let published = match &tables {
            Some(tables) => tables.rows()?,
            None => files::open_published(&self.context, &sink, &manifest.files, Some(&bound_policy.output)).await?,
        };
        let classes = files::count_classes(&published, &bound_policy.class_columns()).await?;
        let slices = bound_policy.resolve_slices(&manifest.slices);
        let known = match &public {
            Some(public) => {
                let shown = Shown::new(tables.map(|tables| tables.qit), &published);
                Some(self.match_people(public, &published, &shown, &bound_policy, &slices).await?)
            }
            None => None,
        };
        let original = DataFrame::new(self.context.state(), rows.clone());
        let chased = inference::chase_published(&published, &original, &bound_policy).await?;
        let mut sensitive = BTreeMap::new();
        for column in &bound_policy.sensitive {
            let by = classes_beside(&bound_policy, &slices, column);
            sensitive.insert(column.name.clone(), attack::measure_disclosure(&published, &by, column).await?);
        }
        let population = match population {
            Some(people) => {
                let source = DataFrame::new(self.context.state(), rows);
                Some(attack::estimate_population(people, &source, &classes, &bound_policy).await?)
            }
            None => None,
        };
        let (mut tally, linkage) = known.unzip();
        if let Some(tally) = &mut tally {
            tally.add_unpublished(manifest.suppressed);
        }
        Ok(Attack {
            run: manifest.run,
            form: manifest.form,
            rows: classes.rows(),
            classes: classes.classes(),
            membership: tally.map(Membership::new),
            linkage: Risks::new(&classes, linkage.as_ref()),
            inference: chased.map(|chased| chased.found),
            sensitive,
            population,
        })
    }
}

impl Run {
    /// Who of a public table can be in a release, and behind how many rows each can be.
    async fn match_people(
        &self,
        public: &Public,
        published: &DataFrame,
        shown: &Shown,
        bound_policy: &BoundPolicy,
        slices: &Slices,
    ) -> Result<(ConfidenceHistogram, Linkage)> {
        if !bound_policy.form().is_numbered() {
            let matching = presence::match_people(published, public, &self.context, bound_policy).await?;
            return Ok((matching.confidence_histogram(), matching.linkage_risks()));
        }
        let people = presence::read_people(public, &self.context, bound_policy)?;
        let buckets = Buckets::read_buckets(shown, bound_policy, slices, buckets::Look::Quasi).await?;
        let fits = buckets.fit_people(&people).await?;
        Ok((buckets.confidence_histogram(&fits, Budget::default()), buckets.linkage_risks(&fits)))
    }
}

/// What `verify` has found of a release.
#[derive(Debug, Clone)]
pub struct ReleaseCheck {
    /// The manifest of the release.
    pub manifest: Manifest,
    /// Its classes, counted in the files.
    pub classes: Classes,
    /// What does not hold.
    pub findings: Vec<Finding>,
    /// How well each sensitive column is protected, by every rule.
    pub attained: BTreeMap<String, Figures>,
}

impl ReleaseCheck {
    /// Verifies a release of a sink, the newest unless a run id is given, as far as that is possible without policy and
    /// source.
    pub(crate) async fn of_sink(session: &SessionOptions, sink: &Location, run: Option<&str>) -> Result<Self> {
        let manifest = find_release(sink, run).await?;
        let (context, _spill) = session.open()?;
        let (classes, findings) = verify_release(&context, sink, &manifest).await?;
        Ok(Self { manifest, classes, findings, attained: BTreeMap::new() })
    }

    /// Returns the result for programs; `against_source` says whether the rows were compared with those of the source.
    pub(crate) fn to_json(&self, against_source: bool) -> Value {
        let Self { manifest, classes, findings, attained } = self;
        let people = manifest.verification.people.as_ref().map(|people| people.classes.smallest);
        let broken: Vec<Value> = findings
            .iter()
            .map(|finding| json!({ "rule": finding.rule, "count": finding.count, "message": finding.message }))
            .collect();
        json!({
            "run": manifest.run,
            "holds": findings.is_empty(),
            "rows": classes.rows(),
            "classes": classes.classes(),
            "k": classes.smallest().unwrap_or(0),
            "people": people,
            "attained": attained,
            "rules": self.checked_rules(against_source),
            "against_source": against_source,
            "findings": broken,
        })
    }

    /// Returns the names of the rules that were checked: without a policy, k alone.
    pub(crate) fn checked_rules(&self, against_source: bool) -> Vec<String> {
        if against_source { self.manifest.verification.rule_names() } else { vec![format!("k = {}", self.manifest.k)] }
    }
}

/// A release of a sink by run id, or the newest one.
pub(crate) async fn find_release(sink: &Location, run: Option<&str>) -> Result<Manifest> {
    let run = match run {
        Some(run) => run.to_owned(),
        None => match ledger::latest_run(sink).await? {
            Some(run) => run,
            None => return Err(Error::input(format!("`{}` holds no release; `throng run` makes one", sink.name))),
        },
    };
    let found = ledger::committed_manifest(sink, &run).await?;
    found.ok_or_else(|| ledger::no_such_run(sink, &run))
}

async fn existing_files(sink: &Location, files: &[OutputFile]) -> Result<Vec<OutputFile>> {
    let mut present = Vec::new();
    for file in files {
        match sink.store.head(&sink.at(&file.path)).await {
            Ok(_) => present.push(file.clone()),
            Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(present)
}

/// Adds findings that are not there yet.
fn add_new(findings: &mut Vec<Finding>, more: Vec<Finding>) {
    for finding in more {
        if !findings.contains(&finding) {
            findings.push(finding);
        }
    }
}

/// Whether values have changed places that should have: each slice against all others of its table, and the sensitive ones
/// against each.
async fn check_places(
    shown: &Shown,
    source: &DataFrame,
    bound_policy: &BoundPolicy,
    slices: &Slices,
) -> Result<Vec<Finding>> {
    let parts = shown.slice_tables(bound_policy, slices, buckets::Look::All)?;
    // Generalised values are not those of the source, and what has a table of its own stands beside nothing.
    let is_exact = |columns: &[usize]| {
        bound_policy.form().is_exact() || !columns.iter().any(|&column| bound_policy.roles[column] == Role::Quasi)
    };
    let beside = parts.iter().take(slices.columns.len()).filter(|(_, columns)| is_exact(columns));
    let beside: Vec<(&DataFrame, &[usize])> = beside.map(|(rows, columns)| (rows, columns.as_slice())).collect();
    let names = |columns: &[usize]| -> Vec<String> {
        columns.iter().map(|&column| bound_policy.input.field(column).name().clone()).collect()
    };
    let mut findings = Vec::new();
    for (at, (rows, moved)) in beside.iter().enumerate() {
        let others =
            || beside.iter().enumerate().filter(move |(other, _)| *other != at).map(|(_, (_, columns))| *columns);
        let mut against: Vec<Vec<usize>> = vec![others().flatten().copied().collect()];
        if moved.iter().any(|&column| bound_policy.roles[column] == Role::Sensitive) && others().count() > 1 {
            against.extend(others().map(<[usize]>::to_vec));
        }
        for stay in against.iter().filter(|columns| !columns.is_empty()) {
            let found = check_permuted(rows, source, (&names(stay), &names(moved))).await?;
            add_new(&mut findings, found.into_iter().collect());
        }
    }
    Ok(findings)
}

/// Whether as many rows were left out as the manifest says, and no more than the policy allows.
fn check_suppression(manifest: &Manifest, read: u64, bound_policy: &BoundPolicy) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !manifest.rounded && read != manifest.rows_read {
        let message = format!("the source has {read} rows, but the manifest says {}", manifest.rows_read);
        findings.push(Finding::new("rows", read.abs_diff(manifest.rows_read), message));
    }
    let (missing, allowed) = (read.saturating_sub(manifest.rows), bound_policy.policy.privacy.max_suppression);
    if missing as f64 / read.max(1) as f64 > allowed {
        let message = format!("more than a share of {allowed} of the rows of the source are not published");
        findings.push(Finding::new("max-suppression", missing, message));
    }
    findings
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use object_store::PutPayload;

    use super::super::tests::Lab;
    use super::*;
    use crate::ledger::manifest::tests::small_manifest;
    use crate::policy::Policy;

    fn file(path: &str) -> OutputFile {
        OutputFile { path: path.into(), rows: 1, size: 1, blake3: String::new() }
    }

    #[tokio::test]
    async fn files_that_are_there_are_told_from_those_that_are_not() {
        let sink = Lab::new().await.sink();
        sink.store.put(&sink.at("data/a.parquet"), PutPayload::from_static(b"x")).await.unwrap();
        let files = [file("data/a.parquet"), file("data/b.parquet")];
        assert_eq!(existing_files(&sink, &files).await.unwrap(), files[..1]);
        assert_eq!(existing_files(&sink, &[]).await.unwrap(), []);
    }

    #[test]
    fn what_was_found_before_is_not_found_again() {
        let finding = |count| Finding::new("k", count, "classes are small");
        let mut findings = vec![finding(1)];
        add_new(&mut findings, vec![finding(1), finding(2), finding(2)]);
        assert_eq!(findings, [finding(1), finding(2)], "another count is another finding");
    }

    /// Of a hundred rows of the source, some are published, and a tenth may be left out.
    #[test]
    fn rows_that_are_missing_are_counted_against_the_policy() {
        let text = "privacy = { k = 2, max-suppression = 0.1 }\ncolumns.age.role = \"quasi\"";
        let policy = Policy::from_table(toml::from_str(text).unwrap(), Path::new(".")).unwrap();
        let schema = Schema::new(vec![Field::new("age", DataType::Int32, true)]);
        let bound_policy = BoundPolicy::new(Arc::new(policy), Arc::new(schema)).unwrap();
        let found = |manifest: &Manifest, read| {
            let findings = check_suppression(manifest, read, &bound_policy);
            findings.into_iter().map(|finding| (finding.rule, finding.count)).collect::<Vec<_>>()
        };
        let missing = |rule: &str, count| (rule.to_owned(), count);
        assert_eq!(found(&small_manifest(100, 90), 100), []);
        assert_eq!(found(&small_manifest(100, 89), 100), [missing("max-suppression", 11)]);
        assert_eq!(found(&small_manifest(90, 90), 100), [missing("rows", 10)], "ten rows that nobody speaks of");
        assert_eq!(found(&small_manifest(100, 100), 90), [missing("rows", 10)], "more published than there were");
        let mut rounded = small_manifest(100, 95);
        rounded.round_unpublished();
        assert_eq!(found(&rounded, 100), [], "what was rounded cannot agree to the row");
        assert_eq!(found(&small_manifest(0, 0), 0), [], "an empty table");
    }
}
