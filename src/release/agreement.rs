//! Whether a manifest agrees with the files of its release, with itself and with the job that it was made by.
//!
//! A manifest is a text that anybody who may write to the sink can change. What it says of the files is counted in them
//! again; what it says twice must be the same twice; and what follows from the job is compared with the job. Whoever changes
//! files, footers, checksums and manifest so that all of them agree is found by the job and the source, or by nobody: that
//! takes a signature.

use std::collections::BTreeMap;

use datafusion::parquet::arrow::ARROW_SCHEMA_META_KEY;
use serde_json::Value;

use crate::binding::{BoundPolicy, MEMBER_COLUMN};
use crate::error::{Error, Result};
use crate::ledger::manifest::{ClassCounts, Manifest, OutputFile, round_figures};
use crate::measure::Classes;
use crate::permutation::Slices;
use crate::policy::{GROUP, QIT, Role, ST, SeriesMode};
use crate::privacy::{Figures, RuleRecord, Rules};
use crate::survey;
use crate::verify::{Finding, Footer, PromisedType};

/// What a release is worth that was made with a seed.
pub(crate) const REENACTABLE: &str = "the run has a seed: whoever knows it can re-enact the run and undo its grouping";

/// Something that a manifest says and that is not so.
fn wrong(message: String) -> Finding {
    Finding::new("manifest", 1, message)
}

/// Compares what the manifest says of files with what they say of themselves.
pub(crate) fn check_files(manifest: &Manifest, files: &[OutputFile], footers: &[Footer]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let differing = |differs: &dyn Fn(&OutputFile, &Footer) -> bool| {
        let pairs = files.iter().zip(footers).filter(|(file, footer)| differs(file, footer));
        let paths: Vec<&str> = pairs.map(|(file, _)| file.path.as_str()).collect();
        paths.first().map(|first| (paths.len() as u64, (*first).to_owned()))
    };
    if let Some((count, first)) = differing(&|file, footer| file.rows != footer.rows || file.size != footer.size) {
        let message =
            format!("{count} files have other rows or bytes than the manifest says, `{first}` the first of them");
        findings.push(Finding::new("files", count, message));
    }
    if let Some((count, first)) =
        differing(&|_, footer| footer.annotated || footer.metadata.keys().any(|key| !is_ours(key)))
    {
        let message =
            format!("{count} files say more of their columns than names and types, `{first}` the first of them");
        findings.push(Finding::new("columns", count, message));
    }
    let k = manifest.k.to_string();
    let noted = [
        ("throng.run", &manifest.run),
        ("throng.policy", &manifest.policy),
        ("throng.k", &k),
        ("throng.version", &manifest.version),
    ];
    for (key, said) in noted {
        // Files that a series lists again were made by earlier runs.
        let is_own = |file: &OutputFile| manifest.series.is_none() || file.path.starts_with(&manifest.data);
        let differs = |file: &OutputFile, footer: &Footer| {
            is_own(file) && footer.metadata.get(key).is_some_and(|noted| noted != said)
        };
        if let Some((count, first)) = differing(&differs) {
            let message = format!("{count} files note another `{key}` than it says, `{first}` the first of them");
            findings.push(Finding::new("manifest", count, message));
        }
    }
    findings
}

/// Whether releases have such a note in their files: everything else came from elsewhere.
fn is_ours(key: &str) -> bool {
    key == ARROW_SCHEMA_META_KEY || ["throng.run", "throng.policy", "throng.k", "throng.version"].contains(&key)
}

/// Compares what the manifest says in one place with what it says in another.
pub(crate) fn check_coherence(manifest: &Manifest) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut ensure = |holds: bool, message: &str| {
        if !holds {
            findings.push(wrong(message.to_owned()));
        }
    };
    let verification = &manifest.verification;
    let people = verification.people.as_ref();
    let first_rule = verification.rules.first();
    ensure(
        first_rule.is_some_and(|rule| rule.asks_same_as(&RuleRecord::group_size(manifest.k, people.is_some()))),
        "its k is not that of the rules which were checked",
    );
    // Format 1 did not say what is attained of a rule.
    ensure(
        manifest.format < 2 || verification.rules.iter().all(|rule| rule.attained == manifest.attained_of(rule)),
        "what it says is attained of a rule is not what it says of classes, columns and scores",
    );
    ensure(
        rows_add_up(manifest) && manifest.dropped <= manifest.suppressed,
        "published and suppressed rows are not the rows that were read",
    );
    let folder = |file: &OutputFile| file.path.rsplit('/').nth(1).unwrap_or_default().to_owned();
    let two_tables = manifest.files.iter().all(|file| [QIT, ST].contains(&folder(file).as_str()));
    let form = manifest.form();
    ensure(
        manifest.files.is_empty() || form.is_two_tables() == two_tables,
        "its form has another number of tables than the release",
    );
    let rows: u64 = manifest.files.iter().filter(|file| folder(file) != ST).map(|file| file.rows).sum();
    ensure(manifest.files.is_empty() || rows == manifest.rows, "the rows of its files are not the rows of the release");
    let numbered = manifest.class_columns == [GROUP];
    ensure(
        form.is_numbered() == numbered && form.is_numbered() != manifest.slices.is_empty(),
        "its form does not go with its classes and slices",
    );
    ensure(
        manifest.class_columns.iter().all(|column| manifest.schema.contains_key(column)),
        "it forms classes by columns that are not published",
    );
    let warned = manifest.warnings.iter().any(|warning| warning == REENACTABLE);
    ensure(manifest.seed.is_some() == warned, "its seed and its warnings contradict each other");
    let sums_up = |counts: &ClassCounts| {
        let smallest = counts.by_size.keys().next().copied().unwrap_or(0);
        counts.by_size.values().sum::<u64>() == counts.count && counts.smallest == smallest
    };
    ensure(people.is_none_or(|people| sums_up(&people.classes)), "its classes of people do not add up");
    findings
}

