//! `throng verify` against releases that somebody has changed: every change is caught, by the rule it breaks and how
//! often, and no value is quoted. The forger of these tests is a good one: the manifest agrees with the changed files.

use std::fs::{self, File};
use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, AsArray, Date32Array, Decimal256Array, Int32Array, RecordBatch, StringArray, StructArray,
    TimestampMillisecondArray, UInt32Array,
};
use datafusion::arrow::compute::{cast, concat_batches, take_record_batch};
use datafusion::arrow::datatypes::{DataType, Decimal256Type, Int32Type, TimeUnit, i256};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::metadata::KeyValue;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::{Value, json};

use crate::support::{Desk, counts, lines, manifest, read_parquet, released_files, texts, throng, write_parquet};
use crate::tables::{ILLS, JOB, assert_no_values, people};

const ROWS: usize = 240;

/// A release of one file, with three different illnesses in every class.
fn release() -> Desk {
    let rule = "privacy.k = 5\nprivacy.l-diversity = { column = \"ill\", l = 2 }";
    let desk = Desk::with(people(ROWS), &JOB.replace("privacy.k = 5", rule));
    desk.run(&["--partitions", "1"]).ok();
    desk.throng("verify", &[]).ok();
    desk
}

/// Changes the released file and expects `verify` to refuse it: first for its checksum, then, once the manifest has
/// been forged to go with it, for what was done.
fn caught(change: impl Fn(&RecordBatch) -> RecordBatch, findings: &[&str]) {
    let desk = release();
    let sink = desk.path("out");
    let files = released_files(&sink);
    assert_eq!(files.len(), 1);
    let rows = read_parquet(&files[0]);
    let changed = change(&rows);
    assert_ne!(rows, changed, "the test changes something");
    write_parquet(&files[0], &changed);

    let stale = desk.throng("verify", &[]);
    stale.refused(5, &["files: 1 of 1 files are not the ones that were released"]);
    stale.refused(5, findings);
    assert_no_values(&stale.err);

    forge(&desk, |_| ());
    let found = desk.throng("verify", &[]);
    found.refused(5, findings);
    // A changed row mostly stands where its values do not put it, too, and what the manifest counts has changed with it.
    let counted = ["order: ", "classes: ", "manifest: "];
    let said = found.err.lines().skip(1).map(str::trim).filter(|line| !counted.iter().any(|of| line.starts_with(of)));
    let said: Vec<&str> = said.collect();
    assert_eq!(said.len(), findings.len(), "nothing else is wrong: {said:?}");
    assert_no_values(&found.err);
}

/// Writes a manifest that goes with the files of a release as they are now.
fn forge(desk: &Desk, change: impl Fn(&mut Value)) {
    let sink = desk.path("out");
    let mut forged = manifest(&sink);
    if let Some(file) = released_files(&sink).first().filter(|file| file.exists()) {
        let bytes = fs::read(file).unwrap();
        forged["files"][0]["blake3"] = blake3::hash(&bytes).to_hex().to_string().into();
        forged["files"][0]["size"] = bytes.len().into();
        if let Ok(rows) = File::open(file).map_err(ParquetError::from).and_then(SerializedFileReader::new) {
            forged["files"][0]["rows"] = rows.metadata().file_metadata().num_rows().into();
        }
    }
    change(&mut forged);
    let run = forged["run"].as_str().unwrap().to_owned();
    fs::write(sink.join(format!("_manifest/{run}.json")), forged.to_string()).unwrap();
}

fn caught_by_both(desk: &Desk, findings: &[&str]) {
    desk.throng("verify", &[]).refused(5, findings);
    throng(&["verify", &desk.name("out")]).refused(5, findings);
}

#[test]
fn a_file_that_is_not_listed() {
    let desk = release();
    let file = released_files(&desk.path("out")).remove(0);
    fs::copy(desk.path("in.parquet"), file.with_file_name("part-00077-000.parquet")).unwrap();
    caught_by_both(&desk, &["files: 1 files in the folder of the release are not part of it"]);
}

#[test]
fn no_file_is_listed() {
    let desk = release();
    fs::remove_file(released_files(&desk.path("out")).remove(0)).unwrap();
    forge(&desk, |manifest| manifest["files"] = json!([]));
    caught_by_both(&desk, &[&format!("rows: 0 rows are published, {ROWS} should be")]);
}

