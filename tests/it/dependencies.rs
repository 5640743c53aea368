//! Functional dependencies: checked in the source, preserved by methods, and followed by a reader who knows them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int32Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::Int32Type;

use crate::support::{Desk, counts, lines, manifest, multiset, texts};

fn text(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

/// Table 3 of Gorla's thesis, which the chase undoes when dependencies are preserved best.
fn gorla(rest: &str) -> Desk {
    let columns = vec![
        ("pc", text(&["V6J", "V6J", "J5B", "K2H", "K2H", "J5B", "R7A", "R7A"])),
        ("prv", text(&["BC", "BC", "QC", "ON", "ON", "QC", "MB", "MB"])),
        ("med", text(&["ibuprofen"; 4].into_iter().chain(["diazepam"; 4]).collect::<Vec<_>>())),
        ("diag", text(&["osteoarthritis"; 4].into_iter().chain(["seizure"; 4]).collect::<Vec<_>>())),
    ];
    let job = "privacy.k = 2\nmethod.name = \"k-assemble\"\n\
               dependencies = [{ from = [\"pc\"], to = [\"prv\"] }, { from = [\"diag\"], to = [\"med\"] }]\n\
               [columns]\ndiag.role = \"sensitive\"\n\
               pc = { role = \"quasi\", hierarchy.tree = { \"[J,K,L]\" = [\"J5B\", \"K2H\"], west = [\"R7A\"], coast = [\"V6J\"] } }\n\
               prv = { role = \"quasi\", hierarchy.tree = { Central = [\"QC\", \"ON\"], Prairies = [\"AB\", \"MB\"], Other = [\"BC\"] } }\n\
               med = { role = \"quasi\", hierarchy.tree = { NSAID = [\"ibuprofen\", \"naproxen\"], benzo = [\"diazepam\"] } }\n";
    Desk::with(columns, &job.replace("privacy.k = 2", &format!("privacy.k = 2\n{rest}")))
}

const VALUES: [&str; 6] = ["V6J", "J5B", "ibuprofen", "diazepam", "seizure", "osteo"];

fn assert_no_values(text: &str) {
    VALUES.iter().for_each(|value| assert!(!text.contains(value), "{value} is quoted in {text}"));
}

#[test]
fn gorla_r2_is_released_with_a_warning() {
    let desk = gorla("measures.source = true\n");
    let ran = desk.run(&[]).ok();
    let finding = "4 rows fit people whom fewer than k = 2 rows of their class fit";
    assert!(ran.err.contains(finding), "{}", ran.err);
    assert!(ran.out.contains(&format!("WARNING: to a reader who knows the dependencies, {finding}")), "{}", ran.out);
    assert_no_values(&ran.err);
    assert_no_values(&ran.out);
    let rows = desk.released();
    let shown = counts(lines(&rows, &["pc", "prv", "med"].map(str::to_owned)));
    assert_eq!(
        shown.into_iter().collect::<Vec<_>>(),
        [("J5B|QC|*|", 2), ("K2H|ON|*|", 2), ("R7A|MB|diazepam|", 2), ("V6J|BC|ibuprofen|", 2)]
            .map(|(c, n)| (c.to_owned(), n))
    );
    let manifest = manifest(&desk.path("out"));
    assert_eq!(manifest["verification"]["classes"]["smallest"], 2);
    let inferred = &manifest["verification"]["inference"];
    assert_eq!(
        (&inferred["smallest"], &inferred["small_classes"], &inferred["exposed_rows"]),
        (&1.into(), &4.into(), &4.into())
    );
    let scores = manifest["dependencies"].as_array().unwrap();
    let of = |index: usize, key: &str| scores[index][key].as_f64().unwrap();
    assert_eq!(scores[0]["name"], "pc -> prv");
    assert_eq!((of(0, "instances"), of(0, "loss"), of(0, "preserved"), of(0, "violations")), (4.0, 0.0, 1.0, 0.0));
    assert_eq!((of(1, "instances"), of(1, "loss")), (2.0, 0.0));
    let verified = desk.throng("verify", &[]);
    verified.refused(5, &[&format!("inference: to a reader who knows the dependencies, {finding}")]);
    assert_no_values(&verified.err);
    let attacked = desk.throng("attack", &["--json"]).ok();
    let found: serde_json::Value = serde_json::from_str(&attacked.out).unwrap();
    assert_eq!(&found["inference"], inferred);
    let reported = desk.throng("attack", &[]).ok().out;
    let sets = "6 sets of rows fit somebody, the smallest of 1 rows; 4 rows fit people with fewer than k";
    assert!(reported.contains(sets), "{reported}");
    // The page is written, and does not call that well.
    let page = desk.name("page.html");
    let reported = desk.throng("report", &["--output", &page]);
    assert!(
        reported.code == Some(5)
            && reported.err.contains(&format!("inference: to a reader who knows the dependencies, {finding}")),
        "{reported:?}"
    );
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("does not keep its promises") && page.contains(finding) && !page.contains("verdict holds"));
}

