//! What the documentation of the census promises, counted.

use std::collections::{HashMap, HashSet};

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{DataType, Date32Type, Decimal128Type, Int32Type, Int64Type, TimeUnit};

use super::Census;
use super::vocabulary::{EDUCATION, MARITAL, OCCUPATIONS, REGIONS};

const QUASI: [&str; 8] = ["age", "sex", "region", "postcode", "education", "occupation", "marital_status", "arrival"];

fn rows(seed: u64, range: std::ops::Range<u64>, batch_rows: usize) -> RecordBatch {
    let census = Census::new(seed, u64::MAX);
    let batches: Vec<RecordBatch> = census.batches(range, batch_rows).collect::<Result<_, _>>().unwrap();
    concat_batches(&Census::schema(), &batches).unwrap()
}

fn texts<'a>(batch: &'a RecordBatch, column: &str) -> Vec<Option<&'a str>> {
    batch[column].as_string::<i32>().iter().collect()
}

fn ages(batch: &RecordBatch) -> Vec<i32> {
    batch["age"].as_primitive::<Int32Type>().values().to_vec()
}

/// The quasi-identifiers of every row, as text.
fn tuples(batch: &RecordBatch) -> Vec<String> {
    let words: Vec<_> = QUASI[1..7].iter().map(|column| texts(batch, column)).collect();
    let (ages, arrivals) = (ages(batch), batch["arrival"].as_primitive::<Date32Type>());
    (0..batch.num_rows())
        .map(|row| {
            let arrival = arrivals.is_valid(row).then(|| arrivals.value(row));
            let words: Vec<_> = words.iter().map(|column| column[row]).collect();
            format!("{} {arrival:?} {words:?}", ages[row])
        })
        .collect()
}

#[test]
fn types_are_as_documented() {
    let batch = rows(1, 0..10, 10);
    let kinds: Vec<(&str, &DataType)> =
        batch.schema_ref().fields().iter().map(|field| (field.name().as_str(), field.data_type())).collect();
    let tags = Census::schema().field(14).data_type().clone();
    assert_eq!(
        kinds,
        [
            ("person_id", &DataType::Int64),
            ("name", &DataType::Utf8),
            ("age", &DataType::Int32),
            ("sex", &DataType::Utf8),
            ("region", &DataType::Utf8),
            ("postcode", &DataType::Utf8),
            ("education", &DataType::Utf8),
            ("occupation", &DataType::Utf8),
            ("marital_status", &DataType::Utf8),
            ("arrival", &DataType::Date32),
            ("diagnosis", &DataType::Utf8),
            ("income", &DataType::Decimal128(10, 2)),
            ("household_size", &DataType::Int16),
            ("updated_at", &DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))),
            ("tags", &tags),
        ]
    );
    assert!(matches!(&tags, DataType::List(item) if item.data_type() == &DataType::Utf8));
}

#[test]
fn rows_do_not_depend_on_batches_or_ranges() {
    let whole = rows(7, 0..5_000, 5_000);
    assert_eq!(whole, rows(7, 0..5_000, 333));
    assert_eq!(whole, rows(7, 0..5_000, 1));
    let parts = [rows(7, 0..1_234, 500), rows(7, 1_234..1_235, 500), rows(7, 1_235..5_000, 65_536)];
    assert_eq!(whole, concat_batches(&Census::schema(), &parts).unwrap());
    assert_ne!(whole, rows(8, 0..5_000, 5_000), "another seed, other people");
}

#[test]
fn a_census_ends_where_it_ends() {
    let sizes = |range, batch_rows| -> Vec<usize> {
        Census::new(1, 100).batches(range, batch_rows).map(|batch| batch.unwrap().num_rows()).collect()
    };
    assert_eq!(sizes(0..1_000, 64), [64, 36]);
    assert_eq!(sizes(90..100, 64), [10]);
    assert!(sizes(100..200, 64).is_empty());
    assert_eq!(sizes(0..3, 0), [1, 1, 1], "a batch has a row at least");
}

#[test]
fn the_first_rows_never_change() {
    // Benches and the files in pipelines/ rely on it: a change here is a new census.
    let batch = rows(42, 0..3, 3);
    assert_eq!(texts(&batch, "name"), [Some("Vera Barrowwell"), Some("Ned Brookbourne"), Some("Sylvia Fenden")]);
    assert_eq!(ages(&batch), [75, 10, 28]);
    assert_eq!(texts(&batch, "postcode"), [Some("42300"), Some("42236"), Some("10003")]);
    assert_eq!(texts(&batch, "occupation"), [Some("retired"), Some("child"), Some("shop assistant")]);
    assert_eq!(batch["arrival"].as_primitive::<Date32Type>().values(), &[20_330, 20_366, 20_431]);
    assert_eq!(batch["income"].as_primitive::<Decimal128Type>().values(), &[1_000_000, 3_670_000, 2_411_095]);
}

