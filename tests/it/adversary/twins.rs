//! Twins: two sources that publish the same rows, under the same key, give the same bytes.
//!
//! That is the definition of a release that tells nothing but its rows: files, manifest, summary and page are a function of
//! the published rows and the key. So everything else about a source is changed, one thing at a time: its identifiers, the
//! order of its rows, its files, the dictionaries of its columns, and values that lie inside of what their class publishes.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, AsArray, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray, UInt32Array,
};
use datafusion::arrow::compute::{concat_batches, take_record_batch};
use datafusion::arrow::datatypes::{Int8Type, Int32Type};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::Compression;
use datafusion::parquet::file::properties::WriterProperties;
use serde_json::Value as Json;

use super::publication::Publication;
use crate::support::{Desk, batch, manifest, multiset, read_parquet, released_files};

pub const ROWS: usize = 900;

const ILLS: [&str; 5] = ["cold", "flu", "gout", "mumps", "rash"];

/// A sink of its own for every twin, a seed for the key, and whatever a summary may tell.
const JOB: &str = "version = 1
source.url = \"in\"
sink.url = \"out\"
privacy.k = 5
[columns]
name.role = \"identifier\"
age.role = \"quasi\"
pay.role = \"quasi\"
town.role = \"quasi\"
zip = { role = \"quasi\", hierarchy.mask = \"right\" }
size = { role = \"quasi\", hierarchy.widths = [10, 50] }
ill.role = \"sensitive\"
ward.role = \"kept\"
[method]
seed = 11
";

/// How a source lies in its folder.
#[derive(Clone, Copy, PartialEq)]
pub enum Files {
    One,
    Five,
}

pub fn people() -> RecordBatch {
    let mut rng = fastrand::Rng::with_seed(4);
    let mut ints = |from: i32, to: i32| -> ArrayRef {
        Arc::new(Int32Array::from_iter_values((0..ROWS).map(|_| rng.i32(from..to))))
    };
    let (age, size) = (ints(18, 90), ints(0, 200));
    let pay: ArrayRef = Arc::new(Int64Array::from_iter_values((0..ROWS).map(|_| rng.i64(1_000..9_000) * 10)));
    let mut words = |words: &[String]| -> ArrayRef {
        Arc::new(StringArray::from_iter_values((0..ROWS).map(|_| &words[rng.usize(..words.len())])))
    };
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    let zips: Vec<String> = (0..60).map(|zip| format!("{}", 1_000 + zip * 37)).collect();
    let (town, zip, ill) = (words(&names(&["ash", "birch", "elm", "oak"])), words(&zips), words(&names(&ILLS)));
    let name: ArrayRef = Arc::new(StringArray::from_iter_values((0..ROWS).map(|row| format!("Person {row}"))));
    let keys = (0..ROWS).map(|row| (row % 7 > 0).then_some((row % 3) as i8));
    let ward: ArrayRef = Arc::new(wards(keys.collect(), &["east", "north", "west"]));
    batch(vec![
        ("name", name),
        ("age", age),
        ("pay", pay),
        ("town", town),
        ("zip", zip),
        ("size", size),
        ("ill", ill),
        ("ward", ward),
    ])
}

fn wards(keys: Vec<Option<i8>>, names: &[&str]) -> DictionaryArray<Int8Type> {
    DictionaryArray::new(keys.into(), Arc::new(StringArray::from(names.to_vec())))
}

/// The same rows with another column.
pub fn with(rows: &RecordBatch, name: &str, array: ArrayRef) -> RecordBatch {
    let mut columns = rows.columns().to_vec();
    columns[rows.schema().index_of(name).unwrap()] = array;
    RecordBatch::try_new(rows.schema(), columns).unwrap()
}

/// The source in a folder, always as if it had been written at the same moment.
fn write(desk: &Desk, rows: &RecordBatch, files: Files) {
    let folder = desk.path("in");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).unwrap();
    let parts = if files == Files::One { 1 } else { 5 };
    for part in 0..parts {
        let properties = match files {
            Files::One => WriterProperties::builder(),
            Files::Five => WriterProperties::builder()
                .set_compression(Compression::SNAPPY)
                .set_dictionary_enabled(false)
                .set_max_row_group_row_count(Some(40)),
        };
        let (from, to) = (ROWS * part / parts, ROWS * (part + 1) / parts);
        let file = File::create(folder.join(format!("{part}.parquet"))).unwrap();
        let mut writer = ArrowWriter::try_new(file, rows.schema(), Some(properties.build())).unwrap();
        writer.write(&rows.slice(from, to - from)).unwrap();
        writer.close().unwrap();
    }
}

/// Everything that leaves of a release.
pub struct Left {
    /// Bytes of every file by its name below the folder of the release.
    files: BTreeMap<PathBuf, Vec<u8>>,
    /// Every leaf of the manifest by its path, but what names this run, this moment and the files of the source.
    pub figures: BTreeMap<String, Json>,
    /// The published rows, in no order.
    pub rows: Vec<String>,
}

fn leaves(value: &Json, path: &str, found: &mut BTreeMap<String, Json>) {
    match value {
        Json::Array(items) => {
            items.iter().enumerate().for_each(|(at, item)| leaves(item, &format!("{path}/{at}"), found));
        }
        Json::Object(fields) => {
            fields.iter().for_each(|(name, field)| leaves(field, &format!("{path}/{name}"), found));
        }
        leaf => {
            found.insert(path.to_owned(), leaf.clone());
        }
    }
}

impl Left {
    /// What leaves when a source is published.
    pub fn of(desk: &Desk, rows: &RecordBatch, files: Files, settings: &[&str]) -> Self {
        write(desk, rows, files);
        let sink = desk.path("out");
        let _ = fs::remove_dir_all(&sink);
        let mut arguments = vec!["--quiet", "--run-id", "one", "--partitions", "4", "--cell-rows", "300"];
        settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
        desk.run(&arguments).ok();
        let below = |path: &Path| -> PathBuf { path.strip_prefix(&sink).unwrap().iter().skip(2).collect() };
        let paths = released_files(&sink);
        let files = paths.iter().map(|path| (below(path), fs::read(path).unwrap())).collect();
        let mut figures = BTreeMap::new();
        let mut manifest = manifest(&sink);
        for file in manifest["files"].as_array_mut().unwrap() {
            let path = below(&sink.join(file["path"].as_str().unwrap()));
            file["path"] = path.to_str().unwrap().into();
        }
        for name in ["committed", "data", "snapshot"] {
            manifest.as_object_mut().unwrap().remove(name);
        }
        leaves(&manifest, "", &mut figures);
        let pieces: Vec<RecordBatch> = paths.iter().map(|path| read_parquet(path)).collect();
        // Two tables have rows of two kinds.
        let of_one = |rows: &&RecordBatch| rows.schema() == pieces[0].schema();
        let alike: Vec<&RecordBatch> = pieces.iter().filter(of_one).collect();
        let rows = multiset(&concat_batches(&pieces[0].schema(), alike).unwrap());
        Self { files, figures, rows }
    }

    /// In what a twin differs.
    pub fn differences(&self, twin: &Self) -> Vec<String> {
        let names = self.files.keys().chain(twin.files.keys());
        let files = names.filter(|name| self.files.get(*name) != twin.files.get(*name));
        let paths = self.figures.keys().chain(twin.figures.keys());
        let figures = paths.filter(|path| self.figures.get(*path) != twin.figures.get(*path));
        let reported = files.map(|name| format!("file {}", name.display())).chain(figures.cloned());
        reported.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
    }
}

/// The source with one value of a column moved to another one inside the range that its class publishes.
fn moved_inside(rows: &RecordBatch, publication: &Publication, rng: &mut fastrand::Rng) -> Option<RecordBatch> {
    let ages = rows.column_by_name("age").unwrap().as_primitive::<Int32Type>();
    let piece = &publication.pieces[rng.usize(..publication.pieces.len())].rows;
    let ranges = piece.column_by_name("age").unwrap().as_struct();
    let end = |name: &str| ranges.column_by_name(name).unwrap().as_primitive::<Int32Type>().clone();
    let at = rng.usize(..piece.num_rows());
    let (low, high) = (end("min").value(at), end("max").value(at));
    let inside: Vec<usize> = (0..ROWS).filter(|&row| (low + 1..high).contains(&ages.value(row))).collect();
    let person = *inside.get(rng.usize(..inside.len().max(1)))?;
    let new = rng.i32(low + 1..high);
    let moved = ages.iter().enumerate().map(|(row, age)| if row == person { Some(new) } else { age });
    (new != ages.value(person)).then(|| with(rows, "age", Arc::new(moved.collect::<Int32Array>())))
}

/// Methods and forms, each with what it needs.
const RELEASES: [&[&str]; 4] = [
    &["method.name=\"mondrian\""],
    &["method.name=\"auto\"", "method.auto.effort=\"fast\""],
    &["method.name=\"mondrian\"", "method.form=\"anatomy\""],
    &["method.name=\"k-members\"", "method.form=\"bucketise\""],
];

#[test]
fn what_is_not_published_of_a_source_leaves_no_trace() {
    let desk = Desk::new();
    desk.write("job.toml", JOB);
    let rows = people();
    let mut order: Vec<u32> = (0..ROWS as u32).collect();
    fastrand::Rng::with_seed(8).shuffle(&mut order);
    let shuffled = take_record_batch(&rows, &UInt32Array::from(order)).unwrap();
    let long: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..ROWS).map(|row| format!("{row}{}", "x".repeat(row)))));
    let keys = rows.column_by_name("ward").unwrap().as_dictionary::<Int8Type>();
    let turned = keys.keys().iter().map(|key| key.map(|key| 3 - key)).collect();
    let padded: ArrayRef = Arc::new(wards(turned, &["nobody's", "west", "north", "east", "nobody's either"]));
    let twins = [
        ("rows in another order", shuffled.clone(), Files::One),
        ("five files", rows.clone(), Files::Five),
        ("rows in another order and five files", shuffled, Files::Five),
        ("other identifiers", with(&rows, "name", long), Files::One),
        ("another dictionary", with(&rows, "ward", padded), Files::One),
    ];
    let (mut compared, mut found) = (0, Vec::new());
    for settings in RELEASES {
        let left = Left::of(&desk, &rows, Files::One, settings);
        for (name, twin, files) in &twins {
            let twin = Left::of(&desk, twin, *files, settings);
            assert!(left.rows == twin.rows, "{settings:?}, {name}: not a twin");
            compared += 1;
            let differences = left.differences(&twin);
            if !differences.is_empty() {
                found.push(format!("{settings:?}, {name}: {}", differences.join(", ")));
            }
        }
    }
    println!("twins: {compared} pairs of sources that publish the same rows, {} told apart", found.len());
    assert!(found.is_empty(), "bytes tell of what is not published:\n{}", found.join("\n"));
}

/// Somebody who knows every raw value but one, and tries each that the published range allows, learns nothing.
#[test]
fn values_inside_a_published_range_cannot_be_told_apart() {
    let desk = Desk::new();
    desk.write("job.toml", JOB);
    let rows = people();
    let settings = RELEASES[0];
    let left = Left::of(&desk, &rows, Files::One, settings);
    let publication = Publication::open(&desk.path("out"));
    let mut rng = fastrand::Rng::with_seed(21);
    let (mut compared, mut apart, mut by) = (0, 0, BTreeMap::<String, usize>::new());
    for _ in 0..400 {
        if compared == 40 {
            break;
        }
        let Some(twin) = moved_inside(&rows, &publication, &mut rng) else { continue };
        let twin = Left::of(&desk, &twin, Files::One, settings);
        if twin.rows != left.rows {
            continue;
        }
        compared += 1;
        let differences = left.differences(&twin);
        apart += usize::from(!differences.is_empty());
        differences.into_iter().for_each(|name| *by.entry(name).or_default() += 1);
    }
    println!("twins: {compared} pairs that differ in one value inside its class, {apart} told apart by {by:?}");
    assert!(compared >= 20, "{compared} twins");
    assert_eq!(apart, 0, "one raw value shows by {by:?}");
}
