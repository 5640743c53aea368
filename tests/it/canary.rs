//! Rare values are planted in every column, every command is run, and nothing that it leaves behind may hold them.
//!
//! What may: hierarchy files, which list values and are said to; and the published rows of sensitive and kept columns,
//! which are what the release is for.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Date32Array, Float64Array, Int64Array, StringArray};
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::manners::commands;
use crate::support::{Desk, Ran, batch, command, files, lines, read_parquet, released_files, write_parquet};

/// What is planted in columns that are not published as they are, as people and as programs would write it.
const HIDDEN: [&str; 8] = [
    "Zebulon Canarybird",
    "zebulon.canary@example.org",
    "Canaryville",
    "CANARYKEEPER",
    "1893-07-19",
    "91873465",
    "918273645",
    "Q77031Q",
];

/// What is planted in a sensitive column.
const SENSITIVE: &str = "canary fever";

/// Rows; the last but nine hundred is the bird's.
const ROWS: usize = 1500;

fn plant(desk: &Desk) {
    let bird = ROWS - 900;
    let text = |of: &dyn Fn(usize) -> String, planted: &str| -> ArrayRef {
        Arc::new(
            (0..ROWS).map(|row| Some(if row == bird { planted.to_owned() } else { of(row) })).collect::<StringArray>(),
        )
    };
    let mut rng = fastrand::Rng::with_seed(5);
    let mut drawn: Vec<usize> = (0..ROWS * 8).map(|_| rng.usize(0..10_000)).collect();
    let mut next = || drawn.split_off(drawn.len() - ROWS);
    let (towns, jobs, days, weights, zips, ills, spends) = (next(), next(), next(), next(), next(), next(), next());
    let town = |row: usize| ["Ely", "Bath", "Wells", "York", "Truro", "Derby"][towns[row] % 6].to_owned();
    let job = |row: usize| format!("{}-{}", ["nurse", "cook", "clerk"][jobs[row] % 3], jobs[row] % 5);
    let ill = |row: usize| ["flu", "gout", "mumps", "none"][ills[row] % 4].to_owned();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("name", text(&|row| format!("Person {row}"), HIDDEN[0])),
        ("email", text(&|row| format!("p{row}@example.org"), HIDDEN[1])),
        ("town", text(&town, HIDDEN[2])),
        ("occupation", text(&job, HIDDEN[3])),
        (
            "birth_date",
            Arc::new(
                (0..ROWS)
                    .map(|row| Some(if row == bird { -27_924 } else { days[row] as i32 }))
                    .collect::<Date32Array>(),
            ),
        ),
        (
            "weight",
            Arc::new(
                (0..ROWS)
                    .map(|row| Some(if row == bird { 91_873_465.0 } else { 50.0 + (weights[row] % 60) as f64 }))
                    .collect::<Float64Array>(),
            ),
        ),
        (
            "account_no",
            Arc::new(
                (0..ROWS).map(|row| Some(if row == bird { 918_273_645 } else { row as i64 })).collect::<Int64Array>(),
            ),
        ),
        ("zip", text(&|row| format!("{:05}", 10_000 + zips[row] % 900), HIDDEN[7])),
        ("diagnosis", text(&ill, SENSITIVE)),
        ("income", Arc::new((0..ROWS).map(|row| Some((20_000 + spends[row]) as f64)).collect::<Float64Array>())),
    ];
    fs::create_dir(desk.path("data")).unwrap();
    write_parquet(&desk.path("data/part-0.parquet"), &batch(columns));
}

/// Runs a command with all logs on, in a temporary folder of its own, and looks at all that it says and leaves there.
fn watched(desk: &Desk, arguments: &[&str]) -> Ran {
    let temporary = desk.path("tmp");
    fs::create_dir_all(&temporary).unwrap();
    let output = command(arguments)
        .current_dir(desk.path(""))
        .env("TMPDIR", &temporary)
        .env("THRONG_LOG", "debug")
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let ran = Ran { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) };
    clean(&ran.out, &format!("standard output of {arguments:?}"), true);
    clean(&ran.err, &format!("standard error of {arguments:?}"), true);
    for path in files(&temporary) {
        clean(&text(&fs::read(&path).unwrap()), &path.display().to_string(), true);
    }
    ran
}

