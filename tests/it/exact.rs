//! Exact values decide: what a double cannot distinguish is distinguished, and what it rounds is covered all the same.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Date64Array, Decimal128Array, Float64Array, Int32Array, Int64Array, ListArray,
    RecordBatch, StringArray, StructArray, TimestampNanosecondArray, UInt64Array,
};
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Field, Float64Type, Int32Type, Int64Type, Schema, TimeUnit, TimestampNanosecondType,
};
use datafusion::parquet::arrow::ArrowWriter;

use crate::support::{Desk, batch, lines, manifest, read_parquet, released_files, texts, write_parquet};

/// The first of the numbers of 18 digits that tests use; doubles near it are 16 apart.
const LONG: i64 = 100_000_000_000_000_000;

fn ages(rows: i32) -> ArrayRef {
    Arc::new(Int32Array::from_iter_values((0..rows).map(|row| 20 + row % 40)))
}

/// Parquet statistics leave NaN out, and DataFusion takes equal bounds for a constant.
#[test]
fn what_is_no_number_is_published_as_none() {
    let dose = (0..40).map(|row| if row % 4 == 0 { 1.0 } else { f64::NAN });
    let dose: ArrayRef = Arc::new(Float64Array::from_iter_values(dose));
    let job = "privacy.k = 4\ncolumns.age.role = \"quasi\"\ncolumns.dose.role = \"ROLE\"";
    for role in ["kept", "sensitive"] {
        let desk = Desk::with(vec![("age", ages(40)), ("dose", Arc::clone(&dose))], &job.replace("ROLE", role));
        desk.run(&[]).ok();
        let rows = desk.released();
        let dose = rows.column_by_name("dose").unwrap().as_primitive::<Float64Type>();
        assert_eq!(dose.values().iter().filter(|dose| dose.is_nan()).count(), 30, "{role}");
        assert_eq!(dose.values().iter().filter(|dose| **dose == 1.0).count(), 10, "{role}");
        desk.throng("verify", &[]).ok();
    }
}

/// Sensitive values of every class.
fn classes(rows: &RecordBatch, class: &str, sensitive: &str) -> BTreeMap<String, Vec<String>> {
    let mut classes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (class, value) in texts(rows, class).into_iter().zip(texts(rows, sensitive)) {
        classes.entry(class).or_default().push(value);
    }
    classes
}

/// Codes that share a position: each age has one, so that only mixed classes are close to the table.
#[test]
fn long_diagnoses_are_told_apart_by_rules() {
    let codes: [ArrayRef; 4] = [
        Arc::new(Int64Array::from_iter_values((0..400).map(|row| LONG + i64::from(row / 100)))),
        Arc::new(UInt64Array::from_iter_values((0..400).map(|row| u64::MAX - row / 100))),
        Arc::new(
            Decimal128Array::from_iter_values((0..400).map(|row| 10_i128.pow(30) + row / 100))
                .with_precision_and_scale(38, 2)
                .unwrap(),
        ),
        Arc::new(TimestampNanosecondArray::from_iter_values((0..400).map(|row| i64::MAX - row / 100))),
    ];
    let ages: ArrayRef = Arc::new(Int32Array::from_iter_values((0..400).map(|row| 20 + row / 10)));
    for codes in codes {
        for rule in [
            "t-closeness = { column = \"code\", t = 0.2, distance = \"equal\" }",
            "l-diversity = { column = \"code\", kind = \"distinct\", l = 4 }",
        ] {
            let job = format!(
                "privacy.k = 5\nprivacy.{rule}\ncolumns.age.role = \"quasi\"\ncolumns.code.role = \"sensitive\""
            );
            let desk = Desk::with(vec![("age", Arc::clone(&ages)), ("code", Arc::clone(&codes))], &job);
            desk.run(&[]).ok();
            let rows = desk.released();
            assert!(rows.num_rows() > 0);
            for values in classes(&rows, "age", "code").values() {
                let distinct: BTreeSet<&String> = values.iter().collect();
                assert_eq!(distinct.len(), 4, "{rule} on {}", codes.data_type());
            }
        }
    }
}

