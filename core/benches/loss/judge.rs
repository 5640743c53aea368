//! Published labels, and what they lose: computed from labels, source and hierarchy files, by nothing that made the groups.

use std::collections::{HashMap, HashSet};

use throng_core::model::Grouping;

use crate::tables::{Form, NULL, Source, read_columns};

/// What stands for every value.
const TOP: &str = "*";

/// Knows what the labels of every column stand for.
pub struct Judge {
    columns: Vec<Labels>,
}

/// The labels of a column.
enum Labels {
    /// The leaves below every label, by number and ascending, the leaves and their numbers, and whether they are numbers themselves.
    Nodes { below: HashMap<String, Vec<usize>>, leaves: Vec<String>, places: HashMap<String, usize>, numeric: bool },
    /// Smallest and largest number.
    Ranges { low: f64, high: f64 },
}

impl Judge {
    pub fn new(source: &Source) -> Self {
        let columns = source.columns.iter().map(|column| match &column.form {
            Form::Ranges(numbers) => Labels::Ranges { low: numbers[0], high: numbers[numbers.len() - 1] },
            Form::Nodes(lines) => {
                let mut below: HashMap<String, Vec<usize>> = HashMap::new();
                for (at, line) in lines.iter().enumerate() {
                    let labels: HashSet<&String> = line.iter().collect();
                    labels.into_iter().for_each(|label| below.entry(label.clone()).or_default().push(at));
                }
                let leaves: Vec<String> = lines.iter().map(|line| line[0].clone()).collect();
                let numeric = leaves.iter().all(|leaf| leaf == NULL || leaf.parse::<f64>().is_ok());
                let places = leaves.iter().cloned().zip(0..).collect();
                Labels::Nodes { below, leaves, places, numeric }
            }
        });
        Self { columns: columns.collect() }
    }

    /// GCP, smallest class and number of classes of the labels that groups publish.
    pub fn score_grouping(&self, source: &Source, grouping: &Grouping) -> (f64, usize, usize) {
        let mut words: Vec<Vec<String>> = vec![Vec::new(); self.columns.len()];
        let mut known: Vec<HashMap<String, u32>> = vec![HashMap::new(); self.columns.len()];
        let mut published = vec![vec![u32::MAX; source.rows()]; self.columns.len()];
        for group in grouping.iter() {
            for (at, labels) in self.columns.iter().enumerate() {
                let column = &source.columns[at];
                let mut values: Vec<u32> = group.iter().map(|&row| column.values[row as usize]).collect();
                values.sort_unstable();
                values.dedup();
                let values: Vec<&String> = values.iter().map(|&value| &column.words[value as usize]).collect();
                let label = labels.label_of(&values, &column.form);
                let next = words[at].len() as u32;
                let number = *known[at].entry(label.clone()).or_insert(next);
                if number == next {
                    words[at].push(label);
                }
                for &row in group {
                    assert_eq!(published[at][row as usize], u32::MAX, "a row is in two groups");
                    published[at][row as usize] = number;
                }
            }
        }
        self.score_labels(source, &published, &words)
    }

    /// The same of a file of published rows.
    pub fn score_file(&self, source: &Source, path: &str) -> (f64, usize, usize) {
        let names: Vec<String> = source.columns.iter().map(|column| column.name.clone()).collect();
        let (published, words): (Vec<_>, Vec<_>) =
            read_columns(path, &names).into_iter().map(|column| (column.1, column.2)).unzip();
        self.score_labels(source, &published, &words)
    }

    /// The same of labels by number, column by column.
    fn score_labels(&self, source: &Source, published: &[Vec<u32>], words: &[Vec<String>]) -> (f64, usize, usize) {
        let mut lost = 0.0;
        for (at, labels) in self.columns.iter().enumerate() {
            let column = &source.columns[at];
            assert_eq!(published[at].len(), column.values.len(), "every row is published");
            let losses: Vec<f64> = words[at].iter().map(|label| labels.loss_of(label)).collect();
            let mut true_pairs: HashSet<(u32, u32)> = HashSet::new();
            for (&label, &value) in published[at].iter().zip(&column.values) {
                if true_pairs.insert((label, value)) {
                    let (label, value) = (&words[at][label as usize], &column.words[value as usize]);
                    assert!(labels.holds(label, value), "{}: {label} does not hold {value}", column.name);
                }
                lost += losses[label as usize];
            }
        }
        let mut classes: HashMap<Vec<u32>, usize> = HashMap::new();
        for row in 0..source.rows() {
            *classes.entry(published.iter().map(|labels| labels[row]).collect()).or_default() += 1;
        }
        let gcp = lost / (source.rows() * self.columns.len()) as f64;
        (gcp, classes.values().copied().min().unwrap_or(0), classes.len())
    }
}

impl Labels {
    /// The lowest label that holds all values.
    fn label_of(&self, values: &[&String], form: &Form) -> String {
        match (self, form) {
            (Self::Nodes { below, .. }, Form::Nodes(lines)) => {
                let first = &lines[below[values[0]][0]];
                let holds_all = |label: &&String| values.iter().all(|value| self.holds(label, value));
                first.iter().find(holds_all).expect("the top holds everything").clone()
            }
            _ if values.len() == 1 => values[0].clone(),
            _ => {
                let numbers: Vec<f64> = values.iter().filter_map(|value| value.parse().ok()).collect();
                let low = numbers.iter().copied().fold(f64::INFINITY, f64::min);
                let high = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                if numbers.len() < values.len() { TOP.to_owned() } else { format!("[{low}, {high}]") }
            }
        }
    }

    /// Whether a value may be published by a label.
    fn holds(&self, label: &str, value: &str) -> bool {
        match self {
            Self::Nodes { below, places, .. } => {
                let place = places.get(value);
                below.get(label).zip(place).is_some_and(|(below, place)| below.binary_search(place).is_ok())
            }
            Self::Ranges { .. } if label == TOP || label == value => true,
            Self::Ranges { .. } => {
                let value = value.parse::<f64>().ok();
                ends_of(label).zip(value).is_some_and(|((low, high), value)| (low..=high).contains(&value))
            }
        }
    }

    /// What a label loses.
    fn loss_of(&self, label: &str) -> f64 {
        let number = |text: &String| text.parse::<f64>().ok();
        match self {
            Self::Ranges { .. } if label == TOP => 1.0,
            Self::Ranges { low, high } => ends_of(label).map_or(0.0, |(from, to)| (to - from) / (high - low)),
            Self::Nodes { below, leaves, numeric, .. } => {
                let below = below.get(label).unwrap_or_else(|| panic!("no hierarchy has {label}"));
                if !numeric {
                    return (below.len() - 1) as f64 / (leaves.len() - 1) as f64;
                }
                if below.len() == 1 {
                    return 0.0;
                }
                let span = |numbers: &mut dyn Iterator<Item = Option<f64>>| {
                    let ends = (f64::INFINITY, f64::NEG_INFINITY);
                    numbers.flatten().fold(ends, |(low, high), x| (x.min(low), x.max(high)))
                };
                let (low, high) = span(&mut leaves.iter().map(number));
                let (from, to) = span(&mut below.iter().map(|&at| number(&leaves[at])));
                let mixed = below.iter().any(|&at| leaves[at] == NULL);
                if mixed { 1.0 } else { (to - from) / (high - low) }
            }
        }
    }
}

/// The ends of a range.
fn ends_of(label: &str) -> Option<(f64, f64)> {
    let (low, high) = label.strip_prefix('[')?.strip_suffix(']')?.split_once(", ")?;
    Some((low.parse().ok()?, high.parse().ok()?))
}
