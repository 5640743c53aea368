//! One random case: a table, a policy, a method, a form and a layout, all from one seed.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, UInt32Array};
use datafusion::arrow::compute::{cast, take_record_batch};
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;
use fastrand::Rng;

use super::table::{KEPT, QUASI, column};
use crate::adversary::values::{self, Value};
use crate::support::{Desk, INDEPENDENT, batch};

/// How a quasi-identifier is published, as far as the checker can tell what covers what.
#[derive(Debug, Clone)]
pub enum Published {
    /// `struct<min, max>`.
    Range,
    /// Two columns.
    Bounds,
    /// One number that stands for all.
    Centroid,
    /// Labels `[a, b]` of whole numbers.
    Interval,
    /// Sets of texts `{a, b}`.
    Set,
    /// Labels of a hierarchy file: for every value those that cover it.
    Tree(HashMap<String, Vec<String>>),
    /// Text of which the end is masked.
    Mask,
    /// Anything: what it covers is not looked at.
    Unknown,
}

/// One quasi-identifier.
#[derive(Debug, Clone)]
pub struct Quasi {
    pub name: String,
    pub published: Published,
    pub drops_nulls: bool,
}

/// A rule on a sensitive column.
#[derive(Debug, Clone)]
pub enum Rule {
    Distinct(usize),
    Entropy(f64),
    Recursive(f64, usize),
    Alpha(f64),
    Closeness(f64),
}

/// A case, and everything that a checker must know of it.
pub struct Case {
    pub table: RecordBatch,
    pub quasi: Vec<Quasi>,
    pub sensitive: Vec<String>,
    pub kept: Vec<String>,
    pub tagged: bool,
    pub k: usize,
    pub rules: Vec<(String, Rule)>,
    pub max_suppression: f64,
    pub method: String,
    pub form: String,
    pub seeded: bool,
    /// The job file, but for source and sink.
    pub job: String,
    /// Arguments of the run.
    pub arguments: Vec<String>,
    pub files: usize,
    pub row_group: usize,
    /// Hierarchy files by name.
    pub hierarchies: Vec<(String, String)>,
}

const METHODS: [&str; 15] = [
    "auto",
    "auto",
    "mondrian",
    "mondrian",
    "l-mondrian",
    "k-members",
    "k-members-p",
    "top-down",
    "full-domain",
    "density",
    "kl-redinfo",
    "g-anatomy",
    "anatomy",
    "toc",
    "slicing",
];

const FORMS: [&str; 6] = ["generalise", "bucketise", "slice", "permute", "anatomy", "anatomy-permuted"];

