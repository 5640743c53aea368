//! The loss of releases by the measure that other tools were measured with, beside their figures.
//!
//! `cargo bench --features cli --bench peers -- [ROWS...]`, for example `-- 300000 1000000`. Every release is read back and joined with
//! its source by a kept number of the row; what it lost is computed from these pairs alone:
//!
//! - *published*: of the original values that share a published value, for numbers the span against that of the column,
//!   for categories how many there are beside one, against those of the column; `*` is 1. The mean of all rows and
//!   quasi-identifiers.
//! - *classes*: the same inside each class, whatever was published: what the grouping alone permits.
//!
//! First UCI Adult, the file that the other tools were given, too. Then, for every number of ROWS, a stand-in for a file
//! that is not at hand: rows of Adult drawn with replacement, one value in five drawn anew from its column.

#![allow(
    missing_docs,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a bench"
)]

mod support;

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytesize::ByteSize;
use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, UInt32Array};
use datafusion::arrow::compute::{cast, concat_batches, take};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use support::{forget_peak, peak_memory, timed};
use throng::{Job, Manifest, Outcome, Run, RunOptions};

/// The quasi-identifiers of Adult; the first is a number.
const QUASI: [&str; 8] =
    ["age", "workclass", "education", "marital-status", "occupation", "race", "sex", "native-country"];

/// Values of the stand-in that are drawn anew.
const REDRAWN: f64 = 0.2;

/// What was measured of other tools on Adult, k = 10: classes, NCP published, NCP of classes, in percent.
const ON_ADULT: [(&str, &str, &str, &str); 4] = [
    ("ARX 3.9.2 local, 0.05", "2072", "9.8", "6.4"),
    ("ARX 3.9.2 local, 1/100", "2289", "8.4", "5.2"),
    ("ARX 3.9.2 local, 1/1000, 21 suppressed", "2378", "8.0", "5.0"),
    ("mosaicrown, sets and ranges", "2004", "5.0", "5.0"),
];

/// The same on another file that was made from Adult, by its rows.
const ON_SCALED: [(usize, &str, &str, &str, &str); 4] = [
    (300_000, "ARX local, 1/100 (its file)", "18476", "4.2", "2.7"),
    (300_000, "mosaicrown, Spark (its file)", "14883", "3.0", "3.0"),
    (1_000_000, "ARX local, 0.05 (its file)", "31012", "3.3", "2.5"),
    (1_000_000, "ARX local, 1/100 (its file)", "36411", "2.4", "1.8"),
];

const EFFORTS: [&str; 4] = ["fast", "balanced", "thorough", "best"];

fn main() {
    throng::internals::set_up();
    let arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let sizes: Vec<usize> = arguments.map(|rows| rows.parse().expect("ROWS are numbers")).collect();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let folder = std::env::temp_dir().join("throng-bench");
    std::fs::create_dir_all(&folder).expect("the bench folder");
    let pipelines = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("pipelines");
    let job = std::fs::read_to_string(pipelines.join("adult.toml")).expect("pipelines/adult.toml");
    // Without a hierarchy, categories are published as sets.
    let sets: String = job.lines().map(|line| without_hierarchy(line) + "\n").collect();

    let path = pipelines.join("data/adult.parquet");
    let adult = read(std::slice::from_ref(&path));
    heading("UCI Adult, k = 10", adult.num_rows());
    for (name, classes, published, within) in ON_ADULT {
        println!("{name:<40} {classes:>8} {published:>10} {within:>9}");
    }
    let compare = |text: &str, source: &Path, rows: &RecordBatch, what: &str| {
        for effort in EFFORTS {
            let sink = folder.join("sink-peers");
            std::fs::remove_dir_all(&sink).ok();
            forget_peak();
            let (manifest, cpu, wall) =
                timed(|| runtime.block_on(release(text, &pipelines, source, &sink, &[("method.auto.effort", effort)])));
            let peak = peak_memory();
            let files: Vec<PathBuf> = manifest.files.iter().map(|file| sink.join(&file.path)).collect();
            let found = Losses::of(rows, &read(&files));
            assert_eq!(found.rows as u64, manifest.rows, "every published row has been found in the source");
            println!(
                "{:<40} {:>8} {:>10.2} {:>9.2} {:>8.2} {:>8.2} {:>10}",
                format!("auto {effort}{what}"),
                found.classes,
                found.published * 100.0,
                found.within * 100.0,
                cpu.as_secs_f64(),
                wall.as_secs_f64(),
                ByteSize(peak).to_string(),
            );
            std::fs::remove_dir_all(&sink).ok();
        }
    };
    compare(&job, &path, &adult, "");
    compare(&sets, &path, &adult, ", sets and ranges");

    for size in sizes {
        let path = folder.join(format!("adult-{size}.parquet"));
        let rows = stand_in(&adult, size);
        write(&path, &rows);
        heading("a stand-in made from Adult, k = 10", size);
        for (_, name, classes, published, within) in ON_SCALED.into_iter().filter(|line| line.0 == size) {
            println!("{name:<40} {classes:>8} {published:>10} {within:>9}");
        }
        compare(&job, &path, &rows, "");
        compare(&sets, &path, &rows, ", sets and ranges");
        std::fs::remove_file(&path).ok();
    }
}

