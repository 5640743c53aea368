//! Damaged input: bytes of Parquet files, keys of job files, lines of hierarchies. Most of it gets past the first look, and
//! none of it may end in anything but a documented exit code.

use std::fs;
use std::path::Path;

use fastrand::Rng;
use toml::{Table, Value};

use super::case::Case;
use super::documented;
use crate::support::{Desk, Ran, files, throng};

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

fn damage_job(rng: &mut Rng, desk: &Desk) {
    let mut job: Table = fs::read_to_string(desk.path("job.toml")).unwrap().parse().unwrap();
    let mut found = Vec::new();
    paths(&job, &[], &mut found);
    // Source and sink stay, or nothing would be tried.
    found.retain(|path| path[0] != "source" && path[0] != "sink");
    for _ in 0..rng.usize(1..3) {
        let path = rng.choice(&found).unwrap().clone();
        change(&mut job, &path, rng);
    }
    desk.write("job.toml", &job.to_string());
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

/// One damaged case: what was done, and what is wrong with how it ended.
pub fn try_damaged(seed: u64) -> Result<&'static str, String> {
    let case = Case::new(seed);
    let mut rng = Rng::with_seed(seed ^ 0xDA_4A6E);
    let desk = Desk::new();
    case.write(&desk);
    let kind = match rng.u8(0..3) {
        0 if !case.hierarchies.is_empty() => {
            damage_hierarchy(&mut rng, &desk.path(&case.hierarchies[0].0));
            "hierarchy"
        }
        1 => {
            damage_job(&mut rng, &desk);
            "job"
        }
        _ => {
            let sources = files(&desk.path("in"));
            let at = rng.usize(0..sources.len());
            damage_parquet(&mut rng, &sources[at]);
            "parquet"
        }
    };
    let job = desk.name("job.toml");
    let mut ran: Vec<Ran> = vec![throng(&["run", &job, "--quiet"])];
    match kind {
        "parquet" => ran.push(throng(&["profile", &desk.name("in"), "--quiet"])),
        _ => ran.push(throng(&["check", &job])),
    }
    match ran.iter().find(|ran| !documented(ran)) {
        None => Ok(kind),
        Some(ran) => Err(format!("damaged {kind}: exit code {:?}: {}", ran.code, ran.err.lines().last().unwrap_or(""))),
    }
}
