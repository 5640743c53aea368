//! Runs on an object store in memory: what they leave, what they refuse, and that nothing stays of one that fails.

use std::path::Path as LocalPath;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
use datafusion::parquet::arrow::ArrowWriter;
use futures::TryStreamExt;
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::engine::phase::PHASES;
use crate::error::ErrorKind;
use crate::policy::Form;
use crate::storage::StoreOptions;

/// A store with a source and a sink, and a job about people of an age and an illness.
pub(super) struct Lab {
    store: Arc<InMemory>,
    /// Holds the key of series.
    folder: TempDir,
    rules: String,
}

const RULES: &str = "[privacy]\nk = 3\n[columns]\nid.role = \"identifier\"\nage.role = \"quasi\"\nill.role = \"sensitive\"\n\
                     [method]\nseed = 7\n";

/// Settings by which nothing waits that could be published.
const SERIES: &str = "[series]\nsubject = [\"id\"]\nstate = \"s3://lake/private\"\nkey-file = \"key\"\nmax-loss = 1.0\n\
                      reserve = 1.0\n";

impl Lab {
    /// A lab with sixty people.
    pub(super) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("key"), "0123456789abcdef0123456789abcdef").unwrap();
        let lab = Self { store: Arc::default(), folder, rules: RULES.to_owned() };
        lab.admit(1, 60).await;
        lab
    }

    /// The same with other rules.
    fn with_rules(self, from: &str, to: &str) -> Self {
        assert!(self.rules.contains(from));
        Self { rules: self.rules.replace(from, to), ..self }
    }

    /// The same with more sections of the job.
    fn with_sections(self, sections: &str) -> Self {
        Self { rules: self.rules + sections, ..self }
    }

    /// Makes so many people the source.
    async fn admit(&self, first: i64, number: i64) {
        let ids = || first..first + number;
        let columns: [(&str, ArrayRef); 3] = [
            ("id", Arc::new(Int64Array::from_iter_values(ids()))),
            ("age", Arc::new(Int32Array::from_iter_values(ids().map(|id| 20 + (id * 7 % 50) as i32)))),
            ("ill", Arc::new(StringArray::from_iter_values(ids().map(|id| format!("ill-{}", id % 4))))),
        ];
        let rows = RecordBatch::try_from_iter(columns).unwrap();
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, rows.schema(), None).unwrap();
        writer.write(&rows).unwrap();
        writer.close().unwrap();
        self.store.put(&"in/a.parquet".into(), bytes.into()).await.unwrap();
    }

    fn stores(&self) -> Stores {
        Stores::default().with("s3://lake", Arc::clone(&self.store) as Arc<dyn ObjectStore>).unwrap()
    }

    fn options(&self) -> RunOptions {
        let session = SessionOptions::default().with_partitions(2);
        RunOptions::default().with_stores(self.stores()).with_session(session)
    }

    fn run_with(&self, options: RunOptions) -> Result<Run> {
        let text = format!("version = 1\nsource.url = \"s3://lake/in/\"\nsink.url = \"s3://lake/out\"\n{}", self.rules);
        Run::new(Job::parse(&text, LocalPath::new("job.toml")).unwrap(), self.folder.path(), options)
    }

    pub(super) fn run(&self, id: &str) -> Run {
        self.run_with(self.options().with_run_id(id)).unwrap()
    }

    async fn execute(&self, id: &str) -> Result<Outcome> {
        self.run(id).execute(&|_, _, _| {}).await
    }

    /// Makes a release.
    async fn release(&self, id: &str) -> Manifest {
        match self.execute(id).await.unwrap() {
            Outcome::Released(manifest, _) => *manifest,
            Outcome::AlreadyDone(_) => panic!("`{id}` was released before"),
        }
    }

    pub(super) fn sink(&self) -> Location {
        self.stores().open(LocalPath::new("."), "s3://lake/out", &StoreOptions::default()).unwrap()
    }

    /// Everything in the sink.
    pub(super) async fn paths(&self) -> Vec<String> {
        let listed: Vec<_> = self.store.list(Some(&"out".into())).try_collect().await.unwrap();
        let mut paths: Vec<String> = listed.iter().map(|file| file.location.to_string()).collect();
        paths.sort();
        paths
    }

    /// Changes the manifest of a run as somebody may who can write to the sink.
    async fn forge(&self, run: &str, forge: impl FnOnce(&mut Value)) {
        let path = format!("out/_manifest/{run}.json").into();
        let text = self.store.get(&path).await.unwrap().bytes().await.unwrap();
        let mut manifest = serde_json::from_slice(&text).unwrap();
        forge(&mut manifest);
        self.store.put(&path, serde_json::to_vec(&manifest).unwrap().into()).await.unwrap();
    }

    /// What `verify` finds of a run: rules and messages.
    async fn findings(&self, run: &str) -> Vec<String> {
        let check = self.run("verify").verify_latest(Some(run)).await.unwrap();
        check.findings.into_iter().map(|finding| format!("{}: {}", finding.rule, finding.message)).collect()
    }
}