#[test]
fn a_column_that_is_not_listed() {
    let desk = release();
    let file = released_files(&desk.path("out")).remove(0);
    let rows = read_parquet(&file);
    let ids: ArrayRef = Arc::new(Int32Array::from_iter_values(0..rows.num_rows() as i32));
    let schema = rows.schema();
    let columns = schema.fields().iter().map(|field| field.name().clone()).zip(rows.columns().to_vec());
    let wider = RecordBatch::try_from_iter(columns.chain([("person".to_owned(), ids)])).unwrap();
    write_parquet(&file, &wider);
    forge(&desk, |_| ());
    caught_by_both(&desk, &["columns: 1 columns of the published files are not part of the release"]);
}

/// Readers compute with the length of a footer before they check it.
#[test]
fn a_footer_that_is_longer_than_its_file() {
    let desk = release();
    let file = released_files(&desk.path("out")).remove(0);
    let mut bytes = fs::read(&file).unwrap();
    let end = bytes.len();
    bytes[end - 8..end - 4].copy_from_slice(&u32::MAX.to_le_bytes());
    fs::write(&file, bytes).unwrap();
    forge(&desk, |_| ());
    caught_by_both(&desk, &["its footer claims to be longer than the file"]);
}

/// Rows that are left out and called suppressed.
#[test]
fn more_rows_missing_than_allowed() {
    let desk = release();
    let file = released_files(&desk.path("out")).remove(0);
    let rows = read_parquet(&file);
    let of_row = lines(&rows, &["age".to_owned(), "town".to_owned()]);
    let classes: Vec<String> = counts(of_row.clone()).into_keys().collect();
    let gone = &classes[..classes.len() / 2];
    let kept = chosen(&rows, (0..rows.num_rows()).filter(|row| !gone.contains(&of_row[*row])));
    write_parquet(&file, &kept);
    forge(&desk, |manifest| {
        manifest["rows"] = kept.num_rows().into();
        manifest["files"][0]["rows"] = kept.num_rows().into();
        manifest["suppressed"] = (ROWS - kept.num_rows()).into();
    });
    desk.throng("verify", &[]).refused(5, &["max-suppression: more than a share of"]);
}

/// Pages that cannot be read any more.
#[test]
fn a_damaged_file_is_named() {
    let desk = release();
    let file = released_files(&desk.path("out")).remove(0);
    let name = file.file_name().unwrap().to_string_lossy().into_owned();
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[4..middle].fill(0xA5);
    fs::write(&file, bytes).unwrap();
    let said = "files: 1 of 1 files are not the ones that were released";
    desk.throng("verify", &[]).refused(5, &[said, &name]);
    throng(&["verify", &desk.name("out")]).refused(5, &[said, &name]);
}

/// The batch with one column exchanged.
fn replaced(rows: &RecordBatch, name: &str, array: ArrayRef) -> RecordBatch {
    let mut columns = rows.columns().to_vec();
    columns[rows.schema().index_of(name).unwrap()] = array;
    RecordBatch::try_new(rows.schema(), columns).unwrap()
}

fn chosen(rows: &RecordBatch, keep: impl Iterator<Item = usize>) -> RecordBatch {
    take_record_batch(rows, &UInt32Array::from_iter_values(keep.map(|row| row as u32))).unwrap()
}

/// Rows of a class of exactly `size` rows.
fn class_of(rows: &RecordBatch, size: usize) -> Vec<usize> {
    let of_row = lines(rows, &["age".to_owned(), "town".to_owned()]);
    let (class, _) = counts(of_row.clone()).into_iter().find(|(_, count)| *count == size).unwrap();
    (0..rows.num_rows()).filter(|row| of_row[*row] == class).collect()
}

/// A row of the largest class, whose illness another row of the class has too: without it the class is as diverse as before.
fn crowded(rows: &RecordBatch) -> usize {
    let of_row = lines(rows, &["age".to_owned(), "town".to_owned()]);
    let (class, size) = counts(of_row.clone()).into_iter().max_by_key(|(_, count)| *count).unwrap();
    assert!(size > 5, "the tests need a class that can lose a row");
    let ills = texts(rows, "ill");
    let of_class: Vec<usize> = (0..of_row.len()).filter(|row| of_row[*row] == class).collect();
    let shared = |row: &&usize| of_class.iter().filter(|other| ills[**other] == ills[**row]).count() > 1;
    *of_class.iter().find(shared).expect("six rows share five illnesses")
}

