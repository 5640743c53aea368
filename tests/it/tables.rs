//! Small tables of people whose values are easy to find in a message that should not hold them.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int32Array, Int64Array, StringArray};

/// The towns of the table.
pub const TOWNS: [&str; 6] = ["Quuxham", "Zyxford", "Vexbury", "Wyrmley", "Ixworth", "Jynx End"];

/// The illnesses of the table.
pub const ILLS: [&str; 3] = ["zebrapox", "quinsyfever", "glumrash"];

/// The first identity; all are of six digits, so none is a row count.
pub const FIRST_ID: i64 = 730_001;

/// People: `id` (unique), `age`, `town` and `ill`.
pub fn people(rows: usize) -> Vec<(&'static str, ArrayRef)> {
    let all = 0..rows as i64;
    vec![
        ("id", Arc::new(Int64Array::from_iter_values(all.clone().map(|row| FIRST_ID + row))) as ArrayRef),
        ("age", Arc::new(Int32Array::from_iter_values((0..rows as i32).map(|row| 1020 + row * 7 % 53)))),
        ("town", words(rows, &TOWNS, 5)),
        ("ill", words(rows, &ILLS, 2)),
    ]
}

/// Rows that take their words in turn, each `run` times.
pub fn words(rows: usize, words: &[&str], run: usize) -> ArrayRef {
    Arc::new(StringArray::from_iter_values((0..rows).map(|row| words[row / run % words.len()])))
}

/// The same columns with one exchanged.
pub fn with(mut columns: Vec<(&'static str, ArrayRef)>, name: &str, array: ArrayRef) -> Vec<(&'static str, ArrayRef)> {
    columns.iter_mut().filter(|(column, _)| *column == name).for_each(|(_, old)| *old = Arc::clone(&array));
    columns
}

/// The rest of a job on [`people`].
pub const JOB: &str = "privacy.k = 5
[columns]
id.role = \"kept\"
age.role = \"quasi\"
town.role = \"quasi\"
ill.role = \"sensitive\"
";

/// Asserts that a text holds none of the values of [`people`].
pub fn assert_no_values(text: &str) {
    for word in TOWNS.iter().chain(&ILLS) {
        assert!(!text.contains(word), "the value {word} is quoted in: {text}");
    }
    // Digits among letters are of the name of a run.
    let reported = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|number| number.len() < 8);
    for number in reported.filter_map(|number| number.parse::<i64>().ok()) {
        let value = (FIRST_ID..FIRST_ID + 10_000).contains(&number) || (1020..1073).contains(&number);
        assert!(!value, "the value {number} is quoted in: {text}");
    }
}
