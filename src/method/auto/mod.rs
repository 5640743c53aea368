//! `auto`, Throng's own method: gain splits, greedy growth, local search.
//!
//! 1. *Heavy tuples* become groups at once, where they dominate (`heavy.rs`).
//! 2. *Gain splits* cut the other rows into subspaces of about a thousand rows ([`crate::partition::gain`]).
//! 3. *Growth*: in every subspace, groups grow row by row from random seeds (`grow.rs`).
//! 4. *Local search*: rows move and change places, groups dissolve (`refine.rs`).
//! 5. *Rounds*: the search again, across the borders of the subspaces (`cross.rs`).
//!
//! How much of this is done is the [`Effort`]. Nothing grows faster than linearly in the rows of a cell, but for the
//! logarithm in the splits. With rules beyond the group size, growth goes on until they hold, and every change asks
//! them first; rows for which no group was found are left over.

mod cross;
mod crowd;
mod grow;
mod heavy;
mod refine;
mod space;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::domain::{Grouping, Table};
use crate::method::Method;
use crate::method::catalogue::Entry;
use crate::method::options::{Key, Kind};
use crate::partition::{Gain, subspaces, subspaces_of};
use crate::privacy::{GroupView, Rules};
use crowd::Crowd;
use grow::Grower;
use refine::{Pass, Search};
use space::{Ruler, Space};

/// In the list of methods.
pub const ENTRY: Entry =
    Entry::new("auto", "Gain splits, greedy growth, local search: the best for most tables.", |setting| {
        let effort = setting.options.text(&EFFORT).and_then(Effort::from_name).unwrap_or_default();
        Arc::new(Auto::new(effort))
    })
    .options(&[EFFORT]);

const EFFORT: Key = Key::new(
    "effort",
    "How long `auto` searches; `balanced` when absent.",
    Kind::Word(&[
        ("fast", "Several times the speed of `balanced` at a little more loss."),
        ("balanced", "The default."),
        ("thorough", "The least loss, several times slower than `balanced`."),
    ]),
);

/// How long the method searches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Effort {
    /// Growth only.
    Fast,
    /// Growth and one turn of local search.
    #[default]
    Balanced,
    /// Larger subspaces, more local search, and rounds across their borders.
    Thorough,
}

impl Effort {
    /// All efforts, from the quickest to the best.
    pub const ALL: [Self; 3] = [Self::Fast, Self::Balanced, Self::Thorough];

    /// Name as it stands in the job file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Balanced => "balanced",
            Self::Thorough => "thorough",
        }
    }

    /// The effort of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|effort| effort.name() == name)
    }

    fn plan(self) -> &'static Plan {
        match self {
            Self::Fast => &FAST,
            Self::Balanced => &BALANCED,
            Self::Thorough => &THOROUGH,
        }
    }
}

/// What an effort does.
#[derive(Debug)]
struct Plan {
    /// Fewest rows of a subspace.
    subspace: usize,
    /// Local search after growth.
    passes: &'static [Pass],
    /// Rounds across the borders of subspaces.
    rounds: u64,
    /// Local search in every round.
    round_passes: &'static [Pass],
    /// Fewest groups of a neighbourhood in a round.
    neighbours: usize,
}

const FAST: Plan = Plan { subspace: 512, passes: &[], rounds: 0, round_passes: &[], neighbours: 0 };

const BALANCED: Plan = Plan {
    subspace: 1024,
    passes: &[Pass::Exchange { near: 2 }, Pass::Dissolve, Pass::Exchange { near: 2 }],
    rounds: 0,
    round_passes: &[],
    neighbours: 0,
};

const THOROUGH: Plan = Plan {
    subspace: 2048,
    passes: &[Pass::Exchange { near: 4 }, Pass::Dissolve, Pass::Exchange { near: 4 }],
    rounds: 3,
    round_passes: &[Pass::Exchange { near: 4 }, Pass::Dissolve, Pass::Exchange { near: 4 }],
    neighbours: 128,
};

/// Subspaces hold at least this many times k rows.
const GROUPS_PER_SUBSPACE: usize = 16;

/// Fewest rows of a region, a part of the cell that is copied out so that cutting it further stays in the cache.
const REGION: usize = 16_384;

/// Subspaces that no split could bring below this many times the fewest rows are chopped.
const OVERSIZE: usize = 4;

/// The method `auto`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Auto {
    effort: Effort,
}

impl Auto {
    /// The method at some effort.
    pub fn new(effort: Effort) -> Self {
        Self { effort }
    }
}

