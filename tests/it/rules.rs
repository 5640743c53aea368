//! Every rule, from the job file to the published files: what is published meets it, counted here and without Throng; a
//! rule that cannot be met ends the run with exit code 5; and `verify` finds out when a release is changed so that it no
//! longer does.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use fastrand::Rng;
use serde_json::Value;
use throng_core::grouping::entry::{Entry, Form};
use throng_core::methods::METHODS;

use crate::support::{Desk, counts, lines, manifest, read_parquet, released_files, texts, write_parquet};

const ILLS: [&str; 5] = ["zebrapox", "quinsyfever", "glumrash", "wheezecough", "thornitch"];
const ROWS: usize = 500;

fn patients() -> Vec<(&'static str, ArrayRef)> {
    let mut rng = Rng::with_seed(5);
    let ages: Vec<i32> = (0..ROWS).map(|_| rng.i32(20..80)).collect();
    let towns: Vec<&str> = (0..ROWS).map(|_| ["Ash", "Birch", "Elm"][rng.usize(0..3)]).collect();
    let ills: Vec<&str> = (0..ROWS).map(|_| ILLS[rng.usize(0..5).min(rng.usize(0..5))]).collect();
    let pays: Vec<i32> = (0..ROWS).map(|_| 100 * rng.i32(0..20)).collect();
    vec![
        ("age", Arc::new(Int32Array::from(ages)) as ArrayRef),
        ("town", Arc::new(StringArray::from(towns))),
        ("ill", Arc::new(StringArray::from(ills))),
        ("pay", Arc::new(Int32Array::from(pays))),
    ]
}

const COLUMNS: &str = "[columns]\nage.role = \"quasi\"\ntown.role = \"quasi\"\npay.role = \"sensitive\"\n\
    ill = { role = \"sensitive\", hierarchy.tree = { lung = [\"wheezecough\", \"quinsyfever\"], \
    skin = [\"zebrapox\", \"glumrash\", \"thornitch\"] } }\n";

fn release(method: &str, rule: &str) -> Desk {
    Desk::with(patients(), &format!("method.name = \"{method}\"\n{COLUMNS}[privacy]\nk = 4\n{rule}\n"))
}

/// How often each value of a column occurs in each published class.
fn histograms(rows: &RecordBatch, column: &str) -> Vec<BTreeMap<String, usize>> {
    let classes = lines(rows, &["age".to_owned(), "town".to_owned()]);
    let mut of_class: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (class, value) in classes.into_iter().zip(texts(rows, column)) {
        of_class.entry(class).or_default().push(value);
    }
    of_class.into_values().map(counts).collect()
}

type Histogram = BTreeMap<String, usize>;

fn share(histogram: &Histogram, value: &str) -> f64 {
    *histogram.get(value).unwrap_or(&0) as f64 / histogram.values().sum::<usize>() as f64
}

/// A rule, its column, and whether a class in a table with these values meets it.
type Check = (&'static str, &'static str, fn(&Histogram, &Histogram) -> bool);