impl Case {
    /// The case of a seed.
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let rng = &mut rng;
        let rows = *rng.choice(&[1, 2, 3, 4, 6, 9, 14, 20, 30, 30, 45, 60, 90, 150]).unwrap();
        let style = |rng: &mut Rng| rng.u8(0..4);
        let nulls = |rng: &mut Rng| *rng.choice(&[0.0, 0.0, 0.1, 0.4]).unwrap();
        let (mut columns, mut roles): (Vec<(String, ArrayRef)>, String) = (Vec::new(), String::new());
        let (mut quasi, mut sensitive, mut kept) = (Vec::new(), Vec::new(), Vec::new());
        let mut hierarchies = Vec::new();
        for number in 0..1 + rng.usize(0..3) {
            let name = format!("q{number}");
            let kind = *rng.choice(&QUASI).unwrap();
            let style = style(rng);
            let share = nulls(rng);
            let array = column(rng, kind, rows, style, share);
            let (published, more) = publish(rng, kind, style, &array, &name, &mut hierarchies);
            let drops_nulls = rng.u8(0..6) == 0;
            let drop = if drops_nulls { ", nulls = \"drop\"" } else { "" };
            writeln!(roles, "{name} = {{ role = \"quasi\", constant = \"allow\"{more}{drop} }}").unwrap();
            quasi.push(Quasi { name: name.clone(), published, drops_nulls });
            columns.push((name, array));
        }
        for number in 0..1 + rng.usize(0..2) {
            let name = format!("s{number}");
            let kind = *rng.choice(&QUASI).unwrap();
            let (style, share) = (style(rng), nulls(rng));
            columns.push((name.clone(), column(rng, kind, rows, style, share)));
            writeln!(roles, "{name}.role = \"sensitive\"").unwrap();
            sensitive.push(name);
        }
        for number in 0..rng.usize(0..3) {
            let name = format!("x{number}");
            let kind = if rng.bool() { *rng.choice(&KEPT).unwrap() } else { *rng.choice(&QUASI).unwrap() };
            let (style, share) = (style(rng), nulls(rng));
            columns.push((name.clone(), column(rng, kind, rows, style, share)));
            writeln!(roles, "{name}.role = \"kept\"").unwrap();
            kept.push(name);
        }
        let tagged = rng.u8(0..4) > 0;
        if tagged {
            let mut tags: Vec<i64> = (0..rows as i64).collect();
            rng.shuffle(&mut tags);
            columns.push(("tag".to_owned(), Arc::new(Int64Array::from(tags))));
            roles += "tag.role = \"kept\"\n";
            kept.push("tag".to_owned());
        }
        rng.shuffle(&mut columns);
        let table = batch(columns.iter().map(|(name, array)| (name.as_str(), Arc::clone(array))).collect());
        let method = (*rng.choice(&METHODS).unwrap()).to_owned();
        let form = match method.as_str() {
            "anatomy" => "anatomy",
            "slicing" => "slice",
            "kl-redinfo" => "generalise",
            _ if rng.bool() => "generalise",
            _ => FORMS[rng.usize(0..FORMS.len())],
        }
        .to_owned();
        let k = rng.usize(2..9);
        let max_suppression = *rng.choice(&[0.0, 0.05, 0.3, 1.0]).unwrap();
        let mut privacy = format!("k = {k}\nmax-suppression = {max_suppression:?}\n");
        let mut rules = Vec::new();
        let bucketed = ["kl-redinfo", "g-anatomy", "anatomy", "l-mondrian"].contains(&method.as_str());
        if bucketed || method == "slicing" || rng.bool() {
            let (text, rule) = random_rule(rng, k, bucketed || method == "slicing");
            writeln!(privacy, "{}", text.replace("COLUMN", "s0")).unwrap();
            rules.push(("s0".to_owned(), rule));
        }
        let seeded = rng.u8(0..8) > 0;
        let mut job =
            format!("[privacy]\n{privacy}[columns]\n{roles}[method]\nname = \"{method}\"\nform = \"{form}\"\n");
        if seeded {
            writeln!(job, "seed = {}", rng.u32(0..1000)).unwrap();
        }
        if method == "mondrian" && rng.bool() {
            job += "variant = \"relaxed\"\n";
        }
        if form == "slice" {
            job += "slices = [[\"s0\"]]\n";
        }
        job += "[output]\n";
        if rng.bool() {
            // Files end where batches do: with small batches, a small size makes several of few rows.
            let (size, rows) = (64 * rng.usize(1..30), rng.usize(100..140));
            writeln!(job, "file-size = {size}\nfile-rows = 100\nrow-group-rows = {rows}").unwrap();
        }
        let cell = if method == "full-domain" || rng.bool() { 100_000 } else { rng.usize(20..100) };
        let arguments = vec![
            "--cell-rows".to_owned(),
            cell.to_string(),
            "--partitions".to_owned(),
            rng.usize(1..5).to_string(),
            "--batch-rows".to_owned(),
            (*rng.choice(&[1, 7, 64, 8192]).unwrap()).to_string(),
        ];
        let (files, row_group) = (rng.usize(1..4), rng.usize(1..80));
        Self {
            table,
            quasi,
            sensitive,
            kept,
            tagged,
            k,
            rules,
            max_suppression,
            method,
            form,
            seeded,
            job,
            arguments,
            files,
            row_group,
            hierarchies,
        }
    }

    /// Writes source, hierarchies and job.
    pub fn write(&self, desk: &Desk) {
        write_source(&desk.path("in"), &self.table, self.files, self.row_group);
        self.hierarchies.iter().for_each(|(name, text)| desk.write(name, text));
        desk.write("job.toml", &self.job_text("in"));
    }

    /// The whole job file on a source.
    pub fn job_text(&self, source: &str) -> String {
        format!("version = 1\nsource.url = \"{source}/\"\n{INDEPENDENT}\n{}", self.job)
    }

    /// The rows that take part: those without a null where nulls are dropped.
    pub fn taking_part(&self) -> Vec<usize> {
        let dropping: Vec<&ArrayRef> = self
            .quasi
            .iter()
            .filter(|quasi| quasi.drops_nulls)
            .map(|quasi| self.table.column_by_name(&quasi.name).unwrap())
            .collect();
        // Not a number counts as null.
        let numbers: Vec<Vec<f64>> = dropping.iter().map(|column| floats(column)).collect();
        let present = |row: usize| {
            dropping.iter().zip(&numbers).all(|(column, numbers)| {
                column.is_valid(row) && !numbers.get(row).is_some_and(|number| number.is_nan())
            })
        };
        (0..self.table.num_rows()).filter(|&row| present(row)).collect()
    }

    /// The same rows in another order and in other files.
    pub fn write_shuffled(&self, desk: &Desk, seed: u64) {
        let mut rng = Rng::with_seed(seed);
        let mut order: Vec<u32> = (0..self.table.num_rows() as u32).collect();
        rng.shuffle(&mut order);
        let shuffled = take_record_batch(&self.table, &UInt32Array::from(order)).unwrap();
        write_source(&desk.path("in-again"), &shuffled, rng.usize(1..4), rng.usize(1..80));
        desk.write("again.toml", &self.job_text("in-again").replace("\"out\"", "\"out-again\""));
    }
}

