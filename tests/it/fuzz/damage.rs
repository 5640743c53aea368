//! Damaged input: bytes of Parquet files, keys of job files, lines of hierarchies. Most of it gets past the first look, and
//! none of it may end in anything but a documented exit code; what is released all the same is sound.

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File};
use std::path::Path;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::concat_batches;
use datafusion::parquet::arrow::ProjectionMask;
use datafusion::parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::metadata::PageIndexPolicy;
use fastrand::Rng;
use toml::{Table, Value};

use super::case::{Case, Treat};
use super::quasi::Published;
use super::{check, documented, keep_failing, run};
use crate::adversary::publication::Publication;
use crate::adversary::values::rows;
use crate::support::{Desk, files, throng};

/// Changes a Parquet file where it hurts: a length, the footer, a page, the end.
fn damage_parquet(rng: &mut Rng, path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let length = bytes.len();
    let footer = u32::from_le_bytes(bytes[length - 8..length - 4].try_into().unwrap()) as usize;
    let start = length.saturating_sub(8 + footer);
    match rng.u8(0..8) {
        // The length of the footer.
        0 => bytes[length - 8 + rng.usize(0..4)] ^= 1 << rng.u8(0..8),
        1 => bytes[length - 8..length - 4].copy_from_slice(&rng.u32(..).to_le_bytes()),
        // A few bytes of the footer, which is parsed whole.
        2..=4 => {
            for _ in 0..rng.usize(1..4) {
                bytes[start + rng.usize(0..footer)] = rng.u8(..);
            }
        }
        // A few bytes of pages.
        5 | 6 => {
            for _ in 0..rng.usize(1..6) {
                bytes[4 + rng.usize(0..(start - 4).max(1))] = rng.u8(..);
            }
        }
        // The end, or the middle, is missing.
        _ => {
            let keep = rng.usize(0..length);
            let tail = bytes[start..].to_vec();
            bytes.truncate(keep);
            if rng.bool() {
                bytes.extend(tail);
            }
        }
    }
    fs::write(path, bytes).unwrap();
}

/// All tables of a job, by path.
fn paths(table: &Table, at: &[String], found: &mut Vec<Vec<String>>) {
    for (key, value) in table {
        let path = [at, std::slice::from_ref(key)].concat();
        if let Value::Table(inner) = value {
            paths(inner, &path, found);
        }
        found.push(path);
    }
}

fn change(table: &mut Table, path: &[String], rng: &mut Rng) {
    if let [key, rest @ ..] = path
        && let Some(value) = table.get_mut(key)
    {
        if rest.is_empty() {
            match rng.u8(0..4) {
                0 => drop(table.remove(key)),
                1 => {
                    let value = table.remove(key).unwrap();
                    table.insert(format!("{key}x"), value);
                }
                _ => *value = other(rng, value),
            }
        } else if let Value::Table(inner) = value {
            change(inner, rest, rng);
        }
    }
}

/// Something else in the place of a value, mostly of the same type.
fn other(rng: &mut Rng, value: &Value) -> Value {
    let words = [
        "",
        "quasi",
        "kept",
        "sensitive",
        "identifier",
        "s0",
        "q0",
        "no such",
        "auto",
        "mondrian",
        "slice",
        "*",
        "\u{0}",
    ];
    match (rng.u8(0..5), value) {
        (0, _) => Value::Table(Table::new()),
        (1, _) => Value::Array(vec![value.clone(), Value::Boolean(true)]),
        (_, Value::Integer(_)) => {
            Value::Integer(*rng.choice(&[0, 1, -1, i64::MAX, i64::MIN, 1 << 33, 1 << 53, 100]).unwrap())
        }
        (_, Value::Float(_)) => {
            Value::Float(*rng.choice(&[f64::NAN, f64::INFINITY, -1.0, 0.0, 1e300, 2.0, 0.5]).unwrap())
        }
        (_, Value::String(_)) => Value::String((*rng.choice(&words).unwrap()).to_owned()),
        _ => Value::String("x".to_owned()),
    }
}

/// Changes keys of the job. Whether its policy and its form are still those of the case.
fn damage_job(rng: &mut Rng, desk: &Desk) -> bool {
    let mut job: Table = fs::read_to_string(desk.path("job.toml")).unwrap().parse().unwrap();
    let mut found = Vec::new();
    paths(&job, &[], &mut found);
    // Source and sink stay, or nothing would be tried.
    found.retain(|path| path[0] != "source" && path[0] != "sink");
    let mut same = true;
    for _ in 0..rng.usize(1..3) {
        let path = rng.choice(&found).unwrap().clone();
        let option = path[0] == "method" && path.len() == 2 && !["name", "form", "slices"].contains(&path[1].as_str());
        same &= path[0] == "output" || option;
        change(&mut job, &path, rng);
    }
    desk.write("job.toml", &job.to_string());
    same
}

fn damage_hierarchy(rng: &mut Rng, path: &Path) {
    let text = fs::read_to_string(path).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let at = rng.usize(0..lines.len());
    match rng.u8(0..8) {
        0 => drop(lines.remove(at)),
        1 => lines[at] = lines[at].split(';').next().unwrap().to_owned(),
        2 => lines[at] += ";more",
        3 => lines[at] = lines[at].replace(';', ","),
        4 => lines.push(lines[at].replace("group", "other")),
        5 => lines[at].push('"'),
        6 => lines[at] = ";;;".to_owned(),
        _ => lines.clear(),
    }
    let mut bytes = lines.join("\n").into_bytes();
    if rng.u8(0..8) == 0 && !bytes.is_empty() {
        let at = rng.usize(0..bytes.len());
        bytes[at] = 0xFF;
    }
    fs::write(path, bytes).unwrap();
}

