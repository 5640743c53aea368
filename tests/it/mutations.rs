//! What planted faults would publish, and that `throng verify` sees it: a hash that merges classes, a column taken for
//! another, an off-by-one, floating point in the place of whole numbers, a null for a value. Every case takes a good
//! release, changes its files as the fault would, and makes the manifest agree with them, as a run with the fault would.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, Float64Array, Int32Array, Int64Array, ListArray, RecordBatch,
    StringArray, StructArray, TimestampNanosecondArray, UInt32Array, UInt64Array, new_null_array,
};
use datafusion::arrow::compute::{concat_batches, interleave, take_record_batch};
use datafusion::arrow::datatypes::{
    Decimal128Type, Float64Type, Int32Type, Int64Type, TimestampNanosecondType, UInt64Type,
};
use serde_json::Value;

use crate::support::{Desk, counts, lines, manifest, read_parquet, released_files, texts, throng, write_parquet};

const ROWS: usize = 240;
/// A number that floating point cannot distinguish from its neighbours.
const NEAR: i64 = 123_456_789_012_345_678;
const ILLS: [&str; 8] = ["flu", "cold", "rash", "gout", "mumps", "croup", "lupus", "shingles"];

/// A planted fault: its name, what it does to the published rows, and the rules that must be named.
type Fault = (&'static str, Box<dyn Fn(&RecordBatch) -> RecordBatch>, &'static [&'static str]);

fn fault(
    name: &'static str,
    plant: impl Fn(&RecordBatch) -> RecordBatch + 'static,
    rules: &'static [&'static str],
) -> Fault {
    (name, Box::new(plant), rules)
}

/// Makes the manifest agree with a file that was changed.
pub fn forge(desk: &Desk, file: &Path, change: impl Fn(&mut Value)) {
    let sink = desk.path("out");
    let mut forged = manifest(&sink);
    let path = file.strip_prefix(&sink).unwrap().to_str().unwrap().to_owned();
    for entry in forged["files"].as_array_mut().unwrap().iter_mut().filter(|entry| entry["path"] == path.as_str()) {
        let bytes = fs::read(file).unwrap();
        entry["blake3"] = blake3::hash(&bytes).to_hex().to_string().into();
        entry["size"] = bytes.len().into();
        entry["rows"] = read_parquet(file).num_rows().into();
    }
    change(&mut forged);
    let run = forged["run"].as_str().unwrap().to_owned();
    fs::write(sink.join(format!("_manifest/{run}.json")), forged.to_string()).unwrap();
}

/// Plants every fault in the file of a release whose path holds `part`, and expects all of them to be seen.
fn all_caught(desk: &Desk, part: &str, faults: Vec<Fault>) {
    desk.run(&["--partitions", "1"]).ok();
    desk.throng("verify", &[]).ok();
    let files = released_files(&desk.path("out"));
    let file = files.iter().find(|file| file.to_str().unwrap().contains(part)).unwrap();
    let good = read_parquet(file);
    let kept = manifest(&desk.path("out"));
    let mut missed = Vec::new();
    for (name, plant, rules) in faults {
        let bad = plant(&good);
        assert!(lines_of(&bad) != lines_of(&good) || !same_bits(&bad, &good), "{name} changes something");
        write_parquet(file, &bad);
        forge(desk, file, |_| ());
        let found = desk.throng("verify", &[]);
        let named =
            rules.iter().all(|rule| found.err.lines().any(|line| line.trim().starts_with(&format!("{rule}: "))));
        if found.code != Some(5) || !named {
            missed.push(format!("{name}: {found:?}"));
        }
        assert!(!found.err.contains(ILLS[0]) && !found.err.contains(&NEAR.to_string()), "{name} quotes values");
        write_parquet(file, &good);
        forge(desk, file, |all| *all = kept.clone());
        forge(desk, file, |_| ());
    }
    assert!(missed.is_empty(), "not caught: {missed:#?}");
    desk.throng("verify", &[]).ok();
}

fn lines_of(rows: &RecordBatch) -> Vec<String> {
    lines(rows, &rows.schema().fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>())
}

/// Equal as text may still differ in bits: -0.0 and 0.0.
fn same_bits(a: &RecordBatch, b: &RecordBatch) -> bool {
    a.num_rows() == b.num_rows() && a.columns().iter().zip(b.columns()).all(|(a, b)| a.to_data() == b.to_data())
}

/// The batch with one column exchanged.
fn with(rows: &RecordBatch, name: &str, array: ArrayRef) -> RecordBatch {
    let mut columns = rows.columns().to_vec();
    columns[rows.schema().index_of(name).unwrap()] = array;
    RecordBatch::try_new(rows.schema(), columns).unwrap()
}

fn column<'a>(rows: &'a RecordBatch, name: &str) -> &'a ArrayRef {
    rows.column_by_name(name).unwrap()
}