#[test]
fn nulls_are_where_they_should_be() {
    let batch = rows(1, 0..50_000, 50_000);
    let share = |column: &str| batch[column].null_count() as f64 / 50_000.0;
    assert!((0.005..0.02).contains(&share("sex")), "sex {}", share("sex"));
    assert!((0.06..0.10).contains(&share("arrival")), "arrival {}", share("arrival"));
    assert!((0.01..0.03).contains(&share("updated_at")), "updated_at {}", share("updated_at"));
    assert!((0.03..0.07).contains(&share("tags")), "tags {}", share("tags"));
    let nullable: Vec<_> =
        Census::schema().fields().iter().filter(|f| f.is_nullable()).map(|f| f.name().clone()).collect();
    assert_eq!(nullable, ["sex", "arrival", "updated_at", "tags"]);
}

#[test]
fn one_row_in_a_hundred_repeats_an_earlier_one() {
    let batch = rows(1, 0..50_000, 50_000);
    let tuples = tuples(&batch);
    let distinct: HashSet<&String> = tuples.iter().collect();
    let repeated = tuples.len() - distinct.len();
    assert!((400..2_000).contains(&repeated), "{repeated} repeated tuples");
    let people: HashSet<_> = batch["person_id"].as_primitive::<Int64Type>().values().iter().collect();
    assert_eq!(people.len(), 50_000);
}

#[test]
fn postcodes_tell_their_region_and_are_skewed() {
    let batch = rows(1, 0..200_000, 200_000);
    let mut regions: HashMap<&str, HashSet<&str>> = HashMap::new();
    let mut counts: HashMap<&str, u32> = HashMap::new();
    for (postcode, region) in texts(&batch, "postcode").into_iter().zip(texts(&batch, "region")) {
        let (postcode, region) = (postcode.unwrap(), region.unwrap());
        assert_eq!(postcode.len(), 5);
        regions.entry(&postcode[..2]).or_default().insert(region);
        *counts.entry(postcode).or_default() += 1;
    }
    assert_eq!(regions.len(), 20);
    assert!(regions.values().all(|names| names.len() == 1));
    assert!((12_000..=20_000).contains(&counts.len()), "{} postcodes", counts.len());
    let mut counts: Vec<u32> = counts.into_values().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let top: u32 = counts[..200].iter().sum();
    assert!(top > 30_000, "the top hundredth holds {top} of 200000 rows");
}

#[test]
fn education_shapes_occupation_and_income() {
    let batch = rows(1, 0..50_000, 50_000);
    let (education, occupation) = (texts(&batch, "education"), texts(&batch, "occupation"));
    let income = batch["income"].as_primitive::<Decimal128Type>().values();
    let ages = ages(&batch);
    let mean = |level: &str| {
        let chosen: Vec<i128> = (0..batch.num_rows())
            .filter(|&row| education[row] == Some(level) && (30..60).contains(&ages[row]))
            .map(|row| income[row])
            .collect();
        chosen.iter().sum::<i128>() / chosen.len() as i128
    };
    assert!(mean("master") > 2 * mean("lower secondary"));
    let physicians: Vec<usize> = (0..batch.num_rows()).filter(|&row| occupation[row] == Some("physician")).collect();
    assert!(physicians.len() > 50);
    let degrees = ["master", "professional degree", "doctorate"];
    assert!(physicians.iter().all(|&row| degrees.contains(&education[row].unwrap())));
    assert!((0..batch.num_rows()).all(|row| (ages[row] < 16) == (occupation[row] == Some("child"))));
}

#[test]
fn age_shapes_marriage_and_diagnosis_and_place_shapes_age() {
    let batch = rows(1, 0..50_000, 50_000);
    let ages = ages(&batch);
    let mean_age = |column: &str, value: &str| {
        let chosen: Vec<i32> = texts(&batch, column)
            .iter()
            .zip(&ages)
            .filter(|(text, _)| **text == Some(value))
            .map(|(_, &a)| a)
            .collect();
        f64::from(chosen.iter().sum::<i32>()) / chosen.len() as f64
    };
    assert!(mean_age("marital_status", "widowed") > mean_age("marital_status", "never married") + 35.0);
    assert!(mean_age("diagnosis", "dementia") > mean_age("diagnosis", "otitis") + 40.0);
    assert!(mean_age("region", "Skerries") > mean_age("region", "Crown City") + 5.0);
}

#[test]
fn every_word_has_a_leaf_in_the_level_files() {
    let leaves = |file: &'static str| -> Vec<&'static str> {
        file.lines().map(|line| line.split(';').next().unwrap()).collect()
    };
    let sorted = |mut words: Vec<&'static str>| {
        words.sort_unstable();
        words
    };
    let files: [(&'static str, Vec<&'static str>); 4] = [
        (include_str!("../../pipelines/hierarchies/region.csv"), REGIONS.iter().map(|region| region.name).collect()),
        (include_str!("../../pipelines/hierarchies/education.csv"), EDUCATION.to_vec()),
        (include_str!("../../pipelines/hierarchies/occupation.csv"), OCCUPATIONS.iter().map(|job| job.name).collect()),
        (include_str!("../../pipelines/hierarchies/marital_status.csv"), MARITAL.to_vec()),
    ];
    for (file, words) in files {
        assert_eq!(sorted(leaves(file)), sorted(words));
    }
}
