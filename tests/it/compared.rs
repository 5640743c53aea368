//! Several releases of the same people, compared: `throng attack --series` finds what a plain recount of the published files
//! finds, on a census that changes a little every night.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, BooleanArray, RecordBatch};
use datafusion::arrow::compute::{cast, concat_batches};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use serde_json::Value;
use throng::internals::Census;

use crate::support::{Desk, batch, released, texts, throng, write_parquet};
use crate::tables::{ILLS, JOB, people, with, words};

const NIGHTS: usize = 5;
const ROWS: usize = 900;
/// People who come every night, and as many go: 2 %.
const CHURN: usize = 18;

/// The census of a night.
fn census(night: usize) -> RecordBatch {
    let all = Census::new(11, (ROWS + NIGHTS * CHURN) as u64);
    let rows = (night * CHURN) as u64..(night * CHURN + ROWS) as u64;
    let parts: Vec<RecordBatch> = all.batches(rows, 1 << 12).collect::<Result<_, _>>().unwrap();
    concat_batches(&Census::schema(), &parts).unwrap()
}

const POLICY: &str = "privacy = { k = 5, l-diversity = { column = \"diagnosis\", l = 3 } }\nmethod.auto.effort = \"fast\"\n\
                      defaults.role = \"identifier\"\n[columns]\nage.role = \"quasi\"\nhousehold_size.role = \"quasi\"\n\
                      diagnosis.role = \"sensitive\"\n";

/// A desk on which every night was published, and its table kept as `night-N.parquet`.
fn published_nights() -> Desk {
    let desk = Desk::new();
    desk.job(POLICY);
    for night in 0..NIGHTS {
        write_parquet(&desk.path("in.parquet"), &census(night));
        write_parquet(&desk.path(&format!("night-{night}.parquet")), &census(night));
        desk.run(&["--quiet", "--run-id", &format!("night-{night}")]).ok();
    }
    desk
}

fn numbers(column: &ArrayRef) -> Vec<i64> {
    cast(column, &DataType::Int64).unwrap().as_primitive::<Int64Type>().values().to_vec()
}

/// A published row: the ends of its two ranges, and its diagnosis.
type Row = ([(i64, i64); 2], String);

fn rows(release: &RecordBatch) -> Vec<Row> {
    let ends = |name: &str| -> Vec<(i64, i64)> {
        let range = release.column_by_name(name).unwrap().as_struct();
        numbers(range.column(0)).into_iter().zip(numbers(range.column(1))).collect()
    };
    let (ages, households) = (ends("age"), ends("household_size"));
    let reported = texts(release, "diagnosis");
    ages.into_iter().zip(households).zip(reported).map(|((age, household), ill)| ([age, household], ill)).collect()
}

/// The people of a night: their number and quasi-identifiers.
fn people_of(night: usize) -> Vec<(i64, [i64; 2])> {
    let table = census(night);
    let column = |name: &str| numbers(table.column_by_name(name).unwrap());
    let values = column("age").into_iter().zip(column("household_size")).map(|(age, household)| [age, household]);
    column("person_id").into_iter().zip(values).collect()
}

/// Rows of a release that cover somebody, by their diagnosis.
fn covering(release: &[Row], person: [i64; 2]) -> BTreeMap<&str, usize> {
    let covers = |row: &&Row| row.0.iter().zip(person).all(|((low, high), value)| (*low..=*high).contains(&value));
    let mut found = BTreeMap::new();
    release.iter().filter(covers).for_each(|row| *found.entry(row.1.as_str()).or_default() += 1);
    found
}

/// People by the number of diagnoses that are left after each night: the recount.
fn recount(releases: &[Vec<Row>]) -> Vec<[BTreeMap<u64, u64>; 2]> {
    let mut known: BTreeMap<i64, (BTreeSet<&str>, usize)> = BTreeMap::new();
    let mut after = Vec::new();
    for (night, release) in releases.iter().enumerate() {
        for (person, values) in people_of(night) {
            let here = covering(release, values);
            assert!(!here.is_empty(), "everybody is published");
            let (left, fewest) = known.entry(person).or_insert_with(|| (here.keys().copied().collect(), usize::MAX));
            left.retain(|ill| here.contains_key(ill));
            assert!(!left.is_empty(), "the true one is always left");
            *fewest = (*fewest).min(here.iter().filter(|(ill, _)| left.contains(*ill)).map(|(_, rows)| rows).sum());
        }
        let mut found = [BTreeMap::new(), BTreeMap::new()];
        for (left, fewest) in known.values() {
            *found[0].entry(left.len() as u64).or_default() += 1;
            *found[1].entry(*fewest as u64).or_default() += 1;
        }
        after.push(found);
    }
    after
}

