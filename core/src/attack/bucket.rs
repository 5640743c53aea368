//! A published bucket as the adversary sees it.

use std::collections::{BTreeMap, HashMap};

/// The public rows that may be in a bucket, and how often each value was published in it, column by column.
///
/// A *column* is what was permuted as one: a single attribute, or several whose values stayed together. Values are
/// numbers that mean the same in both tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket {
    /// Published rows.
    pub size: usize,
    /// How often each value was published, per column.
    pub published: Vec<BTreeMap<u32, u64>>,
    /// Distinct public rows, ascending, and how many people have each.
    pub classes: Vec<(Vec<u32>, u64)>,
    /// Class of every public row, in the order they were given in; empty when only the classes are known.
    pub class_of: Vec<u32>,
}

impl Bucket {
    /// A bucket in which every attribute is a column of its own.
    pub fn new<R: AsRef<[u32]>>(public: &[R], released: &[R]) -> Self {
        let width = released.first().or(public.first()).map_or(0, |row| row.as_ref().len());
        Self::sliced(public, released, &(0..width).map(|column| vec![column]).collect::<Vec<_>>())
    }

    /// A bucket whose columns are the given groups of attributes: their values were permuted together.
    pub fn sliced<R: AsRef<[u32]>>(public: &[R], released: &[R], columns: &[Vec<usize>]) -> Self {
        let mut numbers: Vec<HashMap<Vec<u32>, u32>> = vec![HashMap::new(); columns.len()];
        let mut fuse = |row: &[u32]| -> Vec<u32> {
            let number = |(column, numbers): (&Vec<usize>, &mut HashMap<Vec<u32>, u32>)| match column.as_slice() {
                [attribute] => row[*attribute],
                several => {
                    let next = numbers.len() as u32;
                    *numbers.entry(several.iter().map(|&attribute| row[attribute]).collect()).or_insert(next)
                }
            };
            columns.iter().zip(&mut numbers).map(number).collect()
        };
        let mut published = vec![BTreeMap::new(); columns.len()];
        for row in released {
            for (counts, value) in published.iter_mut().zip(fuse(row.as_ref())) {
                *counts.entry(value).or_default() += 1;
            }
        }
        let rows: Vec<Vec<u32>> = public.iter().map(|row| fuse(row.as_ref())).collect();
        let mut counts: BTreeMap<&[u32], u64> = BTreeMap::new();
        rows.iter().for_each(|row| *counts.entry(row).or_default() += 1);
        let place: HashMap<&[u32], u32> = counts.keys().copied().zip(0..).collect();
        let class_of = rows.iter().map(|row| place[row.as_slice()]).collect();
        let classes = counts.into_iter().map(|(row, count)| (row.to_vec(), count)).collect();
        Self { size: released.len(), published, classes, class_of }
    }

    /// A bucket of which the classes of equal public rows are known, and not every row.
    pub fn of_classes(size: usize, published: Vec<BTreeMap<u32, u64>>, mut classes: Vec<(Vec<u32>, u64)>) -> Self {
        classes.sort_unstable();
        Self { size, published, classes, class_of: Vec::new() }
    }

    /// Public rows.
    pub fn public_rows(&self) -> u64 {
        self.classes.iter().map(|(_, people)| people).sum()
    }

    /// How often a value was published in a column.
    pub fn published_count(&self, column: usize, value: u32) -> u64 {
        self.published[column].get(&value).copied().unwrap_or(0)
    }

    /// How many public rows hold each value, per column.
    pub fn supply_by_column(&self) -> Vec<BTreeMap<u32, u64>> {
        let mut supply = vec![BTreeMap::new(); self.published.len()];
        for (row, count) in &self.classes {
            supply.iter_mut().zip(row).for_each(|(counts, &value)| *counts.entry(value).or_default() += count);
        }
        supply
    }

    /// Whether some value alone shows that a person breaks the bounds. The mean chance of the people with a value is the
    /// number of times that it was published, divided by their number: when that is outside, so is somebody.
    ///
    /// Quick, and never wrong when it says so; otherwise the posterior decides.
    pub fn surely_breaks(&self, bounds: &super::Bounds) -> bool {
        let supply = self.supply_by_column();
        supply.iter().zip(&self.published).any(|(supply, published)| {
            let share = |(value, &people)| (published.get(value).copied().unwrap_or(0), people);
            supply.iter().map(share).any(|(part, whole): (u64, u64)| !bounds.allow_counts(part, whole))
        })
    }
}
