//! A table of text, its hierarchies, and the codes that the methods see.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use throng_core::model::{Axis, Code, NULL_ON_LINE, Shape, Table, Tree};

/// The leaf that empty values are.
pub const NULL: &str = "NULL";

/// How a column is published.
#[derive(Debug)]
pub enum Form {
    /// As nodes of a hierarchy: its lines, each a leaf and what is above it. Lines are in the order of the codes.
    Nodes(Vec<Vec<String>>),
    /// As ranges of numbers, ascending.
    Ranges(Vec<f64>),
}

/// A quasi-identifier.
#[derive(Debug)]
pub struct Column {
    pub name: String,
    /// Number of the value of every row.
    pub values: Vec<u32>,
    /// The values, as the file has them.
    pub words: Vec<String>,
    pub form: Form,
}

/// A table to be grouped.
#[derive(Debug)]
pub struct Source {
    pub columns: Vec<Column>,
    pub table: Table,
}

impl Source {
    pub fn rows(&self) -> usize {
        self.table.rows()
    }

    /// Reads the columns and their hierarchies.
    pub fn read(path: &str, folder: Option<&String>, quasi: &[String], ranges: &[String]) -> Self {
        let columns: Vec<Column> = read_columns(path, quasi)
            .into_iter()
            .map(|(name, values, words)| {
                let form = if ranges.contains(&name) {
                    Form::Ranges(numbers_of(&words))
                } else {
                    let folder = folder.expect("a folder of hierarchies");
                    Form::Nodes(read_hierarchy(&Path::new(folder).join(format!("{name}.csv")), &words))
                };
                Column { name, values, words, form }
            })
            .collect();
        let encoded: Vec<(Axis, Vec<Code>)> = columns.iter().map(encode_column).collect();
        let rows = columns[0].values.len();
        let code = |row: usize, at: usize| encoded[at].1[columns[at].values[row] as usize];
        let codes = (0..rows).flat_map(|row| (0..columns.len()).map(move |at| (row, at)));
        let codes = codes.map(|(row, at)| code(row, at)).collect();
        let table = Table::new(encoded.iter().map(|(axis, _)| axis.clone()).collect::<Vec<_>>(), codes);
        Self { columns, table }
    }
}

/// The named columns: name, number of the value of every row, values. Empty values are [`NULL`].
pub fn read_columns(path: &str, names: &[String]) -> Vec<(String, Vec<u32>, Vec<String>)> {
    let mut reader = csv::ReaderBuilder::new().flexible(false).from_path(path).expect("a CSV file");
    let header = reader.headers().expect("a header").clone();
    let places: Vec<usize> = names
        .iter()
        .map(|name| header.iter().position(|column| column == name).unwrap_or_else(|| panic!("no column {name}")))
        .collect();
    let mut columns: Vec<(HashMap<String, u32>, Vec<u32>)> = vec![Default::default(); names.len()];
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record).expect("a record") {
        for (&place, (known, values)) in places.iter().zip(&mut columns) {
            let word = if record[place].is_empty() { NULL } else { &record[place] };
            let next = known.len() as u32;
            let value = known.get(word).copied().unwrap_or_else(|| *known.entry(word.to_owned()).or_insert(next));
            values.push(value);
        }
    }
    let columns = names.iter().zip(columns).map(|(name, (known, values))| {
        let mut words = vec![String::new(); known.len()];
        known.into_iter().for_each(|(word, value)| words[value as usize] = word);
        (name.clone(), values, words)
    });
    columns.collect()
}

/// The numbers among some words, ascending.
pub fn numbers_of(words: &[String]) -> Vec<f64> {
    let mut numbers: Vec<f64> = words.iter().filter_map(|word| word.parse().ok()).collect();
    numbers.sort_by(f64::total_cmp);
    numbers.dedup();
    numbers
}

/// The lines of a hierarchy, so that the leaves below every node stand together. Of numbers, those that occur alone.
fn read_hierarchy(path: &Path, words: &[String]) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let lines = text.lines().filter(|line| !line.is_empty());
    let mut lines: Vec<Vec<String>> = lines.map(|line| line.split(';').map(str::to_owned).collect()).collect();
    let known: BTreeSet<&String> = words.iter().collect();
    let numeric = lines.iter().all(|line| line[0] == NULL || line[0].parse::<f64>().is_ok());
    if numeric {
        lines.retain(|line| known.contains(&line[0]));
        let number = |line: &Vec<String>| line[0].parse().unwrap_or(f64::INFINITY);
        lines.sort_by(|x, y| number(x).total_cmp(&number(y)));
    } else {
        lines.sort_by(|x, y| x.iter().rev().cmp(y.iter().rev()));
    }
    lines
}

/// The axis of a column, and the code of each of its values.
fn encode_column(column: &Column) -> (Axis, Vec<Code>) {
    let number = |word: &String| word.parse::<f64>().ok();
    match &column.form {
        Form::Ranges(numbers) => {
            let (low, high) = (numbers[0], numbers[numbers.len() - 1]);
            // Whole numbers keep their distances.
            let whole = numbers.iter().all(|number| number.fract() == 0.0) && high - low <= 65_000.0;
            let scale = if whole { 1.0 } else { 65_000.0 / (high - low) };
            let code = |number: f64| ((number - low) * scale).round() as Code;
            let mut axis = Axis::new(&column.name, Shape::Line { span: code(high) });
            axis.exact = whole;
            axis.null = column.words.iter().any(|word| word == NULL).then_some(NULL_ON_LINE);
            (axis, column.words.iter().map(|word| number(word).map_or(NULL_ON_LINE, code)).collect())
        }
        Form::Nodes(lines) => {
            let leaf: HashMap<&String, Code> = lines.iter().zip(0..).map(|(line, code)| (&line[0], code)).collect();
            let mut spans = Vec::new();
            for level in 1..lines[0].len() {
                let mut start = 0;
                for run in lines.chunk_by(|x, y| x[level..] == y[level..]) {
                    let end = start + run.len() - 1;
                    spans.push((start as Code, end as Code, nodes_loss(lines, start, end)));
                    start = end + 1;
                }
            }
            let code = |word: &String| *leaf.get(word).unwrap_or_else(|| panic!("{}: {word} is no leaf", column.name));
            (
                Axis::new(&column.name, Shape::Tree(Tree::new(lines.len(), spans))),
                column.words.iter().map(code).collect(),
            )
        }
    }
}

/// What the leaves from one line to another lose together.
fn nodes_loss(lines: &[Vec<String>], start: usize, end: usize) -> f64 {
    let number = |at: usize| lines[at][0].parse::<f64>().ok();
    let last = if lines[lines.len() - 1][0] == NULL { lines.len() - 2 } else { lines.len() - 1 };
    match (number(0), number(last)) {
        (Some(_), Some(_)) if start == end => 0.0,
        (Some(low), Some(high)) => number(end).zip(number(start)).map_or(1.0, |(to, from)| (to - from) / (high - low)),
        _ => (end - start) as f64 / (lines.len() - 1) as f64,
    }
}
