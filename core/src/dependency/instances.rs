//! The instances of dependencies: distinct values on both sides together, each counted once per dependency.

use std::collections::HashMap;

use super::Value;
use crate::model::{Code, Dependency, Table};

/// All instances of some dependencies in a table, numbered through, dependency after dependency, each in the order of
/// its first row.
#[derive(Debug, Clone)]
pub struct Instances {
    /// The instances of every dependency.
    pub kinds: Vec<Kind>,
}

/// The instances of one dependency.
#[derive(Debug, Clone)]
pub struct Kind {
    /// The axes that the dependency names.
    pub axes: Vec<usize>,
    /// The plain columns that it names.
    pub plain: Vec<usize>,
    /// Number of the first instance.
    pub first: usize,
    /// Number of instances.
    pub count: usize,
    /// The instance of every row, from 0 within this dependency.
    pub of_row: Vec<u32>,
    /// Codes of every instance, `axes.len()` each.
    codes: Vec<Code>,
    /// Plain values of every instance, `plain.len()` each.
    plain_values: Vec<u64>,
}

impl Instances {
    /// Finds the instances.
    pub fn new(dependencies: &[Dependency], table: &Table) -> Self {
        let mut first = 0;
        let kinds = dependencies
            .iter()
            .map(|dependency| {
                let kind = Kind::new(dependency, table, first);
                first += kind.count;
                kind
            })
            .collect();
        Self { kinds }
    }

    /// Number of all instances.
    pub fn len(&self) -> usize {
        self.kinds.iter().map(|kind| kind.count).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The dependency of an instance, and its place there.
    pub fn kind(&self, instance: usize) -> (&Kind, usize) {
        let at = self.kinds.partition_point(|kind| kind.first + kind.count <= instance);
        (&self.kinds[at], instance - self.kinds[at].first)
    }

    /// The instances that a row holds, one per dependency.
    pub fn of_row(&self, row: u32) -> impl Iterator<Item = usize> {
        self.kinds.iter().map(move |kind| kind.first + kind.of_row[row as usize] as usize)
    }
}

impl Kind {
    fn new(dependency: &Dependency, table: &Table, first: usize) -> Self {
        let (axes, plain) = (dependency.quasi_axes(), dependency.plain_columns());
        let mut known: HashMap<(Vec<Code>, Vec<u64>), u32> = HashMap::new();
        let (mut of_row, mut codes, mut plain_values) = (Vec::with_capacity(table.rows()), Vec::new(), Vec::new());
        for row in 0..table.rows() as u32 {
            let of_axes: Vec<Code> = axes.iter().map(|&a| table.row(row)[a]).collect();
            let of_plain = plain_values_of_row(table, &plain, row);
            let next = known.len() as u32;
            let number = *known.entry((of_axes, of_plain)).or_insert_with_key(|(of_axes, of_plain)| {
                codes.extend_from_slice(of_axes);
                plain_values.extend_from_slice(of_plain);
                next
            });
            of_row.push(number);
        }
        Self { axes, plain, first, count: known.len(), of_row, codes, plain_values }
    }

    /// Columns of the dependency.
    pub fn width(&self) -> usize {
        self.axes.len() + self.plain.len()
    }

    /// Codes of an instance.
    pub fn codes(&self, instance: usize) -> &[Code] {
        &self.codes[instance * self.axes.len()..][..self.axes.len()]
    }

    /// Plain values of an instance.
    pub fn plain_values(&self, instance: usize) -> &[u64] {
        &self.plain_values[instance * self.plain.len()..][..self.plain.len()]
    }

    /// Plain values of the given rows, each combination once: `plain.len()` each.
    pub fn distinct_plain_values(&self, table: &Table, rows: &[u32]) -> Vec<u64> {
        if self.plain.is_empty() {
            return Vec::new();
        }
        self.plain_values_of(table, rows).concat()
    }

    /// Plain values of the given rows, each combination once; one empty combination without plain columns.
    pub fn plain_values_of(&self, table: &Table, rows: &[u32]) -> Vec<Vec<u64>> {
        if self.plain.is_empty() {
            return vec![Vec::new()];
        }
        let mut each: Vec<Vec<u64>> = rows.iter().map(|&row| plain_values_of_row(table, &self.plain, row)).collect();
        each.sort_unstable();
        each.dedup();
        each
    }

    /// The distance (4.3) of an instance and the closest row of a group: `values` is what the group publishes on every
    /// axis, `plain_values` the plain values of its rows.
    #[inline]
    pub fn distance(&self, instance: usize, values: &[Value], plain_values: &[u64]) -> f64 {
        let codes = self.codes(instance).iter().zip(&self.axes);
        let apart: f64 = codes.map(|(&code, &a)| values[a].distance(code)).sum();
        (apart + self.count_mismatches(instance, plain_values) as f64) / self.width() as f64
    }

    /// Whether a group covers the instance on every column (definition 7).
    pub fn is_comparable(&self, instance: usize, values: &[Value], plain_values: &[u64]) -> bool {
        self.codes(instance).iter().zip(&self.axes).all(|(&code, &a)| values[a].covers(code))
            && self.count_mismatches(instance, plain_values) == 0
    }

    /// Plain columns on which even the best row differs.
    fn count_mismatches(&self, instance: usize, plain_values: &[u64]) -> usize {
        let width = self.plain.len();
        if width == 0 {
            return 0;
        }
        let wanted = self.plain_values(instance);
        let differing = |row: &[u64]| row.iter().zip(wanted).filter(|(a, b)| a != b).count();
        plain_values.chunks_exact(width).map(differing).min().unwrap_or(width)
    }

    /// Columns on which an original row agrees with an instance.
    pub fn count_matches(&self, instance: usize, table: &Table, row: u32) -> usize {
        let of_row = table.row(row);
        let codes = self.codes(instance).iter().zip(&self.axes).filter(|(code, a)| **code == of_row[**a]).count();
        let plain_values = self.plain_values(instance).iter().zip(&self.plain);
        codes + plain_values.filter(|(value, column)| **value == table.plain[**column][row as usize]).count()
    }
}

fn plain_values_of_row(table: &Table, plain: &[usize], row: u32) -> Vec<u64> {
    plain.iter().map(|&column| table.plain[column][row as usize]).collect()
}
