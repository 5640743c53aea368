//! `density` and `density-cm`: the densest rows become centres and take their nearest (DBCA of Sun, Wang and Li).
//!
//! 1. The cell is cut into subspaces of `least` to 2 `least` - 1 rows, because densities compare every row with every
//!    other: the paper does so on the whole table, here the cost is n times `least`.
//! 2. Density of a row: 1 / the mean [`Dist`](Distortion::row_distance) to its k nearest others.
//! 3. The centre is the densest row that is free. From the second on it must also lie further from the previous centre
//!    than both mean distances together; when none does, the densest free one is taken.
//! 4. The cluster is the centre and its k - 1 nearest free rows. `density-cm` adds a penalty to the distance of rows
//!    whose class differs from the centre's, so that clusters are good for learning the class.
//! 5. While k rows are free, from 3. The rest go, one by one, to the cluster whose distortion grows least.
//!
//! Ties go to the row that comes first. Clusters have k to 2k - 1 rows; other rules are left to settling.

use std::sync::Arc;

use crate::grouping::cancel::checkpoint;
use crate::grouping::cutting::{self, S};
use crate::grouping::distortion::{Distortion, Numbers, Weights};
use crate::grouping::entry::{Entry, Remark, Setting};
use crate::grouping::options::{Key, Kind};
use crate::grouping::split::widest::Widest;
use crate::grouping::{Method, in_subspaces};
use crate::model::{Code, Cover, Grouping, Sensitive, Table};
use crate::privacy::Rules;

/// Catalogue entry of `density`.
pub const DENSITY: Entry =
    Entry::new("density", "Density-based clusters of k, by steps in the hierarchies and priorities.", |setting| {
        Arc::new(Density::from_setting(setting))
    })
    .options(&[WEIGHTS, BETA, NUMBERS, PRIORITIES, S])
    .check(check_setting);

/// Catalogue entry of `density-cm`.
pub const DENSITY_CM: Entry =
    Entry::new("density-cm", "As `density`, with clusters of one class where that is cheap.", |setting| {
        let class = setting.options.text(&CLASS).map(str::to_owned);
        let penalty = setting.options.number(&PENALTY).unwrap_or(1.0);
        Arc::new(Density { class: Some(Class { column: class, penalty }), ..Density::from_setting(setting) })
    })
    .options(&[WEIGHTS, BETA, NUMBERS, PRIORITIES, S, CLASS, PENALTY])
    .check(|setting| {
        let mut remarks = check_setting(setting);
        let missing = |columns: &Vec<String>| match setting.options.text(&CLASS) {
            Some(class) => columns.iter().all(|column| column != class),
            None => columns.is_empty(),
        };
        if setting.sensitive.as_ref().is_some_and(missing) {
            let message = "`density-cm` needs a sensitive column that holds the class";
            let help = "give the class the role \"sensitive\" and name it: class = \"...\"";
            remarks.push(Remark::error("method.class", message, help));
        }
        remarks
    });

const WEIGHTS: Key = Key::new(
    "weights",
    "What the steps of a hierarchy weigh. Defaults to `uniform`.",
    Kind::Word(&[("uniform", "All the same."), ("height", "More, the nearer they are to the root.")]),
);
const BETA: Key = Key::new("beta", "How fast `height` weights grow. Defaults to 1.", Kind::Number { least: 1.0 });
const NUMBERS: Key = Key::new(
    "numbers",
    "What a group of different numbers without a hierarchy costs. Defaults to `range`.",
    Kind::Word(&[("range", "The share of the domain that it spans."), ("interval", "Half, however wide it is.")]),
);
const PRIORITIES: Key = Key::new(
    "priorities",
    "The quasi-identifiers, most important first; generalising the last one costs nothing. By default, each \
     column's `priority` decides.",
    Kind::Columns,
);
const CLASS: Key = Key::new("class", "The sensitive column that holds the class. Defaults to the first.", Kind::Column);
const PENALTY: Key =
    Key::new("penalty", "What is added to the distance of another class. Defaults to 1.", Kind::Number { least: 0.0 });

