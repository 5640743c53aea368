//! What a job can read: folders that name columns, files that differ, CSV, queries.

use std::fs;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};

use crate::support::{Desk, INDEPENDENT, batch, lines, manifest, multiset, seeded, texts, write_parquet};
use crate::tables::{JOB, assert_no_values, people};

/// Writes rows from..to of [`people`] to a file, with its folders.
fn write(desk: &Desk, name: &str, rows: std::ops::Range<usize>) {
    write_batch(desk, name, &batch(people(rows.end)).slice(rows.start, rows.len()));
}

fn write_batch(desk: &Desk, name: &str, rows: &RecordBatch) {
    fs::create_dir_all(desk.path(name).parent().unwrap()).unwrap();
    write_parquet(&desk.path(name), rows);
}

/// Writes a job whose source is given, before the rest.
fn job(desk: &Desk, source: &str, rest: &str) {
    let rest = seeded(rest);
    desk.write("job.toml", &format!("version = 1\n{INDEPENDENT}\n{rest}\n[source]\n{source}\n"));
}

/// A desk with people in the folders of three years, one of them unknown.
fn by_year(role: &str) -> Desk {
    let desk = Desk::new();
    write(&desk, "in/year=7023/a.parquet", 0..120);
    write(&desk, "in/year=7024/a.parquet", 120..200);
    write(&desk, "in/year=7024/b.parquet", 200..300);
    write(&desk, "in/year=__HIVE_DEFAULT_PARTITION__/a.parquet", 300..350);
    write(&desk, "in/_temporary/year=7024/c.parquet", 350..400);
    job(&desk, "url = \"in\"", &format!("{JOB}year.role = \"{role}\"\n"));
    desk
}

#[test]
fn folders_are_columns() {
    let desk = by_year("kept");
    desk.run(&[]).ok();
    let rows = desk.released();
    let count = |value: &str| texts(&rows, "year").iter().filter(|year| *year == value).count();
    assert_eq!((count("7023"), count("7024"), count(crate::support::NULL)), (120, 180, 50));
    assert!(desk.throng("plan", &[]).ok().out.contains("year=7023/"), "a kept value may be shown");
    desk.throng("verify", &[]).ok();
}

#[test]
fn folder_values_that_are_not_published_are_told_nowhere() {
    let desk = by_year("quasi");
    desk.throng("check", &[]).ok();
    desk.run(&[]).ok();
    desk.throng("verify", &[]).ok();
    let first = manifest(&desk.path("out"));
    assert_eq!(first["input"], serde_json::json!([{ "path": "in" }]), "nor how many there are");
    let plan = desk.throng("plan", &[]).ok().out;
    assert!(plan.contains("year=*/a.parquet") && plan.contains("quasi=[age, town, year]"), "{plan}");
    for text in [first.to_string(), plan] {
        assert!(!text.contains("7023") && !text.contains("7024"), "{text}");
    }
    assert!(desk.run(&[]).ok().err.contains("released before"), "the same input is the same run");
    // The same files in another folder are other rows, though nothing has changed that everybody may know: the key of
    // the owner shows it.
    let job = fs::read_to_string(desk.path("job.toml")).unwrap();
    desk.write("job.toml", &job.replace("method.seed = 42", "method.key-env = \"OWNER_KEY\""));
    let run = || {
        let script = "OWNER_KEY=8f1c0a4b7d2e9635f0a1c2d3e4b59687 \"$THRONG\" run job.toml --run-id keyed";
        crate::support::shell(&desk.path(""), script)
    };
    run().ok();
    assert!(run().ok().err.contains("released before"));
    fs::rename(desk.path("in/year=7023"), desk.path("in/year=7025")).unwrap();
    run().refused(7, &["another input"]);
    desk.write("job.toml", &job);
    assert!(desk.run(&[]).ok().err.contains("released before"), "without a key nobody may distinguish folders");
    fs::write(desk.path("in/year=7025/a.parquet"), b"PAR1").unwrap();
    let ran = desk.run(&["--run-id", "damaged"]);
    ran.refused(4, &["year=*/a.parquet"]);
    assert!(!ran.err.contains("7025"), "{}", ran.err);
}

#[test]
fn folders_can_be_declared_and_must_agree() {
    let desk = by_year("kept");
    job(&desk, "url = \"in\"\nschema.year = \"int16\"", &format!("{JOB}year.role = \"kept\"\n"));
    desk.run(&[]).ok();
    assert_eq!(manifest(&desk.path("out"))["schema"]["year"], "Int16");
    job(&desk, "url = \"in\"\nschema.age = \"int16\"", &format!("{JOB}year.role = \"kept\"\n"));
    desk.run(&[]).refused(3, &["source.schema.age", "not a folder name"]);
    write(&desk, "in/month=3/a.parquet", 400..420);
    desk.run(&[]).refused(4, &["year=7023/a.parquet", "month", "all files of a source need the same"]);
    fs::remove_dir_all(desk.path("in/month=3")).unwrap();
    let mut columns = people(10);
    columns.push(("year", Arc::new(Int64Array::from(vec![1; 10])) as ArrayRef));
    write_batch(&desk, "in/year=7023/b.parquet", &batch(columns));
    job(&desk, "url = \"in\"", &format!("{JOB}year.role = \"kept\"\n"));
    desk.run(&[]).refused(4, &["column `year` is a folder name"]);
}

