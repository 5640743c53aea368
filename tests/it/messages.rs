//! What people read when something is wrong, all in one place: read the snapshot as somebody who has never seen Throng.
//! Each message names the file, key, column or limit, says what to do, and holds no value of the data.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int32Array, ListArray, StringArray};
use datafusion::arrow::datatypes::Int32Type;

use crate::support::{Desk, INDEPENDENT, Ran, batch, command, files, write_parquet};
use crate::tables::{JOB, TOWNS, assert_no_values, people, with, words};

/// Messages as they are collected.
#[derive(Default)]
struct Collection {
    text: String,
    bodies: BTreeSet<String>,
}

impl Collection {
    /// Runs a command in a folder and keeps what it says.
    fn add(&mut self, desk: &Desk, code: i32, arguments: &[&str]) -> &mut Self {
        self.add_with(desk, code, arguments, &[])
    }

    fn add_with(&mut self, desk: &Desk, code: i32, arguments: &[&str], env: &[(&str, &str)]) -> &mut Self {
        let mut command = command(arguments);
        let output = command.current_dir(desk.path(".")).envs(env.iter().copied()).output().unwrap();
        let ran = Ran::from(&output);
        assert_eq!(ran.code, Some(code), "{arguments:?}: {ran:?}");
        assert_no_values(&ran.err);
        let folder = fs::canonicalize(desk.path(".")).unwrap();
        let folder = folder.to_str().unwrap();
        let said = ran.err.replace(folder, "[folder]").replace(folder.trim_start_matches('/'), "[folder]");
        let variables: String = env.iter().map(|(name, value)| format!("{name}={value} ")).collect();
        let said: Vec<&str> = said.lines().map(str::trim_end).collect();
        let said = said.join("\n");
        writeln!(self.text, "$ {variables}throng {}\n{}\nexit code {code}\n", arguments.join(" "), said.trim_end())
            .unwrap();
        self.bodies.insert(said);
        self
    }

    /// Runs the job of a folder with settings.
    fn set(&mut self, desk: &Desk, code: i32, settings: &[&str]) -> &mut Self {
        let settings = settings.iter().flat_map(|setting| ["--set", setting]);
        let arguments: Vec<&str> = ["run", "job.toml"].into_iter().chain(settings).collect();
        self.add(desk, code, &arguments)
    }

    /// Compares with the snapshot.
    fn check(&self, name: &str, least: usize) {
        assert!(self.bodies.len() >= least, "{} distinct messages", self.bodies.len());
        insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!(name, self.text);
        });
    }
}

#[test]
fn usage() {
    let desk = Desk::with(people(50), JOB);
    let mut said = Collection::default();
    said.add(&desk, 2, &["anonymise", "job.toml"])
        .add(&desk, 2, &["run"])
        .add(&desk, 2, &["run", "job.toml", "--memory-limit", "lots"])
        .add(&desk, 2, &["run", "job.toml", "--run-id", "../monday"])
        .add(&desk, 2, &["run", "job.toml", "--set", "privacy.k"])
        .add(&desk, 2, &["run", "job.toml", "--partitions", "0"])
        .add(&desk, 2, &["run", "job.toml", "--log-format", "xml"])
        .add(&desk, 2, &["completions", "tcsh"])
        .add(&desk, 2, &["man", "dance"])
        .add_with(&desk, 2, &["schema"], &[("THRONG_LOG", "throng=loud")]);
    said.check("usage", 10);
}