/// What is found when one row stands in the place of another.
const ONE_ROW_REPLACED: [&str; 3] = [
    "truthful: 1 rows of the source were lost or changed",
    "truthful: 1 published rows do not occur in the source",
    "truthful: 1 published rows do not cover the values they were made from",
];

#[test]
fn one_sensitive_value_changed() {
    let change = |rows: &RecordBatch| {
        let row = crowded(rows);
        let mut ills = texts(rows, "ill");
        ills[row] = ILLS.iter().find(|ill| **ill != ills[row]).unwrap().to_string();
        replaced(rows, "ill", Arc::new(StringArray::from(ills)))
    };
    // The row in its place covers nothing that it could have been made from, either.
    caught(change, &ONE_ROW_REPLACED);
}

#[test]
fn variety_taken_away() {
    let change = |rows: &RecordBatch| {
        let class = class_of(rows, 5);
        let mut ills = texts(rows, "ill");
        class.iter().for_each(|row| ills[*row] = ILLS[0].to_owned());
        replaced(rows, "ill", Arc::new(StringArray::from(ills)))
    };
    let desk = release();
    let files = released_files(&desk.path("out"));
    write_parquet(&files[0], &change(&read_parquet(&files[0])));
    let found = desk.throng("verify", &[]);
    found.refused(5, &["l-diversity: 1 classes do not hold enough variety of `ill` (l = 2)", "truthful: "]);
    assert_no_values(&found.err);
}

#[test]
fn row_removed() {
    let change = |rows: &RecordBatch| {
        let gone = crowded(rows);
        chosen(rows, (0..rows.num_rows()).filter(|row| *row != gone))
    };
    caught(
        change,
        &["rows: 239 rows are published, 240 should be", "truthful: 1 rows of the source were lost or changed"],
    );
}

#[test]
fn row_duplicated() {
    let change = |rows: &RecordBatch| {
        let twin = chosen(rows, std::iter::once(7));
        concat_batches(&rows.schema(), [rows, &twin]).unwrap()
    };
    caught(
        change,
        &[
            "rows: 241 rows are published, 240 should be",
            "truthful: 1 published rows do not occur in the source",
            "truthful: 1 published rows do not cover the values they were made from",
        ],
    );
}

#[test]
fn row_replaced_by_a_copy_of_another() {
    let change = |rows: &RecordBatch| {
        let gone = crowded(rows);
        let kept = (0..rows.num_rows()).map(|row| if row == gone { (gone + 40) % ROWS } else { row });
        chosen(rows, kept)
    };
    caught(change, &ONE_ROW_REPLACED);
}

#[test]
fn class_of_k_minus_one() {
    let change = |rows: &RecordBatch| {
        let class = class_of(rows, 5);
        // One row of the class gets a range of its own that covers everything: true, but alone.
        let ages = rows.column_by_name("age").unwrap().as_struct();
        let end = |index: usize, all: i32| -> ArrayRef {
            let old = ages.column(index).as_primitive::<Int32Type>();
            let ends = (0..old.len()).map(|row| if row == class[0] { all } else { old.value(row) });
            Arc::new(Int32Array::from_iter_values(ends))
        };
        let ends = StructArray::new(ages.fields().clone(), vec![end(0, 0), end(1, 9999)], None);
        replaced(rows, "age", Arc::new(ends))
    };
    // The class of four, and the new class of one that cannot hold two illnesses.
    caught(
        change,
        &[
            "k: 2 classes hold fewer than k = 5 rows",
            "l-diversity: 1 classes do not hold enough variety of `ill` (l = 2)",
        ],
    );
}

#[test]
fn range_that_does_not_hold_its_value() {
    let change = |rows: &RecordBatch| {
        let class = class_of(rows, 5);
        let ages = rows.column_by_name("age").unwrap().as_struct();
        let end = |index: usize| -> ArrayRef {
            let old = ages.column(index).as_primitive::<Int32Type>();
            let moved = |row: usize| old.value(row) + if class.contains(&row) { 500 } else { 0 };
            Arc::new(Int32Array::from_iter_values((0..old.len()).map(moved)))
        };
        let ends = StructArray::new(ages.fields().clone(), vec![end(0), end(1)], None);
        replaced(rows, "age", Arc::new(ends))
    };
    caught(
        change,
        &[
            "truthful: 5 published rows do not cover the values they were made from",
            "truthful: 5 rows of the source are not covered by any published row with the same other values",
        ],
    );
}