/// Numbers that share a position make no diversity where they are equal, and neither do two zeros.
#[test]
fn equal_numbers_are_not_diverse() {
    let zeros: ArrayRef =
        Arc::new(Float64Array::from_iter_values((0..40).map(|row| if row % 2 == 0 { 0.0 } else { -0.0 })));
    let job = "privacy.k = 4\nprivacy.l-diversity = { column = \"dose\", kind = \"distinct\", l = 2 }\n\
               columns.age.role = \"quasi\"\ncolumns.dose.role = \"sensitive\"";
    let desk = Desk::with(vec![("age", ages(40)), ("dose", zeros)], job);
    assert_eq!(desk.run(&[]).code, Some(5));
}

#[test]
fn unique_long_numbers_are_no_constant_and_their_ranges_hold_them() {
    let codes: ArrayRef = Arc::new(Int64Array::from_iter_values((0..8).map(|row| LONG + row)));
    let desk = Desk::with(vec![("code", codes)], "privacy.k = 2\ncolumns.code.role = \"quasi\"");
    desk.run(&[]).ok();
    let rows = desk.released();
    let ranges = rows.column_by_name("code").unwrap().as_struct();
    let end = |column: usize| ranges.column(column).as_primitive::<Int64Type>().values().to_vec();
    let (low, high) = (end(0), end(1));
    for code in LONG..LONG + 8 {
        assert!(low.iter().zip(&high).any(|(low, high)| (*low..=*high).contains(&code)), "{code}");
    }
    let constant: ArrayRef = Arc::new(Int64Array::from(vec![LONG; 8]));
    let desk = Desk::with(vec![("code", constant)], "privacy.k = 2\ncolumns.code.role = \"quasi\"");
    desk.run(&[]).refused(4, &["column `code`", "every row holds the same value"]);
}

/// Every code stands in the row of its own label.
#[test]
fn labels_of_ladders_hold_long_numbers() {
    let job = "privacy.k = 2\ncolumns.copy.role = \"kept\"\n\
               columns.code = { role = \"quasi\", hierarchy = { widths = [10, 100, 1000] } }";
    let numbers = || (0..60).map(|row| LONG + i64::from(row * 7 % 60) * 3);
    let whole: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers()));
    let cents = Decimal128Array::from_iter_values(numbers().map(|number| i128::from(number) * 100 + 99));
    let cents: ArrayRef = Arc::new(cents.with_precision_and_scale(30, 2).unwrap());
    for codes in [whole, cents] {
        let desk = Desk::with(vec![("code", Arc::clone(&codes)), ("copy", codes)], job);
        desk.run(&[]).ok();
        let rows = desk.released();
        // All digits of a number, two of them after the point.
        let digits = |text: &str| -> i128 {
            let (whole, cents) = text.split_once('.').unwrap_or((text, "00"));
            whole.parse::<i128>().unwrap() * 100 + format!("{cents:0<2}").parse::<i128>().unwrap()
        };
        for (label, code) in texts(&rows, "code").iter().zip(texts(&rows, "copy")) {
            let held = match label.strip_prefix('[').and_then(|label| label.strip_suffix(')')) {
                Some(ends) => {
                    let (lower, upper) = ends.split_once(", ").unwrap();
                    (digits(lower)..digits(upper)).contains(&digits(&code))
                }
                None => *label == code || label == "*",
            };
            assert!(held, "{label} does not hold {code}");
        }
        assert!(texts(&rows, "code").iter().any(|label| label.starts_with('[')), "not all are the top");
    }
}

#[test]
fn the_last_nanosecond_of_a_day_is_of_that_day() {
    let day = 86_400_000_000_000_i64;
    let moments = (0..10).map(|row| 19_790 * day - 1 - row % 2);
    let moments: ArrayRef = Arc::new(TimestampNanosecondArray::from_iter_values(moments));
    let job = "privacy.k = 10\ncolumns.at = { role = \"quasi\", hierarchy = { calendar = [\"day\", \"month\"] } }";
    let desk = Desk::with(vec![("at", moments)], job);
    desk.run(&[]).ok();
    assert!(texts(&desk.released(), "at").iter().all(|label| label == "2024-03-07"));
}

#[test]
fn the_mean_of_equal_long_numbers_is_that_number() {
    let codes: ArrayRef =
        Arc::new(Int64Array::from_iter((0..40).map(|row| Some(if row < 20 { i64::MAX } else { LONG + 1 }))));
    let job = "privacy.k = 20\nmethod.name = \"mondrian\"\ncolumns.code = { role = \"quasi\", publish = \"centroid\" }";
    let desk = Desk::with(vec![("code", codes)], job);
    desk.run(&[]).ok();
    let rows = desk.released();
    let means: BTreeSet<i64> = rows.column(0).as_primitive::<Int64Type>().values().iter().copied().collect();
    assert_eq!(rows.column(0).null_count(), 0);
    assert_eq!(means, BTreeSet::from([LONG + 1, i64::MAX]));
}

