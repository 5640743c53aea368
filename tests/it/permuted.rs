//! Forms that keep values and break the ties between them: written, read back bucket by bucket, compared with the source,
//! and attacked with a public table.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, DictionaryArray, Int32Array, RecordBatch, StringArray, UInt32Array};
use datafusion::arrow::compute::{SortColumn, lexsort_to_indices, take_record_batch};
use datafusion::arrow::datatypes::Int32Type;
use serde_json::Value;

use crate::support::{
    Desk, batch, counts, lines, manifest, multiset, read_parquet, released_files, texts, write_parquet,
};
use crate::tables::{JOB, assert_no_values, people, with};

const ROWS: usize = 900;

fn desk(form: &str) -> Desk {
    let desk = Desk::with(people(ROWS), &format!("{JOB}[method]\nname = \"mondrian\"\n{form}\n"));
    write_parquet(&desk.path("public.parquet"), &batch(people(ROWS)).project(&[1, 2]).unwrap());
    desk
}

fn names(columns: &[&str]) -> Vec<String> {
    columns.iter().map(|&name| name.to_owned()).collect()
}

/// Rows by group.
fn groups(rows: &RecordBatch) -> BTreeMap<String, RecordBatch> {
    let mut of: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for (row, group) in texts(rows, "group").into_iter().enumerate() {
        of.entry(group).or_default().push(row as u32);
    }
    of.into_iter()
        .map(|(group, rows_of)| (group, take_record_batch(rows, &UInt32Array::from(rows_of)).unwrap()))
        .collect()
}

/// What stays together, per form: the published content of these columns is that of the source.
#[test]
fn slices_stay_whole_and_others_change_places() {
    let source = batch(people(ROWS));
    for (form, whole, parted) in [
        ("form = \"bucketise\"", vec![vec!["id", "age", "town"]], vec!["id", "ill"]),
        ("form = \"slice\"\nslices = [[\"age\", \"ill\"]]", vec![vec!["age", "ill"], vec!["town"]], vec!["id", "age"]),
        ("form = \"permute\"", vec![vec!["age"], vec!["town"], vec!["ill"], vec!["id"]], vec!["age", "id"]),
    ] {
        let desk = desk(form);
        desk.run(&["--set", "measures.source=true"]).ok();
        desk.throng("verify", &["--set", "measures.source=true"]).ok();
        let released = desk.released();
        assert_eq!(released.num_rows(), ROWS);
        for columns in whole {
            let columns = names(&columns);
            assert_eq!(counts(lines(&released, &columns)), counts(lines(&source, &columns)), "{form}");
        }
        let parted = names(&parted);
        assert_ne!(counts(lines(&released, &parted)), counts(lines(&source, &parted)), "{form}");
        let groups = groups(&released);
        assert!(groups.len() > 20 && groups.values().all(|rows| rows.num_rows() >= 5), "{form}");
        let manifest = manifest(&desk.path("out"));
        assert_eq!(manifest["verification"]["classes"]["count"], groups.len());
        assert_eq!(manifest["seed"], 42, "whoever relies on the release must know that it can be re-enacted");
        assert_eq!((&manifest["scores"]["gcp"], &manifest["scores"]["distortion"]), (&0.0.into(), &0.into()));
        assert!(manifest["slices"].as_array().unwrap().iter().all(|slice| !slice.as_array().unwrap().is_empty()));
        desk.throng("report", &["--output", &desk.name("page.html")]).ok();
    }
}

#[test]
fn correlated_columns_become_slices() {
    let columns =
        |shift: i32| -> ArrayRef { Arc::new(Int32Array::from_iter_values((0..600).map(|row| row * 7 % 60 + shift))) };
    let town: ArrayRef = Arc::new(StringArray::from_iter_values((0..600).map(|row| ["a", "b", "c", "d"][row / 5 % 4])));
    let ill: ArrayRef = Arc::new(StringArray::from_iter_values((0..600).map(|row| ["x", "y", "z"][row % 3])));
    let desk = Desk::with(
        vec![("age", columns(20)), ("pay", columns(1000)), ("town", town), ("ill", ill)],
        "privacy.k = 6\n[method]\nname = \"mondrian\"\nform = \"slice\"\nslices = 3\n[columns]\nage.role = \"quasi\"\n\
         pay.role = \"quasi\"\ntown.role = \"quasi\"\nill.role = \"sensitive\"\n",
    );
    desk.run(&[]).ok();
    desk.throng("verify", &[]).ok();
    let slices = manifest(&desk.path("out"))["slices"].clone();
    assert!(slices.as_array().unwrap().contains(&serde_json::json!(["age", "pay"])), "{slices}");
}