fn clean(text: &str, place: &str, sensitive_too: bool) {
    for canary in HIDDEN.iter().chain(sensitive_too.then_some(&SENSITIVE)) {
        if let Some(at) = text.find(canary) {
            let near: String = text[..at].chars().rev().take(120).collect::<Vec<_>>().into_iter().rev().collect();
            panic!("`{canary}` is in {place}, after: {near}");
        }
    }
}

/// Released rows, footers and all other files of a sink.
fn clean_release(sink: &Path) {
    let (data, others): (Vec<_>, Vec<_>) =
        files(sink).into_iter().partition(|path| path.extension().is_some_and(|extension| extension == "parquet"));
    for path in &data {
        let reader = ParquetRecordBatchReaderBuilder::try_new(fs::File::open(path).unwrap()).unwrap();
        clean(&format!("{:?}", reader.metadata().file_metadata()), "a footer", true);
        for group in reader.metadata().row_groups() {
            for column in group.columns().iter().filter(|column| column.column_path().string() != "diagnosis") {
                clean(&format!("{:?}", column.statistics()), "statistics of a footer", true);
            }
        }
        let rows = read_parquet(path);
        let names: Vec<String> = rows.schema().fields().iter().map(|field| field.name().clone()).collect();
        lines(&rows, &names).iter().for_each(|line| clean(line, "a released row", false));
    }
    for path in &others {
        clean(&String::from_utf8_lossy(&fs::read(path).unwrap()), &path.display().to_string(), true);
        clean(&path.display().to_string(), "a file name", true);
    }
}

/// Commands that read no data, or never end by themselves. All others are watched.
const BLIND: [&str; 6] = ["generate", "schema", "completions", "man", "scheduler", "executor"];