/// Lists, empty lists and nulls come out as they went in, and verification distinguishes them.
#[test]
fn empty_lists_stay_empty() {
    let lists = (0..40).map(|row| match row % 4 {
        0 => None,
        1 => Some(vec![]),
        2 => Some(vec![None]),
        _ => Some(vec![Some(row)]),
    });
    let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists));
    let nothing: ArrayRef = Arc::new(Int32Array::from(vec![None; 40]));
    let columns = vec![("age", ages(40)), ("nothing", nothing), ("lists", Arc::clone(&lists))];
    let desk = Desk::with(columns, "privacy.k = 4\ndefaults.role = \"kept\"\ncolumns.age.role = \"quasi\"");
    desk.run(&[]).ok();
    desk.throng("verify", &[]).ok();
    let released = desk.released();
    let lists = released.column_by_name("lists").unwrap().as_list::<i32>();
    assert_eq!(lists.null_count(), 10);
    assert_eq!((0..40).filter(|row| lists.is_valid(*row) && lists.value(*row).is_empty()).count(), 10);
}

/// Parquet has no date in milliseconds.
#[test]
fn dates_in_milliseconds_are_no_integers() {
    let days: ArrayRef = Arc::new(Date64Array::from_iter_values((0..40).map(|row| 86_400_000 * (20_000 + row % 3))));
    let columns = vec![("age", ages(40)), ("day", Arc::clone(&days)), ("seen", days)];
    let job = "privacy.k = 4\ncolumns.age.role = \"quasi\"\ncolumns.day.role = \"kept\"\ncolumns.seen.role = \"quasi\"";
    let desk = Desk::with(columns, job);
    desk.run(&[]).ok();
    desk.throng("verify", &[]).ok();
    let rows = desk.released();
    let timestamp = DataType::Timestamp(TimeUnit::Millisecond, None);
    assert_eq!(rows.column_by_name("day").unwrap().data_type(), &timestamp);
    let DataType::Struct(ends) = rows.column_by_name("seen").unwrap().data_type().clone() else { panic!("no range") };
    assert!(ends.iter().all(|end| *end.data_type() == timestamp));
    assert!(texts(&rows, "day").iter().all(|day| day.starts_with("2024-10-0")), "{:?}", texts(&rows, "day"));
}

/// A column that is null only in rows that another column drops is not news in the second pass.
#[test]
fn nulls_of_dropped_rows_are_no_change_of_the_input() {
    let ages = (0..600).map(|row| (row % 40 != 7).then_some(20 + row % 50));
    let ages: ArrayRef = Arc::new(Int32Array::from_iter(ages));
    let towns = (0..600).map(|row| (row % 40 != 7).then(|| format!("town {}", row % 11)));
    let towns: ArrayRef = Arc::new(StringArray::from_iter(towns));
    let pays: ArrayRef = Arc::new(Int32Array::from_iter((0..600).map(|row| (row % 40 != 7).then_some(row * 37 % 600))));
    let job = "privacy.k = 5\ncolumns.town.role = \"quasi\"\ncolumns.pay.role = \"quasi\"\n\
               columns.age = { role = \"quasi\", nulls = \"drop\" }";
    let desk = Desk::with(vec![("age", ages), ("town", towns), ("pay", pays)], job);
    desk.run(&["--cell-rows", "100"]).ok();
    assert_eq!(desk.released().num_rows(), 585);
}