const CHECKS: [Check; 13] = [
    ("alpha-k = { column = \"ill\", alpha = 0.5 }", "ill", |class, _| {
        class.keys().all(|value| share(class, value) <= 0.5 + 1e-9)
    }),
    ("p-sensitive = { column = \"ill\", p = 3 }", "ill", |class, _| class.len() >= 3),
    ("k-e = { column = \"pay\", k = 3, e = 900 }", "pay", |class, _| {
        let pays: Vec<i32> = class.keys().map(|pay| pay.parse().unwrap()).collect();
        pays.len() >= 3 && pays.iter().max().unwrap() - pays.iter().min().unwrap() >= 900
    }),
    ("t-closeness = { column = \"ill\", t = 0.3, distance = \"equal\" }", "ill", |class, table| {
        table.keys().map(|value| (share(class, value) - share(table, value)).abs()).sum::<f64>() / 2.0 <= 0.3 + 1e-9
    }),
    ("t-closeness = { column = \"pay\", t = 0.2 }", "pay", |class, table| {
        let mut pays: Vec<(i32, &String)> = table.keys().map(|pay| (pay.parse().unwrap(), pay)).collect();
        pays.sort_unstable();
        let (mut sum, mut work) = (0.0, 0.0);
        for (_, pay) in &pays {
            sum += share(class, pay) - share(table, pay);
            work += f64::abs(sum);
        }
        work / (pays.len() - 1) as f64 <= 0.2 + 1e-9
    }),
    // Two levels: within lung and skin half of the way, between them the whole.
    ("t-closeness = { column = \"ill\", t = 0.25 }", "ill", |class, table| {
        let extra = |value: &str| share(class, value) - share(table, value);
        let branches = [&["wheezecough", "quinsyfever"][..], &["zebrapox", "glumrash", "thornitch"]];
        let mut work = 0.0;
        for branch in branches {
            let up: f64 = branch.iter().map(|value| extra(value).max(0.0)).sum();
            let down: f64 = branch.iter().map(|value| (-extra(value)).max(0.0)).sum();
            work += up.min(down) / 2.0;
        }
        work + branches[0].iter().map(|value| extra(value)).sum::<f64>().abs() <= 0.25 + 1e-9
    }),
    ("delta-disclosure = { column = \"ill\", delta = 1.2 }", "ill", |class, table| {
        class.keys().all(|value| (share(class, value) / share(table, value)).ln().abs() < 1.2)
    }),
    ("beta-likeness = { column = \"ill\", beta = 2, kind = \"enhanced\" }", "ill", |class, table| {
        let gain = |value: &String| share(class, value) / share(table, value) - 1.0;
        class.keys().all(|value| gain(value) <= f64::min(2.0, -share(table, value).ln()) + 1e-9)
    }),
    ("guarding = { column = \"ill\", nodes = [\"lung\", \"zebrapox\"], p = 0.6 }", "ill", |class, _| {
        let lung = share(class, "wheezecough") + share(class, "quinsyfever");
        lung <= 0.6 + 1e-9 && share(class, "zebrapox") <= 0.6 + 1e-9
    }),
    ("l-diversity = { column = \"ill\", l = 3 }", "ill", |class, _| class.len() >= 3),
    ("l-diversity = { column = \"ill\", kind = \"entropy\", l = 2.2 }", "ill", |class, _| {
        class.keys().map(|value| -share(class, value) * share(class, value).ln()).sum::<f64>() >= 2.2_f64.ln() - 1e-9
    }),
    ("l-diversity = { column = \"ill\", kind = \"recursive\", c = 2, l = 2 }", "ill", |class, _| {
        let most = class.values().max().unwrap();
        *most < 2 * (class.values().sum::<usize>() - most)
    }),
    // To know a pay to within 200 is to know it; pays lie between 0 and 1900.
    ("range-diversity = { column = \"pay\", p = 0.5, ranges.interval = 400.0 }", "pay", |class, _| {
        let pays: Vec<(f64, f64)> = class.iter().map(|(pay, rows)| (pay.parse().unwrap(), *rows as f64)).collect();
        let known = |(one, other): (f64, f64)| {
            f64::max(0.0, if (one - other).abs() <= 200.0 { 1.0 - (one - other).abs() / 1900.0 } else { 0.0 })
        };
        let of = |&(pay, rows): &(f64, f64)| {
            pays.iter().map(|(other, more)| rows * more * known((pay, *other))).sum::<f64>()
        };
        let all: f64 = pays.iter().map(|(_, rows)| rows).sum();
        pays.iter().map(of).sum::<f64>() / (all * all) <= 0.5 + 1e-9
    }),
];

/// Methods that need nothing beside rules, and publish one table.
fn methods() -> Vec<&'static str> {
    let needs = ["upc", "mpalm", "spalm"];
    let alone = |entry: &&Entry| entry.form == Form::Generalise && !entry.preserves && !needs.contains(&entry.name);
    METHODS.iter().filter(alone).map(|entry| entry.name).collect()
}

/// Two methods for every rule, and so every method under one rule at least: what is published meets the rule, or nothing is.
#[test]
fn published_classes_meet_every_rule_by_every_method() {
    let methods = methods();
    assert_eq!(methods.len(), 16, "{methods:?}");
    let mut met = 0;
    for (number, (rule, column, holds)) in CHECKS.into_iter().enumerate() {
        for method in [number, number + 5].map(|at| methods[at % methods.len()]) {
            let desk = release(method, rule);
            let ran = desk.run(&["--quiet"]);
            if ran.code == Some(5) {
                assert!(desk.sink_files().is_empty(), "{rule} by {method}");
                continue;
            }
            ran.ok();
            met += 1;
            let rows = desk.released();
            let table = counts(texts(&rows, column));
            let classes = histograms(&rows, column);
            assert!(classes.len() > 1, "{rule}: one class of everything shows nothing");
            assert!(classes.iter().all(|class| holds(class, &table)), "{rule} is broken by {method}");
            let said = desk.throng("verify", &["--json"]).ok();
            let said: Value = serde_json::from_str(&said.out).unwrap();
            assert_eq!(said["holds"], true);
            assert_eq!(said["rules"].as_array().unwrap().len(), 2, "k and the rule");
            assert!(manifest(&desk.path("out"))["verification"]["attained"][column]["alpha"].is_number());
        }
    }
    assert!(met >= 2 * CHECKS.len() - 4, "only {met} of the runs published something");
}