fn refused(outcome: Result<Outcome>, kind: ErrorKind, words: &str) {
    let error = outcome.unwrap_err();
    assert!(error.kind() == kind && error.message().contains(words), "{error:?}");
}

#[tokio::test]
async fn a_run_goes_through_its_phases_and_leaves_a_release() {
    let lab = Lab::new().await;
    let seen = Mutex::new(Vec::new());
    let outcome = lab.run("monday").execute(&|phase, _, _| seen.lock().unwrap().push(phase)).await.unwrap();
    let Outcome::Released(manifest, times) = outcome else { panic!("a new release") };
    let mut seen = seen.into_inner().unwrap();
    seen.dedup();
    assert_eq!(seen, PHASES);
    assert_eq!(times.iter().map(|(phase, _)| *phase).collect::<Vec<_>>(), PHASES);
    assert_eq!((manifest.rows_read, manifest.rows + manifest.suppressed), (60, 60));
    assert!(manifest.verification.classes.smallest >= 3);
    let mut expected: Vec<String> = manifest.files.iter().map(|file| format!("out/{}", file.path)).collect();
    expected.extend(["_SUCCESS", "_latest", "_manifest/monday.json"].map(|name| format!("out/{name}")));
    expected.sort();
    assert_eq!(lab.paths().await, expected, "the lease is gone");
    assert_eq!(lab.findings("monday").await, [""; 0]);
}

#[tokio::test]
async fn the_same_run_again_is_done_already() {
    let lab = Lab::new().await;
    let manifest = lab.release("monday").await;
    let before = lab.paths().await;
    let Ok(Outcome::AlreadyDone(found)) = lab.execute("monday").await else { panic!("released before") };
    assert_eq!(*found, manifest);
    assert_eq!(lab.paths().await, before, "nothing was written");
}

/// A run id is an identity: the same id for other work is a mistake of whoever gave it.
#[tokio::test]
async fn other_work_of_the_same_id_is_a_conflict() {
    let lab = Lab::new().await;
    _ = lab.release("monday").await;
    lab.forge("monday", |manifest| manifest["version"] = json!("0.0.0")).await;
    refused(lab.execute("monday").await, ErrorKind::Conflict, "has been released by Throng 0.0.0, but this is");
    lab.forge("monday", |manifest| manifest["version"] = json!(env!("CARGO_PKG_VERSION"))).await;
    lab.admit(1, 61).await;
    refused(lab.execute("monday").await, ErrorKind::Conflict, "has been released from another input");
    let lab = lab.with_rules("k = 3", "k = 4");
    refused(lab.execute("monday").await, ErrorKind::Conflict, "has been released under another policy");
}

#[tokio::test]
async fn a_second_release_of_the_same_people_is_refused_unless_they_are_independent() {
    let lab = Lab::new().await;
    _ = lab.release("monday").await;
    let before = lab.paths().await;
    refused(lab.execute("tuesday").await, ErrorKind::Conflict, "holds a release of another run already");
    assert_eq!(lab.paths().await, before);
    let lab = lab.with_sections("[sink]\nreleases = \"independent\"\n");
    let text = format!("version = 1\nsource.url = \"s3://lake/in/\"\n{}url = \"s3://lake/out\"\n", lab.rules);
    let job = Job::parse(&text, LocalPath::new("job.toml")).unwrap();
    let run = Run::new(job, LocalPath::new("."), lab.options().with_run_id("tuesday")).unwrap();
    let Outcome::Released(manifest, _) = run.execute(&|_, _, _| {}).await.unwrap() else { panic!("a new release") };
    assert_eq!(manifest.earlier_releases, Some(1));
    assert!(manifest.warnings.iter().any(|warning| warning.starts_with("1 earlier release stands in the sink")));
}

#[tokio::test]
async fn nothing_stays_of_a_run_that_cannot_keep_its_promise() {
    let lab = Lab::new().await.with_rules("k = 3", "k = 100");
    let error = lab.execute("monday").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Privacy, "{error}");
    assert_eq!(lab.paths().await, [""; 0]);
}