#[test]
fn label_that_does_not_hold_its_value() {
    let change = |rows: &RecordBatch| {
        let class = class_of(rows, 5);
        let mut towns = texts(rows, "town");
        class.iter().for_each(|row| towns[*row] = "Elsewhere".to_owned());
        replaced(rows, "town", Arc::new(StringArray::from(towns)))
    };
    caught(
        change,
        &[
            "truthful: 5 published rows do not cover the values they were made from",
            "truthful: 5 rows of the source are not covered by any published row with the same other values",
        ],
    );
}

#[test]
fn file_missing_or_garbage() {
    let desk = release();
    let file = &released_files(&desk.path("out"))[0];
    fs::write(file, b"PAR1 is not all there is to it").unwrap();
    let found = desk.throng("verify", &[]);
    assert_eq!(found.code, Some(5), "{found:?}");
    fs::remove_file(file).unwrap();
    desk.throng("verify", &[]).refused(5, &["files: ", "is missing"]);
}

#[test]
fn another_policy_or_source() {
    let desk = release();
    desk.throng("verify", &["--set", "privacy.k=6"]).refused(5, &["policy: ", "another policy"]);
    write_parquet(&desk.path("in.parquet"), &crate::support::batch(people(ROWS + 1)));
    desk.throng("verify", &[]).refused(5, &["source: ", "has changed since the release"]);
}

#[test]
fn sink_alone() {
    let desk = release();
    let sink = desk.name("out");
    let file = &released_files(&desk.path("out"))[0];
    let rows = read_parquet(file);
    let gone = class_of(&rows, 5)[0];
    write_parquet(file, &chosen(&rows, (0..ROWS).filter(|row| *row != gone)));
    let found = crate::support::throng(&["verify", &sink]);
    found.refused(5, &["files: 1 of 1", "rows: 239 rows", "k: 1 classes hold fewer than k = 5 rows"]);
    assert_no_values(&found.err);
}

/// The batch with one column exchanged for one of another type.
fn retyped(rows: &RecordBatch, name: &str, array: ArrayRef) -> RecordBatch {
    let schema = rows.schema();
    let columns = schema.fields().iter().zip(rows.columns()).map(|(field, column)| {
        let column = if field.name() == name { Arc::clone(&array) } else { Arc::clone(column) };
        (field.name().clone(), column, true)
    });
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

/// People with a date and a moment, both kept.
fn dated_release() -> Desk {
    let days: ArrayRef = Arc::new(Date32Array::from_iter_values((0..ROWS as i32).map(|row| 19_000 + row)));
    let moments = TimestampMillisecondArray::from_iter_values((0..ROWS as i64).map(|row| 1_700_000_000_000 + row));
    let mut columns = people(ROWS);
    columns.extend([("day", days), ("moment", Arc::new(moments) as ArrayRef)]);
    let desk = Desk::with(columns, &format!("{JOB}day.role = \"kept\"\nmoment.role = \"kept\"\n"));
    desk.run(&["--partitions", "1"]).ok();
    desk.throng("verify", &[]).ok();
    throng(&["verify", &desk.name("out")]).ok();
    desk
}

/// Values that are the same to a cast are not the same to a reader.
#[test]
fn kept_columns_of_another_type() {
    let desk = dated_release();
    let file = released_files(&desk.path("out")).remove(0);
    let name = file.file_name().unwrap().to_string_lossy().into_owned();
    let (rows, good) = (read_parquet(&file), manifest(&desk.path("out")));
    let types = [
        ("id", DataType::Int32),
        ("id", DataType::Utf8),
        ("day", DataType::Timestamp(TimeUnit::Second, None)),
        ("moment", DataType::Timestamp(TimeUnit::Microsecond, None)),
        ("moment", DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()))),
    ];
    for (column, data_type) in types {
        let array = cast(rows.column_by_name(column).unwrap(), &data_type).unwrap();
        write_parquet(&file, &retyped(&rows, column, array));
        let said = format!(
            "columns: 1 columns have another type than the release promises, starting with `{column}` of `data/"
        );
        forge(&desk, |manifest| manifest["schema"] = good["schema"].clone());
        caught_by_both(&desk, &[&said, &name]);
        // A manifest that says so too agrees with its files, and not with the job.
        forge(&desk, |manifest| manifest["schema"][column] = data_type.to_string().into());
        desk.throng("verify", &[]).refused(5, &[&said, &name, "manifest: its schema is not the job's"]);
        write_parquet(&file, &rows);
    }
}