#[test]
fn gorla_r2_is_rejected_on_demand() {
    let desk = gorla("privacy.inference = \"reject\"");
    let ran = desk.run(&[]);
    ran.refused(
        5,
        &["inference: to a reader who knows the dependencies, 4 rows fit people whom fewer than k = 2 rows"],
    );
    assert_no_values(&ran.err);
    assert!(desk.sink_files().is_empty(), "nothing is left behind");
    // A release that was made with a warning is refused by a policy that rejects.
    let desk = gorla("");
    desk.run(&[]).ok();
    desk.throng("verify", &["--set", "privacy.inference=reject"]).refused(5, &["inference: ", "policy: "]);
}

/// Groups that the dependencies take apart are formed anew, as in the thesis' R'; no column is withheld.
#[test]
fn gorla_r2_is_repaired_on_demand() {
    let desk = gorla("privacy.inference = \"repair\"");
    let ran = desk.run(&[]).ok();
    assert!(!ran.out.contains("withheld"), "{}", ran.out);
    let medications = counts(texts(&desk.released(), "med"));
    assert_eq!(medications.values().sum::<usize>(), 8);
    assert!(medications.keys().any(|medication| medication != "*"), "{medications:?}");
    let manifest = manifest(&desk.path("out"));
    let inferred = &manifest["verification"]["inference"];
    assert_eq!((&inferred["smallest"], &inferred["small_classes"]), (&2.into(), &0.into()));
    assert_eq!((&inferred["exposed_rows"], &inferred["withheld"]), (&0.into(), &serde_json::Value::Null));
    desk.throng("verify", &[]).ok();
    desk.throng("report", &["--output", &desk.name("page.html")]).ok();
}

/// A query sees its rows go by and cannot take them back.
#[test]
fn queries_cannot_reject() {
    for (inference, code) in [("warn", 0), ("reject", 5), ("repair", 5)] {
        let desk = gorla(&format!("privacy.inference = \"{inference}\""));
        let (rows, job) = (desk.name("in.parquet"), desk.name("job.toml"));
        let table = format!("CREATE EXTERNAL TABLE ills STORED AS PARQUET LOCATION '{rows}';");
        desk.write("query.sql", &format!("{table}\nSELECT count(*) FROM anonymize((SELECT * FROM ills), '{job}');\n"));
        let ran = crate::support::throng(&["sql", &desk.name("query.sql")]);
        assert_eq!(ran.code, Some(code), "{ran:?}");
        let reported = ran.err.contains(&format!("privacy.inference = \"{inference}\" needs the whole release"));
        assert_eq!(reported, code == 5, "{ran:?}");
    }
}

/// 600 people: `zip` decides `state` but for one row in a hundred, `ward` (sensitive) decides `floor`.
fn wards(rest: &str) -> Desk {
    let all = 0..600_i32;
    let zip = |row: i32| row * 7 % 40;
    let column = |of: &dyn Fn(i32) -> i32| Arc::new(Int32Array::from_iter_values(all.clone().map(of))) as ArrayRef;
    let columns = vec![
        ("zip", column(&|row| 700_100 + zip(row))),
        ("state", column(&|row| 800_100 + if row % 100 == 3 { 9 } else { zip(row) / 10 })),
        ("floor", column(&|row| 900_100 + row * 11 % 23 / 2)),
        ("ward", column(&|row| 600_100 + row * 11 % 23)),
    ];
    let job = format!(
        "privacy.k = 4\n{rest}\n[columns]\nzip.role = \"quasi\"\nstate.role = \"quasi\"\nfloor.role = \"quasi\"\n\
         ward.role = \"sensitive\"\n"
    );
    Desk::with(columns, &job)
}