/// The rows of damaged files as another reader finds them, but for identifiers that nobody reads.
fn read_again(folder: &Path, case: &Case) -> Result<RecordBatch, String> {
    let dropped = |name: &String| {
        case.identifiers.iter().any(|(other, treat)| other == name && !matches!(treat, Treat::Pseudonym(_)))
    };
    let schema = case.table.schema();
    let wanted: Vec<&String> = schema.fields().iter().map(|field| field.name()).filter(|name| !dropped(name)).collect();
    let wrong = |error: &dyn std::fmt::Display| format!("released, and another reader says: {error}");
    // Pages are found by the lengths in the headers of those before, or by their index, as long as one of them is whole.
    let read = |path: &Path, index: bool| -> Result<Vec<RecordBatch>, ParquetError> {
        let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::from(index));
        let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(File::open(path)?, options)?;
        let mask = ProjectionMask::columns(reader.parquet_schema(), wanted.iter().map(|name| name.as_str()));
        Ok(reader.with_projection(mask).build()?.collect::<Result<_, _>>()?)
    };
    let mut parts = Vec::new();
    for path in files(folder) {
        parts.extend(read(&path, false).or_else(|_| read(&path, true)).map_err(|error| wrong(&error))?);
    }
    let first = parts.first().ok_or("released without rows")?;
    concat_batches(&first.schema(), &parts).map_err(|error| wrong(&error))
}

/// The labels of a damaged hierarchy file, as far as its lines are plain.
fn relabel(case: &mut Case, desk: &Desk) {
    let text = fs::read_to_string(desk.path(&case.hierarchies[0].0)).unwrap_or_default();
    let line = |line: &str| line.split(';').map(str::to_owned).collect::<Vec<String>>();
    let of = text.lines().map(line).map(|labels| (labels[0].clone(), labels)).collect();
    let name = case.hierarchies[0].0.trim_end_matches(".csv").to_owned();
    for quasi in case.quasi.iter_mut().filter(|quasi| quasi.name == name) {
        quasi.published =
            if text.contains(['"', ',']) { Published::Unknown } else { Published::Tree(HashMap::clone(&of)) };
    }
}

/// Whether every class has as many rows as the damaged job asks for.
fn classes_are_large(desk: &Desk) -> bool {
    let job: Table = fs::read_to_string(desk.path("job.toml")).unwrap().parse().unwrap();
    let k = job["privacy"]["k"].as_integer().unwrap() as usize;
    let publication = Publication::open(&desk.path("out"));
    let names = publication.class_columns();
    let mut classes: HashMap<Vec<crate::adversary::values::Value>, usize> = HashMap::new();
    for piece in publication.pieces.iter().filter(|piece| piece.folder != "st") {
        let places: Vec<usize> = names.iter().map(|name| piece.rows.schema().index_of(name).unwrap()).collect();
        for class in rows(&piece.rows, &places) {
            *classes.entry(class).or_default() += 1;
        }
    }
    classes.values().all(|size| *size >= k)
}

/// One damaged case: what was done and how it ended, or what is wrong with that.
pub fn try_damaged(seed: u64) -> Result<String, String> {
    let desk = Desk::new();
    keep_failing(&desk, &format!("damage-{seed}"), judge(&desk, seed))
}

fn judge(desk: &Desk, seed: u64) -> Result<String, String> {
    let mut case = Case::new(seed);
    let mut rng = Rng::with_seed(seed ^ 0xDA_4A6E);
    case.write(desk);
    let mut same_policy = true;
    let kind = match rng.u8(0..3) {
        0 if !case.hierarchies.is_empty() => {
            damage_hierarchy(&mut rng, &desk.path(&case.hierarchies[0].0));
            "hierarchy"
        }
        1 => {
            same_policy = damage_job(&mut rng, desk);
            "job"
        }
        _ => {
            let sources = files(&desk.path("in"));
            let at = rng.usize(0..sources.len());
            damage_parquet(&mut rng, &sources[at]);
            "parquet"
        }
    };
    let released = run(desk, "run", "job.toml", &case.arguments(None));
    let other = match kind {
        "parquet" => throng(&["profile", &desk.name("in"), "--quiet"]),
        _ => run(desk, "check", "job.toml", &[]),
    };
    if let Some(ran) = [&released, &other].into_iter().find(|ran| !documented(ran)) {
        let said = ran.err.lines().find(|line| !line.is_empty()).unwrap_or("");
        return Err(format!("damaged {kind}: exit code {:?}: {said}", ran.code));
    }
    if released.code != Some(0) {
        return Ok(format!("{kind}, refused"));
    }
    match kind {
        "parquet" => case.table = read_again(&desk.path("in"), &case)?,
        "hierarchy" => relabel(&mut case, desk),
        _ => {}
    }
    let tags: Option<BTreeSet<_>> = case.source().remove("tag").map(|tags| tags.into_iter().collect());
    case.tagged &= tags.is_some_and(|tags| tags.len() == case.table.num_rows());
    let faults = match same_policy {
        true => check::faults(&case, &desk.path("out")),
        false if classes_are_large(desk) => Vec::new(),
        false => vec!["a class is smaller than k".to_owned()],
    };
    match faults.is_empty() {
        true => Ok(format!("{kind}, released")),
        false => Err(format!("damaged {kind}, {} as {}: {}", case.method, case.form, faults.join("; "))),
    }
}
