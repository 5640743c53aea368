//! Whether a manifest agrees with the files of its release, with itself and with the job that it was made by.
//!
//! A manifest is a text that anybody who may write to the sink can change. What it says of the files is counted in them
//! again; what it says twice must agree; and what follows from the job is compared with the job. Changes to
//! files, footers, checksums and manifest that leave all of them consistent show only against the job and the source: that
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

/// The warning about a release that was made with a seed.
pub(crate) const REENACTABLE: &str = "the run has a seed: whoever knows it can re-enact the run and undo its grouping";

/// A finding about a wrong statement of the manifest.
fn wrong_statement(message: String) -> Finding {
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
        let message = format!("{count} files have other rows or bytes than the manifest says, starting with `{first}`");
        findings.push(Finding::new("files", count, message));
    }
    if let Some((count, first)) =
        differing(&|_, footer| footer.annotated || footer.metadata.keys().any(|key| !is_ours(key)))
    {
        let message = format!("{count} files hold metadata of columns beyond names and types, starting with `{first}`");
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
            let message = format!("{count} files record another `{key}` than the manifest, starting with `{first}`");
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
            findings.push(wrong_statement(message.to_owned()));
        }
    };
    let verification = &manifest.verification;
    let people = verification.people.as_ref();
    let first_rule = verification.rules.first();
    ensure(
        first_rule.is_some_and(|rule| rule.asks_same_as(&RuleRecord::group_size(manifest.k, people.is_some()))),
        "its k is not that of the rules that were checked",
    );
    // Format 1 did not say what is attained of a rule.
    ensure(
        manifest.format < 2 || verification.rules.iter().all(|rule| rule.attained == manifest.attained_of(rule)),
        "what it says is attained of a rule is not what it says of classes, columns and scores",
    );
    ensure(
        rows_add_up(manifest) && manifest.dropped <= manifest.suppressed,
        "published and suppressed rows do not add up to the rows that were read",
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
        "its form does not fit its classes and slices",
    );
    ensure(
        manifest.class_columns.iter().all(|column| manifest.schema.contains_key(column)),
        "it forms classes by columns that are not published",
    );
    let warned = manifest.warnings.iter().any(|warning| warning == REENACTABLE);
    ensure(manifest.seed.is_some() == warned, "its seed and its warnings contradict each other");
    let sums_up = |counts: &ClassCounts| {
        if counts.by_size.is_empty() && counts.count > 0 {
            return counts.smallest == u64::from(manifest.k);
        }
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
    (!agrees).then(|| Finding::new("classes", 1, "the published classes are not those counted in the manifest"))
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
            findings.push(wrong_statement(format!("its {what} is not the job's")));
        }
    };
    // Cohorts of a series meet the rules of its first release, which may have been weaker.
    let k = manifest.series.as_ref().map_or(manifest.k, |series| series.k);
    compare("k", k == policy.privacy.k);
    compare("method", manifest.method == policy.method.name.as_str());
    compare("seed", manifest.seed == policy.method.seed);
    compare("form", manifest.form() == bound_policy.form());
    compare("list of class columns", manifest.class_columns == bound_policy.class_columns());
    compare("list of roles", manifest.roles == column_roles(bound_policy));
    let (rules, said) =
        (rule_records(bound_policy, &survey::build_rules(bound_policy, slices)), &manifest.verification.rules);
    let same = said.len() == rules.len() && said.iter().zip(&rules).all(|(said, rule)| said.asks_same_as(rule));
    compare("list of rules", manifest.series.is_some() || same);
    let written = |name: &str, found| manifest.schema.get(name).is_some_and(|text| promised_type(text).is_met(found));
    let fields = bound_policy.output.fields();
    let schema =
        manifest.schema.len() == fields.len() && fields.iter().all(|field| written(field.name(), field.data_type()));
    compare("schema", schema);
    findings
}