/// Whether every row that was read is accounted for. A series publishes rows that are not in the source any more, and leaves
/// out some that wait or are withheld.
fn rows_add_up(manifest: &Manifest) -> bool {
    let read = match &manifest.series {
        Some(series) if series.mode == SeriesMode::Snapshot => series.counts.read(manifest.rows),
        _ => manifest.rows.checked_add(manifest.suppressed),
    };
    read == Some(manifest.rows_read)
}

/// Compares the classes of the manifest with those that were counted.
pub(crate) fn check_counts(manifest: &Manifest, classes: &Classes) -> Option<Finding> {
    let agrees = ClassCounts::from(classes) == manifest.verification.classes;
    (!agrees).then(|| Finding::new("classes", 1, "the published classes are not those that the manifest counts"))
}

/// Compares what the manifest says with what follows from the job.
pub(crate) fn check_job(manifest: &Manifest, bound_policy: &BoundPolicy, slices: &Slices) -> Vec<Finding> {
    let policy = &bound_policy.policy;
    let mut findings = Vec::new();
    if manifest.policy != policy.hash {
        findings.push(Finding::new("policy", 1, "the release was made under another policy than this job's"));
    }
    let mut compare = |what: &str, agrees: bool| {
        if !agrees {
            findings.push(wrong(format!("its {what} is not the job's")));
        }
    };
    // Cohorts of a series meet the rules of its first release, which may have been weaker.
    let k = manifest.series.as_ref().map_or(manifest.k, |series| series.k);
    compare("k", k == policy.privacy.k);
    compare("method", manifest.method == policy.method.name.as_str());
    compare("seed", manifest.seed == policy.method.seed);
    compare("form", manifest.form() == bound_policy.form());
    compare("list of class columns", manifest.class_columns == bound_policy.class_columns());
    compare("list of roles", manifest.roles == roles(bound_policy));
    let (rules, said) =
        (rule_records(bound_policy, &survey::rules(bound_policy, slices)), &manifest.verification.rules);
    let same = said.len() == rules.len() && said.iter().zip(&rules).all(|(said, rule)| said.asks_same_as(rule));
    compare("list of rules", manifest.series.is_some() || same);
    let written = |name: &str, found| manifest.schema.get(name).is_some_and(|text| promised(text).is_met(found));
    let fields = bound_policy.output.fields();
    let schema =
        manifest.schema.len() == fields.len() && fields.iter().all(|field| written(field.name(), field.data_type()));
    compare("schema", schema);
    findings
}

fn promised(text: &str) -> PromisedType {
    PromisedType::Written(text.to_owned())
}

/// Compares how well columns are protected by the manifest with what was found in the files.
pub(crate) fn check_attained(
    manifest: &Manifest,
    found: &BTreeMap<String, Figures>,
    bound_policy: &BoundPolicy,
) -> Result<Option<Finding>> {
    let unreadable = |error: serde_json::Error| Error::internal(format!("figures cannot be compared: {error}"));
    let said = serde_json::to_value(&manifest.verification.attained).map_err(unreadable)?;
    let found = serde_json::to_value(round_figures(found)?).map_err(unreadable)?;
    let differs = |(column, figures): (&String, &Value)| {
        let of = |name: &String| found.get(column).and_then(|figures| figures.get(name));
        let is_wrong =
            |(name, said): (&String, &Value)| !said.is_null() && !of(name).is_some_and(|found| is_near(said, found));
        figures.as_object().is_none_or(|figures| figures.iter().any(is_wrong))
    };
    let mut wrong_columns =
        said.as_object().map_or(0, |columns| columns.iter().filter(|column| differs(*column)).count());
    let rules = bound_policy.policy.privacy.rules();
    let guarded = |name: &String| rules.iter().any(|listed| listed.rule.column() == name);
    let columns = bound_policy.sensitive.iter().map(|column| &column.name);
    let is_known = |name: &String| found.get(name).is_some() && said.get(name).is_none();
    wrong_columns += columns.filter(|name| guarded(name) && is_known(name)).count();
    Ok(Finding::some("manifest", wrong_columns as u64, |count| {
        format!("{count} sensitive columns are not protected as it says they are")
    }))
}

/// Whether two figures are the same: reading large ones from text may change their last bit.
fn is_near(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * a.abs(),
        _ => a == b,
    }
}

/// The rules of a policy as the manifest records them.
pub(crate) fn rule_records(bound_policy: &BoundPolicy, rules: &Rules) -> Vec<RuleRecord> {
    let k = RuleRecord::group_size(bound_policy.policy.privacy.k, bound_policy.person.is_some());
    [k].into_iter().chain(rules.others.iter().map(|rule| rule.record())).collect()
}

/// The role of every column of the source, as the manifest has it.
pub(crate) fn roles(bound_policy: &BoundPolicy) -> BTreeMap<String, Role> {
    let fields = bound_policy.input.fields().iter().zip(&bound_policy.roles);
    let own = fields.filter(|(field, _)| field.name() != MEMBER_COLUMN);
    own.map(|(field, role)| (field.name().clone(), *role)).collect()
}
