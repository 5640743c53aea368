//! k in persons: somebody with many rows is not a crowd.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int32Array, Int64Array, StringArray};
use fastrand::Rng;
use serde_json::Value;
use throng_core::methods::METHODS;

use crate::support::{Desk, lines, manifest, multiset, read_parquet, released_files, texts, write_parquet};

const K: usize = 5;

/// Yearly records of an insurance: a person has one to six rows, of nearly the same age, in one town. `record` is unique,
/// so that the published rows can be matched with their person here.
fn records() -> (Vec<(&'static str, ArrayRef)>, BTreeMap<String, i64>) {
    let mut rng = Rng::with_seed(3);
    let (mut person, mut age, mut town, mut ill) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for id in 0..160_i64 {
        let (born, place) = (rng.i32(20..70), ["Ash", "Birch", "Elm"][rng.usize(0..3)]);
        for year in 0..rng.i32(1..7) {
            person.push((id % 29 > 0).then_some(880_000 + id));
            age.push(born + year);
            town.push(place);
            ill.push(["flu", "gout", "rash", "cold"][rng.usize(0..4)]);
        }
    }
    let record: Vec<i64> = (0..person.len() as i64).collect();
    // Nobody knows whose the rows without a person are: they count as one.
    let owner = record.iter().zip(&person).map(|(record, person)| (record.to_string(), person.unwrap_or(-1))).collect();
    let columns = vec![
        ("person", Arc::new(Int64Array::from(person)) as ArrayRef),
        ("record", Arc::new(Int64Array::from(record))),
        ("age", Arc::new(Int32Array::from(age))),
        ("town", Arc::new(StringArray::from(town))),
        ("ill", Arc::new(StringArray::from(ill))),
    ];
    (columns, owner)
}

fn job(method: &str, role: &str, person: &str) -> String {
    // What some methods cannot do without.
    let (rules, more) = match method {
        "upc" => ("max-loss = 1.0, range-diversity = { column = \"ill\", p = 1.0 },", ""),
        "pair-enum" | "k-assemble" => ("", "dependencies = [{ from = [\"age\"], to = [\"town\"], tolerance = 1.0 }]\n"),
        _ => ("", ""),
    };
    format!(
        "{more}measures.source = true\nmethod.name = \"{method}\"\nprivacy = {{ k = {K}, {person} {rules} max-suppression = 0.5 }}\n[columns]\n\
         person.role = \"{role}\"\nrecord.role = \"kept\"\nage.role = \"quasi\"\ntown.role = \"quasi\"\n\
         ill.role = \"sensitive\"\n"
    )
}

/// Fewest people in any published class.
fn fewest(desk: &Desk, owner: &BTreeMap<String, i64>) -> usize {
    let rows = desk.released();
    let mut people: BTreeMap<String, BTreeSet<i64>> = BTreeMap::new();
    let classes = lines(&rows, &["age".to_owned(), "town".to_owned()]);
    for (class, record) in classes.into_iter().zip(texts(&rows, "record")) {
        people.entry(class).or_default().insert(owner[&record]);
    }
    people.values().map(BTreeSet::len).min().unwrap()
}

/// Methods that hide among public people, whom `presence` counts.
const OF_A_PUBLIC_TABLE: [&str; 3] = ["mpalm", "spalm", "combined"];

/// Methods that publish values as they are, so that a class is a group of rows.
const AS_THEY_ARE: [&str; 2] = ["anatomy", "slicing"];

#[test]
fn every_class_holds_k_people_by_every_method() {
    let (columns, owner) = records();
    let methods = METHODS.iter().map(|entry| entry.name).filter(|name| !OF_A_PUBLIC_TABLE.contains(name));
    for method in methods.filter(|name| !AS_THEY_ARE.contains(name)) {
        if ["auto", "mondrian", "k-members", "k-assemble", "density"].contains(&method) {
            let rows_only = Desk::with(columns.clone(), &job(method, "identifier", ""));
            rows_only.run(&["--quiet"]).ok();
            assert!(fewest(&rows_only, &owner) < K, "{method}: {K} rows are not {K} people here");
        }

        let desk = Desk::with(columns.clone(), &job(method, "identifier", "person = \"person\","));
        desk.run(&["--quiet", "--partitions", "1"]).ok();
        assert!(fewest(&desk, &owner) >= K, "{method} groups too few people");
        assert!(desk.released().column_by_name("person").is_none(), "the person is not published");

        let manifest = manifest(&desk.path("out"));
        let people = &manifest["verification"]["people"]["classes"];
        let size = &manifest["verification"]["rules"][0];
        assert_eq!((&size["rule"], &size["kind"]), (&"k".into(), &"people".into()));
        assert_eq!(size["parameters"]["k"].as_f64(), Some(K as f64));
        assert_eq!(size["attained"]["k"], people["smallest"].as_u64().unwrap() as f64);
        assert_eq!(people["smallest"].as_u64().unwrap() as usize, fewest(&desk, &owner));
        let risk = manifest["scores"]["risk_max"].as_f64().unwrap();
        assert!((risk - 1.0 / people["smallest"].as_f64().unwrap()).abs() < 1e-4, "a person hides among people");
        let said = desk.throng("verify", &["--json"]).ok();
        assert_eq!(serde_json::from_str::<Value>(&said.out).unwrap()["people"], people["smallest"]);

        // Rows that arrive otherwise and in other partitions give the same release, though many publish the same.
        let reversed: Vec<(&str, ArrayRef)> = columns
            .iter()
            .map(|(name, array)| {
                let order = datafusion::arrow::array::UInt32Array::from_iter_values((0..array.len() as u32).rev());
                (*name, datafusion::arrow::compute::take(array, &order, None).unwrap())
            })
            .collect();
        let again = Desk::with(reversed, &job(method, "identifier", "person = \"person\","));
        again.run(&["--quiet", "--partitions", "3", "--batch-rows", "37"]).ok();
        assert_eq!(multiset(&desk.released()), multiset(&again.released()));
    }
}

#[test]
fn groups_of_values_as_they_are_hold_k_people() {
    let (columns, _) = records();
    for method in AS_THEY_ARE {
        let desk = Desk::with(columns.clone(), &job(method, "identifier", "person = \"person\","));
        desk.run(&["--quiet"]).ok();
        desk.throng("verify", &[]).ok();
        let people = &manifest(&desk.path("out"))["verification"]["people"]["classes"];
        assert!(people["smallest"].as_u64().unwrap() as usize >= K, "{method} groups too few people");
    }
}

/// Sizes of classes are in what k counts, in manifest, summary and page: a class of eleven rows of five people is one of
/// five.
#[test]
fn class_sizes_are_those_in_people() {
    let (columns, owner) = records();
    let desk = Desk::with(columns, &job("auto", "identifier", "person = \"person\","));
    let summary = desk.run(&[]).ok();
    let rows = desk.released();
    let mut people: BTreeMap<String, BTreeSet<i64>> = BTreeMap::new();
    let classes = lines(&rows, &["age".to_owned(), "town".to_owned()]);
    for (class, record) in classes.iter().zip(texts(&rows, "record")) {
        people.entry(class.clone()).or_default().insert(owner[&record]);
    }
    let mut sizes: BTreeMap<u64, u64> = BTreeMap::new();
    people.values().for_each(|people| *sizes.entry(people.len() as u64).or_default() += 1);
    let reported = &manifest(&desk.path("out"))["verification"]["people"]["classes"]["by_size"];
    assert_eq!(serde_json::from_value::<BTreeMap<u64, u64>>(reported.clone()).unwrap(), sizes);

    let all: u64 = sizes.iter().map(|(size, number)| size * number).sum();
    let of_table: u64 = summary
        .out
        .lines()
        .skip_while(|line| !line.contains("people in a class"))
        .skip(2)
        .take_while(|line| !line.starts_with('\u{2514}'))
        .filter_map(|line| {
            line.trim_end_matches('\u{2502}').split_whitespace().last()?.replace(',', "").parse::<u64>().ok()
        })
        .sum();
    assert_eq!(of_table, all, "{}", summary.out);

    desk.throng("report", &["-o", &desk.name("page.html")]).ok();
    let page = fs::read_to_string(desk.path("page.html")).unwrap();
    assert!(page.contains("people in a class</th>") && !page.contains("rows in a class</th>"));
    let smallest = sizes.keys().next().unwrap();
    assert!(page.contains(&format!("<dd id=\"smallest\">{smallest}</dd>")));
}

/// Whose the rows are is not published, and the manifest says no more of people than k.
#[test]
fn people_beyond_k_are_told_where_the_job_asks_for_them() {
    let (columns, owner) = records();
    let desk = Desk::with(columns, &job("auto", "identifier", "person = \"person\","));
    let output = desk.run(&["--set", "measures.source=false"]).ok();
    assert!(fewest(&desk, &owner) >= K);
    let manifest = manifest(&desk.path("out"));
    let people = &manifest["verification"]["people"]["classes"];
    assert_eq!((&people["smallest"], &people["by_size"]), (&K.into(), &serde_json::json!({})));
    assert_eq!(people["count"], manifest["verification"]["classes"]["count"]);
    assert_eq!(
        (&manifest["scores"]["risk_max"], &manifest["scores"]["risk_mean"]),
        (&(1.0 / K as f64).into(), &Value::Null)
    );
    assert!(output.out.contains("rows in a class"), "{}", output.out);
    desk.throng("verify", &[]).ok();
    desk.throng("report", &["-o", &desk.name("page.html")]).ok();
}

#[test]
fn people_are_counted_in_many_cells_and_in_published_persons() {
    let (columns, owner) = records();
    let desk = Desk::with(columns, &job("auto", "kept", "person = \"person\","));
    desk.run(&["--quiet", "--cell-rows", "120"]).ok();
    assert!(fewest(&desk, &owner) >= K);
    let manifest = manifest(&desk.path("out"));
    assert!(manifest["cells"].as_u64().unwrap() > 1 || manifest["suppressed"] != 0);
    desk.throng("verify", &[]).ok();
}

#[test]
fn changed_classes_are_not_those_in_which_people_were_counted() {
    let (columns, _) = records();
    let desk = Desk::with(columns, &job("auto", "identifier", "person = \"person\","));
    desk.run(&["--quiet", "--partitions", "1"]).ok();
    let sink = desk.path("out");
    let [file] = &released_files(&sink)[..] else { panic!("one file") };
    let rows = read_parquet(file);
    // Every row of Ash moves to another class that covers it, in which nobody has counted.
    let towns = texts(&rows, "town").into_iter().map(|town| if town == "Ash" { "*".to_owned() } else { town });
    let mut columns = rows.columns().to_vec();
    columns[rows.schema().index_of("town").unwrap()] = Arc::new(StringArray::from_iter_values(towns));
    let changed = datafusion::arrow::array::RecordBatch::try_new(rows.schema(), columns).unwrap();
    assert_ne!(rows, changed, "the test changes something");
    write_parquet(file, &changed);
    let mut forged = manifest(&sink);
    forged["files"][0]["blake3"] = blake3::hash(&fs::read(file).unwrap()).to_hex().to_string().into();
    let run = forged["run"].as_str().unwrap().to_owned();
    fs::write(sink.join(format!("_manifest/{run}.json")), forged.to_string()).unwrap();
    let words = ["person: the published classes are not those in which people were counted"];
    desk.throng("verify", &[]).refused(5, &words);
    let name = desk.name("out");
    crate::support::throng(&["verify", &name]).refused(5, &words);
}

#[test]
fn too_few_people_are_refused_whatever_the_number_of_rows() {
    let person: ArrayRef = Arc::new(Int64Array::from_iter_values((0..200).map(|row| row % 4)));
    let numbers =
        |modulo: i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values((0..200).map(|row| row % modulo))) };
    let words: ArrayRef = Arc::new(StringArray::from_iter_values((0..200).map(|row| ["Ash", "Elm"][row % 2])));
    let columns = vec![
        ("person", person),
        ("record", numbers(200)),
        ("age", numbers(31)),
        ("town", Arc::clone(&words)),
        ("ill", words),
    ];
    let desk = Desk::with(columns, &job("auto", "identifier", "person = \"person\","));
    desk.run(&["--quiet"]).refused(5, &["k = 5 people"]);
    assert!(desk.sink_files().is_empty());
}