/// All values of a class made alike, and the manifest forged to go with the file: every rule sees it.
#[test]
fn a_class_of_one_value_is_found_by_every_rule() {
    for (rule, column, _) in CHECKS {
        let desk = release("auto", rule);
        desk.run(&["--quiet", "--partitions", "1"]).ok();
        let sink = desk.path("out");
        let [file] = &released_files(&sink)[..] else { panic!("one file") };
        let rows = read_parquet(file);
        let classes = lines(&rows, &["age".to_owned(), "town".to_owned()]);
        let mut values = texts(&rows, column);
        let alike = if column == "ill" { "wheezecough" } else { "1900" };
        (0..rows.num_rows()).filter(|row| classes[*row] == classes[0]).for_each(|row| values[row] = alike.to_owned());
        let array: ArrayRef = match column {
            "ill" => Arc::new(StringArray::from(values)),
            _ => Arc::new(Int32Array::from_iter_values(values.iter().map(|value| value.parse::<i32>().unwrap()))),
        };
        let mut columns = rows.columns().to_vec();
        columns[rows.schema().index_of(column).unwrap()] = array;
        write_parquet(file, &RecordBatch::try_new(rows.schema(), columns).unwrap());
        let mut forged = manifest(&sink);
        forged["files"][0]["blake3"] = blake3::hash(&fs::read(file).unwrap()).to_hex().to_string().into();
        let run = forged["run"].as_str().unwrap().to_owned();
        fs::write(sink.join(format!("_manifest/{run}.json")), forged.to_string()).unwrap();
        let name = rule.split(' ').next().unwrap();
        let found = desk.throng("verify", &[]);
        found.refused(5, &[&format!("{name}: "), " classes "]);
        assert!(ILLS.iter().all(|ill| !found.err.contains(ill)), "{}", found.err);
        let said = desk.throng("verify", &["--json"]);
        assert_eq!(said.code, Some(5));
        assert_eq!(serde_json::from_str::<Value>(&said.out).unwrap()["holds"], false);
    }
}

#[test]
fn rules_that_cannot_be_met_publish_nothing() {
    for rule in ["p-sensitive = { column = \"ill\", p = 6 }", "k-e = { column = \"pay\", k = 2, e = 5000 }"] {
        let desk = release("auto", rule);
        desk.run(&["--quiet"]).refused(5, &["found no group that meets the rules", &rule[..4]]);
        assert!(desk.sink_files().is_empty());
    }
}

/// The young nearly all have the same illness, so whole subspaces cannot meet the rule from within; among the others there
/// is room for them.
#[test]
fn nobody_is_suppressed_where_everybody_has_a_place() {
    let rows = 0..6000_usize;
    let age = |row: usize| (row * 7919 % 80) as i32;
    let ill =
        |row: usize| if age(row) < 20 && !row.is_multiple_of(20) { ILLS[2] } else { ILLS[(row * 31 + row / 7) % 5] };
    let ages: Vec<i32> = rows.clone().map(age).collect();
    let towns: Vec<&str> = rows.clone().map(|row| ["Ash", "Birch", "Elm"][row % 3]).collect();
    let ills: Vec<&str> = rows.clone().map(ill).collect();
    let columns = vec![
        ("age", Arc::new(Int32Array::from(ages)) as ArrayRef),
        ("town", Arc::new(StringArray::from(towns))),
        ("ill", Arc::new(StringArray::from(ills))),
    ];
    let job = "[columns]\nage.role = \"quasi\"\ntown.role = \"quasi\"\nill.role = \"sensitive\"\n\
               [privacy]\nk = 4\nmax-suppression = 0.0\nalpha-k = { column = \"ill\", alpha = 0.45 }\n";
    for method in ["auto", "k-members"] {
        let desk = Desk::with(columns.clone(), &format!("method.name = \"{method}\"\n{job}"));
        desk.run(&["--quiet"]).ok();
        let rows = desk.released();
        assert_eq!(rows.num_rows(), 6000, "{method}");
        let classes = histograms(&rows, "ill");
        assert!(classes.iter().all(|class| class.keys().all(|value| share(class, value) <= 0.45 + 1e-9)));
    }
}

