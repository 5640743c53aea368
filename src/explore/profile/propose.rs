//! Hierarchies for columns that have none: ladders for numbers, calendars for dates, masks for codes, and trees for
//! text, by common beginnings where there are any and by frequency where not.
//!
//! A proposal is a beginning. It balances the groups; what the groups mean only people know.

use datafusion::arrow::datatypes::DataType;

use super::column_profiler::ColumnStats;
use super::guess::{Guess, is_text};
use crate::binding::{is_number, is_time};
use crate::hierarchy::TOP;
use crate::policy::CalendarUnit;

/// A proposed hierarchy.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Proposal {
    /// Numbers and dates become ranges, few texts become sets.
    None,
    /// Intervals of these widths.
    Widths(Vec<f64>),
    /// Calendar units.
    Calendar(Vec<CalendarUnit>),
    /// The end of a code is hidden first.
    Mask,
    /// Lines `value;level 1;...;*`, and whether they follow common beginnings.
    Levels(Vec<Vec<String>>, bool),
}

/// Values that need no hierarchy: their sets are short.
const MAX_VALUES_ALONE: usize = 3;

/// Rows that a value, or all values of a beginning together, must have before a published label may name it.
const NAMED: u64 = 20;

/// Members of a group on each level.
const FAN: usize = 3;

/// Characters that part the beginning of a value from its rest.
const SEPARATORS: [char; 8] = ['-', '_', '.', '/', ':', ',', ' ', '('];

/// Proposes a hierarchy for a quasi-identifier.
pub(super) fn propose_hierarchy(data_type: &DataType, stats: &ColumnStats, guess: &Guess) -> Proposal {
    if guess.code && (is_text(data_type) || data_type.is_integer()) {
        return Proposal::Mask;
    }
    if let Some((min, max)) = stats.ends {
        return match data_type {
            DataType::Time32(_) | DataType::Time64(_) => Proposal::None,
            _ if is_time(data_type) => propose_calendar(max - min),
            _ if is_number(data_type) => propose_widths(min, max, stats.whole),
            _ => Proposal::None,
        };
    }
    if !is_text(data_type) {
        return Proposal::None;
    }
    let counted: Vec<(&str, u64)> =
        stats.counts.iter().filter_map(|(count, value)| Some((value.as_deref()?, *count))).collect();
    match counted.len() {
        // Too many to list: their beginnings will do.
        0 => Proposal::Mask,
        few if few <= MAX_VALUES_ALONE => Proposal::None,
        // A value that is called as the top is would be above itself.
        _ if counted.iter().any(|(value, _)| *value == TOP) => Proposal::None,
        _ => propose_tree(&counted),
    }
}

/// Intervals that double, from about a twentieth of the domain, at round numbers.
fn propose_widths(min: f64, max: f64, whole: bool) -> Proposal {
    let range = max - min;
    if !range.is_finite() || range <= 0.0 {
        return Proposal::None;
    }
    let rough = range / 20.0;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|step| step * power).find(|step| *step >= rough).unwrap_or(rough);
    // Powers below one are written as 0.1, not as 0.1000000000000000055.
    let step = format!("{step:.12}").parse().unwrap_or(step);
    let mut width: f64 = if whole { f64::max(step.ceil(), 2.0) } else { step };
    let mut widths = Vec::new();
    while width < range {
        widths.push(width);
        width *= 2.0;
    }
    if widths.is_empty() { Proposal::None } else { Proposal::Widths(widths) }
}

fn propose_calendar(days: f64) -> Proposal {
    use CalendarUnit::{Day, Decade, Month, Quarter, Year};
    Proposal::Calendar(match days {
        short if short < 60.0 => vec![Day, Month],
        short if short < 800.0 => vec![Day, Month, Quarter, Year],
        _ => vec![Month, Quarter, Year, Decade],
    })
}