#[test]
fn job_file() {
    let desk = Desk::with(people(50), JOB);
    let mut said = Collection::default();
    said.add(&desk, 3, &["run", "jobs.toml"]);
    fs::create_dir(desk.path("folder")).unwrap();
    said.add(&desk, 3, &["run", "folder"]).add(&desk, 3, &["check", "in.parquet"]);
    desk.write("broken.toml", "version = 1\nprivacy.k = \n");
    desk.write("empty.toml", "");
    desk.write("old.toml", &fs::read_to_string(desk.path("job.toml")).unwrap().replace("version = 1", "version = 2"));
    said.add(&desk, 3, &["check", "broken.toml"])
        .add(&desk, 3, &["check", "empty.toml"])
        .add(&desk, 3, &["check", "old.toml"])
        .set(&desk, 3, &["privacy.max-supression=0.1"])
        .set(&desk, 3, &["methods.name=auto"])
        .set(&desk, 3, &["columns.age.role=quazi"])
        .set(&desk, 3, &["a = b=1"])
        .set(&desk, 3, &["privacy.k=many"])
        .set(&desk, 3, &["privacy.k=99999999999"])
        .set(&desk, 3, &["privacy.k=1"])
        .set(&desk, 3, &["privacy.max-suppression=2"])
        .set(&desk, 3, &["privacy.l-diversity={ column = \"il\", l = 2 }"])
        .set(&desk, 3, &["privacy.l-diversity={ column = \"age\", l = 2 }"])
        .set(&desk, 3, &["privacy.l-diversity={ column = \"ill\", l = 1 }"])
        .set(&desk, 3, &["privacy.l-diversity={ column = \"ill\", l = 2, kind = \"recursive\" }"])
        .set(&desk, 3, &["privacy.range-diversity={ column = \"ill\", p = 0.1 }"])
        .set(&desk, 3, &["privacy.range-diversity={ column = \"ill\", p = 0.5, ranges = { level = 1 } }"])
        .set(&desk, 3, &["method.name=magic"])
        .set(&desk, 3, &["method.name=mondrian", "method.delta=0.5"])
        .set(&desk, 3, &["method.name=upc"])
        .set(&desk, 3, &["columns.age.priority=-1"])
        .set(&desk, 3, &["columns.town.publish=range"])
        .set(&desk, 3, &["columns.town.hierarchy=towns.csv"])
        .set(&desk, 3, &["columns.town.hierarchy={ widths = [10, 5] }"])
        .set(&desk, 3, &["columns.town.hierarchy={ calendar = [\"month\"] }"])
        .set(&desk, 3, &["columns.town.hierarchy={ char = \"*\" }"])
        .set(&desk, 3, &["columns.nobody.role=kept"])
        .set(&desk, 3, &["output.compression=zip"])
        .set(&desk, 3, &["source.url=missing.parquet"])
        .set(&desk, 3, &["source.url=.", "sink.url=./out"])
        .set(&desk, 3, &["source.url=ftp://example.org/people"]);
    for (name, csv) in [
        ("roots.csv", "Quuxham;North;*\nZyxford;North;All\n"),
        ("twice.csv", "Quuxham;North;*\nQuuxham;South;*\n"),
        ("short.csv", "Quuxham;North;*\nZyxford;*\n"),
        ("empty.csv", ""),
    ] {
        desk.write(name, csv);
        // A hierarchy lists values of the data: only whoever works on it with `throng hierarchy` is shown them.
        said.add(&desk, 3, &["check", "job.toml", "--set", &format!("columns.town.hierarchy={name}")]);
    }
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>((0..50).map(|row| Some(vec![Some(row)])));
    said.add(&Desk::with(with(people(50), "town", Arc::new(lists)), JOB), 3, &["check", "job.toml"]);
    said.add(&Desk::with(people(50), &JOB.replace("ill.role = \"sensitive\"", "")), 3, &["check", "job.toml"]);
    desk.write("bad.sql", "SELEC 1");
    desk.write("table.sql", "SELECT * FROM nowhere");
    desk.write("policy.sql", "SELECT * FROM anonymize((SELECT 1 AS a), 'nowhere.toml')");
    said.add(&desk, 3, &["sql", "none.sql"])
        .add(&desk, 3, &["sql", "bad.sql"])
        .add(&desk, 3, &["sql", "table.sql"])
        .add(&desk, 3, &["sql", "policy.sql"]);
    said.check("job_file", 38);
}