#[test]
fn filters_leave_out_folders() {
    let desk = by_year("kept");
    let source = "sql = \"SELECT * FROM people WHERE year = 7024\"\ntables.people = \"in\"";
    job(&desk, source, &format!("{JOB}year.role = \"kept\"\n"));
    let plan = desk.throng("plan", &[]).ok().out;
    assert!(plan.contains("year=7024/") && !plan.contains("year=7023/"), "{plan}");
    desk.run(&[]).ok();
    assert_eq!(desk.released().num_rows(), 180);
    desk.throng("verify", &[]).ok();
}

#[test]
fn files_may_lack_columns_and_must_agree_on_types() {
    let desk = Desk::new();
    let whole = batch(people(100));
    write_batch(&desk, "in/a.parquet", &whole.project(&[0, 1, 3]).unwrap());
    let mut more = people(100);
    more.push(("note", Arc::new(StringArray::from(vec!["x"; 100])) as ArrayRef));
    write_batch(&desk, "in/b.parquet", &batch(more));
    job(&desk, "url = \"in\"", &format!("{JOB}note.role = \"kept\"\n"));
    desk.run(&[]).ok();
    let rows = desk.released();
    assert_eq!(rows.num_rows(), 200);
    let missing = texts(&rows, "note").iter().filter(|note| *note == crate::support::NULL).count();
    assert_eq!(missing, 100, "what a file lacks is null");
    desk.throng("verify", &[]).ok();

    let ages: ArrayRef = Arc::new(StringArray::from(vec!["1"; 100]));
    write_batch(&desk, "in/c.parquet", &batch(crate::tables::with(people(100), "age", ages)));
    for command in ["check", "plan", "run"] {
        desk.throng(command, &[]).refused(4, &["column `age`", "Int32", "a.parquet", "Utf8", "c.parquet"]);
    }
}

/// [`people`] as CSV.
fn csv(rows: usize, delimiter: &str) -> String {
    let names = ["id", "age", "town", "ill"].map(str::to_owned);
    let body: String = lines(&batch(people(rows)), &names)
        .iter()
        .map(|line| format!("{}\n", line.trim_end_matches('|').replace('|', delimiter)))
        .collect();
    format!("{}\n{body}", names.join(delimiter))
}

const SCHEMA: &str = "schema = { id = \"int64\", age = \"int32\", town = \"text\", ill = \"text\" }\n";

#[test]
fn csv_gives_what_parquet_gives() {
    let parquet = Desk::with(people(300), JOB);
    parquet.run(&[]).ok();
    let desk = Desk::new();
    desk.write("in.csv", &csv(300, ","));
    job(&desk, &format!("url = \"in.csv\"\nformat = \"csv\"\n{SCHEMA}"), JOB);
    desk.throng("check", &[]).ok();
    desk.run(&[]).ok();
    desk.throng("verify", &[]).ok();
    assert_eq!(multiset(&desk.released()), multiset(&parquet.released()));
    // The same without a header, by another delimiter, in two files of a folder.
    fs::create_dir(desk.path("in")).unwrap();
    let rows: Vec<String> = csv(300, ";").lines().skip(1).map(|line| format!("{line}\n")).collect();
    desk.write("in/a.csv", &rows[..100].concat());
    desk.write("in/b.csv", &rows[100..].concat());
    let options = "delimiter = \";\"\nheader = false\nnames = [\"id\", \"age\", \"town\", \"ill\"]\n";
    job(&desk, &format!("url = \"in\"\nformat = \"csv\"\n{options}{SCHEMA}"), JOB);
    desk.run(&[]).ok();
    assert_eq!(multiset(&desk.released()), multiset(&parquet.released()));
}

#[test]
fn csv_quotes_and_nulls() {
    let desk = Desk::new();
    let text = csv(60, ",").replace("\n730002,", "\n730002,NA,").replacen("Quuxham", "\"Quux\nham\"", 1);
    let text = text.lines().map(|line| match line.strip_prefix("730002,NA,") {
        Some(rest) => format!("730002,NA,{}\n", rest.split_once(',').unwrap().1),
        None => format!("{line}\n"),
    });
    desk.write("in.csv", &text.collect::<String>());
    job(
        &desk,
        &format!("url = \"in.csv\"\nformat = \"csv\"\nnull = \"NA\"\n{SCHEMA}"),
        &JOB.replace("town.role = \"quasi\"", "town.role = \"kept\""),
    );
    desk.run(&[]).ok();
    let rows = desk.released();
    assert_eq!(rows.num_rows(), 60);
    assert!(texts(&rows, "town").contains(&"Quux\nham".to_owned()));
    desk.throng("verify", &[]).ok();
}