/// A node over values: their numbers and how many rows they have.
#[derive(Debug, Clone)]
struct Node {
    label: String,
    values: Vec<usize>,
    rows: u64,
}

/// Levels over all values, commonest first.
fn propose_tree(counted: &[(&str, u64)]) -> Proposal {
    let leaf =
        |(at, (value, rows)): (usize, &(&str, u64))| Node { label: (*value).to_owned(), values: vec![at], rows: *rows };
    let mut level: Vec<Node> = counted.iter().enumerate().map(leaf).collect();
    let mut lines: Vec<Vec<String>> = level.iter().map(|node| vec![node.label.clone()]).collect();
    let mut names = Names { taken: counted.iter().map(|(value, _)| (*value).to_owned()).collect() };
    let beginnings = by_beginning(counted, &mut names);
    let by_beginning = beginnings.is_some();
    let mut number = 1;
    if let Some(beginnings) = beginnings {
        level = beginnings;
        write_level(&level, &mut lines);
        number += 1;
    }
    while level.len() > FAN {
        level = by_frequency(level, number, counted, &mut names);
        write_level(&level, &mut lines);
        number += 1;
    }
    lines.iter_mut().for_each(|line| line.push(TOP.to_owned()));
    Proposal::Levels(lines, by_beginning)
}

fn write_level(level: &[Node], lines: &mut [Vec<String>]) {
    for node in level {
        node.values.iter().for_each(|value| lines[*value].push(node.label.clone()));
    }
}

/// Labels that are in use: one label names one node.
struct Names {
    taken: std::collections::BTreeSet<String>,
}

impl Names {
    fn unique_name(&mut self, wanted: String) -> String {
        let mut label = wanted.clone();
        let mut number = 2;
        while label == TOP || !self.taken.insert(label.clone()) {
            label = format!("{wanted} ({number})");
            number += 1;
        }
        label
    }
}

/// Groups of values that begin alike, when beginnings part them in a useful way.
fn by_beginning(counted: &[(&str, u64)], names: &mut Names) -> Option<Vec<Node>> {
    let beginning = |value: &str| value.split(SEPARATORS).next().unwrap_or_default().to_owned();
    let mut groups: std::collections::BTreeMap<String, Node> = std::collections::BTreeMap::new();
    for (at, (value, rows)) in counted.iter().enumerate() {
        let node = groups.entry(beginning(value)).or_insert(Node { label: String::new(), values: Vec::new(), rows: 0 });
        node.values.push(at);
        node.rows += rows;
    }
    let together: usize = groups.values().filter(|node| node.values.len() > 1).map(|node| node.values.len()).sum();
    if groups.len() < 2 || together * 2 < counted.len() {
        return None;
    }
    let name = |(at, (beginning, mut node)): (usize, (String, Node))| {
        node.label = match node.values[..] {
            [only] => counted[only].0.to_owned(),
            _ if node.rows >= NAMED => names.unique_name(format!("{beginning}...")),
            _ => names.unique_name(format!("group 1.{}", at + 1)),
        };
        node
    };
    Some(groups.into_iter().enumerate().map(name).collect())
}

/// A third as many groups, of about equally many rows: what is common stays alone, what is rare goes together.
fn by_frequency(mut level: Vec<Node>, number: usize, counted: &[(&str, u64)], names: &mut Names) -> Vec<Node> {
    let wanted = level.len().div_ceil(FAN);
    level.sort_by(|a, b| b.rows.cmp(&a.rows).then_with(|| a.label.cmp(&b.label)));
    let mut groups: Vec<Vec<Node>> = vec![Vec::new(); wanted];
    let mut sizes = vec![0_u64; wanted];
    for node in level {
        let least = (0..wanted).min_by_key(|group| (sizes[*group], *group)).unwrap_or(0);
        // A group without rows would take every node; one row is the least that a node adds.
        sizes[least] += node.rows.max(1);
        groups[least].push(node);
    }
    let mut at = 0;
    let mut name = |mut nodes: Vec<Node>| {
        if nodes.len() == 1 {
            return nodes.swap_remove(0);
        }
        let values: Vec<usize> = nodes.iter().flat_map(|node| node.values.iter().copied()).collect();
        let listed: Vec<&str> = values.iter().map(|value| counted[*value].0).collect();
        let listed = format!("{{{}}}", listed.join(", "));
        at += 1;
        let common = values.iter().all(|value| counted[*value].1 >= NAMED);
        let short = values.len() <= FAN && listed.len() <= 48;
        let label = if common && short { listed } else { format!("group {number}.{at}") };
        Node { label: names.unique_name(label), rows: nodes.iter().map(|node| node.rows).sum(), values }
    };
    groups.into_iter().filter(|group| !group.is_empty()).map(&mut name).collect()
}