/// Ranges are structs; readers of them must not meet a text.
#[test]
fn a_range_that_became_a_text() {
    let desk = release();
    let file = released_files(&desk.path("out")).remove(0);
    let name = file.file_name().unwrap().to_string_lossy().into_owned();
    let rows = read_parquet(&file);
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..rows.num_rows()).map(|_| "[1, 2]")));
    write_parquet(&file, &retyped(&rows, "age", texts));
    forge(&desk, |_| ());
    caught_by_both(
        &desk,
        &["columns: 1 columns have another type than the release promises, starting with `age` of `", &name],
    );
    forge(&desk, |manifest| manifest["schema"]["age"] = "Utf8".into());
    let found = desk.throng("verify", &[]);
    found.refused(
        5,
        &["columns: 1 columns have another type than the release promises, starting with `age` of `", &name],
    );
    assert_no_values(&found.err);
}

/// Readers decode the Arrow schema of a footer without looking whether its types exist.
#[test]
fn a_damaged_arrow_schema() {
    let desk = release();
    let file = released_files(&desk.path("out")).remove(0);
    let name = file.file_name().unwrap().to_string_lossy().into_owned();
    let rows = read_parquet(&file);
    let write = |schema: String| {
        let properties = WriterProperties::builder()
            .set_key_value_metadata(Some(vec![KeyValue::new("ARROW:schema".to_owned(), schema)]))
            .build();
        let options = datafusion::parquet::arrow::arrow_writer::ArrowWriterOptions::new()
            .with_properties(properties)
            .with_skip_arrow_metadata(true);
        let mut writer =
            ArrowWriter::try_new_with_options(File::create(&file).unwrap(), rows.schema(), options).unwrap();
        writer.write(&rows).unwrap();
        writer.close().unwrap();
        forge(&desk, |_| ());
    };
    write("no schema at all".to_owned());
    caught_by_both(&desk, &["files: ", &name, "the Arrow schema cannot be decoded"]);
    // `id` is the only column of 64 bits; nobody has heard of numbers of 7.
    let good = from_base64(&datafusion::parquet::arrow::encode_arrow_schema(&rows.schema()));
    write(to_base64(&good));
    desk.throng("verify", &[]).ok();
    let widths = good.windows(4).enumerate().filter(|(_, bytes)| **bytes == 64_u32.to_le_bytes());
    let mut named = 0;
    for (width, _) in widths {
        let mut damaged = good.clone();
        damaged[width] = 7;
        write(to_base64(&damaged));
        caught_by_both(&desk, &["files: ", &name, "cannot be decoded"]);
        named +=
            usize::from(desk.throng("verify", &[]).err.contains("the Arrow type of column `id` cannot be decoded"));
    }
    assert_eq!(named, 1);
}

const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn from_base64(text: &str) -> Vec<u8> {
    let digit = |digit: &u8| DIGITS.iter().position(|known| known == digit).unwrap() as u32;
    let fours = text.trim_end_matches('=').as_bytes().chunks(4);
    let bytes = fours.flat_map(|four| {
        let bits = four.iter().fold(0, |bits, of| bits << 6 | digit(of)) << (6 * (4 - four.len()));
        bits.to_be_bytes()[1..four.len()].to_vec()
    });
    bytes.collect()
}

fn to_base64(bytes: &[u8]) -> String {
    let threes = bytes.chunks(3).map(|three| {
        let bits = (0..3).fold(0, |bits, at| bits << 8 | u32::from(three.get(at).copied().unwrap_or(0)));
        let digit = |at: usize| DIGITS[(bits >> (18 - 6 * at) & 63) as usize] as char;
        (0..4).map(|at| if at <= three.len() { digit(at) } else { '=' }).collect::<String>()
    });
    threes.collect()
}

