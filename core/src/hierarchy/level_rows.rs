//! Reading the lines of a level hierarchy, from CSV text or from a tree in the job file.
//!
//! Either way the result is one row per leaf: the leaf, its parent, ..., the root.

use super::{HierarchyError, LineProblem, MAX_LEVELS, TOP};

/// A tree written in the job file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InlineTree {
    /// A value.
    Leaf(String),
    /// A named node and what is below it.
    Node(String, Vec<InlineTree>),
}

/// A leaf and all its ancestors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    /// Line number in the file, from 1.
    pub line: Option<u64>,
    /// Labels from the leaf to the root; at least two.
    pub labels: Vec<String>,
}

const SEPARATORS: [u8; 4] = [b';', b',', b'\t', b'|'];

/// Lines that decide what the separator is.
const PROBED_LINES: usize = 200;

/// Rows of a level CSV; lines with a problem are left out and reported.
pub(crate) fn from_csv(text: &str) -> Result<(Vec<Row>, Vec<LineProblem>), HierarchyError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return Err(HierarchyError::Empty);
    }
    let mut rows: Vec<Row> = Vec::new();
    let mut problems = Vec::new();
    let mut first: Option<(u64, usize)> = None;
    let mut reader = csv_reader(text, detect_separator(text));
    for record in reader.records() {
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                let line = error.position().map(csv::Position::line);
                problems.push(LineProblem::new(line, "is not valid CSV"));
                continue;
            }
        };
        let line = record.position().map(csv::Position::line);
        let mut problem = |message: String| problems.push(LineProblem::new(line, message));
        let (first_line, columns) = *first.get_or_insert((line.unwrap_or(1), record.len()));
        if columns > MAX_LEVELS + 1 {
            return Err(HierarchyError::TooManyLevels(columns - 1));
        }
        if record.len() != columns {
            problem(format!("has {} columns, but line {first_line} has {columns}", record.len()));
        } else if columns < 2 {
            problem("has one column; a line must be a value, its levels and the top: `value;level1;*`".to_owned());
        } else if let Some(empty) = record.iter().skip(1).position(str::is_empty) {
            problem(format!("the label of level {} is empty", empty + 1));
        } else {
            rows.push(Row { line, labels: record.iter().map(str::to_owned).collect() });
        }
    }
    Ok((rows, problems))
}

/// Rows of a tree in the job file, below a root called `*`.
pub(crate) fn from_inline(tree: &[InlineTree]) -> Result<(Vec<Row>, Vec<LineProblem>), HierarchyError> {
    if tree.is_empty() {
        return Err(HierarchyError::Empty);
    }
    let mut rows = Vec::new();
    let mut problems = Vec::new();
    walk_nodes(tree, &mut vec![TOP.to_owned()], &mut rows, &mut problems);
    if let Some(deepest) = rows.iter().map(|row| row.labels.len() - 1).max().filter(|levels| *levels > MAX_LEVELS) {
        return Err(HierarchyError::TooManyLevels(deepest));
    }
    Ok((rows, problems))
}

fn walk_nodes(children: &[InlineTree], path: &mut Vec<String>, rows: &mut Vec<Row>, problems: &mut Vec<LineProblem>) {
    for child in children {
        match child {
            InlineTree::Leaf(label) => {
                let labels = std::iter::once(label).chain(path.iter().rev()).cloned().collect();
                rows.push(Row { line: None, labels });
            }
            InlineTree::Node(label, below) if below.is_empty() => {
                let discreet = "a node has no values below it".to_owned();
                let message = format!("node `{label}` has no values below it");
                problems.push(LineProblem::quoting(None, message, discreet));
            }
            InlineTree::Node(label, below) => {
                path.push(label.clone());
                walk_nodes(below, path, rows, problems);
                path.pop();
            }
        }
    }
}

fn csv_reader(text: &str, separator: u8) -> csv::Reader<&[u8]> {
    csv::ReaderBuilder::new().has_headers(false).flexible(true).delimiter(separator).from_reader(text.as_bytes())
}

/// The first separator that gives every line the same number of columns, two or more; else the one that gives the
/// first line most columns (and then some line is ragged, which is reported).
fn detect_separator(text: &str) -> u8 {
    let columns = |separator: u8| -> Vec<usize> {
        let records = csv_reader(text, separator).into_records().take(PROBED_LINES);
        records.filter_map(|record| record.ok().map(|record| record.len())).collect()
    };
    let mut best = (0, SEPARATORS[0]);
    for separator in SEPARATORS {
        let counts = columns(separator);
        let first = counts.first().copied().unwrap_or(0);
        if first >= 2 && counts.iter().all(|&count| count == first) {
            return separator;
        }
        if first > best.0 {
            best = (first, separator);
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> Vec<Vec<String>> {
        let (rows, problems) = from_csv(text).unwrap();
        assert_eq!(problems, []);
        rows.into_iter().map(|row| row.labels).collect()
    }

    #[test]
    fn separator_is_detected() {
        let expected = [["a", "x", "*"], ["b", "x", "*"]];
        for text in
            ["a;x;*\nb;x;*\n", "a,x,*\r\nb,x,*", "a\tx\t*\nb\tx\t*\n", "a|x|*\nb|x|*\n", "\u{feff}a;x;*\n\nb;x;*"]
        {
            assert_eq!(labels(text), expected, "{text:?}");
        }
    }

    /// Seen failing: a line of 60,000 levels took minutes.
    #[test]
    fn levels_are_limited() {
        let line = |levels: usize| {
            let labels: Vec<String> = (0..levels).map(|level| format!("n{level}")).collect();
            format!("value;{}\n", labels.join(";"))
        };
        assert!(from_csv(&line(MAX_LEVELS)).is_ok());
        assert_eq!(from_csv(&line(60_000)), Err(HierarchyError::TooManyLevels(60_000)));
        let leaf = InlineTree::Leaf("value".into());
        let deep = (0..MAX_LEVELS).fold(leaf, |below, level| InlineTree::Node(format!("n{level}"), vec![below]));
        assert_eq!(from_inline(&[deep]), Err(HierarchyError::TooManyLevels(MAX_LEVELS + 1)));
    }

    #[test]
    fn separators_inside_labels_do_not_mislead() {
        assert_eq!(labels("Smith, John;x;*\nDoe;x;*\n"), [["Smith, John", "x", "*"], ["Doe", "x", "*"]]);
        assert_eq!(labels("\"a;b\";x;*\nc;\"say \"\"x\"\"\";*\n"), [["a;b", "x", "*"], ["c", "say \"x\"", "*"]]);
    }

    #[test]
    fn ragged_and_empty_lines_are_reported_with_their_number() {
        let (rows, problems) = from_csv("a;x;*\nb;*\nc;;*\nd;x;*\n").unwrap();
        assert_eq!(rows.len(), 2);
        let messages: Vec<String> = problems.iter().map(LineProblem::to_string).collect();
        assert_eq!(messages, ["line 2: has 2 columns, but line 1 has 3", "line 3: the label of level 1 is empty"]);
        assert_eq!(from_csv(" \n\n"), Err(HierarchyError::Empty));
        let (_, problems) = from_csv("a\nb\n").unwrap();
        assert!(problems[0].to_string().starts_with("line 1: has one column"));
    }
}