fn promised_type(text: &str) -> PromisedType {
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
    Ok(Finding::if_any("manifest", wrong_columns as u64, |count| {
        format!("{count} sensitive columns are not protected as the manifest says")
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
pub(crate) fn column_roles(bound_policy: &BoundPolicy) -> BTreeMap<String, Role> {
    let fields = bound_policy.input.fields().iter().zip(&bound_policy.roles);
    let own = fields.filter(|(field, _)| field.name() != MEMBER_COLUMN);
    own.map(|(field, role)| (field.name().clone(), *role)).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use datafusion::arrow::datatypes::{DataType, Field, Schema};

    use super::*;
    use crate::ledger::manifest::tests::small_manifest;
    use crate::ledger::manifest::{FORMAT, PeopleCounts};
    use crate::policy::{Form, Policy};

    /// A manifest that agrees with itself: five rows of six in two classes and one file.
    fn coherent() -> Manifest {
        let mut manifest = small_manifest(6, 5);
        manifest.format = FORMAT;
        manifest.schema.insert("age".into(), "Int64".into());
        manifest.class_columns.push("age".into());
        manifest.files.push(OutputFile { path: "d/part-0.parquet".into(), rows: 5, size: 90, blake3: String::new() });
        manifest.verification.classes = ClassCounts { count: 2, smallest: 2, by_size: [(2, 1), (3, 1)].into() };
        manifest.verification.rules.push(RuleRecord::group_size(2, false));
        let attained = manifest.attained_of(&manifest.verification.rules[0]);
        manifest.verification.rules[0].attained = attained;
        manifest
    }

    fn footer() -> Footer {
        let noted = [("throng.run", "r"), ("throng.policy", "p"), ("throng.k", "2"), ("throng.version", "0")];
        let metadata = noted.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        Footer { size: 90, rows: 5, annotated: false, metadata }
    }

    fn says(findings: &[Finding], wanted: &str) -> bool {
        findings.iter().any(|finding| finding.count > 0 && finding.message.contains(wanted))
    }

    #[test]
    fn a_manifest_that_contradicts_itself_is_found() {
        assert_eq!(check_coherence(&coherent()), []);
        type Forgery = (&'static str, fn(&mut Manifest));
        let forgeries: [Forgery; 12] = [
            ("its k is not", |m| m.k = 3),
            ("its k is not", |m| m.verification.rules.clear()),
            ("its k is not", |m| m.verification.people = Some(PeopleCounts::default())),
            ("attained of a rule", |m| _ = m.verification.rules[0].attained.insert("k".into(), 9.0)),
            ("attained of a rule", |m| m.verification.classes.smallest = 3),
            ("published and suppressed rows", |m| m.suppressed += 1),
            ("published and suppressed rows", |m| m.dropped = 2),
            ("published and suppressed rows", |m| m.suppressed = u64::MAX),
            ("the rows of its files", |m| m.files[0].rows = 4),
            ("number of tables", |m| m.form = Some(Form::Anatomy)),
            ("columns that are not published", |m| m.class_columns.push("zip".into())),
            ("its seed and its warnings", |m| m.seed = Some(1)),
        ];
        for (wanted, forge) in forgeries {
            let mut manifest = coherent();
            forge(&mut manifest);
            let findings = check_coherence(&manifest);
            assert!(says(&findings, wanted), "{wanted}: {findings:?}");
        }
    }

    /// Classes of people must add up as those of rows must.
    #[test]
    fn people_that_do_not_add_up_are_found() {
        let people = |count, smallest| {
            let classes = ClassCounts { count, smallest, by_size: [(2, 1), (4, 2)].into() };
            Some(PeopleCounts { classes, digest: String::new() })
        };
        for (count, smallest, adds_up) in [(3, 2, true), (2, 2, false), (3, 4, false), (3, 1, false)] {
            let mut manifest = coherent();
            manifest.verification.people = people(count, smallest);
            assert_eq!(!says(&check_coherence(&manifest), "do not add up"), adds_up, "{count} {smallest}");
        }
    }

    /// What format 1 did not say is not missed.
    #[test]
    fn format_1_says_nothing_of_what_is_attained() {
        let mut old = coherent();
        old.format = 1;
        old.verification.rules[0].attained.clear();
        assert_eq!(check_coherence(&old), []);
    }

    #[test]
    fn files_that_are_not_those_of_the_manifest_are_found() {
        let manifest = coherent();
        let found = |footer: Footer| check_files(&manifest, &manifest.files, &[footer]);
        assert_eq!(found(footer()), []);
        assert!(says(&found(Footer { rows: 6, ..footer() }), "other rows or bytes"));
        assert!(says(&found(Footer { size: 91, ..footer() }), "other rows or bytes"));
        assert!(says(&found(Footer { annotated: true, ..footer() }), "metadata of columns beyond"));
        for (key, value, wanted) in [
            ("who", "me", "metadata of columns beyond"),
            ("throng.run", "another", "record another `throng.run`"),
            ("throng.policy", "q", "record another `throng.policy`"),
            ("throng.k", "20", "record another `throng.k`"),
            ("throng.version", "9", "record another `throng.version`"),
        ] {
            let mut forged = footer();
            forged.metadata.insert(key.into(), value.into());
            assert!(says(&found(forged), wanted), "{key}");
        }
        let bare = Footer { metadata: BTreeMap::new(), ..footer() };
        assert_eq!(found(bare), [], "files of others need not note anything");
    }

    #[test]
    fn other_classes_than_those_of_the_manifest_are_found() {
        let manifest = coherent();
        let mut classes = Classes::default();
        classes.add_classes(2, 1);
        classes.add_classes(3, 1);
        assert_eq!(check_counts(&manifest, &classes), None);
        classes.add_classes(3, 1);
        assert_eq!(check_counts(&manifest, &classes).map(|finding| finding.rule), Some("classes".into()));
    }

    fn bound_policy(privacy: &str) -> BoundPolicy {
        let policy = format!(
            "privacy.k = 2\n{privacy}\nmethod.name = \"toc\"\ncolumns.age = {{ role = \"quasi\" }}\n\
             columns.ill = {{ role = \"sensitive\" }}"
        );
        let policy = Policy::from_table(toml::from_str(&policy).unwrap(), Path::new(".")).unwrap();
        let fields = vec![Field::new("age", DataType::Int64, true), Field::new("ill", DataType::Utf8, true)];
        BoundPolicy::new(Arc::new(policy), Arc::new(Schema::new(fields))).unwrap()
    }

    const DIVERSE: &str = "privacy.l-diversity = { column = \"ill\", l = 2 }";

    /// The manifest of a release by this policy, as far as it follows from the policy.
    fn manifest_of(bound_policy: &BoundPolicy) -> Manifest {
        let mut manifest = coherent();
        let policy = &bound_policy.policy;
        (manifest.policy, manifest.method) = (policy.hash.clone(), policy.method.name.as_str().to_owned());
        manifest.class_columns = bound_policy.class_columns();
        manifest.roles = column_roles(bound_policy);
        let slices = bound_policy.resolve_slices(&[]);
        manifest.verification.rules = rule_records(bound_policy, &survey::build_rules(bound_policy, &slices));
        let fields = bound_policy.output.fields().iter();
        manifest.schema = fields.map(|field| (field.name().clone(), field.data_type().to_string())).collect();
        manifest
    }

    #[test]
    fn a_manifest_that_does_not_follow_from_the_job_is_found() {
        let bound_policy = bound_policy(DIVERSE);
        let check = |manifest: &Manifest| check_job(manifest, &bound_policy, &bound_policy.resolve_slices(&[]));
        assert_eq!(check(&manifest_of(&bound_policy)), []);
        type Forgery = (&'static str, fn(&mut Manifest));
        let forgeries: [Forgery; 10] = [
            ("another policy", |m| m.policy.push('x')),
            ("its k is not", |m| m.k = 1),
            ("its method is not", |m| m.method = "upc".into()),
            ("its seed is not", |m| m.seed = Some(7)),
            ("its form is not", |m| m.form = Some(Form::Anatomy)),
            ("list of class columns", |m| m.class_columns.clear()),
            ("list of roles", |m| _ = m.roles.insert("ill".into(), Role::Kept)),
            ("list of rules", |m| m.verification.rules.truncate(1)),
            ("list of rules", |m| _ = m.verification.rules[1].parameters.insert("l".into(), 1.0)),
            ("its schema is not", |m| _ = m.schema.insert("ill".into(), "Int64".into())),
        ];
        for (wanted, forge) in forgeries {
            let mut manifest = manifest_of(&bound_policy);
            forge(&mut manifest);
            assert!(says(&check(&manifest), wanted), "{wanted}");
        }
    }

    /// Rules that format 1 wrote as sentences are those of the job all the same, and another is not.
    #[test]
    fn sentences_of_format_1_are_compared_with_the_job() {
        let bound_policy = bound_policy(DIVERSE);
        let check = |manifest: &Manifest| check_job(manifest, &bound_policy, &bound_policy.resolve_slices(&[]));
        let mut manifest = manifest_of(&bound_policy);
        let read = |rules: Vec<&str>| rules.into_iter().map(RuleRecord::parse_sentence).collect();
        manifest.verification.rules = read(vec!["k = 2", "distinct l-diversity of ill, l = 2"]);
        assert_eq!(check(&manifest), []);
        manifest.verification.rules = read(vec!["k = 2", "entropy l-diversity of ill, l = 2"]);
        assert!(says(&check(&manifest), "list of rules"));
    }

    #[test]
    fn columns_that_are_less_protected_than_said_are_found() {
        let bound_policy = bound_policy(DIVERSE);
        let figures = Figures { l: 3, entropy_l: 2.512_345, c: 1.25, alpha: 0.4, ..Figures::default() };
        let found: BTreeMap<String, Figures> = [("ill".to_owned(), figures.clone())].into();
        let mut manifest = manifest_of(&bound_policy);
        manifest.verification.attained = round_figures(&found).unwrap();
        let check = |manifest: &Manifest| check_attained(manifest, &found, &bound_policy).unwrap();
        assert_eq!(check(&manifest), None, "figures are compared as they were rounded");
        let mut forged = manifest.clone();
        forged.verification.attained.insert("ill".into(), Figures { alpha: 0.3, ..figures });
        assert!(check(&forged).is_some());
        manifest.verification.attained.clear();
        assert!(check(&manifest).is_some(), "a rule guards the column, so it must be said how well");
    }

    #[test]
    fn columns_are_listed_by_their_roles() {
        let roles = column_roles(&bound_policy(""));
        assert_eq!(roles, [("age".to_owned(), Role::Quasi), ("ill".to_owned(), Role::Sensitive)].into());
    }
}