/// Whoever knows the quasi-identifiers beside a sensitive column sees only the values beside them.
#[test]
fn l_diversity_holds_inside_the_slice_of_the_column() {
    let form = "form = \"slice\"\nslices = [[\"town\", \"ill\"], [\"age\"]]";
    let desk = desk(form);
    let diverse = JOB.replace("privacy.k = 5", "privacy = { k = 5, l-diversity = { column = \"ill\", l = 2 } }");
    desk.job(&format!("{diverse}[method]\nname = \"mondrian\"\n{form}\n"));
    desk.run(&[]).ok();
    desk.throng("verify", &[]).ok();
    let released = desk.released();
    for rows in groups(&released).into_values() {
        let mut ills: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (town, ill) in texts(&rows, "town").into_iter().zip(texts(&rows, "ill")) {
            ills.entry(town).or_default().push(ill);
        }
        for mut of_town in ills.into_values() {
            of_town.sort();
            of_town.dedup();
            assert!(of_town.len() >= 2);
        }
    }
    // One town of a group is left with one illness.
    let file = released_files(&desk.path("out")).remove(0);
    let rows = read_parquet(&file);
    let (group, town) = (texts(&rows, "group"), texts(&rows, "town"));
    let ill: ArrayRef = Arc::new(StringArray::from_iter_values(texts(&rows, "ill").iter().enumerate().map(
        |(row, ill)| {
            if group[row] == group[0] && town[row] == town[0] { "zebrapox" } else { ill.as_str() }
        },
    )));
    let at = rows.schema().index_of("ill").unwrap();
    let mut columns = rows.columns().to_vec();
    columns[at] = datafusion::arrow::compute::cast(&ill, rows.schema().field(at).data_type()).unwrap();
    write_parquet(&file, &RecordBatch::try_new(rows.schema(), columns).unwrap());
    desk.throng("verify", &[]).refused(5, &["l-diversity"]);
}

#[test]
fn any_engine_gives_the_same_release() {
    for form in ["form = \"bucketise\"", "form = \"slice\"", "form = \"permute\"", "form = \"anatomy-permuted\""] {
        let mut before: Option<Vec<Vec<String>>> = None;
        for engine in [["--partitions", "1", "--batch-rows", "8192"], ["--partitions", "3", "--batch-rows", "57"]] {
            let desk = desk(form);
            desk.run(&[&engine[..], &["--cell-rows", "300", "--set", "measures.source=true"]].concat()).ok();
            let published = manifest(&desk.path("out"));
            assert!(published["cells"].as_u64().unwrap() > 1 || published["suppressed"] != 0);
            let files = released_files(&desk.path("out"));
            let mut tables: BTreeMap<bool, Vec<String>> = BTreeMap::new();
            for file in files {
                let of = tables.entry(file.to_str().unwrap().contains("/st/")).or_default();
                of.extend(multiset(&read_parquet(&file)));
                of.sort_unstable();
            }
            let tables: Vec<Vec<String>> = tables.into_values().collect();
            assert!(before.is_none_or(|before| before == tables), "{form}");
            before = Some(tables);
        }
    }
}