#[test]
fn malformed_csv_is_named_by_file_and_line() {
    let desk = Desk::new();
    let good = csv(3000, ",");
    let source = format!("url = \"in\"\nformat = \"csv\"\n{SCHEMA}");
    fs::create_dir(desk.path("in")).unwrap();
    desk.write("in/a.csv", &good);
    job(&desk, &source, JOB);
    let line = |at: usize| good.lines().nth(at - 1).unwrap();
    for (bad, words) in [
        (good.replace(line(2718), &line(2718).replace(",10", ",x10")), ["line 2718", "column `age`", "Int32"]),
        (good.replace(line(2718), "730001,1020"), ["line 2718", "2 values", "4 columns"]),
        (good.replace(line(17), &format!("{},9", line(17))), ["line 17", "5 values", "4 columns"]),
    ] {
        desk.write("in/b.csv", &bad);
        let ran = desk.run(&[]);
        ran.refused(4, &words);
        ran.refused(4, &["in/b.csv"]);
        assert_no_values(&ran.err.replace("line 2718", "").replace("line 17", ""));
        assert!(desk.sink_files().is_empty());
    }
    desk.write("in/b.csv", &good.replacen("age", "years", 1));
    desk.throng("check", &[]).refused(4, &["the headers of", "in/b.csv", "in/a.csv"]);
    fs::remove_file(desk.path("in/b.csv")).unwrap();
    job(&desk, &source.replace("age = \"int32\", ", ""), JOB);
    desk.throng("check", &[]).refused(4, &["has a column `age`", "source.schema"]);
    job(&desk, &source.replace("age =", "years = \"text\", age ="), JOB);
    desk.throng("check", &[]).refused(4, &["has no column `years`", "source.schema", "source.header = false"]);
    job(&desk, "url = \"in\"\nformat = \"csv\"", JOB);
    desk.throng("check", &[]).refused(3, &["source.schema: is missing"]);
}

#[test]
fn a_query_over_tables() {
    let desk = Desk::new();
    let whole = batch(people(200));
    write_batch(&desk, "people/a.parquet", &whole.project(&[0, 1, 2]).unwrap());
    let ills: String =
        texts(&whole, "id").iter().zip(texts(&whole, "ill")).map(|(id, ill)| format!("{id},{ill}\n")).collect();
    desk.write("ills.csv", &format!("person,ill\n{ills}"));
    let source = "sql = \"SELECT id, age, town, ill FROM people JOIN ills ON person = id WHERE age < 1060\"\n\
                  [source.tables]\npeople = \"people\"\n\
                  ills = { url = \"ills.csv\", format = \"csv\", schema = { person = \"int64\", ill = \"text\" } }";
    job(&desk, source, JOB);
    desk.throng("check", &[]).ok();
    desk.run(&[]).ok();
    desk.throng("verify", &[]).ok();
    let expected = texts(&whole, "age").iter().filter(|age| age.as_str() < "1060").count();
    assert_eq!(desk.released().num_rows(), expected);
    let first = manifest(&desk.path("out"));
    assert_eq!(first["input"].as_array().unwrap().len(), 2);
    assert!(desk.run(&[]).ok().err.contains("released before"));
    job(&desk, &source.replace("1060", "1050"), JOB);
    desk.run(&["--run-id", first["run"].as_str().unwrap()]).refused(7, &["another input"]);
    desk.run(&[]).ok();
    assert_ne!(manifest(&desk.path("out"))["run"], first["run"], "another query is another run");
    for (query, code, words) in [
        ("SELECT id, age FROM nobody", 3, "nobody"),
        ("SELECT id, age, town, ill FROM people JOIN ills ON person = id LIMIT 9", 3, "LIMIT without ORDER BY"),
        ("DROP TABLE people", 3, "must be a SELECT"),
        ("SELECT id, age, town FROM people", 3, "columns.ill"),
    ] {
        let tables = source.split_once('\n').unwrap().1;
        job(&desk, &format!("sql = \"{query}\"\n{tables}"), JOB);
        desk.run(&[]).refused(code, &[words]);
        desk.throng("check", &[]).refused(code, &[words]);
    }
    job(&desk, &source.replace("\"people\"\n", "\"nowhere\"\n"), JOB);
    desk.throng("check", &[]).refused(3, &["source.tables.people", "there is no file or folder"]);
}