/// Lines as level CSV.
pub(super) fn to_level_csv(lines: &[Vec<String>]) -> Result<Vec<u8>, csv::Error> {
    let mut writer = csv::WriterBuilder::new().delimiter(b';').from_writer(Vec::new());
    for line in lines {
        writer.write_record(line)?;
    }
    writer.into_inner().map_err(|error| error.into_error().into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::hierarchy::{Ladder, LevelTree};

    fn widths_of(min: f64, max: f64, whole: bool) -> Vec<f64> {
        match propose_widths(min, max, whole) {
            Proposal::Widths(widths) => widths,
            _ => Vec::new(),
        }
    }

    #[test]
    fn ladders_have_round_rungs() {
        assert_eq!(widths_of(17.0, 90.0, true), [5.0, 10.0, 20.0, 40.0]);
        assert_eq!(widths_of(1.0, 9.0, true), [2.0, 4.0]);
        assert_eq!(widths_of(0.0, 1.0, false), [0.05, 0.1, 0.2, 0.4, 0.8]);
        assert_eq!(widths_of(0.0, 1.0, true), [] as [f64; 0]);
        assert_eq!(widths_of(3.0, 3.0, false), [] as [f64; 0]);
    }

    #[test]
    fn beginnings_are_used_where_values_share_them() {
        let counted = [
            ("Married-civ-spouse", 50),
            ("Never-married", 30),
            ("Divorced", 12),
            ("Married-AF-spouse", 1),
            ("Married-spouse-absent", 4),
            ("Widowed", 3),
        ];
        let Proposal::Levels(lines, by_beginning) = propose_tree(&counted) else { panic!("no tree") };
        assert!(by_beginning);
        assert_eq!(lines[0][..2], ["Married-civ-spouse", "Married..."]);
        assert_eq!(lines[3][1], "Married...");
    }

    proptest! {
        #[test]
        fn every_proposal_is_a_hierarchy(counts in prop::collection::btree_map("[a-c*{}]{0,3}[-. ]?[a-d;\"]{1,4}", 1..1000_u64, 4..80)) {
            let mut counted: Vec<(&str, u64)> = counts.iter().map(|(value, count)| (value.as_str(), *count)).collect();
            counted.sort_by_key(|counted| std::cmp::Reverse(counted.1));
            if let Proposal::Levels(lines, _) = propose_tree(&counted) {
                let text = String::from_utf8(to_level_csv(&lines).unwrap()).unwrap();
                let tree = LevelTree::from_csv(&text).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
                prop_assert_eq!(tree.leaves().len(), counted.len());
                prop_assert!(counted.iter().all(|(value, _)| tree.find_leaf(value).is_some()));
            }
        }

        #[test]
        fn every_ladder_nests(min in -1e6..1e6_f64, range in 1e-3..1e9_f64, whole: bool) {
            if let Proposal::Widths(widths) = propose_widths(min, min + range, whole) {
                prop_assert!(Ladder::from_widths(&widths, 0.0).is_ok(), "{:?}", widths);
                prop_assert!(widths.len() <= 6, "{:?}", widths);
            }
        }
    }
}