fn histogram(value: &Value) -> BTreeMap<u64, u64> {
    let counted = value.as_object().unwrap().iter();
    counted.map(|(key, people)| (key.parse().unwrap(), people.as_u64().unwrap())).collect()
}

fn attack(desk: &Desk, more: &[&str]) -> Value {
    let fixed = ["--series", "--json", "--subject", "person_id"];
    serde_json::from_str(&desk.throng("attack", &[&fixed, more].concat()).ok().out).unwrap()
}

/// `--public` for every night.
fn nightly_tables(desk: &Desk) -> Vec<String> {
    (0..NIGHTS).flat_map(|night| ["--public".to_owned(), desk.name(&format!("night-{night}.parquet"))]).collect()
}

#[test]
fn independent_releases_leak_and_the_attack_shows_how_much() {
    let desk = published_nights();
    let tables = nightly_tables(&desk);
    let tables: Vec<&str> = tables.iter().map(String::as_str).collect();
    let found = attack(&desk, &tables);
    let folder = |night: usize| -> RecordBatch {
        throng(&["rollback", &desk.name("out"), &format!("night-{night}")]).ok();
        released(&desk.path("out"))
    };
    let releases: Vec<Vec<Row>> = (0..NIGHTS).map(|night| rows(&folder(night))).collect();
    let reported = found["sensitive"]["diagnosis"]["releases"].as_array().unwrap();
    assert_eq!((reported.len(), &found["sensitive"]["diagnosis"]["least_values"]), (NIGHTS, &3.into()));
    for (night, [by_values, by_candidates]) in recount(&releases).into_iter().enumerate() {
        let reported = &reported[night];
        assert_eq!(reported["exposure"]["subtracted"], 0, "18 come and 18 go: some cancel out");
        assert_eq!(reported["exposure"]["people"], (ROWS + night * CHURN) as u64);
        assert_eq!(histogram(&reported["exposure"]["by_values"]), by_values, "night {night}");
        assert_eq!(histogram(&reported["exposure"]["by_candidates"]), by_candidates, "night {night}");
    }
    // One release keeps its promise; together they do not.
    let share = |night: usize, name: &str| reported[night][name].as_f64().unwrap();
    assert_eq!((share(0, "below_least"), share(0, "below_k")), (0.0, 0.0));
    println!("below l: {:?}", (0..NIGHTS).map(|night| share(night, "below_least")).collect::<Vec<_>>());
    println!("below k: {:?}", (0..NIGHTS).map(|night| share(night, "below_k")).collect::<Vec<_>>());
    assert!(share(NIGHTS - 1, "below_least") > 0.02 && share(NIGHTS - 1, "below_k") > 0.05, "{reported:?}");
    let page = desk.throng("attack", &[&["--series", "--subject", "person_id"], &tables[..]].concat()).ok().out;
    for word in ["night-4", "fewer than 3", "fewer than 5 rows", "values left at the end"] {
        assert!(page.contains(word), "{page}");
    }

    // The page about a release draws it.
    desk.write("attack.json", &found.to_string());
    desk.throng("report", &["--series", &desk.name("attack.json"), "-o", &desk.name("page.html")]).ok();
    let page = std::fs::read_to_string(desk.path("page.html")).unwrap();
    for word in [
        "id=\"series\"",
        "Several releases together",
        "fewer than 3 values",
        "<code>diagnosis</code>",
        "href=\"#series\"",
    ] {
        assert!(page.contains(word), "{word}");
    }
    desk.throng("report", &["--series", &desk.name("job.toml")])
        .refused(4, &["job.toml", "throng attack --series --json"]);

    // The same from one table that says who was there when, and from folders instead of a sink.
    let everybody = Census::new(11, (ROWS + NIGHTS * CHURN) as u64);
    let all = ROWS + (NIGHTS - 1) * CHURN;
    let parts: Vec<RecordBatch> = everybody.batches(0..all as u64, 1 << 12).collect::<Result<_, _>>().unwrap();
    let all_people = concat_batches(&Census::schema(), &parts).unwrap();
    let mut columns: Vec<(&str, ArrayRef)> = ["person_id", "age", "household_size"]
        .iter()
        .map(|name| (*name, Arc::clone(all_people.column_by_name(name).unwrap())))
        .collect();
    let names: Vec<String> = (0..NIGHTS).map(|night| format!("there_{night}")).collect();
    for (night, name) in names.iter().enumerate() {
        let there = (0..all).map(|row| Some((night * CHURN..night * CHURN + ROWS).contains(&row)));
        columns.push((name, Arc::new(there.collect::<BooleanArray>())));
    }
    write_parquet(&desk.path("everybody.parquet"), &batch(columns));
    let everybody = desk.name("everybody.parquet");
    let mut more = vec!["--public", everybody.as_str()];
    names.iter().for_each(|name| more.extend(["--present-column", name.as_str()]));
    assert_eq!(attack(&desk, &more), found);
    let folders: Vec<String> =
        (0..NIGHTS).map(|night| data_folder(&desk.path("out"), &format!("night-{night}"))).collect();
    folders.iter().for_each(|folder| more.extend(["--release", folder.as_str()]));
    assert_eq!(attack(&desk, &more)["sensitive"], found["sensitive"]);
    // The newest release alone is what one release may reveal.
    let newest = attack(&desk, &["--public", tables[2 * NIGHTS - 1], "--release", &folders[NIGHTS - 1]]);
    assert_eq!(newest["sensitive"]["diagnosis"]["releases"][0]["below_least"], 0.0);
}