fn heading(what: &str, rows: usize) {
    println!("\n{what}, {rows} rows; NCP in percent");
    println!(
        "{:<40} {:>8} {:>10} {:>9} {:>8} {:>8} {:>10}",
        "", "classes", "published", "classes", "CPU s", "wall s", "peak"
    );
}

/// A line of the job without the hierarchy that it names.
fn without_hierarchy(line: &str) -> String {
    match line.split_once(", hierarchy = ") {
        Some((column, _)) => format!("{column} }}"),
        None => line.to_owned(),
    }
}

/// Runs the job on a source, with the number of every row kept.
async fn release(text: &str, base: &Path, source: &Path, sink: &Path, settings: &[(&str, &str)]) -> Manifest {
    let (source, sink) = (source.to_string_lossy(), sink.to_string_lossy());
    let mut all = vec![("source.url", &*source), ("sink.url", &*sink), ("columns.id.role", "kept")];
    all.extend_from_slice(settings);
    let job = Job::parse_with(text, Path::new("adult.toml"), &all).expect("a job");
    let run = Run::new(job, base, RunOptions::default()).expect("a run");
    match run.execute(&|_, _, _| {}).await.expect("a release") {
        Outcome::Released(manifest, _) => *manifest,
        _ => panic!("the sink is new"),
    }
}

/// All rows of some Parquet files.
fn read(paths: &[PathBuf]) -> RecordBatch {
    let mut parts = Vec::new();
    for path in paths {
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
        parts.extend(reader.build().unwrap().map(Result::unwrap));
    }
    concat_batches(&parts[0].schema(), &parts).unwrap()
}

fn write(path: &Path, rows: &RecordBatch) {
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), rows.schema(), None).unwrap();
    writer.write(rows).unwrap();
    writer.close().unwrap();
}

/// Rows of a table drawn with replacement; some of their quasi-identifiers are drawn anew, each from its own column.
fn stand_in(rows: &RecordBatch, size: usize) -> RecordBatch {
    let mut rng = fastrand::Rng::with_seed(1);
    let mut draws: Vec<Vec<u32>> = vec![Vec::with_capacity(size); rows.num_columns()];
    for _ in 0..size {
        let row = rng.u32(0..rows.num_rows() as u32);
        for (draw, field) in draws.iter_mut().zip(rows.schema().fields()) {
            let anew = QUASI.contains(&field.name().as_str()) && rng.f64() < REDRAWN;
            draw.push(if anew { rng.u32(0..rows.num_rows() as u32) } else { row });
        }
    }
    let schema = rows.schema();
    let columns = rows.columns().iter().zip(draws).zip(schema.fields()).map(|((column, draw), field)| {
        if field.name() == "id" {
            return cast(&Int64Array::from_iter_values(0..size as i64), field.data_type()).unwrap();
        }
        take(column, &UInt32Array::from(draw), None).unwrap()
    });
    let columns: Vec<ArrayRef> = columns.collect();
    RecordBatch::try_new(Arc::clone(&schema), columns).unwrap()
}