/// A column whose rows come from other rows of it.
fn moved(rows: &RecordBatch, name: &str, from: impl Fn(usize) -> usize) -> RecordBatch {
    let places: Vec<(usize, usize)> = (0..rows.num_rows()).map(|row| (0, from(row))).collect();
    with(rows, name, interleave(&[column(rows, name).as_ref()], &places).unwrap())
}

fn chosen(rows: &RecordBatch, keep: impl Iterator<Item = usize>) -> RecordBatch {
    take_record_batch(rows, &UInt32Array::from_iter_values(keep.map(|row| row as u32))).unwrap()
}

/// Rows of every class, the smallest class first.
fn classes(rows: &RecordBatch, columns: &[&str]) -> Vec<Vec<usize>> {
    let of_row = lines(rows, &columns.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
    let mut classes: Vec<Vec<usize>> = counts(of_row.clone())
        .into_keys()
        .map(|class| (0..rows.num_rows()).filter(|&row| of_row[row] == class).collect())
        .collect();
    classes.sort_by_key(Vec::len);
    classes
}

fn by_age(rows: &RecordBatch) -> Vec<Vec<usize>> {
    classes(rows, &["age", "town"])
}

/// The ends of the published ages, changed.
fn ages(rows: &RecordBatch, change: impl Fn(usize, i32, i32) -> (i32, i32)) -> RecordBatch {
    let old = column(rows, "age").as_struct();
    let end = |at: usize| old.column(at).as_primitive::<Int32Type>();
    let new: Vec<(i32, i32)> =
        (0..rows.num_rows()).map(|row| change(row, end(0).value(row), end(1).value(row))).collect();
    let ends: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from_iter_values(new.iter().map(|ends| ends.0))),
        Arc::new(Int32Array::from_iter_values(new.iter().map(|ends| ends.1))),
    ];
    with(rows, "age", Arc::new(StructArray::new(old.fields().clone(), ends, old.nulls().cloned())))
}

/// Rows with quasi-identifiers, illnesses, and kept columns of every awkward kind, each row unlike all others.
fn rich() -> Vec<(&'static str, ArrayRef)> {
    let pay = |row: usize| match row % 6 {
        0 => Some(f64::NAN),
        1 => Some(-0.0),
        2 => Some(0.0),
        3 => None,
        _ => Some(row as f64 * 1.5),
    };
    let tags = |row: usize| match row % 3 {
        0 => None,
        1 => Some(vec![]),
        _ => Some(vec![Some(row as i32), None]),
    };
    let price = Decimal128Array::from_iter_values((0..ROWS as i128).map(|row| 98_765_432_109_876_543_210_i128 + row));
    let mut columns = plain();
    columns.extend([
        ("code", Arc::new(Int64Array::from_iter_values((0..ROWS as i64).map(|row| NEAR + row))) as ArrayRef),
        ("other", Arc::new(Int64Array::from_iter_values((0..ROWS as i64).map(|row| NEAR - 500 + row)))),
        ("pay", Arc::new(Float64Array::from_iter((0..ROWS).map(pay)))),
        ("tags", Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>((0..ROWS).map(tags)))),
        ("price", Arc::new(price.with_precision_and_scale(38, 4).unwrap())),
        ("at", Arc::new(TimestampNanosecondArray::from_iter_values((0..ROWS as i64).map(|row| NEAR * 10 + row)))),
        ("note", Arc::new(StringArray::from_iter((0..ROWS).map(|row| (row % 4 > 0).then(|| format!("note {row} ")))))),
    ]);
    columns
}

/// Quasi-identifiers and illnesses alone: nothing but its place on the quasi-identifiers distinguishes a row from others.
fn plain() -> Vec<(&'static str, ArrayRef)> {
    let towns = ["Ash", "Alder", "Birch", "Beech"];
    vec![
        ("age", Arc::new(Int32Array::from_iter_values((0..ROWS as i32).map(|row| 20 + row * 7 % 240))) as ArrayRef),
        ("town", Arc::new(StringArray::from_iter_values((0..ROWS).map(|row| towns[row / 5 % 4])))),
        ("ill", Arc::new(StringArray::from_iter_values((0..ROWS).map(|row| ILLS[row * 13 / 5 % 8])))),
    ]
}