const BOTH: &str = "dependencies = [{ from = [\"zip\"], to = [\"state\"], tolerance = 0.02 }, \
                    { from = [\"ward\"], to = [\"floor\"] }]";

#[test]
fn a_dependency_that_does_not_hold_stops_the_run() {
    let desk = wards(&BOTH.replace(", tolerance = 0.02", ""));
    let ran = desk.run(&[]);
    ran.refused(4, &["dependencies[0] `zip -> state`: does not hold in 6 of 600 rows (1.0000 %)", "tolerance"]);
    assert!(!ran.err.contains("00_1") && !ran.err.contains("0010"), "no value is quoted: {}", ran.err);
    assert!(desk.sink_files().is_empty());
}

#[test]
fn a_tolerated_dependency_is_reported() {
    let desk = wards(BOTH);
    desk.run(&["--quiet"]).ok();
    let unasked = manifest(&desk.path("out"))["dependencies"].clone();
    assert!(unasked[0]["name"] == "zip -> state" && unasked[0].get("violations").is_none(), "{unasked}");
    let desk = wards(&format!("measures.source = true\n{BOTH}"));
    desk.run(&[]).ok();
    let manifest = manifest(&desk.path("out"));
    assert_eq!(manifest["dependencies"][0]["violations"], 0.01);
    assert_eq!(manifest["dependencies"][1]["violations"], 0.0);
    assert_eq!(manifest["dependencies"][1]["instances"], 23);
}

#[test]
fn columns_of_dependencies_must_exist() {
    let desk = wards(&BOTH.replace("ward", "wrad"));
    desk.run(&[]).refused(3, &["dependencies[1].from: the source has no column `wrad`", "did you mean `ward`?"]);
}

/// The ranges of a column, row by row.
fn ranges(rows: &RecordBatch, column: &str) -> Vec<(i32, i32)> {
    let ranges = rows.column_by_name(column).unwrap().as_struct();
    assert_eq!(ranges.null_count(), 0);
    let end = |index: usize, row: usize| ranges.column(index).as_primitive::<Int32Type>().value(row);
    (0..rows.num_rows()).map(|row| (end(0, row), end(1, row))).collect()
}

/// Rows whose floor fewer than four rows of their class fit once `ward -> floor` has been followed, and the fewest that
/// fit any, found without Throng.
fn followed(rows: &RecordBatch) -> (usize, usize) {
    let wards = texts(rows, "ward");
    let floors = ranges(rows, "floor");
    // What is left of the floor of every ward.
    let mut reported: BTreeMap<&String, (i32, i32)> = BTreeMap::new();
    for (ward, floor) in wards.iter().zip(&floors) {
        let known = reported.entry(ward).or_insert(*floor);
        *known = (known.0.max(floor.0), known.1.min(floor.1));
    }
    let mut classes: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let names = ["zip", "state", "floor"].map(str::to_owned);
    lines(rows, &names).into_iter().enumerate().for_each(|(row, class)| classes.entry(class).or_default().push(row));
    let mut crowds = Vec::new();
    for class in classes.values() {
        for &row in class {
            // The floor of the person is half of the number of their ward.
            let floor = 900_100 + (wards[row].parse::<i32>().unwrap() - 600_100) / 2;
            let fits = |other: &&usize| (reported[&wards[**other]].0..=reported[&wards[**other]].1).contains(&floor);
            crowds.push(class.iter().filter(fits).count());
        }
    }
    (crowds.iter().filter(|crowd| **crowd < 4).count(), *crowds.iter().min().unwrap())
}

#[test]
fn the_chase_is_what_a_reader_would_do() {
    for method in ["auto", "k-assemble", "pair-enum", "mondrian"] {
        let desk =
            wards(&format!("method.name = \"{method}\"\ndependencies = [{{ from = [\"ward\"], to = [\"floor\"] }}]"));
        desk.run(&["--partitions", "3"]).ok();
        let (exposed, smallest) = followed(&desk.released());
        let manifest = manifest(&desk.path("out"));
        let inferred = &manifest["verification"]["inference"];
        assert!(exposed > 0, "{method}: the test wants something to find");
        assert_eq!(inferred["exposed_rows"], exposed, "{method}");
        assert_eq!(inferred["smallest"], smallest, "{method}");

        let repair = ["--set", "privacy.inference=repair", "--set", "sink.url=repaired"];
        desk.run(&repair).ok();
        let rows = crate::support::released(&desk.path("repaired"));
        assert_eq!(followed(&rows).0, 0, "{method}");
        let floors = rows.column_by_name("floor").unwrap().as_struct();
        assert!(floors.column(0).null_count() < rows.num_rows(), "{method}: the column is not withheld");
        desk.throng("verify", &repair).ok();
    }
}