impl Method for Auto {
    fn name(&self) -> &'static str {
        "auto"
    }

    fn group(&self, cell: &Table, rules: &Rules, seed: u64) -> Grouping {
        let judge = Judge::new(cell, rules);
        let all: Vec<u32> = (0..cell.rows() as u32).collect();
        let mut groups = Grouping::with_capacity(all.len());
        if all.len() < 2 * judge.k {
            if judge.allows(&all) {
                groups.push(&all);
            } else {
                groups.left_over = all;
            }
            return groups;
        }
        drop(all);
        let plan = self.effort.plan();
        let ruler = Ruler::new(&cell.axes);
        let rest = heavy::take(cell, &ruler, &judge, &mut groups);
        let mut worker = Worker::new(&ruler);
        let mut grown = Grouping::with_capacity(rest.len());
        let least = plan.subspace.max(GROUPS_PER_SUBSPACE * judge.expected);
        let (rows, ends) = subspaces_of(cell, rest, &Gain::new(), least.max(REGION));
        let mut start = 0;
        for end in ends {
            worker.cluster_region(&judge, &rows[start..end], least, plan.passes, &mut grown);
            start = end;
        }
        drop(rows);
        for round in 0..plan.rounds {
            let seed = seed.wrapping_add((round + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
            grown = cross::round(&mut worker, &judge, &grown, plan.neighbours, plan.round_passes, seed);
        }
        groups.append(&grown);
        groups
    }
}

/// Cuts all rows of a table into subspaces; those that no value boundary divides are put in order and chopped.
fn parts(table: &Table, least: usize) -> (Vec<u32>, Vec<usize>) {
    let (mut rows, uneven) = subspaces(table, &Gain::new(), least);
    let mut ends = Vec::with_capacity(uneven.len());
    let mut start = 0;
    for end in uneven {
        let size = end - start;
        if size > OVERSIZE * least {
            rows[start..end].sort_by(|&x, &y| table.row(x).cmp(table.row(y)));
            let pieces = size / least;
            ends.extend((1..pieces).map(|piece| start + piece * size / pieces));
        }
        ends.push(end);
        start = end;
    }
    (rows, ends)
}

/// The rules, and what they mean for the search.
struct Judge<'a> {
    table: &'a Table,
    rules: &'a Rules,
    /// Fewest rows in a group, at least 1.
    k: usize,
    /// Rows that a group of enough people has on average, when people are counted; else `k`.
    expected: usize,
    /// Whether `k` rows are enough.
    plain: bool,
}

impl<'a> Judge<'a> {
    fn new(table: &'a Table, rules: &'a Rules) -> Self {
        let k = rules.k.max(1);
        let expected = table.persons.as_ref().map_or(k, |persons| {
            let mut distinct = persons.clone();
            distinct.sort_unstable();
            distinct.dedup();
            k * persons.len().div_ceil(distinct.len().max(1)).max(1)
        });
        Self { table, rules, k, expected, plain: rules.only_rows(table) }
    }

    /// Whether the rows may form a group.
    fn allows(&self, rows: &[u32]) -> bool {
        rows.len() >= self.k && (self.plain || self.rules.hold(&GroupView::new(self.table, rows)))
    }

    /// Rows at which a group that still fails a rule is given up.
    fn growth_limit(&self) -> usize {
        8 * self.expected + 32
    }
}

/// Everything that one space after the other is worked on with.
struct Worker<'a> {
    ruler: &'a Ruler,
    space: Space,
    grower: Grower,
    crowd: Crowd,
}

impl<'a> Worker<'a> {
    fn new(ruler: &'a Ruler) -> Self {
        Self { ruler, space: Space::default(), grower: Grower::default(), crowd: Crowd::default() }
    }

    /// Groups the rows of a region, subspace by subspace.
    fn cluster_region(&mut self, judge: &Judge<'_>, rows: &[u32], least: usize, passes: &[Pass], out: &mut Grouping) {
        let mut codes = Vec::with_capacity(rows.len() * judge.table.axes.len());
        rows.iter().for_each(|&row| codes.extend_from_slice(judge.table.row(row)));
        let region = Table::new(judge.table.axes.clone(), codes);
        let (order, ends) = parts(&region, least);
        let mut start = 0;
        for end in ends {
            self.space.load(self.ruler, &region, &order[start..end], |row| rows[row as usize]);
            self.cluster(judge, out);
            self.search(judge, passes, out);
            start = end;
        }
    }

    /// Groups the rows of a subspace.
    fn cluster(&mut self, judge: &Judge<'_>, out: &mut Grouping) {
        let Self { ruler, space, grower, crowd } = self;
        crowd.clear(space, space.rows.len() / judge.k + 1);
        for row in grower.grow(ruler, space, judge, |group| crowd.push(ruler, space, group)) {
            crowd.scan(ruler, space, row);
            let joins = crowd.cheapest(usize::MAX, judge.k, u64::MAX).map(|(target, _)| target).filter(|&target| {
                let wider = || crowd.members[target].iter().chain([&row]).map(|&row| space.rows[row as usize]);
                judge.plain || judge.allows(&wider().collect::<Vec<_>>())
            });
            match joins {
                Some(target) => crowd.join(ruler, space, target, row),
                None => out.left_over.push(space.rows[row as usize]),
            }
        }
    }

    /// Improves groups that were made before.
    fn improve<'g>(
        &mut self,
        judge: &Judge<'_>,
        groups: impl Iterator<Item = &'g [u32]>,
        passes: &[Pass],
        out: &mut Grouping,
    ) {
        let (mut rows, mut ends) = (Vec::new(), Vec::new());
        for group in groups {
            rows.extend_from_slice(group);
            ends.push(rows.len() as u32);
        }
        let Self { ruler, space, crowd, .. } = self;
        space.load(ruler, judge.table, &rows, |row| row);
        crowd.clear(space, rows.len() / judge.k + 1);
        let mut start = 0;
        for end in ends {
            rows.clear();
            rows.extend(start..end);
            crowd.push(ruler, space, &rows);
            start = end;
        }
        self.search(judge, passes, out);
    }

    fn search(&mut self, judge: &Judge<'_>, passes: &[Pass], out: &mut Grouping) {
        let Self { ruler, space, crowd, .. } = self;
        let settled = vec![0; space.rows.len()];
        let mut search = Search { ruler, space, judge, crowd, nearest: Vec::new(), covers: Vec::new(), settled };
        passes.iter().for_each(|&pass| search.pass(pass));
        let mut rows = Vec::new();
        for members in &crowd.members {
            rows.clear();
            rows.extend(members.iter().map(|&row| space.rows[row as usize]));
            out.push(&rows);
        }
    }
}