#[test]
fn rules_and_columns_must_fit() {
    let desk = release("auto", "k-e = { column = \"ill\", k = 2, e = 1 }");
    desk.throng("check", &[]).refused(3, &["privacy.k-e: needs plain numbers, but `ill` has a hierarchy"]);
    let desk = release("auto", "t-closeness = { colum = \"ill\", t = 0.2 }");
    desk.throng("check", &[]).refused(3, &["colum", "column"]);
    let text: ArrayRef = Arc::new(StringArray::from_iter_values((0..ROWS).map(|row| format!("{row}"))));
    let columns = crate::tables::with(patients(), "pay", text);
    let rule = "t-closeness = { column = \"pay\", t = 0.2, distance = \"ordered\" }";
    let desk = Desk::with(columns, &format!("{COLUMNS}[privacy]\nk = 4\n{rule}\n"));
    desk.run(&["--quiet"]).refused(3, &["privacy.t-closeness: needs values with an order; `pay` is of type"]);
}

#[test]
fn too_many_values_to_compare_with_the_table_are_refused() {
    let rows = (1 << 16) + 10;
    let number = |step: i32| -> ArrayRef { Arc::new(Int32Array::from_iter_values((0..rows).map(|row| row / step))) };
    let job = "[columns]\nage.role = \"quasi\"\npay.role = \"sensitive\"\n[privacy]\nk = 4\n\
               t-closeness = { column = \"pay\", t = 0.5 }\n";
    let desk = Desk::with(vec![("age", number(1000)), ("pay", number(1))], job);
    desk.run(&["--quiet"]).refused(4, &["column `pay`", "more than 65536 different values"]);
}

/// The costly measures are there when asked for, and make no difference to what is published.
#[test]
fn measures_are_taken_when_asked_for() {
    let plain = release("auto", "");
    plain.run(&["--quiet"]).ok();
    let scores = manifest(&plain.path("out"))["scores"].clone();
    for always in ["ncp", "lm", "rd_of_a_row", "rows_by_rd"] {
        assert!(!scores[always].is_null(), "{always}");
    }
    let of_source = ["iloss", "distortion", "genc", "precision", "suppressed_values"];
    of_source.iter().for_each(|asked| assert!(scores[asked].is_null(), "{asked}"));
    let reconstruction = ["reconstruction_mean", "reconstruction_max"];
    let information = ["kl", "kl_by_range", "joint_kl", "entropy", "non_uniform_entropy"];
    for asked in ["cm", "unprotected", "queries"].into_iter().chain(information).chain(reconstruction) {
        assert!(scores[asked].is_null(), "{asked}");
    }
    let measures = "[measures]\nsource = true\nclass = \"ill\"\ninformation = true\nunprotected = 0.4\n\
                    queries = { count = 50, dimensions = 2, selectivity = 0.1, seed = 3 }";
    let desk = release("auto", measures);
    desk.run(&["--quiet"]).ok();
    let scores = manifest(&desk.path("out"))["scores"].clone();
    let rows = desk.released();
    assert_eq!(crate::support::multiset(&rows), crate::support::multiset(&plain.released()));

    let number = |key: &str| scores[key].as_f64().unwrap_or_else(|| panic!("{key} in {scores}"));
    let classes = histograms(&rows, "ill");
    let minority: usize =
        classes.iter().map(|class| class.values().sum::<usize>() - class.values().max().unwrap()).sum();
    assert!((number("cm") - minority as f64 / ROWS as f64).abs() < 1e-4, "four digits");
    let simpson = |class: &Histogram| class.keys().map(|value| share(class, value).powi(2)).sum::<f64>();
    let worst = |row: f64| row > 0.4 + 1e-9;
    of_source.iter().for_each(|key| assert!(!scores[key].is_null(), "{key}"));
    let exposed: usize =
        classes.iter().filter(|class| worst(simpson(class))).map(|class| class.values().sum::<usize>()).sum();
    assert!(exposed > 0 && (number("unprotected") - exposed as f64 / ROWS as f64).abs() < 1e-4, "of published classes");
    information.iter().for_each(|key| assert!(number(key) > 0.0, "{key}"));
    assert!(number("kl_by_range") < number("kl"), "fewer terms");
    let [mean, most] = reconstruction.map(number);
    assert!(0.0 < mean && mean <= most && most <= 1.0);
    assert!((0.0..=1.0).contains(&number("precision")) && number("lm") <= 1.0);
    let queries = &scores["queries"];
    assert_eq!(queries["count"].as_u64().unwrap() + queries["empty"].as_u64().unwrap(), 50);
    assert!(queries["mean"].as_f64().unwrap() > 0.0 && queries["worst"].as_f64() >= queries["median"].as_f64());
}