/// `i, c -> a` where `c` is published as it is: whoever knows somebody's i and a knows their c, whatever is generalised.
/// That is the case of the inspections, with an action of its own for every flag.
#[test]
fn left_sides_are_narrowed_by_right_sides_that_do_not_fit() {
    let column = |of: &dyn Fn(i32) -> i32| Arc::new(Int32Array::from_iter_values((0..600).map(of))) as ArrayRef;
    // Some kinds are common and published as they are, others rare.
    let kind = |row: i32| (7.0 * f64::from(row * 7919 % 1000).powi(2) / 1e6).floor() as i32;
    let flag = |row: i32| row * 31 % 101 % 3;
    let columns = vec![
        ("place", column(&|row| 500_100 + row * 17 % 40)),
        ("kind", column(&|row| 700_100 + kind(row))),
        ("action", column(&|row| 800_100 + (kind(row) * 3 + flag(row)) % 5)),
        ("flag", column(&|row| 600_100 + flag(row))),
    ];
    let job = "privacy.k = 5\nmethod.name = \"mondrian\"\ndependencies = [{ from = [\"kind\", \"flag\"], to = [\"action\"] }]\n\
               [columns]\nplace.role = \"quasi\"\nkind.role = \"quasi\"\naction.role = \"quasi\"\nflag.role = \"sensitive\"\n";
    let desk = Desk::with(columns, job);
    desk.run(&[]).ok();
    let reported = manifest(&desk.path("out"));
    let exposed = reported["verification"]["inference"]["exposed_rows"].as_u64().unwrap();
    // Once every action is known, only rows of the same flag fit.
    let rows = desk.released();
    let same = counts(lines(&rows, &["place", "kind", "action", "flag"].map(str::to_owned)));
    let truth: u64 = same.values().filter(|size| **size < 5).sum::<usize>() as u64;
    assert!(truth > 100, "{truth}");
    assert_eq!(exposed, truth);
    // With l-diversity of the flag, rows of one flag that are left are a breach, however many there are.
    let diverse = ["--set", "privacy.l-diversity={ column = \"flag\", kind = \"distinct\", l = 2 }"];
    let set = ["--set", "sink.url=diverse"];
    desk.run(&[&diverse[..], &set].concat()).ok();
    let reported = manifest(&desk.path("diverse"));
    let breaches = reported["verification"]["inference"]["breaches"].as_object().unwrap().clone();
    assert!(breaches["l-diversity"].as_u64().unwrap() > 50, "{breaches:?}");
    // Groups are formed so that enough rows of every flag stay together; no column is withheld.
    let repair = ["--set", "privacy.inference=repair", "--set", "sink.url=repaired"];
    desk.run(&repair).ok();
    desk.throng("verify", &repair).ok();
    let reported = manifest(&desk.path("repaired"));
    let inferred = &reported["verification"]["inference"];
    assert_eq!((&inferred["exposed_rows"], &inferred["withheld"]), (&0.into(), &serde_json::Value::Null));
    assert!(reported["scores"]["gcp"].as_f64().unwrap() < 0.2, "{}", reported["scores"]["gcp"]);
    let rows = crate::support::released(&desk.path("repaired"));
    let same = counts(lines(&rows, &["place", "kind", "action", "flag"].map(str::to_owned)));
    assert!(same.values().all(|size| *size >= 5));
}

/// One row in a hundred that contradicts a dependency hides nothing of what the others say.
#[test]
fn tolerance_does_not_turn_the_chase_off() {
    let exposed = |rest: &str, wrong: bool| {
        let column = |of: &dyn Fn(i32) -> i32| Arc::new(Int32Array::from_iter_values((0..600).map(of))) as ArrayRef;
        let columns = vec![
            ("zip", column(&|row| 700_100 + row * 7 % 40)),
            ("floor", column(&|row| 900_100 + if wrong && row % 200 == 3 { 11 } else { row * 11 % 23 / 2 })),
            ("ward", column(&|row| 600_100 + row * 11 % 23)),
        ];
        let job = format!(
            "privacy.k = 4\nmethod.name = \"mondrian\"\ndependencies = [{{ from = [\"ward\"], to = [\"floor\"]{rest} }}]\n\
             [columns]\nzip.role = \"quasi\"\nfloor.role = \"quasi\"\nward.role = \"sensitive\"\n"
        );
        let desk = Desk::with(columns, &job);
        desk.run(&[]).ok();
        manifest(&desk.path("out"))["verification"]["inference"]["exposed_rows"].as_u64().unwrap()
    };
    let clean = exposed("", false);
    let tolerated = exposed(", tolerance = 0.01", true);
    assert!(clean > 50 && tolerated * 10 >= clean * 8, "{tolerated} with three wrong rows, {clean} without");
}