#[test]
fn two_columns_of_one_name_are_refused() {
    let desk = Desk::new();
    let fields = ["age", "ill", "ill"].map(|name| Field::new(name, DataType::Int32, true));
    let schema = Arc::new(Schema::new(fields.to_vec()));
    let mut writer =
        ArrowWriter::try_new(File::create(desk.path("in.parquet")).unwrap(), Arc::clone(&schema), None).unwrap();
    writer.write(&RecordBatch::try_new(schema, vec![ages(40), ages(40), ages(40)]).unwrap()).unwrap();
    writer.close().unwrap();
    let job = "privacy.k = 4\ncolumns.age.role = \"quasi\"\ncolumns.ill.role = \"kept\"";
    desk.job(job);
    desk.run(&[]).refused(4, &["two columns named `ill`"]);
    desk.write("in.csv", "age,ill,ill\n30,1,2\n30,3,4\n30,5,6\n30,7,8\n");
    let csv = "version = 1\nsource = { url = \"in.csv\", format = \"csv\", schema = { age = \"int32\", ill = \"int32\" } }\nsink.url = \"out\"\n";
    desk.write("job.toml", &format!("{csv}{job}"));
    desk.run(&[]).refused(4, &["two columns named `ill`"]);
}

#[test]
fn a_text_that_means_null_names_no_folder() {
    let ward = |row: i32| if row % 2 == 0 { "north" } else { "__HIVE_DEFAULT_PARTITION__" };
    let wards: ArrayRef = Arc::new(StringArray::from_iter_values((0..40).map(ward)));
    let job =
        "privacy.k = 4\noutput.partition-by = [\"ward\"]\ncolumns.age.role = \"quasi\"\ncolumns.ward.role = \"kept\"";
    let desk = Desk::with(vec![("age", ages(40)), ("ward", wards)], job);
    desk.run(&[]).refused(4, &["output.partition-by", "`ward`", "stands for null"]);
    assert!(desk.sink_files().is_empty());
}

/// Numbers near [`LONG`] in every type that a double rounds: whole, in cents, and moments.
fn long_columns(numbers: &[i64]) -> [ArrayRef; 3] {
    let cents = Decimal128Array::from_iter_values(numbers.iter().map(|number| i128::from(*number)));
    [
        Arc::new(Int64Array::from(numbers.to_vec())),
        Arc::new(cents.with_precision_and_scale(30, 2).unwrap()),
        Arc::new(TimestampNanosecondArray::from(numbers.to_vec())),
    ]
}

/// The numbers of [`long_columns`], or of a column of small ones.
fn long_numbers(column: &ArrayRef) -> Vec<i64> {
    match column.data_type() {
        DataType::Decimal128(..) => {
            column.as_primitive::<Decimal128Type>().values().iter().map(|digits| *digits as i64).collect()
        }
        DataType::Int32 => {
            column.as_primitive::<Int32Type>().values().iter().map(|number| i64::from(*number)).collect()
        }
        DataType::Timestamp(..) => column.as_primitive::<TimestampNanosecondType>().values().to_vec(),
        _ => column.as_primitive::<Int64Type>().values().to_vec(),
    }
}

/// Both ends of every row of a published column of long numbers.
fn long_ranges(rows: &RecordBatch, column: &str) -> Vec<(i64, i64)> {
    let ranges = rows.column_by_name(column).unwrap().as_struct();
    assert_eq!((ranges.null_count(), ranges.column(0).null_count()), (0, 0));
    long_numbers(ranges.column(0)).into_iter().zip(long_numbers(ranges.column(1))).collect()
}