fn check_setting(setting: &Setting<'_>) -> Vec<Remark> {
    let mut remarks = cutting::check_options(setting);
    if setting.options.has(&BETA) && setting.options.text(&WEIGHTS) != Some("height") {
        let message = "is an option of height weights";
        remarks.push(Remark::error("method.beta", message, "set weights = \"height\", or remove it"));
    }
    if let (Some(listed), Some(quasi)) = (setting.options.list(&PRIORITIES), &setting.quasi) {
        let (mut listed, mut quasi) = (listed.to_vec(), quasi.clone());
        let last = listed.last().cloned().filter(|_| listed.len() > 1);
        listed.sort_unstable();
        quasi.sort_unstable();
        if listed != quasi {
            let message = "must name every quasi-identifier once";
            remarks.push(Remark::error("method.priorities", message, format!("there are {}", quasi.join(", "))));
        } else if let Some(last) = last {
            let message =
                format!("`{last}` has priority 0: generalising it costs nothing, so it mostly becomes the top");
            let help = "if that is too much, give the columns a `priority` of their own instead";
            remarks.push(Remark::warning("method.priorities", message, help));
        }
    }
    remarks
}

/// The column that clusters should agree on.
#[derive(Debug, Clone, PartialEq)]
pub struct Class {
    /// The sensitive column; the first when there is no name.
    pub column: Option<String>,
    /// What is added to the distance of rows of another class.
    pub penalty: f64,
}

/// Density-based clustering.
#[derive(Debug, Clone, PartialEq)]
pub struct Density {
    /// Weights of the steps of hierarchies.
    pub weights: Weights,
    /// What numbers without a hierarchy cost.
    pub numbers: Numbers,
    /// The attributes from the most important on; empty: their weights decide.
    pub ranked: Vec<String>,
    /// Fewest rows of a subspace; `usize::MAX` clusters the cell as a whole.
    pub least: usize,
    /// What clusters should agree on: with it, this is `density-cm`.
    pub class: Option<Class>,
}

impl Default for Density {
    /// Uniform weights, ranges of numbers, subspaces of some 512 to 1024 rows.
    fn default() -> Self {
        Self { weights: Weights::Uniform, numbers: Numbers::Range, ranked: Vec::new(), least: USUAL_ROWS, class: None }
    }
}

/// Fewest rows of a subspace, when there is room for some clusters.
const USUAL_ROWS: usize = 512;

impl Density {
    fn from_setting(setting: &Setting<'_>) -> Self {
        let options = setting.options;
        let beta = options.number(&BETA).unwrap_or(1.0);
        Self {
            weights: if options.text(&WEIGHTS) == Some("height") { Weights::Height { beta } } else { Weights::Uniform },
            numbers: if options.text(&NUMBERS) == Some("interval") { Numbers::Interval } else { Numbers::Range },
            ranked: options.list(&PRIORITIES).unwrap_or_default().to_vec(),
            least: cutting::min_subspace_rows(setting, USUAL_ROWS.max(16 * setting.k)),
            class: None,
        }
    }
}

impl Method for Density {
    fn name(&self) -> &'static str {
        if self.class.is_some() { DENSITY_CM.name } else { DENSITY.name }
    }

    fn group(&self, cell: &Table, rules: &Rules, _seed: u64) -> Grouping {
        let k = rules.k.max(1);
        let distortion = Distortion::new(&cell.axes, self.weights, self.numbers, &self.ranked);
        let class = self.class.as_ref().and_then(|class| {
            let named = |column: &&Sensitive| class.column.as_ref().is_none_or(|name| *name == column.name);
            Some((cell.sensitive.iter().find(named)?, class.penalty))
        });
        let mut grouping = Grouping::with_capacity(cell.rows());
        in_subspaces(cell, &Widest::default(), self.least.max(k), |rows| {
            let mut near = Near::new(cell, &distortion, rows);
            cluster_rows(cell, &distortion, class, &mut near, k, &mut grouping);
        });
        grouping
    }
}

/// Distances from one row of a subspace to all others, by table look-up per axis: on every axis they depend on the
/// codes alone. Rows are named by their place in the subspace.
struct Near<'a> {
    distortion: &'a Distortion<'a>,
    rows: &'a [u32],
    /// Distinct codes of the subspace per axis.
    palettes: Vec<Vec<Code>>,
    /// Place in its palette of every code, axis by axis.
    local: Vec<Vec<u16>>,
    costs: Vec<f64>,
}