const JOB: &str = "privacy.k = 5
privacy.l-diversity = { column = \"ill\", l = 2 }
privacy.t-closeness = { column = \"ill\", t = 0.7 }
defaults.role = \"kept\"
method.name = \"mondrian\"
method.seed = 7
[columns]
age.role = \"quasi\"
town = { role = \"quasi\", hierarchy.tree = [{ A = [\"Ash\", \"Alder\"] }, { B = [\"Birch\", \"Beech\"] }] }
ill.role = \"sensitive\"
";

#[test]
fn faults_of_the_writer_and_of_kept_columns() {
    let desk = Desk::with(rich(), JOB);
    let faults = vec![
        fault("a row is dropped", |rows| chosen(rows, 1..ROWS), &["rows", "truthful"]),
        fault(
            "a row is written twice",
            |rows| concat_batches(&rows.schema(), [rows, &chosen(rows, std::iter::once(9))]).unwrap(),
            &["rows", "truthful"],
        ),
        fault(
            "a row is written in the place of another",
            |rows| chosen(rows, (0..ROWS).map(|row| if row == 3 { 100 } else { row })),
            &["truthful"],
        ),
        fault("a batch is lost and another written twice", |rows| chosen(rows, (0..200).chain(0..40)), &["truthful"]),
        fault(
            "two columns are swapped",
            |rows| {
                let code = Arc::clone(column(rows, "code"));
                with(&with(rows, "code", Arc::clone(column(rows, "other"))), "other", code)
            },
            &["truthful"],
        ),
        fault(
            "whole numbers go through floating point",
            |rows| {
                let codes = column(rows, "code").as_primitive::<Int64Type>();
                with(rows, "code", Arc::new(codes.unary::<_, Int64Type>(|code| code as f64 as i64)))
            },
            &["truthful"],
        ),
        fault(
            "decimals go through floating point",
            |rows| {
                let prices = column(rows, "price").as_primitive::<Decimal128Type>();
                let prices = prices.unary::<_, Decimal128Type>(|price| price as f64 as i128);
                with(rows, "price", Arc::new(prices.with_precision_and_scale(38, 4).unwrap()))
            },
            &["truthful"],
        ),
        fault(
            "nanoseconds are cut off",
            |rows| {
                let moments = column(rows, "at").as_primitive::<TimestampNanosecondType>();
                with(rows, "at", Arc::new(moments.unary::<_, TimestampNanosecondType>(|at| at / 1000 * 1000)))
            },
            &["truthful"],
        ),
        fault(
            "NaN becomes the smallest number",
            |rows| {
                let pay = column(rows, "pay").as_primitive::<Float64Type>();
                with(rows, "pay", Arc::new(pay.unary::<_, Float64Type>(|pay| if pay.is_nan() { -0.0 } else { pay })))
            },
            &["truthful"],
        ),
        fault(
            "-0.0 becomes 0.0",
            |rows| {
                let pay = column(rows, "pay").as_primitive::<Float64Type>();
                with(rows, "pay", Arc::new(pay.unary::<_, Float64Type>(|pay| pay + 0.0)))
            },
            &["truthful"],
        ),
        fault(
            "NaN becomes null",
            |rows| {
                let pay = column(rows, "pay").as_primitive::<Float64Type>();
                let known = pay.iter().map(|pay| pay.filter(|pay| !pay.is_nan()));
                with(rows, "pay", Arc::new(Float64Array::from_iter(known)))
            },
            &["truthful"],
        ),
        fault(
            "empty lists become null",
            |rows| {
                let tags = column(rows, "tags").as_list::<i32>();
                let filled = tags.iter().map(|list| {
                    let list = list.filter(|list| !list.is_empty())?;
                    Some(list.as_primitive::<Int32Type>().iter().collect::<Vec<_>>())
                });
                with_tags(rows, ListArray::from_iter_primitive::<Int32Type, _, _>(filled))
            },
            &["truthful"],
        ),
        fault(
            "null lists become empty",
            |rows| {
                let tags = column(rows, "tags").as_list::<i32>();
                let filled = tags.iter().map(|list| {
                    Some(list.map_or_else(Vec::new, |list| list.as_primitive::<Int32Type>().iter().collect()))
                });
                with_tags(rows, ListArray::from_iter_primitive::<Int32Type, _, _>(filled))
            },
            &["truthful"],
        ),
        fault(
            "text is trimmed",
            |rows| {
                let notes = column(rows, "note").as_string::<i32>().iter().map(|note| note.map(str::trim));
                with(rows, "note", Arc::new(StringArray::from_iter(notes)))
            },
            &["truthful"],
        ),
        fault(
            "a null becomes an empty text",
            |rows| {
                let notes = column(rows, "note").as_string::<i32>().iter().map(|note| Some(note.unwrap_or("")));
                with(rows, "note", Arc::new(StringArray::from_iter(notes)))
            },
            &["truthful"],
        ),
        fault(
            "a column is published as null",
            |rows| with(rows, "note", new_null_array(column(rows, "note").data_type(), ROWS)),
            &["truthful"],
        ),
        fault("kept values slip by one row", |rows| moved(rows, "code", |row| (row + 1) % ROWS), &["truthful"]),
    ];
    all_caught(&desk, "part-", faults);
}

/// Lists in the type of the file.
fn with_tags(rows: &RecordBatch, lists: ListArray) -> RecordBatch {
    with(rows, "tags", datafusion::arrow::compute::cast(&lists, column(rows, "tags").data_type()).unwrap())
}

#[test]
fn faults_of_grouping_recoding_and_rules() {
    let desk = Desk::with(plain(), JOB);
    let faults = vec![
        fault(
            "a hash takes two classes for one",
            |rows| {
                let all = by_age(rows);
                let (one, two) = (all[0].clone(), all[1][0]);
                let as_two = move |row: usize| if one.contains(&row) { two } else { row };
                moved(&moved(rows, "age", as_two.clone()), "town", as_two)
            },
            &["truthful"],
        ),
        fault(
            "a hash splits a class",
            |rows| {
                let class = by_age(rows).pop().unwrap();
                ages(rows, move |row, low, high| if class[..2].contains(&row) { (low - 1, high) } else { (low, high) })
            },
            &["k"],
        ),
        fault(
            "groups of k - 1",
            |rows| {
                let all = by_age(rows);
                let (gone, into) = (all[0][4..].to_vec(), all[1][0]);
                let there = move |row: usize| if gone.contains(&row) { into } else { row };
                moved(&moved(rows, "age", there.clone()), "town", there)
            },
            &["k", "truthful"],
        ),
        fault(
            "rows leave a group unsaid",
            |rows| {
                let gone = by_age(rows)[0][4..].to_vec();
                chosen(rows, (0..ROWS).filter(move |row| !gone.contains(row)))
            },
            &["k", "rows", "truthful"],
        ),
        fault(
            "a stale domain cuts ranges off",
            |rows| ages(rows, |_, low, high| (low, high.min(70).max(low))),
            &["truthful"],
        ),
        fault("ranges leave their upper end out", |rows| ages(rows, |_, low, high| (low, high - 1)), &["truthful"]),
        fault(
            "a range is moved",
            |rows| {
                let class = by_age(rows)[0].clone();
                ages(rows, move |row, low, high| if class.contains(&row) { (low + 60, high + 60) } else { (low, high) })
            },
            &["truthful"],
        ),
        fault(
            "labels are off by one step",
            |rows| {
                let next = |town: &str| {
                    match town {
                        "Ash" => "Alder",
                        "Alder" => "Ash",
                        "Birch" => "Beech",
                        "Beech" => "Birch",
                        "A" => "B",
                        "B" => "A",
                        other => other,
                    }
                    .to_owned()
                };
                let towns: Vec<String> = texts(rows, "town").iter().map(|town| next(town)).collect();
                with(rows, "town", Arc::new(StringArray::from(towns)))
            },
            &["truthful"],
        ),
        fault(
            "a range is published as null",
            |rows| {
                let class = by_age(rows)[0].clone();
                let old = column(rows, "age").as_struct();
                let valid = (0..ROWS).map(|row| !class.contains(&row)).collect::<Vec<bool>>();
                let ends = StructArray::new(old.fields().clone(), old.columns().to_vec(), Some(valid.into()));
                with(rows, "age", Arc::new(ends))
            },
            &["truthful"],
        ),
        fault(
            "sensitive values change places between classes",
            |rows| {
                let (ills, all) = (texts(rows, "ill"), by_age(rows));
                let one = all[0][0];
                // A value that nobody of the other class has, for one that nobody of this class has.
                let other = (0..ROWS).find(|&row| {
                    let theirs = all.iter().find(|class| class.contains(&row)).unwrap();
                    theirs.iter().all(|&row| ills[row] != ills[one])
                        && all[0].iter().all(|&mine| ills[mine] != ills[row])
                });
                let other = other.unwrap();
                moved(rows, "ill", move |row| {
                    if row == one {
                        other
                    } else if row == other {
                        one
                    } else {
                        row
                    }
                })
            },
            &["truthful"],
        ),
        fault(
            "a class without variety",
            |rows| {
                let (mut ills, class) = (texts(rows, "ill"), by_age(rows)[0].clone());
                class.iter().for_each(|&row| ills[row] = ills[class[0]].clone());
                with(rows, "ill", Arc::new(StringArray::from(ills)))
            },
            &["l-diversity", "t-closeness", "truthful"],
        ),
        fault(
            "sensitive values in the order of the classes",
            |rows| {
                let mut order: Vec<usize> = (0..ROWS).collect();
                let ills = texts(rows, "ill");
                order.sort_by(|a, b| ills[*a].cmp(&ills[*b]));
                let places: Vec<usize> = by_age(rows).concat();
                let mut from = vec![0; ROWS];
                places.iter().zip(order).for_each(|(place, row)| from[*place] = row);
                moved(rows, "ill", move |row| from[row])
            },
            &["l-diversity", "truthful"],
        ),
        fault(
            "a sensitive value is published as null",
            |rows| {
                let ills = texts(rows, "ill").into_iter().enumerate().map(|(row, ill)| (row != 17).then_some(ill));
                with(rows, "ill", Arc::new(StringArray::from_iter(ills)))
            },
            &["truthful"],
        ),
    ];
    all_caught(&desk, "part-", faults);
}

/// What covers everything is true of everybody, and breaks nothing but the bound on what may be lost.
#[test]
fn faults_of_the_bound_on_loss() {
    let desk = Desk::with(plain(), &JOB.replace("privacy.k = 5", "privacy.k = 5\nprivacy.max-loss = 0.8"));
    let faults = vec![
        fault(
            "a class loses everything",
            |rows| {
                let class = by_age(rows)[0].clone();
                let towns = texts(rows, "town").into_iter().enumerate();
                let towns = towns.map(|(row, town)| if class.contains(&row) { "*".to_owned() } else { town });
                let rows = with(rows, "town", Arc::new(StringArray::from_iter_values(towns)));
                ages(&rows, move |row, low, high| if class.contains(&row) { (20, 259) } else { (low, high) })
            },
            &["max-loss"],
        ),
        fault(
            "everything is published as the top",
            |rows| {
                let rows = with(rows, "town", Arc::new(StringArray::from(vec!["*"; ROWS])));
                ages(&rows, |_, _, _| (20, 259))
            },
            &["max-loss"],
        ),
    ];
    all_caught(&desk, "part-", faults);
}

/// More different rows than are looked up at a time: a source row that nothing covers is found in whatever part its like is.
#[test]
fn faults_of_covers_in_a_large_table() {
    const MANY: i32 = 40_000;
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("age", Arc::new(Int32Array::from_iter_values((0..MANY).map(|row| row * 7 % MANY)))),
        ("code", Arc::new(Int32Array::from_iter_values((0..MANY).map(|row| row / 2)))),
    ];
    let job = "privacy.k = 5\nmethod.name = \"mondrian\"\nmethod.seed = 7\n[columns]\nage.role = \"quasi\"\n\
               code.role = \"kept\"\n";
    let desk = Desk::with(columns, job);
    desk.run(&["--partitions", "1"]).ok();
    let limit = ["--memory-limit", "16MB", "--partitions", "1"];
    desk.throng("verify", &limit).ok();
    let file = released_files(&desk.path("out")).remove(0);
    let good = read_parquet(&file);
    // Somebody whose range lies where nobody is: their own row is covered by none, and the published row covers none.
    let bad = ages(&good, |row, low, high| if row == 31_234 { (-9, -8) } else { (low, high) });
    write_parquet(&file, &bad);
    forge(&desk, &file, |_| ());
    desk.throng("verify", &limit).refused(
        5,
        &[
            "1 published rows do not cover the values they were made from",
            "1 rows of the source are not covered by any published row with the same other values",
        ],
    );
}

/// 18-digit quasi-identifiers and sensitive codes: what floating point makes of them.
#[test]
fn faults_of_floating_point() {
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("account", Arc::new(Int64Array::from_iter_values((0..ROWS as i64).map(|row| NEAR + row * 7 % 240 * 3)))),
        ("size", Arc::new(Int64Array::from_iter_values((0..ROWS as i64).map(|row| NEAR + row * 11 % 240)))),
        ("code", Arc::new(Int64Array::from_iter_values((0..ROWS as i64).map(|row| NEAR + row % 4 * 1000)))),
    ];
    let job = "privacy.k = 8\nprivacy.t-closeness = { column = \"code\", t = 0.6, distance = \"equal\" }
method.name = \"mondrian\"\nmethod.seed = 7\n[columns]\naccount.role = \"quasi\"\nsize.role = \"quasi\"\n\
code.role = \"sensitive\"\n";
    let desk = Desk::with(columns, job);
    let faults = vec![
        fault(
            "the ends of ranges go through floating point",
            |rows| {
                let old = column(rows, "account").as_struct();
                let end = |at: usize| -> ArrayRef {
                    let ends = old.column(at).as_primitive::<Int64Type>();
                    Arc::new(ends.unary::<_, Int64Type>(|end| end as f64 as i64))
                };
                let ends = StructArray::new(old.fields().clone(), vec![end(0), end(1)], old.nulls().cloned());
                with(rows, "account", Arc::new(ends))
            },
            &["truthful"],
        ),
        fault(
            "codes that floating point cannot distinguish gather in classes",
            |rows| {
                // Every class of one code, the four codes one apart: in floating point all are the same.
                let all = classes(rows, &["account", "size"]);
                let of = |row: usize| all.iter().position(|class| class.contains(&row)).unwrap() as i64 % 4;
                with(rows, "code", Arc::new(Int64Array::from_iter_values((0..ROWS).map(|row| NEAR + of(row)))))
            },
            &["t-closeness", "truthful"],
        ),
    ];
    all_caught(&desk, "part-", faults);
}

const ANATOMY: &str = "privacy.k = 5
privacy.l-diversity = { column = \"ill\", l = 3 }
method.name = \"anatomy\"
method.seed = 7
[columns]
age.role = \"quasi\"
town.role = \"quasi\"
ill.role = \"sensitive\"
";

#[test]
fn faults_of_the_sensitive_table() {
    let desk = Desk::with(plain(), ANATOMY);
    let tally = |rows: &RecordBatch, change: &dyn Fn(usize, u64) -> u64| {
        let old = column(rows, "count").as_primitive::<UInt64Type>();
        let new = old.values().iter().enumerate().map(|(row, &count)| change(row, count));
        with(rows, "count", Arc::new(UInt64Array::from_iter_values(new)))
    };
    let faults = vec![
        fault(
            "a count is off by one",
            move |rows| tally(rows, &|row, count| count + u64::from(row == 0)),
            &["groups", "truthful"],
        ),
        fault("a sensitive value is lost", |rows| chosen(rows, 1..rows.num_rows()), &["groups", "truthful"]),
        fault(
            "a group number is used twice",
            |rows| {
                let groups = column(rows, "group").as_primitive::<UInt64Type>();
                let (first, last) = (groups.value(0), groups.value(rows.num_rows() - 1));
                let reused = groups.unary::<_, UInt64Type>(|group| if group == last { first } else { group });
                with(rows, "group", Arc::new(reused))
            },
            &["groups"],
        ),
        fault(
            "sensitive values are listed for another group",
            |rows| {
                // Two groups of equally many rows, and what each has that the other has not.
                let groups = column(rows, "group").as_primitive::<UInt64Type>();
                let ills = texts(rows, "ill");
                let has = |group: u64, ill: &str| {
                    (0..rows.num_rows()).any(|row| groups.value(row) == group && ills[row] == ill)
                };
                let counts = column(rows, "count").as_primitive::<UInt64Type>();
                let pair = (0..rows.num_rows()).flat_map(|a| (0..a).map(move |b| (a, b))).find(|&(a, b)| {
                    counts.value(a) == counts.value(b)
                        && !has(groups.value(a), &ills[b])
                        && !has(groups.value(b), &ills[a])
                });
                let (a, b) = pair.unwrap();
                moved(rows, "ill", move |row| {
                    if row == a {
                        b
                    } else if row == b {
                        a
                    } else {
                        row
                    }
                })
            },
            &["truthful"],
        ),
    ];
    all_caught(&desk, "/st/", faults);
}

#[test]
fn faults_of_the_quasi_identifier_table() {
    let desk = Desk::with(plain(), ANATOMY);
    let faults = vec![
        fault(
            "rows are numbered by another group",
            |rows| moved(rows, "group", |row| (row + ROWS / 2) % ROWS),
            &["truthful"],
        ),
        fault(
            "a row is in the wrong group",
            |rows| moved(rows, "group", |row| if row == 0 { ROWS - 1 } else { row }),
            &["groups"],
        ),
        fault("a quasi-identifier changes its row", |rows| moved(rows, "town", |row| (row + 7) % ROWS), &["truthful"]),
    ];
    all_caught(&desk, "/qit/", faults);
}

#[test]
fn faults_of_permuted_forms() {
    let job = JOB.replace("method.seed = 7", "method.seed = 7\nmethod.form = \"bucketise\"");
    let job = job
        .replace("hierarchy.tree = [{ A = [\"Ash\", \"Alder\"] }, { B = [\"Birch\", \"Beech\"] }]", "priority = 1.0");
    let desk = Desk::with(plain(), &job);
    let faults = vec![
        fault(
            "values are permuted beyond their group",
            |rows| moved(rows, "ill", |row| (row + ROWS / 2) % ROWS),
            &["truthful"],
        ),
        fault(
            "the values of two buckets are swapped",
            |rows| {
                let (ills, all) = (texts(rows, "ill"), classes(rows, &["group"]));
                let values =
                    |bucket: &[usize]| bucket.iter().map(|&row| ills[row].clone()).collect::<BTreeSet<String>>();
                let mut pairs = (0..all.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
                let differ =
                    |&(a, b): &(usize, usize)| all[a].len() == all[b].len() && values(&all[a]) != values(&all[b]);
                let (a, b) = pairs.find(differ).unwrap();
                let swapped = all[a].iter().zip(&all[b]).flat_map(|(&a, &b)| [(a, b), (b, a)]);
                let swapped: BTreeMap<usize, usize> = swapped.collect();
                moved(rows, "ill", move |row| swapped.get(&row).copied().unwrap_or(row))
            },
            &["truthful"],
        ),
        fault(
            "a value is invented",
            |rows| {
                let mut ills = texts(rows, "ill");
                ills[5] = if ills[5] == ILLS[1] { ILLS[2].into() } else { ILLS[1].into() };
                with(rows, "ill", Arc::new(StringArray::from(ills)))
            },
            &["truthful"],
        ),
    ];
    all_caught(&desk, "part-", faults);
}

/// People are counted where rows have owners; the classes that were counted must be those of the files.
#[test]
fn faults_of_counting_people() {
    let mut columns = plain();
    columns.push(("person", Arc::new(Int64Array::from_iter_values((0..ROWS as i64).map(|row| row / 2)))));
    let job = JOB.replace("privacy.k = 5", "privacy.k = 5\nprivacy.person = \"person\"");
    let desk = Desk::with(columns, &format!("{job}person.role = \"identifier\"\n"));
    let faults = vec![fault(
        "people are counted in other classes than are published",
        |rows| ages(rows, |_, low, high| (low - 1, high + 1)),
        &["person"],
    )];
    all_caught(&desk, "part-", faults);
}

/// What a run says of itself: fewer rows than were read, without saying that any were suppressed.
#[test]
fn faults_of_the_manifest() {
    let desk = Desk::with(rich(), JOB);
    desk.run(&["--partitions", "1"]).ok();
    let file = released_files(&desk.path("out")).remove(0);
    let good = read_parquet(&file);
    let crowded = by_age(&good).pop().unwrap()[0];
    write_parquet(&file, &chosen(&good, (0..ROWS).filter(|row| *row != crowded)));
    forge(&desk, &file, |all| all["rows"] = (ROWS - 1).into());
    desk.throng("verify", &[]).refused(5, &["truthful: 1 rows of the source were lost or changed"]);
    // Files that are not those of the manifest.
    write_parquet(&file, &good);
    throng(&["verify", &desk.name("out")]).refused(5, &["files: 1 of 1"]);
}