/// The values of a column of fractions; none of others.
fn floats(column: &ArrayRef) -> Vec<f64> {
    let fraction = column.data_type().is_floating();
    let numbers = fraction.then(|| cast(column, &DataType::Float64).unwrap());
    numbers.map_or_else(Vec::new, |numbers| numbers.as_primitive::<Float64Type>().values().to_vec())
}

fn write_source(folder: &Path, table: &RecordBatch, files: usize, row_group: usize) {
    std::fs::create_dir_all(folder).unwrap();
    let share = table.num_rows().div_ceil(files).max(1);
    for number in 0..files {
        let from = (number * share).min(table.num_rows());
        let part = table.slice(from, share.min(table.num_rows() - from));
        let file = File::create(folder.join(format!("{number}.parquet"))).unwrap();
        let properties = WriterProperties::builder().set_max_row_group_row_count(Some(row_group)).build();
        let mut writer = ArrowWriter::try_new(file, table.schema(), Some(properties)).unwrap();
        writer.write(&part).unwrap();
        writer.close().unwrap();
    }
}

/// How a column of a kind is published, and what the job says for it.
fn publish(
    rng: &mut Rng,
    kind: &str,
    style: u8,
    array: &ArrayRef,
    name: &str,
    hierarchies: &mut Vec<(String, String)>,
) -> (Published, String) {
    let plain_text = style != 1;
    match kind {
        "text" | "view" | "dictionary" => match rng.u8(0..3) {
            0 => {
                let (of, text) = random_tree(rng, array);
                if of.is_empty() {
                    return (Published::Unknown, String::new());
                }
                let file = format!("{name}.csv");
                hierarchies.push((file.clone(), text));
                (Published::Tree(of), format!(", hierarchy = \"{file}\""))
            }
            1 if plain_text => (Published::Mask, ", hierarchy = { mask = \"right\" }".to_owned()),
            _ => (if plain_text { Published::Set } else { Published::Unknown }, String::new()),
        },
        "bool" => (Published::Unknown, String::new()),
        _ => match rng.u8(0..5) {
            0 => (Published::Bounds, ", publish = \"bounds\"".to_owned()),
            1 => (Published::Centroid, ", publish = \"centroid\"".to_owned()),
            2 if kind.contains("int") => (Published::Interval, ", publish = \"label\"".to_owned()),
            _ => (Published::Range, String::new()),
        },
    }
}