/// The folder of a run's files.
fn data_folder(sink: &Path, run: &str) -> String {
    let manifest = std::fs::read(sink.join(format!("_manifest/{run}.json"))).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    sink.join(manifest["data"].as_str().unwrap()).display().to_string()
}

#[test]
fn one_newcomer_is_known_for_certain() {
    let desk = Desk::with(people(60), JOB);
    let ids = |rows: usize, name: &str| write_parquet(&desk.path(name), &batch(people(rows)));
    ids(60, "before.parquet");
    desk.run(&["--run-id", "before"]).ok();
    ids(61, "in.parquet");
    ids(61, "after.parquet");
    desk.run(&["--run-id", "after"]).ok();
    let (before, after) = (desk.name("before.parquet"), desk.name("after.parquet"));
    let fixed = ["--series", "--json", "--subject", "id", "--public", &before, "--public", &after];
    let found: Value = serde_json::from_str(&desk.throng("attack", &fixed).ok().out).unwrap();
    let last = &found["sensitive"]["ill"]["releases"][1];
    assert_eq!(last["exposure"]["subtracted"], 1);
    assert!(histogram(&last["exposure"]["by_values"])[&1] >= 1, "{last}");
}

#[test]
fn what_cannot_be_compared_is_said() {
    let desk = Desk::with(people(60), JOB);
    let public = desk.name("in.parquet");
    let series = |more: &[&str]| desk.throng("attack", &[&["--series", "--public", &public], more].concat());
    series(&["--subject", "id"]).refused(4, &["holds no release"]);
    desk.run(&[]).ok();
    assert_eq!(series(&[]).code, Some(2), "nobody is identified");
    assert_eq!(desk.throng("attack", &["--public", &public, "--public", &public]).code, Some(2));
    series(&["--subject", "name"]).refused(4, &["public table has no column `name`"]);
    series(&["--subject", "town"]).refused(4, &["rows of the public table", "--subject"]);
    series(&["--subject", "id", "--present-column", "id", "--present-column", "id"])
        .refused(4, &["--present-column is given 2 times for 1 releases"]);
    series(&[
        "--subject",
        "id",
        "--set",
        "method.name=anatomy",
        "--set",
        "privacy.l-diversity={ column = \"ill\", l = 3 }",
    ])
    .refused(3, &["generalise", "anatomy"]);
    series(&["--subject", "id", "--set", "columns.age.publish=bounds"])
        .refused(4, &["no column `age_min`", "--release"]);
    write_parquet(&desk.path("in.parquet"), &batch(with(people(60), "ill", words(60, &ILLS, 4))));
    series(&["--subject", "id"]).ok();
}