/// Values moved from one bucket to another are found by the source, whatever the files' own counts say.
#[test]
fn values_that_change_their_bucket_are_caught() {
    for form in ["form = \"bucketise\"", "form = \"permute\"", "form = \"slice\""] {
        let desk = desk(form);
        desk.run(&["--partitions", "1"]).ok();
        let file = released_files(&desk.path("out")).remove(0);
        let rows = read_parquet(&file);
        // The last row of the first group and the first of the next change their age.
        let group = texts(&rows, "group");
        let ages = texts(&rows, "age");
        let first =
            (1..rows.num_rows()).find(|&row| group[row] != group[row - 1] && ages[row] != ages[row - 1]).unwrap();
        let mut order: Vec<u32> = (0..rows.num_rows() as u32).collect();
        order.swap(first, first - 1);
        let at = rows.schema().index_of("age").unwrap();
        let mut columns = rows.columns().to_vec();
        columns[at] = datafusion::arrow::compute::take(&columns[at], &UInt32Array::from(order), None).unwrap();
        write_parquet(&file, &RecordBatch::try_new(rows.schema(), columns).unwrap());
        let caught = desk.throng("verify", &[]);
        caught.refused(5, &["files", "truthful: "]);
        assert_no_values(&caught.err);
    }
}

/// A release whose groups are right and in which nobody has changed places: no rule is broken and no count is wrong.
#[test]
fn values_that_never_changed_places_are_caught() {
    let source = batch(people(ROWS));
    let row_of: BTreeMap<String, u32> = texts(&source, "id").into_iter().zip(0..).collect();
    for form in ["bucketise", "slice", "permute", "anatomy-permuted"] {
        let desk = desk(&format!("form = \"{form}\""));
        desk.run(&["--partitions", "1"]).ok();
        desk.throng("verify", &[]).ok();
        let files = released_files(&desk.path("out"));
        let file = files.iter().find(|file| !file.to_str().unwrap().contains("/st/")).unwrap();
        let rows = read_parquet(file);
        // Everybody's values are in their group; each gets back their own.
        let places: UInt32Array = texts(&rows, "id").iter().map(|id| row_of[id]).collect();
        let own = |field: &str| -> ArrayRef {
            match source.column_by_name(field) {
                Some(column) => datafusion::arrow::compute::take(column, &places, None).unwrap(),
                None => Arc::clone(rows.column_by_name(field).unwrap()),
            }
        };
        let columns: Vec<ArrayRef> = rows.schema().fields().iter().map(|field| own(field.name())).collect();
        let group = rows.schema().index_of("group").unwrap();
        let others = (0..columns.len()).filter(|column| *column != group);
        let keys: Vec<SortColumn> = std::iter::once(group)
            .chain(others)
            .map(|column| SortColumn { values: Arc::clone(&columns[column]), options: None })
            .collect();
        let order = lexsort_to_indices(&keys, None).unwrap();
        let unmoved = take_record_batch(&RecordBatch::try_new(rows.schema(), columns).unwrap(), &order).unwrap();
        assert_ne!(unmoved, rows, "{form}");
        write_parquet(file, &unmoved);
        crate::mutations::forge(&desk, file, |_| ());
        let caught = desk.throng("verify", &[]);
        caught.refused(
            5,
            &["permutation: all values of `", "stand beside their own row", "the chance of that is below 1e-"],
        );
        let said: Vec<&str> =
            caught.err.lines().skip(1).filter(|line| !line.trim().starts_with("permutation: ")).collect();
        assert!(said.is_empty(), "{form}: nothing else is wrong: {said:?}");
        assert_no_values(&caught.err);
    }
}

/// Columns that the source holds as dictionaries are published, read back and found to be the source's.
#[test]
fn dictionaries_are_compared_by_their_values() {
    for form in ["bucketise", "permute", "slice", "anatomy-permuted"] {
        let desk = desk(&format!("form = \"{form}\""));
        let coded = |name: &str| -> ArrayRef {
            let words = texts(&batch(people(ROWS)), name);
            let words: DictionaryArray<Int32Type> = words.iter().map(String::as_str).collect();
            Arc::new(words)
        };
        let columns = with(with(people(ROWS), "town", coded("town")), "ill", coded("ill"));
        write_parquet(&desk.path("in.parquet"), &batch(columns));
        desk.run(&[]).ok();
        desk.throng("verify", &[]).ok();
    }
}