/// A hierarchy of the values of a column, in two levels below the top. Only values that a CSV file can hold plainly.
fn random_tree(rng: &mut Rng, array: &ArrayRef) -> (HashMap<String, Vec<String>>, String) {
    let mut found: Vec<String> =
        values::column(array.as_ref()).iter().filter_map(|value| value.as_text().map(str::to_owned)).collect();
    found.sort();
    found.dedup();
    let plain = |text: &String| !text.is_empty() && text.chars().all(char::is_alphanumeric);
    if found.is_empty() || !found.iter().all(plain) {
        return (HashMap::new(), String::new());
    }
    let (mut of, mut text) = (HashMap::new(), String::new());
    for value in found {
        let line = vec![value.clone(), format!("group {}", rng.u8(0..3)), "*".to_owned()];
        writeln!(text, "{}", line.join(";")).unwrap();
        of.insert(value, line);
    }
    (of, text)
}

fn random_rule(rng: &mut Rng, k: usize, distinct: bool) -> (String, Rule) {
    let l = rng.usize(2..=k.min(4));
    match if distinct { 0 } else { rng.u8(0..6) } {
        0 => (format!("l-diversity = {{ column = \"COLUMN\", l = {l} }}"), Rule::Distinct(l)),
        1 => {
            let l = *rng.choice(&[1.2, 1.5, 2.0]).unwrap();
            (format!("l-diversity = {{ column = \"COLUMN\", kind = \"entropy\", l = {l:?} }}"), Rule::Entropy(l))
        }
        2 => {
            let c = *rng.choice(&[1.0, 2.0, 3.5]).unwrap();
            let text = format!("l-diversity = {{ column = \"COLUMN\", kind = \"recursive\", c = {c:?}, l = 2 }}");
            (text, Rule::Recursive(c, 2))
        }
        3 => (format!("p-sensitive = {{ column = \"COLUMN\", p = {l} }}"), Rule::Distinct(l)),
        4 => {
            let alpha = *rng.choice(&[0.4, 0.5, 0.8]).unwrap();
            (format!("alpha-k = {{ column = \"COLUMN\", alpha = {alpha:?} }}"), Rule::Alpha(alpha))
        }
        _ => {
            let t = *rng.choice(&[0.2, 0.5, 0.8]).unwrap();
            (format!("t-closeness = {{ column = \"COLUMN\", t = {t:?}, distance = \"equal\" }}"), Rule::Closeness(t))
        }
    }
}

impl Rule {
    /// Whether the values of a class keep the rule, by its definition, against the values of the whole table.
    pub fn holds(&self, class: &[Value], table: &[Value]) -> bool {
        const ROUNDING: f64 = 1e-9;
        let count = |values: &[Value]| {
            let mut counts: HashMap<Value, f64> = HashMap::new();
            values.iter().for_each(|value| *counts.entry(value.clone()).or_default() += 1.0);
            counts
        };
        let counts = count(class);
        let rows = class.len() as f64;
        match self {
            Self::Distinct(l) => counts.len() >= *l,
            Self::Entropy(l) => {
                let entropy: f64 = counts.values().map(|count| -count / rows * (count / rows).ln()).sum();
                entropy >= l.ln() - ROUNDING
            }
            Self::Recursive(c, l) => {
                let mut sorted: Vec<f64> = counts.into_values().collect();
                sorted.sort_by(|a, b| b.total_cmp(a));
                sorted[0] < c * sorted.iter().skip(l - 1).sum::<f64>()
            }
            Self::Alpha(alpha) => counts.values().all(|count| count / rows <= alpha + ROUNDING),
            Self::Closeness(t) => {
                let all = count(table);
                let share = |value: &Value| counts.get(value).map_or(0.0, |count| count / rows);
                let apart: f64 =
                    all.iter().map(|(value, count)| (count / table.len() as f64 - share(value)).abs()).sum();
                apart / 2.0 <= t + ROUNDING
            }
        }
    }
}