#[test]
fn no_command_lets_a_rare_value_out() {
    let desk = Desk::new();
    plant(&desk);
    let seen = std::cell::RefCell::new(BTreeSet::new());
    let ok = |arguments: &[&str]| {
        seen.borrow_mut().insert(arguments[0].to_owned());
        let ran = watched(&desk, arguments);
        assert_eq!(ran.code, Some(0), "{arguments:?}: {}", ran.err);
    };
    ok(&["profile", "data", "--write", "job.toml"]);
    ok(&["profile", "data", "--json"]);
    let listed = fs::read_to_string(desk.path("hierarchies/town.csv")).unwrap();
    assert!(listed.contains(HIDDEN[2]), "the bird has been seen");
    clean(&fs::read_to_string(desk.path("job.toml")).unwrap(), "the drafted job", true);
    ok(&["check", "job.toml"]);
    ok(&["plan", "job.toml", "-v"]);
    ok(&["run", "job.toml", "-v", "--memory-limit", "64MB", "--run-id", "first", "--metrics-file", "run.prom"]);
    clean_release(&desk.path("release"));
    // The same people are published again and again below.
    let drafted = fs::read_to_string(desk.path("job.toml")).unwrap();
    desk.write("job.toml", &drafted.replace("[sink]\n", "[sink]\nreleases = \"independent\"\n"));
    ok(&["run", "job.toml", "-vvv", "--log-format", "json", "--json", "--run-id", "second", "--set", "privacy.k=6"]);
    clean_release(&desk.path("release"));
    ok(&[
        "run",
        "job.toml",
        "--run-id",
        "anatomy",
        "--set",
        "method.form=anatomy",
        "--set",
        "sink.url=anatomised",
        "-v",
    ]);
    ok(&["rollback", "release", "first", "--json"]);
    ok(&["verify", "job.toml"]);
    ok(&["verify", "release", "--json"]);
    ok(&["attack", "job.toml", "--public", "data", "--population", "90000"]);
    ok(&["attack", "job.toml", "--public", "data", "--json"]);
    ok(&["releases", "release"]);
    ok(&["gc", "release", "--dry-run"]);
    ok(&["sweep", "job.toml", "--k", "5,10", "--method", "mondrian", "--output", "sweep.json"]);
    ok(&["sweep", "job.toml", "--k", "5", "--method", "mondrian", "--output", "sweep.csv", "--json"]);
    ok(&["bound", "job.toml", "--rounds", "1", "--set", "method.name=mondrian"]);
    ok(&["bound", "job.toml", "--rounds", "1", "--set", "method.name=mondrian", "--json"]);
    ok(&["recommend", "job.toml", "--min-k", "5", "--method", "mondrian", "--sample", "700", "--repeats", "2"]);
    ok(&["report", "job.toml", "--sweep", "sweep.json", "-o", "compared.html"]);
    ok(&["report", "release", "-o", "alone.html"]);
    for name in ["run.prom", "sweep.json", "sweep.csv", "compared.html", "alone.html"] {
        clean(&fs::read_to_string(desk.path(name)).unwrap(), name, true);
    }
    ok(&["hierarchy", "check", "hierarchies/town.csv", "--data", "data", "--column", "town"]);
    ok(&["hierarchy", "build", "data", "--column", "weight"]);
    ok(&["survey", "job.toml", "-o", "people.survey", "-v"]);
    desk.write("ledger.key", "0123456789abcdef0123456789abcdef");
    desk.write(
        "series.toml",
        "version = 1\nsource.url = \"data\"\nsink.url = \"series\"\nprivacy.k = 5\ndefaults.role = \"identifier\"\n\
         series = { subject = [\"account_no\"], state = \"ledger\", key-file = \"ledger.key\" }\n[columns]\n\
         weight.role = \"quasi\"\ndiagnosis.role = \"sensitive\"\n",
    );
    ok(&["run", "series.toml", "-v"]);
    ok(&["forget", "series.toml", "--subjects", "data/part-0.parquet", "-v"]);
    desk.write(
        "fine.sql",
        "CREATE EXTERNAL TABLE people STORED AS PARQUET LOCATION 'data/';\n\
         SELECT count(*), count(DISTINCT town) FROM anonymize((SELECT town, weight, diagnosis FROM people), k => 5, \
         quasi => ['town', 'weight'], sensitive => ['diagnosis']);\n\
         EXPLAIN VERBOSE SELECT * FROM anonymize((SELECT town, weight, diagnosis FROM people), k => 5, \
         quasi => ['town', 'weight'], sensitive => ['diagnosis']);\n",
    );
    ok(&["sql", "fine.sql"]);
    let commands: BTreeSet<String> =
        commands().into_iter().filter(|command| !BLIND.contains(&command.as_str())).collect();
    assert_eq!(*seen.borrow(), commands, "every command that sees data is watched");

    // And when things go wrong.
    let refused = |code: i32, arguments: &[&str]| {
        let ran = watched(&desk, arguments);
        assert_eq!(ran.code, Some(code), "{arguments:?}: {}", ran.err);
    };
    let known = fs::read_to_string(desk.path("hierarchies/town.csv")).unwrap();
    let without: String =
        known.lines().filter(|line| !line.contains(HIDDEN[2])).map(|line| format!("{line}\n")).collect();
    desk.write("hierarchies/town.csv", &without);
    refused(4, &["run", "job.toml", "-v"]);
    refused(3, &["hierarchy", "check", "hierarchies/town.csv", "--data", "data", "--column", "town"]);
    refused(4, &["sweep", "job.toml", "--k", "5"]);
    refused(4, &["recommend", "job.toml", "--min-k", "5", "--sample", "700", "--repeats", "2"]);
    desk.write("hierarchies/town.csv", &known);
    refused(5, &["run", "job.toml", "--set", "privacy.max-loss=0.0001", "--set", "privacy.max-suppression=0.0"]);
    refused(6, &["run", "job.toml", "--set", "privacy.k=7", "--memory-limit", "1KB"]);
    desk.write(
        "query.sql",
        "CREATE EXTERNAL TABLE people STORED AS PARQUET LOCATION 'data/';\nSELECT CAST(town AS INT) FROM people;\n",
    );
    refused(4, &["sql", "query.sql"]);
    let released = &released_files(&desk.path("release"))[0];
    fs::write(released, b"not Parquet").unwrap();
    refused(5, &["verify", "release"]);
    refused(5, &["report", "release", "-o", "broken.html"]);
}