/// What was checked must be what was read: a source that changes on the way ends the run, whatever was written by then.
#[tokio::test]
async fn nothing_stays_of_a_run_whose_source_changes() {
    let lab = Lab::new().await;
    let run = lab.run("monday");
    let changed = Mutex::new(false);
    let observe = |phase: Phase, _: Option<&Arc<dyn ExecutionPlan>>, _: u64| {
        if phase == Phase::Verify && !std::mem::replace(&mut *changed.lock().unwrap(), true) {
            let path = "in/b.parquet".into();
            futures::executor::block_on(lab.store.put(&path, PutPayload::from_static(b"more"))).unwrap();
        }
    };
    refused(run.execute(&observe).await, ErrorKind::Retry, "the input changed while it was read (a file was added)");
    assert!(*changed.lock().unwrap());
    assert_eq!(lab.paths().await, [""; 0]);
}

/// A foreign file in the sink may be anybody's.
#[tokio::test]
async fn a_sink_that_holds_something_else_is_refused() {
    let lab = Lab::new().await;
    lab.store.put(&"out/photo.jpg".into(), PutPayload::from_static(b"x")).await.unwrap();
    refused(lab.execute("monday").await, ErrorKind::Conflict, "holds something that is not a release (`photo.jpg`)");
    assert_eq!(lab.paths().await, ["out/photo.jpg"]);
}

#[tokio::test]
async fn a_run_has_an_identity_of_its_work_alone() {
    let lab = Lab::new().await;
    let id = |options: RunOptions, lab: &Lab| {
        let run = lab.run_with(options).unwrap();
        async move {
            let source = Source::find(&run.options.stores, &run.base, &run.job).await.unwrap();
            let opened = run.open_source(&source).await.unwrap();
            run.run_id(&source, None, &opened.bound_policy)
        }
    };
    let first = id(lab.options(), &lab).await;
    assert!(first.len() == 16 && first.chars().all(|digit| digit.is_ascii_hexdigit()), "{first}");
    let wide = SessionOptions::default().with_partitions(5);
    assert_eq!(id(lab.options().with_session(wide), &lab).await, first, "partitions change nothing");
    assert_eq!(id(lab.options().with_run_id("mine"), &lab).await, "mine");
    assert_ne!(id(lab.options().with_cell_rows(20), &lab).await, first, "cells decide the groups");
    lab.admit(2, 60).await;
    let changed = id(lab.options(), &lab).await;
    assert_ne!(changed, first);
    let lab = lab.with_rules("k = 3", "k = 4");
    assert_ne!(id(lab.options(), &lab).await, changed);
}

#[tokio::test]
async fn all_problems_of_a_job_are_told_at_once() {
    let lab =
        Lab::new().await.with_rules("k = 3", "k = 0").with_rules("ill.role", "ill.hierarchy = \"none.csv\"\nill.role");
    let Err(error) = lab.run_with(lab.options()) else { panic!("the job is wrong") };
    assert_eq!(error.kind(), ErrorKind::Job);
    assert!(["privacy.k", "none.csv"].iter().all(|words| error.message().contains(words)), "{error}");
}

#[tokio::test]
async fn the_staged_files_of_a_run_that_was_stopped_are_removed() {
    let lab = Lab::new().await;
    let run = lab.run("monday");
    let sink = lab.sink();
    for name in ["data/run=monday.1/part.parquet", "data/run=other.1/part.parquet"] {
        lab.store.put(&sink.at(name), PutPayload::from_static(b"rows")).await.unwrap();
    }
    run.note_folder(Some((sink.clone(), sink.at("data/run=monday.1"))));
    run.abandon().await;
    assert_eq!(lab.paths().await, ["out/data/run=other.1/part.parquet"]);
    run.abandon().await;
    assert_eq!(lab.paths().await.len(), 1, "there is nothing left to abandon");
}

#[tokio::test]
async fn releases_are_found_by_their_run_or_as_the_newest() {
    let lab = Lab::new().await;
    let sink = lab.sink();
    let error = find_release(&sink, None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    assert_eq!(error.message(), "`s3://lake/out` holds no release; `throng run` makes one");
    let manifest = lab.release("monday").await;
    assert_eq!(find_release(&sink, None).await.unwrap(), manifest);
    assert_eq!(find_release(&sink, Some("monday")).await.unwrap(), manifest);
    let error = find_release(&sink, Some("sunday")).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Input && error.message().contains("no release of run `sunday`"), "{error}");
}

