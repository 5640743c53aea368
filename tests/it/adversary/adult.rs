//! UCI Adult as a register: whoever attacks knows the quasi-identifiers of everybody, and wants the rest.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use datafusion::arrow::array::RecordBatch;

use super::publication::Publication;
use super::values::{Value, column};
use crate::support::{Desk, read_parquet};

/// The folder of the example jobs.
pub fn pipelines() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("pipelines")
}

/// Everybody with everything.
pub fn people() -> RecordBatch {
    read_parquet(&pipelines().join("data/adult.parquet"))
}

/// A job of the project in a folder of its own, as somebody writes it who wants no run to be repeatable: no seed is set.
pub fn desk(job: &str) -> Desk {
    let desk = Desk::new();
    let text = fs::read_to_string(pipelines().join(job)).unwrap();
    let folder = pipelines().display().to_string();
    let text: String =
        text.lines().filter(|line| !line.starts_with("seed =")).map(|line| format!("{line}\n")).collect();
    let text = text.replace("\"../", "\"").replace("\"data/", &format!("\"{folder}/data/"));
    let text = text.replace("\"hierarchies/", &format!("\"{folder}/hierarchies/"));
    desk.write("job.toml", &text);
    desk
}

/// Runs a job of the project with settings, and reads what it published.
pub fn release(desk: &Desk, settings: &[&str]) -> Publication {
    let mut arguments = vec!["--set", "sink.url=\"out\"", "--quiet"];
    settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
    desk.run(&arguments).ok();
    Publication::open(&desk.path("out"))
}

/// A hierarchy of Adult: every value with the labels that cover it, finest first.
pub struct Hierarchy {
    lines: Vec<Vec<String>>,
}

impl Hierarchy {
    /// The hierarchy of a column.
    pub fn open(column: &str) -> Self {
        let text = fs::read_to_string(pipelines().join(format!("hierarchies/adult/{column}.csv"))).unwrap();
        Self { lines: text.lines().map(|line| line.split(';').map(str::to_owned).collect()).collect() }
    }

    /// Whether a label covers a value.
    pub fn covers(&self, label: &str, value: &str) -> bool {
        self.lines.iter().any(|line| line[0] == value && line.iter().any(|other| other == label))
    }

    /// The share of the other leaves that the closest label over some values covers.
    pub fn loss(&self, values: &[&str]) -> f64 {
        let of = |value: &str| self.lines.iter().find(|line| line[0] == value).expect("a value of the hierarchy");
        let label = of(values[0]).iter().find(|label| values.iter().all(|value| of(value).contains(label))).unwrap();
        let leaves = self.lines.iter().filter(|line| line.contains(label)).count();
        (leaves - 1) as f64 / (self.lines.len() - 1) as f64
    }
}

/// The rows of a published class, by their places in the order of the files, with those people who must be in it.
pub struct Class {
    /// Places of its rows, in their order.
    pub rows: Vec<usize>,
    /// Its people, as rows of the register, in no particular order.
    pub people: Vec<usize>,
}

/// Classes of which the register says exactly who is in them: people fit their published values, and once somebody must be
/// in one class, he is in no other.
pub fn classes(published: &RecordBatch, class_columns: &[String], people: &RecordBatch) -> Vec<Class> {
    let mut classes: BTreeMap<Vec<Value>, Vec<usize>> = BTreeMap::new();
    let columns: Vec<Vec<Value>> =
        class_columns.iter().map(|name| column(published.column_by_name(name).unwrap().as_ref())).collect();
    for row in 0..published.num_rows() {
        classes.entry(columns.iter().map(|column| column[row].clone()).collect()).or_default().push(row);
    }
    // Per column, which of the register's values every published value covers, as sets of value numbers.
    let mut codes: Vec<Vec<usize>> = Vec::new();
    let mut covers: Vec<HashMap<Value, Vec<bool>>> = Vec::new();
    for (name, published) in class_columns.iter().zip(&columns) {
        let values = column(people.column_by_name(name).unwrap().as_ref());
        let mut numbers: BTreeMap<&Value, usize> = values.iter().map(|value| (value, 0)).collect();
        numbers.values_mut().zip(0..).for_each(|(number, next)| *number = next);
        codes.push(values.iter().map(|value| numbers[value]).collect());
        let hierarchy = (name != "age").then(|| Hierarchy::open(name));
        let mut of: HashMap<Value, Vec<bool>> = HashMap::new();
        for label in published {
            of.entry(label.clone()).or_insert_with(|| {
                numbers.keys().map(|value| covers_value(label, value, hierarchy.as_ref())).collect()
            });
        }
        covers.push(of);
    }
    let classes: Vec<(Vec<Value>, Vec<usize>)> = classes.into_iter().collect();
    let mut fitting: Vec<Vec<usize>> = Vec::new();
    for (values, _) in &classes {
        let covers: Vec<&Vec<bool>> = values.iter().zip(&covers).map(|(value, of)| &of[value]).collect();
        let fits = |person: &usize| covers.iter().zip(&codes).all(|(cover, codes)| cover[codes[*person]]);
        fitting.push((0..people.num_rows()).filter(fits).collect());
    }
    let mut placed = vec![false; people.num_rows()];
    let mut found: Vec<Option<Class>> = classes.iter().map(|_| None).collect();
    loop {
        let mut changed = false;
        for (at, (_, rows)) in classes.iter().enumerate() {
            if found[at].is_some() {
                continue;
            }
            fitting[at].retain(|&person| !placed[person]);
            if fitting[at].len() == rows.len() {
                fitting[at].iter().for_each(|&person| placed[person] = true);
                found[at] = Some(Class { rows: rows.clone(), people: fitting[at].clone() });
                changed = true;
            }
        }
        if !changed {
            return found.into_iter().flatten().collect();
        }
    }
}

fn covers_value(label: &Value, value: &Value, hierarchy: Option<&Hierarchy>) -> bool {
    match (label, hierarchy) {
        (Value::Struct(ends), _) => ends[0] <= *value && *value <= ends[1],
        (_, Some(hierarchy)) => hierarchy.covers(label.as_text().unwrap(), value.as_text().unwrap()),
        _ => label == value,
    }
}