/// What the manifest says is held against the files, against itself and against the job.
#[test]
fn edits_of_the_manifest() {
    let desk = release();
    let good = manifest(&desk.path("out"));
    type Edit = (&'static str, fn(&mut Value), &'static [&'static str], &'static [&'static str]);
    // What is changed, what the files and the manifest itself say of it, and what the job does.
    let edits: [Edit; 20] = [
        (
            "k",
            |m| m["k"] = 3.into(),
            &["record another `throng.k`", "its k is not that of the rules"],
            &["its k is not"],
        ),
        (
            "k and its rule",
            |m| (m["k"], m["verification"]["rules"][0]["parameters"]["k"]) = (3.into(), 3.0.into()),
            &["record another `throng.k`"],
            &["manifest: its k is not the job's", "its list of rules is not the job's"],
        ),
        (
            "a rule less",
            |m| m["verification"]["rules"].as_array_mut().unwrap().truncate(1),
            &[],
            &["manifest: its list of rules is not the job's"],
        ),
        (
            "a looser rule",
            |m| m["verification"]["rules"][1]["parameters"]["l"] = 1.0.into(),
            &[],
            &["manifest: its list of rules is not the job's"],
        ),
        (
            "better figures",
            |m| m["verification"]["attained"]["ill"]["l"] = 9.into(),
            &["what it says is attained of a rule"],
            &["manifest: 1 sensitive columns are not protected as the manifest says"],
        ),
        (
            "better figures and a better rule",
            |m| {
                m["verification"]["attained"]["ill"]["l"] = 9.into();
                m["verification"]["rules"][1]["attained"]["l"] = 9.0.into();
            },
            &[],
            &["manifest: 1 sensitive columns are not protected as the manifest says"],
        ),
        (
            "no figures",
            |m| {
                m["verification"]["attained"] = json!({});
                m["verification"]["rules"][1].as_object_mut().unwrap().remove("attained");
            },
            &[],
            &["manifest: 1 sensitive columns are not protected as the manifest says"],
        ),
        ("checksum", |m| m["files"][0]["blake3"] = "00".into(), &["files: 1 of 1 files are not the ones"], &[]),
        (
            "rows of a file",
            |m| m["files"][0]["rows"] = 239.into(),
            &["files: 1 files have other rows or bytes", "the rows of its files are not the rows"],
            &[],
        ),
        ("bytes of a file", |m| m["files"][0]["size"] = 7.into(), &["files: 1 files have other rows or bytes"], &[]),
        (
            "rows",
            |m| m["rows"] = 239.into(),
            &[
                "rows: 240 rows are published, 239 should be",
                "suppressed rows do not add up to the rows that were read",
            ],
            &[],
        ),
        (
            "rows read",
            |m| (m["rows_read"], m["suppressed"]) = (250.into(), 10.into()),
            &[],
            &["rows: the source has 240 rows, but the manifest says 250"],
        ),
        (
            "classes",
            |m| m["verification"]["classes"]["smallest"] = 9.into(),
            &["classes: the published classes are not those counted in the manifest"],
            &[],
        ),
        ("method", |m| m["method"] = "toc".into(), &[], &["manifest: its method is not the job's"]),
        (
            "form",
            |m| m["form"] = "bucketise".into(),
            &["its form does not fit its classes and slices"],
            &["manifest: its form is not the job's"],
        ),
        (
            "tables",
            |m| m["form"] = "anatomy".into(),
            &["its form has another number of tables than the release"],
            &["manifest: its form is not the job's"],
        ),
        (
            "seed",
            |m| m["seed"] = Value::Null,
            &["its seed and its warnings contradict each other"],
            &["manifest: its seed is not the job's"],
        ),
        ("policy", |m| m["policy"] = "00".into(), &["record another `throng.policy`"], &["policy: "]),
        (
            "class columns",
            |m| m["class_columns"] = json!(["town"]),
            &["classes: "],
            &["manifest: its list of class columns is not the job's"],
        ),
        ("roles", |m| m["roles"]["ill"] = "kept".into(), &[], &["manifest: its list of roles is not the job's"]),
    ];
    for (what, edit, by_files, by_job) in edits {
        let mut forged = good.clone();
        edit(&mut forged);
        assert_ne!(forged, good, "{what}");
        let run = good["run"].as_str().unwrap();
        fs::write(desk.path("out").join(format!("_manifest/{run}.json")), forged.to_string()).unwrap();
        let (alone, whole) = (throng(&["verify", &desk.name("out")]), desk.throng("verify", &[]));
        match by_files {
            [] => assert_eq!(alone.code, Some(0), "{what}: only the job can say so, or a signature: {alone:?}"),
            _ => alone.refused(5, by_files),
        }
        whole.refused(5, by_files);
        whole.refused(5, by_job);
        assert_no_values(&whole.err);
    }
}

/// A class within one day is published as that day, whatever the hours of its rows.
#[test]
fn days_of_moments_are_no_lie() {
    let hours = |row: i64| 1_709_251_200_000 + row / 30 * 86_400_000 + row % 30 * 2_000_000;
    let moments = TimestampMillisecondArray::from_iter_values((0..ROWS as i64).map(hours));
    let ill = people(ROWS).remove(3);
    let columns = vec![("moment", Arc::new(moments) as ArrayRef), ill];
    let job = "privacy.k = 5\n[columns]\nmoment = { role = \"quasi\", hierarchy = { calendar = [\"day\", \"month\"] } }\n\
               ill.role = \"sensitive\"\n";
    let desk = Desk::with(columns, job);
    desk.run(&["--partitions", "1"]).ok();
    let file = released_files(&desk.path("out")).remove(0);
    let rows = read_parquet(&file);
    let labels = texts(&rows, "moment");
    assert!(labels.iter().any(|label| label.len() == 10), "some classes are days: {labels:?}");
    desk.throng("verify", &[]).ok();
    // Another day is one.
    let moved: Vec<String> = labels.iter().map(|label| label.replace("2024-03-01", "2024-02-01")).collect();
    assert_ne!(moved, labels);
    write_parquet(&file, &replaced(&rows, "moment", Arc::new(StringArray::from(moved))));
    forge(&desk, |_| ());
    desk.throng("verify", &[]).refused(5, &["truthful: "]);
}

/// Numbers of more digits than 128 bits hold, as a quasi-identifier and as a guarded value.
#[test]
fn decimals_of_more_than_38_digits() {
    let huge = i256::from_string("1234567890123456789012345678901234567890123456789012345678").unwrap();
    let numbers = |of: &dyn Fn(i128) -> i256| -> ArrayRef {
        let values = (0..ROWS as i128).map(of);
        Arc::new(Decimal256Array::from_iter_values(values).with_precision_and_scale(60, 2).unwrap())
    };
    let pay = numbers(&|row| huge.wrapping_mul(i256::from_i128(1 + row * 7 % 53)));
    let columns = vec![("pay", pay), ("debt", numbers(&|row| huge.wrapping_add(i256::from_i128(row % 3))))];
    let job = "privacy.k = 5\nprivacy.l-diversity = { column = \"debt\", l = 2 }\n\
               privacy.t-closeness = { column = \"debt\", t = 0.3 }\n[columns]\npay.role = \"quasi\"\n\
               debt.role = \"sensitive\"\n";
    let desk = Desk::with(columns, job);
    desk.run(&["--partitions", "1"]).ok();
    desk.throng("verify", &[]).ok();
    let file = released_files(&desk.path("out")).remove(0);
    let rows = read_parquet(&file);
    // One class is left with one value: by a digit that neither floating point nor 128 bits can show.
    let debts = rows.column_by_name("debt").unwrap().as_primitive::<Decimal256Type>();
    let class = lines(&rows, &["pay".to_owned()]);
    let alone = (0..ROWS).map(|row| if class[row] == class[0] { debts.value(0) } else { debts.value(row) });
    let alone = Decimal256Array::from_iter_values(alone).with_precision_and_scale(60, 2).unwrap();
    write_parquet(&file, &replaced(&rows, "debt", Arc::new(alone)));
    forge(&desk, |_| ());
    let found = desk.throng("verify", &[]);
    found.refused(5, &["l-diversity: 1 classes", "t-closeness: 1 classes", "truthful: "]);
    // Ranges that end one hundredth too early.
    let pays = rows.column_by_name("pay").unwrap().as_struct();
    let ends = pays.column(1).as_primitive::<Decimal256Type>();
    let early = ends.values().iter().map(|end| end.wrapping_sub(i256::ONE));
    let early = Decimal256Array::from_iter_values(early).with_precision_and_scale(60, 2).unwrap();
    let ranges = StructArray::new(pays.fields().clone(), vec![Arc::clone(pays.column(0)), Arc::new(early)], None);
    write_parquet(&file, &replaced(&rows, "pay", Arc::new(ranges)));
    forge(&desk, |_| ());
    desk.throng("verify", &[]).refused(5, &["truthful: "]);
}