#[test]
fn dependency_methods_release_the_same_rows_for_any_partitions() {
    for method in ["k-assemble", "pair-enum"] {
        let desk = wards(&format!("method.name = \"{method}\"\n{BOTH}"));
        let mut releases = BTreeSet::new();
        let mut losses = BTreeSet::new();
        for (run, more) in [["--partitions", "1"], ["--partitions", "4"], ["--batch-rows", "50"]].iter().enumerate() {
            let sink = format!("sink.url=out{run}");
            desk.run(&[&more[..], &["--set", &sink]].concat()).ok();
            let folder = desk.path(&format!("out{run}"));
            let rows = crate::support::released(&folder);
            let classes = counts(lines(&rows, &["zip", "state", "floor"].map(str::to_owned)));
            assert!(classes.values().all(|size| *size >= 4) && rows.num_rows() == 600, "{method}");
            releases.insert(multiset(&rows));
            losses.insert(manifest(&folder)["dependencies"].to_string());
        }
        assert_eq!((releases.len(), losses.len()), (1, 1), "{method}");
    }
}

#[test]
fn a_withheld_column_says_nothing() {
    let desk = wards("dependencies = [{ from = [\"zip\"], to = [\"state\"], tolerance = 0.02 }]");
    desk.run(&["--set", "columns.floor.withhold=true"]).ok();
    let rows = desk.released();
    let floors = rows.column_by_name("floor").unwrap().as_struct();
    assert_eq!((floors.null_count(), floors.column(1).null_count()), (0, 600));
    desk.throng("verify", &["--set", "columns.floor.withhold=true"]).ok();
}

/// Inspections, `inspection, critical -> action` at k = 5: what the chase would expose is widened where
/// it is exposed, and no column is withheld.
#[test]
fn repairs_of_the_inspections_are_local() {
    let desk = Desk::new();
    let folder = desk.name("");
    desk.write("data.sql", &include_str!("inspections.sql").replace("FOLDER", folder.trim_end_matches('/')));
    crate::support::throng(&["sql", &desk.name("data.sql"), "--quiet"]).ok();
    let quasi = ["borough", "address", "violation_code", "zipcode", "violation", "cuisine", "action", "inspection"];
    let masked = quasi.map(|name| format!("{name} = {{ role = \"quasi\", hierarchy.mask = \"right\" }}\n")).concat();
    desk.job(&format!(
        "privacy.k = 5\ndependencies = [{{ from = [\"inspection\", \"critical\"], to = [\"action\"] }}]\n[columns]\n{masked}\
         critical.role = \"sensitive\"\nscore.role = \"sensitive\"\ngrade.role = \"sensitive\"\n"
    ));
    desk.run(&[]).ok();
    let exposed = &manifest(&desk.path("out"))["verification"]["inference"]["exposed_rows"];
    assert!(exposed.as_u64().unwrap() > 10_000, "the test wants something to repair: {exposed}");
    desk.throng("verify", &[]).refused(5, &["inference: ", &format!("{exposed} rows fit people")]);
    let repair = ["--set", "privacy.inference=repair", "--set", "sink.url=repaired"];
    desk.run(&repair).ok();
    desk.throng("verify", &repair).ok();
    let reported = manifest(&desk.path("repaired"));
    let inferred = &reported["verification"]["inference"];
    assert_eq!((&inferred["exposed_rows"], &inferred["withheld"]), (&0.into(), &serde_json::Value::Null));
    // Most actions are still published as they are.
    let rows = crate::support::released(&desk.path("repaired"));
    let plain = texts(&rows, "action").into_iter().filter(|action| action != "*").count();
    assert!(rows.num_rows() == 30_000 && plain > 15_000, "{plain} of {}", rows.num_rows());
}