#[test]
fn input() {
    let mut said = Collection::default();
    said.set(&Desk::with(people(0), JOB), 4, &[]);
    let ages: ArrayRef = Arc::new(Int32Array::from(vec![None; 50]));
    said.set(&Desk::with(with(people(50), "age", ages), JOB), 4, &[]);
    said.set(&Desk::with(with(people(50), "town", words(50, &["Quuxham"], 1)), JOB), 4, &[]);
    let desk = Desk::with(people(60), JOB);
    desk.write("towns.csv", &TOWNS[1..].iter().map(|town| format!("{town};N;*\n")).collect::<String>());
    said.set(&desk, 4, &["columns.town.hierarchy=towns.csv"]);
    let whole = fs::read(desk.path("in.parquet")).unwrap();
    fs::write(desk.path("half.parquet"), &whole[..whole.len() / 2]).unwrap();
    desk.write("notes.txt", "not Parquet at all, but long enough to be looked at");
    fs::create_dir(desk.path("none")).unwrap();
    said.set(&desk, 4, &["source.url=half.parquet"]).set(&desk, 4, &["source.url=notes.txt"]).set(
        &desk,
        4,
        &["source.url=none"],
    );
    fs::create_dir(desk.path("two")).unwrap();
    write_parquet(&desk.path("two/a.parquet"), &batch(people(20)));
    let towns: ArrayRef = Arc::new(StringArray::from(vec!["x"; 20]));
    write_parquet(&desk.path("two/b.parquet"), &batch(with(people(20), "age", towns)));
    said.set(&desk, 4, &["source.url=two"]);
    said.add(&desk, 4, &["verify", "job.toml"]).add(&desk, 4, &["rollback", "out", "monday"]);
    desk.run(&["--run-id", "monday", "--quiet"]).ok();
    said.add(&desk, 4, &["verify", "out", "--run-id", "tuesday"]);
    said.check("input", 10);
}

#[test]
fn privacy_resources_conflict() {
    let mut said = Collection::default();
    let desk = Desk::with(people(100), JOB);
    said.set(&desk, 5, &["privacy.k=1000"]).set(&desk, 5, &["privacy.l-diversity={ column = \"ill\", l = 4 }"]).set(
        &desk,
        5,
        &["privacy.max-loss=0.001", "privacy.max-suppression=0"],
    );
    desk.write("file", "");
    said.add(&desk, 6, &["run", "job.toml", "--spill-dir", "file/spill"])
        .add(&desk, 4, &["generate", "file/census.parquet"])
        .add(&desk, 4, &["profile", "in.parquet", "--quiet", "--write", "file/job.toml"])
        .add(&desk, 4, &["man", "--folder", "file/man"]);
    desk.run(&["--run-id", "monday", "--quiet"]).ok();
    said.add(&desk, 4, &["report", "out", "--quiet", "-o", "none/report.html"]);
    said.add(&desk, 7, &["run", "job.toml", "--run-id", "monday", "--set", "privacy.k=6"]);
    write_parquet(&desk.path("in.parquet"), &batch(people(99)));
    said.add(&desk, 7, &["run", "job.toml", "--run-id", "monday"]);
    let job = fs::read_to_string(desk.path("job.toml")).unwrap();
    desk.write("again.toml", &job.replace(INDEPENDENT, "sink.url = \"out\""));
    said.add(&desk, 7, &["run", "again.toml", "--run-id", "tuesday"]);
    fs::create_dir(desk.path("thesis")).unwrap();
    desk.write("thesis/chapter.txt", "mine");
    said.set(&desk, 7, &["sink.url=thesis"]);
    for file in files(&desk.path("out/data")) {
        fs::remove_file(file).unwrap();
    }
    let listed = command(&["verify", "out"]).current_dir(desk.path(".")).output().unwrap();
    let listed = Ran::from(&listed);
    listed.refused(5, &["the release does not keep its promises", "is missing"]);
    said.bodies.insert(listed.err);
    said.check("privacy_resources_conflict", 11);
}