impl<'a> Near<'a> {
    fn new(cell: &Table, distortion: &'a Distortion<'a>, rows: &'a [u32]) -> Self {
        let codes = |a: usize| rows.iter().map(move |&row| cell.row(row)[a]);
        let palette = |a: usize| {
            let mut palette: Vec<Code> = codes(a).collect();
            palette.sort_unstable();
            palette.dedup();
            palette
        };
        let palettes: Vec<Vec<Code>> = (0..cell.axes.len()).map(palette).collect();
        let place = |a: usize, code: Code| palettes[a].partition_point(|&other| other < code) as u16;
        let local = (0..palettes.len()).map(|a| codes(a).map(|code| place(a, code)).collect()).collect();
        Self { distortion, rows, palettes, local, costs: Vec::new() }
    }

    /// Fills in the distance of every row to the row at a place.
    fn fill_distances(&mut self, from: usize, distances: &mut Vec<f64>) {
        distances.clear();
        distances.resize(self.rows.len(), 0.0);
        for (a, (palette, local)) in self.palettes.iter().zip(&self.local).enumerate() {
            let own = palette[usize::from(local[from])];
            let dist = |&code: &Code| 2.0 * self.distortion.on_axis(a, own.min(code), own.max(code));
            self.costs.clear();
            self.costs.extend(palette.iter().map(dist));
            for (distance, &place) in distances.iter_mut().zip(local) {
                *distance += self.costs[usize::from(place)];
            }
        }
    }
}

/// Mean of the k smallest distances to others.
fn mean_nearest(distances: &[f64], own: usize, k: usize, sorted: &mut Vec<f64>) -> f64 {
    sorted.clear();
    sorted.extend(distances.iter().enumerate().filter(|(place, _)| *place != own).map(|(_, distance)| distance));
    let k = k.min(sorted.len());
    if k == 0 {
        return 0.0;
    }
    sorted.select_nth_unstable_by(k - 1, f64::total_cmp);
    sorted[..k].iter().sum::<f64>() / k as f64
}

/// The mean distance of every row to the k nearest others. `distances` are left as those of the last row.
fn mean_distances(near: &mut Near<'_>, k: usize, distances: &mut Vec<f64>) -> Vec<f64> {
    let (mut sorted, count) = (Vec::new(), near.rows.len());
    let mean = |place| {
        near.fill_distances(place, distances);
        mean_nearest(distances, place, k, &mut sorted)
    };
    (0..count).map(mean).collect()
}

/// The `wanted` nearest of some places by their distances, the nearest first.
fn nearest_places(distances: impl Iterator<Item = (f64, usize)>, wanted: usize) -> Vec<(f64, usize)> {
    let mut nearest: Vec<(f64, usize)> = distances.collect();
    let by_distance = |a: &(f64, usize), b: &(f64, usize)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
    if wanted > 0 && nearest.len() > wanted {
        nearest.select_nth_unstable_by(wanted - 1, by_distance);
    }
    nearest.truncate(wanted);
    nearest.sort_by(by_distance);
    nearest
}