/// What a release has lost, in shares.
struct Losses {
    rows: usize,
    classes: usize,
    published: f64,
    within: f64,
}

impl Losses {
    fn of(source: &RecordBatch, released: &RecordBatch) -> Self {
        let places: HashMap<i64, usize> = ids(source).into_iter().zip(0..).collect();
        let origin: Vec<usize> = ids(released).iter().map(|id| places[id]).collect();
        assert_eq!(origin.iter().collect::<HashSet<_>>().len(), origin.len(), "no row is published twice");
        let labels: Vec<(Vec<u32>, Vec<String>)> = QUASI.iter().map(|name| numbered(released, name)).collect();
        let mut numbers: HashMap<Vec<u32>, u32> = HashMap::new();
        let class: Vec<u32> = (0..origin.len())
            .map(|row| {
                let next = numbers.len() as u32;
                *numbers.entry(labels.iter().map(|(label, _)| label[row]).collect()).or_insert(next)
            })
            .collect();
        let (mut published, mut within) = (0.0, 0.0);
        for (name, (label, names)) in QUASI.iter().zip(&labels) {
            // Positions of numbers, and numbers of categories.
            let all: Vec<i64> = match *name {
                "age" => integers(source, name),
                _ => numbered(source, name).0.into_iter().map(i64::from).collect(),
            };
            let values: Vec<i64> = origin.iter().map(|&row| all[row]).collect();
            let is_number = *name == "age";
            published += mean_loss(&all, &values, label, is_number, |label| names[label as usize] == "*");
            within += mean_loss(&all, &values, &class, is_number, |_| false);
        }
        let columns = QUASI.len() as f64;
        Self { rows: origin.len(), classes: numbers.len(), published: published / columns, within: within / columns }
    }
}

/// The mean loss of rows whose values share a group with others, against all values of the column.
fn mean_loss(all: &[i64], values: &[i64], groups: &[u32], is_number: bool, is_lost: impl Fn(u32) -> bool) -> f64 {
    let spread = |values: &mut Vec<i64>| {
        values.sort_unstable();
        values.dedup();
        match values[..] {
            [least, .., most] if is_number => (most - least) as f64,
            _ => (values.len() - 1) as f64,
        }
    };
    let domain = spread(&mut all.to_vec());
    let mut shared: HashMap<u32, Vec<i64>> = HashMap::new();
    for (&group, &value) in groups.iter().zip(values) {
        shared.entry(group).or_default().push(value);
    }
    let losses = shared.into_iter().map(|(group, mut values)| {
        let rows = values.len() as f64;
        rows * if is_lost(group) { 1.0 } else { spread(&mut values) / domain }
    });
    losses.sum::<f64>() / values.len() as f64
}

fn ids(rows: &RecordBatch) -> Vec<i64> {
    integers(rows, "id")
}

fn integers(rows: &RecordBatch, name: &str) -> Vec<i64> {
    let column = cast(rows.column_by_name(name).expect("a column"), &DataType::Int64).unwrap();
    column.as_primitive::<Int64Type>().values().to_vec()
}

/// The values of a column as text, numbered in the order of their first row.
fn numbered(rows: &RecordBatch, name: &str) -> (Vec<u32>, Vec<String>) {
    let options = FormatOptions::default().with_null("null");
    let formatter = ArrayFormatter::try_new(rows.column_by_name(name).expect("a column"), &options).unwrap();
    let (mut known, mut names): (HashMap<String, u32>, Vec<String>) = (HashMap::new(), Vec::new());
    let numbers = (0..rows.num_rows())
        .map(|row| {
            let text = formatter.value(row).to_string();
            *known.entry(text.clone()).or_insert_with(|| {
                names.push(text);
                names.len() as u32 - 1
            })
        })
        .collect();
    (numbers, names)
}