/// What a plan says is read from the schema of the source alone.
#[tokio::test]
async fn a_plan_names_its_places_and_its_node() {
    let lab = Lab::new().await;
    let text = explain_plan(&lab.run("monday")).await.unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("source: s3://lake/in/ (") && lines[1].starts_with("sink: s3://lake/out ("), "{text}");
    assert!(text.contains("AnonymizeExec"), "{text}");
    assert_eq!(lab.paths().await, [""; 0]);
}

/// Queries of a policy are answered from the published files.
#[tokio::test]
async fn queries_are_answered_by_the_release() {
    let lab = Lab::new().await.with_sections("[measures.queries]\ncount = 20\ndimensions = 1\nselectivity = 0.3\n");
    let queries = lab.release("monday").await.scores.queries.expect("some have an answer");
    assert_eq!(queries.count + queries.empty, 20);
    assert!(queries.count > 0 && queries.mean.is_finite() && queries.mean <= queries.worst, "{queries:?}");
}

/// A manifest is a text that anybody can change who may write to the sink.
#[tokio::test]
async fn a_forged_manifest_is_found() {
    let lab = Lab::new().await;
    let rows = lab.release("monday").await.rows;
    let text = lab.store.get(&"out/_manifest/monday.json".into()).await.unwrap().bytes().await.unwrap();
    type Forgery = (&'static str, fn(&mut Value));
    let forgeries: [Forgery; 5] = [
        ("rows: 60 rows are published, 61 should be", |manifest| manifest["rows"] = json!(61)),
        ("policy: the release was made under another policy than this job's", |manifest| {
            manifest["policy"] = json!("x")
        }),
        ("manifest: its k is not the job's", |manifest| manifest["k"] = json!(2)),
        ("rows: the source has 60 rows, but the manifest says 70", |manifest| manifest["rows_read"] = json!(70)),
        ("files: 1 of 1 files are not the ones that were released", |manifest| {
            let files = manifest["files"].as_array_mut().unwrap();
            files.truncate(1);
            files[0]["blake3"] = json!("0");
        }),
    ];
    assert_eq!(rows, 60, "nobody is suppressed");
    for (words, forge) in forgeries {
        lab.forge("monday", forge).await;
        let found = lab.findings("monday").await;
        assert!(found.iter().any(|finding| finding.starts_with(words)), "{words}: {found:?}");
        lab.store.put(&"out/_manifest/monday.json".into(), text.clone().into()).await.unwrap();
    }
    assert_eq!(lab.findings("monday").await, [""; 0]);
}

#[tokio::test]
async fn lost_added_and_damaged_files_are_found() {
    let lab = Lab::new().await;
    let manifest = lab.release("monday").await;
    let stray = lab.sink().at(&format!("{}/stray.parquet", manifest.data));
    lab.store.put(&stray, PutPayload::from_static(b"x")).await.unwrap();
    assert_eq!(lab.findings("monday").await, ["files: 1 files in the folder of the release are not part of it"]);
    lab.store.delete(&stray).await.unwrap();
    let file = &manifest.files[0].path;
    let path = lab.sink().at(file);
    let bytes = lab.store.get(&path).await.unwrap().bytes().await.unwrap();
    lab.store.put(&path, bytes.slice(..bytes.len() / 2).into()).await.unwrap();
    let found = lab.findings("monday").await;
    assert!(found[0].starts_with("files: 1 of") && found[0].contains(file.as_str()), "{found:?}");
    for file in &manifest.files {
        lab.store.delete(&lab.sink().at(&file.path)).await.unwrap();
    }
    let found = lab.findings("monday").await;
    assert_eq!(found[0], format!("files: `{file}` is missing"));
    assert_eq!(found.len(), manifest.files.len(), "and nothing that follows from it: {found:?}");
}

#[tokio::test]
async fn a_source_that_has_changed_cannot_be_compared() {
    let lab = Lab::new().await;
    _ = lab.release("monday").await;
    lab.admit(1, 60).await;
    let said = "source: the source has changed since the release, so its rows cannot be compared";
    assert_eq!(lab.findings("monday").await, [said]);
}

/// The two tables of a release are in folders of their own, and both are needed to read it.
#[tokio::test]
async fn a_release_of_two_tables_needs_both() {
    let lab = Lab::new()
        .await
        .with_rules("seed = 7", "seed = 7\nname = \"anatomy\"")
        .with_rules("k = 3", "k = 3\nl-diversity = { column = \"ill\", l = 3 }");
    let feasible = lab.run("monday").feasibility().await.unwrap();
    assert_eq!(feasible.iter().map(|report| (report.column.as_str(), report.l)).collect::<Vec<_>>(), [("ill", 3)]);
    let manifest = lab.release("monday").await;
    assert_eq!(manifest.form(), Form::Anatomy);
    let table = |file: &crate::ledger::OutputFile| file.path.rsplit('/').nth(1).map(str::to_owned);
    let tables: std::collections::BTreeSet<String> = manifest.files.iter().filter_map(table).collect();
    assert_eq!(tables.into_iter().collect::<Vec<_>>(), ["qit", "st"]);
    assert_eq!(lab.findings("monday").await, [""; 0]);
    for file in manifest.files.iter().filter(|file| table(file).as_deref() == Some("st")) {
        lab.store.delete(&lab.sink().at(&file.path)).await.unwrap();
    }
    lab.forge("monday", |manifest| {
        let files = manifest["files"].as_array_mut().unwrap();
        files.retain(|file| !file["path"].as_str().unwrap().contains("/st/"));
    })
    .await;
    let found = lab.findings("monday").await;
    assert!(
        found.iter().any(|finding| finding.contains("columns of the release are in no published file")),
        "{found:?}"
    );
}

/// Groups of three different illnesses are not to be had of two.
#[tokio::test]
async fn a_rule_that_no_group_can_meet_ends_the_run_before_it_groups() {
    let lab = Lab::new()
        .await
        .with_rules("seed = 7", "seed = 7\nname = \"anatomy\"")
        .with_rules("k = 3", "k = 3\nl-diversity = { column = \"ill\", l = 5 }");
    refused(lab.execute("monday").await, ErrorKind::Privacy, "column `ill` holds 4 different values");
    assert_eq!(lab.paths().await, [""; 0]);
}

#[tokio::test]
async fn nights_of_a_series_are_numbered_and_stay_safe_together() {
    let lab = Lab::new().await.with_sections(SERIES);
    let monday = lab.release("monday").await.series.expect("it is of a series");
    assert_eq!((monday.number, monday.counts.new, monday.k), (1, 60, 3));
    lab.admit(2, 62).await;
    let tuesday = lab.release("tuesday").await;
    let series = tuesday.series.as_ref().expect("it is of a series");
    assert_eq!(series.number, 2);
    assert_eq!((series.counts.gone, series.counts.new + series.counts.waiting + series.counts.returned), (1, 3));
    assert_eq!(lab.findings("tuesday").await, [""; 0]);
    let (releases, findings) = lab.run("verify").verify_neighbours().await.unwrap();
    assert_eq!((releases, findings), (2, Vec::new()));
    let Ok(Outcome::AlreadyDone(again)) = lab.execute("tuesday").await else { panic!("released before") };
    assert_eq!(*again, tuesday);
}

/// Who compares the nights sees what differs, and that must be a throng by itself.
#[tokio::test]
async fn neighbours_that_differ_by_few_rows_are_found() {
    let lab = Lab::new().await.with_sections(SERIES);
    _ = lab.release("monday").await;
    lab.admit(1, 90).await;
    let tuesday = lab.release("tuesday").await;
    let added = tuesday.files.iter().filter(|file| file.path.starts_with(&tuesday.data)).count();
    assert!(added > 0, "thirty newcomers are enough for classes of three");
    // With so large a k, those who came are too few.
    lab.forge("monday", |manifest| manifest["k"] = json!(1000)).await;
    let (_, findings) = lab.run("verify").verify_neighbours().await.unwrap();
    let said: Vec<&str> = findings.iter().map(|finding| finding.message.as_str()).collect();
    let come = "the rows that have come between run `monday` and run `tuesday`:";
    assert!(!said.is_empty() && said.iter().all(|message| message.starts_with(come)), "{said:?}");
}

#[tokio::test]
async fn neighbours_are_releases_of_a_series() {
    let lab = Lab::new().await;
    let error = lab.run("verify").verify_neighbours().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    assert_eq!(error.message(), "`s3://lake/out` does not hold releases of a series; leave --series out");
    _ = lab.release("monday").await;
    assert!(lab.run("verify").verify_neighbours().await.is_err(), "one alone is no series");
}

/// A series goes on with the same subjects and the same columns, or not at all.
#[tokio::test]
async fn a_series_refuses_what_it_cannot_go_on_with() {
    let lab = Lab::new().await;
    _ = lab.release("monday").await;
    let lab = lab.with_sections(SERIES);
    refused(lab.execute("tuesday").await, ErrorKind::Conflict, "holds a release that is not of a series");
    let lab = Lab::new().await.with_sections(SERIES);
    _ = lab.release("monday").await;
    let before = lab.paths().await;
    let lab = lab.with_rules("age.role = \"quasi\"", "age = { role = \"quasi\", hierarchy = { widths = [5, 10] } }");
    refused(
        lab.execute("tuesday").await,
        ErrorKind::Conflict,
        "columns, their hierarchies or their types are not those",
    );
    let lab = lab.with_rules("age = { role = \"quasi\", hierarchy = { widths = [5, 10] } }", "age.role = \"quasi\"");
    let weaker = lab.with_rules("k = 3", "k = 2");
    assert!(weaker.execute("tuesday").await.is_err(), "rules may become stricter, never weaker");
    assert_eq!(weaker.paths().await, before, "nothing of all that stays");
}

/// Subjects that must not be published again are counted, release by release, and left out from then on.
#[tokio::test]
async fn forgotten_subjects_are_counted_by_release() {
    let lab = Lab::new().await;
    let error = lab.run("forget").forget("s3://lake/in/").await.unwrap_err();
    assert!(error.kind() == ErrorKind::Job && error.message().starts_with("series: is missing"), "{error}");
    let lab = lab.with_sections(SERIES);
    _ = lab.release("monday").await;
    lab.admit(59, 4).await;
    let forgotten = lab.run("forget").forget("s3://lake/in/").await.unwrap();
    assert_eq!((forgotten.subjects, forgotten.published, forgotten.waiting), (4, 2, 0));
    assert_eq!(forgotten.releases, [("monday".to_owned(), 2)]);
    lab.admit(1, 60).await;
    let tuesday = lab.release("tuesday").await.series.expect("it is of a series");
    assert_eq!((tuesday.counts.forgotten, tuesday.counts.gone), (2, 2));
}

/// An attack on several releases reads those of one policy that generalises.
#[tokio::test]
async fn releases_that_cannot_be_attacked_together_are_refused() {
    let lab = Lab::new().await;
    let knows = SeriesKnowledge { public: vec!["s3://lake/in/".into()], ..SeriesKnowledge::default() };
    let Err(error) = lab.run("attack").attack_series(&knows).await else { panic!("it is refused") };
    assert_eq!(error.message(), "`s3://lake/out` holds no release; `throng run` makes one");
    _ = lab.release("monday").await;
    let knows = SeriesKnowledge { subject: vec!["name".into()], ..knows };
    let Err(error) = lab.run("attack").attack_series(&knows).await else { panic!("it is refused") };
    assert_eq!(error.message(), "the public table has no column `name`");
    let knows = SeriesKnowledge { subject: vec!["id".into()], ..knows };
    let found = lab.run("attack").attack_series(&knows).await;
    assert!(found.is_ok(), "{:?}", found.err());
    let lab = lab.with_rules("ill.role = \"sensitive\"", "ill.role = \"kept\"");
    let Err(error) = lab.run("attack").attack_series(&knows).await else { panic!("it is refused") };
    assert!(error.kind() == ErrorKind::Job && error.message().starts_with("columns: none is sensitive"), "{error}");
}

/// What an adversary learns is asked with the job that made the release.
#[tokio::test]
async fn a_release_is_attacked_with_the_job_that_made_it() {
    let lab = Lab::new().await;
    _ = lab.release("monday").await;
    let attacked = lab.run("attack").attack(None, Some("s3://lake/in/"), Some(600)).await.unwrap();
    assert_eq!((attacked.run.as_str(), attacked.rows), ("monday", 60));
    assert!(attacked.membership.is_some() && attacked.population.is_some());
    assert!(attacked.sensitive.contains_key("ill"));
    let blind = lab.run("attack").attack(None, None, None).await.unwrap();
    assert!(blind.membership.is_none() && blind.population.is_none(), "nobody is known");
    let lab = lab
        .with_rules("seed = 7", "seed = 7\nname = \"anatomy\"")
        .with_rules("k = 3", "k = 3\nl-diversity = { column = \"ill\", l = 3 }");
    let Err(error) = lab.run("attack").attack(None, None, None).await else { panic!("it is refused") };
    assert!(
        error.kind() == ErrorKind::Job && error.message().contains("the release has the form `generalise`"),
        "{error}"
    );
}