fn cluster_rows(
    cell: &Table,
    distortion: &Distortion<'_>,
    class: Option<(&Sensitive, f64)>,
    near: &mut Near<'_>,
    k: usize,
    grouping: &mut Grouping,
) {
    let rows = near.rows;
    if rows.len() < k {
        grouping.left_over.extend_from_slice(rows);
        return;
    }
    let other_class = |one: usize, other: usize| match class {
        Some((column, penalty)) if column.codes[rows[one] as usize] != column.codes[rows[other] as usize] => penalty,
        _ => 0.0,
    };
    let mut distances = Vec::new();
    let knn = mean_distances(near, k, &mut distances);
    // Free rows, the densest first.
    let mut free: Vec<usize> = (0..rows.len()).collect();
    free.sort_by(|&a, &b| knn[a].total_cmp(&knn[b]).then(a.cmp(&b)));
    let mut taken = vec![false; rows.len()];
    let mut clusters: Vec<(usize, Vec<u32>, Cover)> = Vec::with_capacity(rows.len() / k);
    while free.len() >= k {
        checkpoint();
        // The distances are still those of the previous centre.
        let apart = |place: usize, last: usize| distances[place] > knn[last] + knn[place];
        let last = clusters.last().map(|(centre, _, _)| *centre);
        let centre = free.iter().copied().find(|&place| last.is_none_or(|last| apart(place, last))).unwrap_or(free[0]);
        near.fill_distances(centre, &mut distances);
        let others = free.iter().filter(|&&place| place != centre);
        let distances = others.map(|&place| (distances[place] + other_class(centre, place), place));
        let nearest = nearest_places(distances, k - 1);
        let members: Vec<u32> = std::iter::once(centre)
            .chain(nearest.iter().map(|&(_, place)| place))
            .map(|place| {
                taken[place] = true;
                rows[place]
            })
            .collect();
        free.retain(|&place| !taken[place]);
        let cover = cell.cover(&members);
        clusters.push((centre, members, cover));
    }
    free.sort_unstable();
    for place in free {
        let codes = cell.row(rows[place]);
        let growth = |(centre, members, cover): &(usize, Vec<u32>, Cover)| {
            let size = members.len() as f64;
            let growth =
                (size + 1.0) * distortion.distortion_with_row(cover, codes) - size * distortion.cover_distortion(cover);
            growth + other_class(*centre, place)
        };
        let mut best = (f64::INFINITY, 0);
        for (at, cluster) in clusters.iter().enumerate() {
            let growth = growth(cluster);
            if growth < best.0 {
                best = (growth, at);
            }
        }
        clusters[best.1].1.push(rows[place]);
        clusters[best.1].2.add_row(&cell.axes, codes);
    }
    clusters.iter().for_each(|(_, members, _)| grouping.push(members));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Axis, SensitiveShape, Shape};

    fn line(values: &[u16]) -> Table {
        Table::new([Axis::new("x", Shape::Line { span: 100 })], values.to_vec())
    }

    fn groups(density: &Density, table: &Table, k: usize) -> Vec<Vec<u32>> {
        let grouping = density.group(table, &Rules::k(k), 0);
        assert_eq!(grouping.rows().len() + grouping.left_over.len(), table.rows());
        grouping.iter().map(<[u32]>::to_vec).collect()
    }

    #[test]
    fn sun_table_1_by_density_is_table_1b() {
        let table = crate::grouping::distortion::tests::table_1();
        let ranked = ["age", "postcode", "gender"].map(String::from).to_vec();
        let mut found = groups(&Density { ranked, ..Density::default() }, &table, 2);
        found.iter_mut().for_each(|group| group.sort_unstable());
        found.sort_unstable();
        assert_eq!(found, [[0, 1], [2, 3], [4, 5]]);
    }

    #[test]
    fn the_densest_row_is_the_first_centre_and_the_next_lies_apart() {
        // Value 11 is the densest. Value 13 comes next, but is too near to it; 53 is not.
        let found = groups(&Density::default(), &line(&[10, 50, 11, 13, 53, 57]), 2);
        assert_eq!(found, [[2, 0], [4, 1], [3, 5]]);
        let mut left_over = groups(&Density::default(), &line(&[10, 50, 11, 13, 53, 57, 99]), 3);
        left_over.iter_mut().for_each(|group| group.sort_unstable());
        assert_eq!(left_over, [vec![0, 2, 3], vec![1, 4, 5, 6]]);
    }

    #[test]
    fn without_a_row_apart_the_densest_is_taken() {
        assert_eq!(groups(&Density::default(), &line(&[1, 1, 1, 1]), 2), [[0, 1], [2, 3]]);
    }

    #[test]
    fn classes_stay_together_where_that_is_cheap() {
        let mut table = line(&[10, 11, 12, 13, 60, 61]);
        let shape = SensitiveShape::Set { values: 2 };
        let codes = vec![0, 1, 0, 1, 1, 1];
        table.sensitive =
            vec![Sensitive { name: "class".into(), codes, shape, null: None, ranges: Vec::new(), shares: None }];
        let cm = |penalty| Density { class: Some(Class { column: None, penalty }), ..Density::default() };
        assert_eq!(groups(&cm(0.0), &table, 2), groups(&Density::default(), &table, 2));
        assert_eq!(groups(&cm(1.0), &table, 2), [[1, 3], [4, 5], [2, 0]]);
        assert_eq!((cm(1.0).name(), Density::default().name()), ("density-cm", "density"));
    }

    #[test]
    fn clusters_have_k_to_2k_rows_and_subspaces_bound_the_cost() {
        let mut rng = fastrand::Rng::with_seed(3);
        let table = line(&(0..1000).map(|_| rng.u16(0..=100)).collect::<Vec<_>>());
        for least in [100, usize::MAX] {
            let found = groups(&Density { least, ..Density::default() }, &table, 7);
            assert!(found.iter().all(|group| (7..14).contains(&group.len())));
        }
        assert!(groups(&Density::default(), &line(&[1, 2]), 3).is_empty());
    }
}