#[test]
fn anatomy_with_permutation_is_verified_and_attacked() {
    let desk = desk("form = \"anatomy-permuted\"");
    desk.run(&["--partitions", "1"]).ok();
    desk.throng("verify", &[]).ok();
    let files = released_files(&desk.path("out"));
    let qit = files.iter().find(|file| file.to_str().unwrap().contains("/qit/")).unwrap();
    let (rows, source) = (read_parquet(qit), batch(people(ROWS)));
    assert_eq!(counts(texts(&rows, "age")), counts(texts(&source, "age")));
    let both = names(&["age", "id"]);
    assert_ne!(counts(lines(&rows, &both)), counts(lines(&source, &both)));
    let public = desk.name("public.parquet");
    let found: Value = serde_json::from_str(&desk.throng("attack", &["--public", &public, "--json"]).ok().out).unwrap();
    assert_eq!(found["membership"]["reidentified"], 1.0, "everybody is in, and everybody is found");
    let original = fs::read(qit).unwrap();
    let short = rows.slice(1, rows.num_rows() - 1);
    write_parquet(qit, &short);
    desk.throng("verify", &[]).refused(5, &["groups"]);
    fs::write(qit, original).unwrap();
}

/// Half of the public people are in the source. Bucketised, every combination of values reveals its share; permuted, counts
/// of values in their bucket do, exactly or between bounds; nobody is left out.
#[test]
fn attack_reads_every_form() {
    let public = batch(people(ROWS));
    let inside = |row: usize| fastrand::Rng::with_seed(row as u64).bool();
    let members = (0..ROWS).filter(|&row| inside(row)).map(|row| row as u32).collect::<Vec<_>>();
    let mut found = BTreeMap::new();
    for form in ["bucketise", "slice", "permute", "anatomy", "anatomy-permuted"] {
        let desk = desk(&format!("form = \"{form}\""));
        write_parquet(
            &desk.path("in.parquet"),
            &take_record_batch(&public, &UInt32Array::from(members.clone())).unwrap(),
        );
        desk.run(&[]).ok();
        let path = desk.name("public.parquet");
        let attacked = desk.throng("attack", &["--public", &path, "--json"]).ok();
        let reported: Value = serde_json::from_str(&attacked.out).unwrap();
        let membership = reported["membership"].clone();
        let count = |key: &str| membership[key].as_u64().unwrap();
        let steps: u64 = membership["steps"].as_array().unwrap().iter().map(|step| step.as_u64().unwrap()).sum();
        assert_eq!(count("people"), ROWS as u64);
        assert_eq!(count("present") + count("absent") + steps, ROWS as u64, "{form}: {membership}");
        assert_eq!(count("released"), members.len() as u64);
        assert_eq!(reported["form"], form);
        assert!(reported["linkage"]["k_map"].as_u64().unwrap() >= 1);
        assert!(reported["sensitive"]["ill"]["rows"].as_u64().unwrap() > 0);
        let text = desk.throng("attack", &["--public", &path]).ok();
        assert!(text.out.contains(&format!("groups of the form `{form}`")), "{}", text.out);
        assert_no_values(&text.out);
        found.insert(form, (count("present"), count("absent"), count("bounded")));
    }
    assert_eq!(found["bucketise"], found["anatomy"]);
    assert_eq!(found["permute"], found["anatomy-permuted"]);
    assert_eq!(found["bucketise"].2, 0, "a combination that is as it was is counted, never bounded");
    // By hand: who shares their values with members only is in, who shares them with none is out.
    let (ages, towns) = (texts(&public, "age"), texts(&public, "town"));
    let mut shares: BTreeMap<(String, String), (u64, u64)> = BTreeMap::new();
    for row in 0..ROWS {
        let share = shares.entry((ages[row].clone(), towns[row].clone())).or_default();
        (share.0, share.1) = (share.0 + u64::from(inside(row)), share.1 + 1);
    }
    let sum = |of: fn(&(u64, u64)) -> bool| shares.values().filter(|share| of(share)).map(|share| share.1).sum::<u64>();
    let expected = (sum(|share| share.0 == share.1), sum(|share| share.0 == 0), 0);
    assert_eq!(found["bucketise"], expected);
}