/// Four ages of nine people with codes in a row, of whom the first five are in. To a double they all have one code, so that
/// ranges which hold the members alone once seemed to hold all nine.
#[test]
fn chances_to_be_in_are_counted_on_long_numbers() {
    let everybody: Vec<i64> = (0..36).map(|person| LONG + person % 9).collect();
    let members: Vec<i64> = (0..20).map(|person| LONG + person % 5).collect();
    let ages =
        |each: i32| Arc::new(Int32Array::from_iter_values((0..4 * each).map(|person| person / each))) as ArrayRef;
    for (kind, public) in long_columns(&everybody).into_iter().enumerate() {
        let name = public.data_type().clone();
        let desk = Desk::with(
            vec![("age", ages(5)), ("code", Arc::clone(&long_columns(&members)[kind]))],
            "privacy = { k = 5, presence = { public = \"public.parquet\", max = 0.9 } }\nmethod.name = \"mpalm\"\n\
             columns.age.role = \"quasi\"\ncolumns.code.role = \"quasi\"\n",
        );
        write_parquet(&desk.path("public.parquet"), &batch(vec![("age", ages(9)), ("code", public)]));
        desk.run(&[]).ok();
        desk.throng("verify", &[]).ok();
        // By the definition: the members among those who fit a class, of which there is one for everybody.
        let rows = desk.released();
        let mut classes: BTreeMap<_, usize> = BTreeMap::new();
        let ages = long_ranges(&rows, "age").into_iter();
        ages.zip(long_ranges(&rows, "code")).for_each(|class| *classes.entry(class).or_default() += 1);
        for ((ages, codes), rows) in &classes {
            let fits = |(person, code): &(usize, &i64)| {
                (ages.0..=ages.1).contains(&((person / 9) as i64)) && (codes.0..=codes.1).contains(*code)
            };
            let people = everybody.iter().enumerate().filter(fits).count();
            assert!(*rows >= 5 && rows * 10 <= people * 9, "{name}: {rows} of {people}");
        }
        // Ranges that end with the last member hold every row as well, and reveal of twenty people that they are in.
        for file in released_files(&desk.path("out")) {
            let rows = read_parquet(&file);
            let (at, _) = rows.schema().column_with_name("code").unwrap();
            let ranges = rows.column(at).as_struct();
            let ends = [LONG, LONG + 4].map(|end| Arc::clone(&long_columns(&vec![end; rows.num_rows()])[kind]));
            let narrow = StructArray::new(ranges.fields().clone(), ends.to_vec(), ranges.nulls().cloned());
            let mut columns = rows.columns().to_vec();
            columns[at] = Arc::new(narrow);
            write_parquet(&file, &RecordBatch::try_new(rows.schema(), columns).unwrap());
        }
        let found = "presence: 20 public people are in the source with a chance above max = 0.9";
        desk.throng("verify", &[]).refused(5, &[found]);
    }
}

/// `ward -> floor` with codes of 18 digits on both sides, all of which a double takes for one. The floors of a zip are two
/// that the next zip has one of, and two more zips have one floor each, so that whoever follows the dependency knows
/// everybody's floor.
#[test]
fn dependencies_are_followed_on_long_numbers() {
    let zip = |row: i64| if row < 600 { row % 40 } else { 40 + row % 2 };
    let floor = |row: i64| if row < 600 { row % 40 % 8 + i64::from(row / 40 < 3) } else { row % 2 * 8 };
    let floors: Vec<i64> = (0..620).map(|row| LONG + floor(row)).collect();
    let wards: Vec<i64> = (0..620).map(|row| LONG - 20 + 2 * floor(row) + (row / 40 + row / 2) % 2).collect();
    let zips: ArrayRef = Arc::new(Int32Array::from_iter_values((0..620).map(|row| zip(row) as i32)));
    for (wards, floors) in long_columns(&wards).into_iter().zip(long_columns(&floors)) {
        let kind = wards.data_type().clone();
        let desk = Desk::with(
            vec![("zip", Arc::clone(&zips)), ("floor", floors), ("ward", wards)],
            "privacy.k = 4\nmethod.name = \"mondrian\"\ndependencies = [{ from = [\"ward\"], to = [\"floor\"] }]\n\
             [columns]\nzip.role = \"quasi\"\nfloor.role = \"quasi\"\nward.role = \"sensitive\"\n",
        );
        desk.run(&[]).ok();
        let rows = desk.released();
        let (wards, floors) = (long_numbers(rows.column_by_name("ward").unwrap()), long_ranges(&rows, "floor"));
        let mut known: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
        for (ward, floor) in wards.iter().zip(&floors) {
            let left = known.entry(*ward).or_insert(*floor);
            *left = (left.0.max(floor.0), left.1.min(floor.1));
        }
        let classes = lines(&rows, &["zip", "floor"].map(str::to_owned));
        let mut crowds = Vec::new();
        for row in 0..rows.num_rows() {
            let floor = LONG + (wards[row] - (LONG - 20)) / 2;
            let fits = |other: &usize| {
                let (low, high) = known[&wards[*other]];
                classes[*other] == classes[row] && (low..=high).contains(&floor)
            };
            crowds.push((0..rows.num_rows()).filter(fits).count());
        }
        let exposed = crowds.iter().filter(|crowd| **crowd < 4).count();
        assert!(exposed > 100, "{kind}: the test wants something to find, and found {exposed}");
        let manifest = manifest(&desk.path("out"));
        let inferred = &manifest["verification"]["inference"];
        assert_eq!(inferred["exposed_rows"], exposed, "{kind}");
        assert_eq!(inferred["smallest"], *crowds.iter().min().unwrap(), "{kind}");
    }
}
