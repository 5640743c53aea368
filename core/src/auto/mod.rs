//! `auto`, Throng's own method: box splits, covers by the cheapest boxes, local search.
//!
//! 1. *Heavy tuples* become groups at once, where they dominate (`heavy.rs`).
//! 2. *Box splits* cut the other rows into subspaces (`halve.rs`); where some axes have no hierarchy, *gain splits* do
//!    ([`crate::grouping::split::gain`]).
//! 3. *Cover*: in every subspace, the cheapest box of the lattice that holds enough rows becomes a group, and then the
//!    next (`cover.rs`). Where some axes have no hierarchy, groups that grow row by row from random seeds (`grow.rs`) may
//!    be as good and are quicker; trying both on a few subspaces decides.
//! 4. *Local search*: rows move and change places, groups dissolve (`refine.rs`), neighbours are covered again
//!    (`rebox.rs`).
//! 5. *Rounds*: the search again, across the borders of the subspaces (`cross.rs`).
//!
//! Growth row by row cannot see that one large step would bring in many rows at once; a cover can, and the larger the
//! groups, the more that is worth. How much of all this is done is the [`Effort`]. Nothing grows faster than linearly in
//! the rows of a cell, but for the logarithm in the splits. With rules beyond the group size, cuts leave subspaces that meet
//! them as a whole, boxes and groups widen until they hold, and every change asks them first; rows for which no group was
//! found look for a seat in the whole cell (`seats.rs`), and are left over when there is none.

#[cfg(test)]
mod boxes_tests;
mod branch;
mod chain;
mod cover;
mod cross;
mod crowd;
mod grow;
mod halve;
mod heavy;
mod lattice;
mod pool;
mod rebox;
mod refine;
mod seats;
mod space;
mod spread;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use crate::grouping::Method;
use crate::grouping::entry::Entry;
use crate::grouping::options::{Key, Kind};
use crate::grouping::split::{Gain, Split, cut_subspaces, subspaces_of};
use crate::model::{Grouping, Table};
use crate::privacy::{GroupView, Rules, commonest_code};
use cover::{Coverer, Scene, Seeds};
use crowd::Crowd;
use grow::Grower;
use halve::{Cut, Halver, OVERSIZE};
use refine::{Pass, Search};
use space::{Ruler, Space};

/// Catalogue entry.
pub const ENTRY: Entry =
    Entry::new("auto", "Covers by the cheapest boxes, local search: the best for most tables.", |setting| {
        let effort = setting.options.text(&EFFORT).and_then(Effort::from_name).unwrap_or_default();
        Arc::new(Auto::new(effort))
    })
    .options(&[EFFORT]);

/// How long the search takes.
pub const EFFORT: Key = Key::new(
    "effort",
    "How long `auto` searches. Defaults to `balanced`.",
    Kind::Word(&[
        ("fast", "Quicker than `balanced`, up to several times, at a little more loss."),
        ("balanced", "The default."),
        ("thorough", "Less loss, several times slower than `balanced`."),
        ("best", "The least loss, several times slower than `thorough`, and ten times where numbers are ranges."),
    ]),
);

/// How long the method searches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Effort {
    /// A cover by few seeds.
    Fast,
    /// A cover by more seeds and one turn of local search.
    #[default]
    Balanced,
    /// Larger subspaces, more seeds, and rounds of search across their borders.
    Thorough,
    /// The same, with more of everything.
    Best,
}

impl Effort {
    /// All efforts, from the quickest to the best.
    pub const ALL: [Self; 4] = [Self::Fast, Self::Balanced, Self::Thorough, Self::Best];

    /// Name in the job file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Balanced => "balanced",
            Self::Thorough => "thorough",
            Self::Best => "best",
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
            Self::Best => &BEST,
        }
    }
}

/// What an effort does.
#[derive(Debug)]
struct Plan {
    /// Fewest rows of a subspace.
    subspace: usize,
    /// The same where some axes have no hierarchy.
    free_subspace: usize,
    /// Fewest groups that a subspace has room for.
    groups: usize,
    /// How subspaces are cut.
    cut: Cut,
    /// Seeds of a cover, per group that there is room for, and at the least.
    seeds: Seeds,
    /// Local search after a cover.
    passes: &'static [Pass],
    /// Local search where some axes have no hierarchy.
    free_passes: &'static [Pass],
    /// Growth is quicker than a cover, the more so the smaller the groups are. Where some axes have no hierarchy it is chosen
    /// if it loses no more than so many per cent more, divided by the rows of a group.
    growth_favour: u64,
    /// Growth and cover are held against each other in so many subspaces, and whenever the number of subspaces has doubled
    /// since: then the one that has been better is chosen for the others.
    trials: usize,
    /// Rounds across the borders of subspaces.
    rounds: Rounds,
    /// The same where some axes have no hierarchy.
    free_rounds: Rounds,
}

/// Search across the borders of subspaces.
#[derive(Debug)]
struct Rounds {
    count: u64,
    /// Local search in every round.
    passes: &'static [Pass],
    /// Rows of a neighbourhood.
    neighbours: usize,
}

impl Rounds {
    const NONE: Self = Self { count: 0, passes: &[], neighbours: 0 };
}

const FAST: Plan = Plan {
    subspace: 1024,
    free_subspace: 1024,
    groups: 40,
    cut: Cut { seeds: 2, sample: 1024 },
    seeds: Seeds { share: 0.5, least: 16, boxes: 1024, noise: 0.0 },
    passes: &[],
    free_passes: &[Pass::Exchange { near: 1 }, Pass::Dissolve, Pass::Move],
    growth_favour: 200,
    trials: 4,
    rounds: Rounds::NONE,
    free_rounds: Rounds::NONE,
};

const BALANCED: Plan = Plan {
    subspace: 2048,
    free_subspace: 1536,
    groups: 80,
    cut: Cut { seeds: 4, sample: 2048 },
    seeds: Seeds { share: 1.0, least: 160, boxes: 1024, noise: 0.0 },
    passes: &[Pass::Move, Pass::Dissolve, Pass::Move],
    free_passes: &[Pass::Exchange { near: 2 }, Pass::Dissolve, Pass::Exchange { near: 2 }],
    growth_favour: 20,
    trials: 8,
    rounds: Rounds::NONE,
    free_rounds: Rounds::NONE,
};

const THOROUGH: Plan = Plan {
    subspace: 16_384,
    free_subspace: 2048,
    groups: 120,
    cut: Cut { seeds: 8, sample: 4096 },
    seeds: Seeds { share: 2.0, least: 320, boxes: 4096, noise: 0.0 },
    passes: &[],
    free_passes: &[Pass::Exchange { near: 4 }, Pass::Dissolve, Pass::Exchange { near: 4 }],
    growth_favour: 0,
    trials: 16,
    rounds: Rounds {
        count: 2,
        passes: &[Pass::Move, Pass::Dissolve, Pass::Move, Pass::Rebox { near: 5, seeds: 12, share: 1.0 }, Pass::Move],
        neighbours: 2048,
    },
    free_rounds: Rounds {
        count: 2,
        passes: &[
            Pass::Exchange { near: 2 },
            Pass::Dissolve,
            Pass::Exchange { near: 2 },
            Pass::Rebox { near: 5, seeds: 12, share: 1.0 },
            Pass::Exchange { near: 2 },
        ],
        neighbours: 2048,
    },
};

const BEST: Plan = Plan {
    subspace: 32_768,
    free_subspace: 8192,
    groups: 320,
    cut: Cut { seeds: 8, sample: 4096 },
    seeds: Seeds { share: 4.0, least: 64, boxes: 8192, noise: 0.0 },
    passes: &[],
    free_passes: &[Pass::Exchange { near: 4 }, Pass::Dissolve, Pass::Exchange { near: 4 }],
    growth_favour: 0,
    trials: usize::MAX,
    rounds: Rounds {
        count: 3,
        passes: &[Pass::Move, Pass::Dissolve, Pass::Move, Pass::Rebox { near: 8, seeds: 32, share: 2.0 }, Pass::Move],
        neighbours: 4096,
    },
    free_rounds: Rounds {
        count: 8,
        passes: &[
            Pass::Exchange { near: 4 },
            Pass::Dissolve,
            Pass::Exchange { near: 4 },
            Pass::Rebox { near: 5, seeds: 16, share: 8.0 },
            Pass::Exchange { near: 4 },
        ],
        neighbours: 8192,
    },
};

/// Growth compares all rows of a subspace with each other: too slow for groups of more rows than this.
const MAX_GROWN: usize = 100;

/// Axes without hierarchies among more than this many make covers too slow to be tried by the quicker efforts.
const MAX_TRIED: usize = 12;

/// Groups that are asked to take a row that no group of its subspace grew around, when more than rows are counted.
const HOSTS: usize = 16;

/// Fewest rows of a region, a part of the cell that is copied out so that cutting it further stays in the cache.
const REGION: usize = 131_072;

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
            if judge.allows_group(&all) {
                groups.push(&all);
            } else {
                groups.left_over = all;
            }
            return groups;
        }
        drop(all);
        let plan = self.effort.plan();
        let ruler = Ruler::new(&cell.axes);
        let rest = heavy::take_heavy_tuples(cell, &ruler, &judge, &mut groups);
        let mut worker = Worker::new(&ruler, plan, seed);
        let mut grown = Grouping::with_capacity(rest.len());
        let subspace = if ruler.is_lattice() { plan.subspace } else { plan.free_subspace };
        let least = subspace.max(plan.groups * judge.expected);
        let split = GuardedGain { judge: &judge, names: None };
        let (rows, ends) = subspaces_of(cell, rest, &split, REGION.max(4 * least));
        let mut start = 0;
        for end in ends {
            worker.cluster_region(&judge, &rows[start..end], least, &mut grown);
            start = end;
        }
        drop(rows);
        let rounds = if ruler.is_lattice() { &plan.rounds } else { &plan.free_rounds };
        for round in 0..rounds.count {
            let seed = seed.wrapping_add((round + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
            grown = cross::run_round(&mut worker, &judge, &grown, rounds.neighbours, rounds.passes, seed);
        }
        groups.append(&grown);
        seats::find_seats(&judge, groups)
    }
}

/// The gain split, on attributes that leave sides which meet the rules as the whole does: a subspace of people who are all
/// alike could not be grouped from within.
struct GuardedGain<'a> {
    judge: &'a Judge<'a>,
    /// What the rows are called in the judge's table, when they are a copy of some of its rows.
    names: Option<&'a [u32]>,
}

impl Split for GuardedGain<'_> {
    fn cut_rows(&self, table: &Table, rows: &mut [u32], least: usize) -> Option<usize> {
        if self.judge.plain || rows.len() < 2 * least || !self.judge.may_hold_together(&self.original_rows(rows)) {
            return Gain::new().cut_rows(table, rows, least);
        }
        let has_room = |rows: &[u32]| self.judge.has_room(&self.original_rows(rows));
        let hold = |rows: &[u32]| self.judge.may_hold_together(&self.original_rows(rows));
        let roomy = if has_room(rows) { Gain::new().cut_where(table, rows, least, has_room) } else { None };
        roomy
            .or_else(|| {
                let stratum = |row: u32| self.judge.sensitive_code(self.original_rows(&[row])[0]);
                spread::cut_strata(table, rows, least, stratum, hold)
            })
            .or_else(|| Gain::new().cut_where(table, rows, least, hold))
    }
}

impl GuardedGain<'_> {
    /// Rows as the judge's table calls them.
    fn original_rows(&self, rows: &[u32]) -> Vec<u32> {
        match self.names {
            None => rows.to_vec(),
            Some(names) => rows.iter().map(|&row| names[row as usize]).collect(),
        }
    }
}

/// Cuts all rows of a table into subspaces; those that are not divided are put in order and chopped.
fn cut_parts(table: &Table, split: &dyn Split, least: usize) -> (Vec<u32>, Vec<usize>) {
    let (mut rows, uneven) = cut_subspaces(table, split, least);
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
    /// Whether rows with equal [`sensitive codes`](Self::sensitive_code) are the same to the rules.
    by_values: bool,
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
        let of_values = rules.others.iter().all(|rule| rule.counts_values_only());
        let by_values = of_values && table.sensitive.len() <= 2 && table.persons.is_none() && table.members.is_none();
        Self { table, rules, k, expected, plain: rules.only_rows(table), by_values }
    }

    /// Whether the rows may form a group.
    fn allows_group(&self, rows: &[u32]) -> bool {
        rows.len() >= self.k && (self.plain || self.rules.are_met_by(&GroupView::new(self.table, rows)))
    }

    /// How far rows are from being allowed as a group: 0 when they are.
    fn excess(&self, rows: &[u32]) -> f64 {
        let missing = self.k.saturating_sub(rows.len()) as f64 / self.k as f64;
        missing + self.rules.excess(&GroupView::new(self.table, rows))
    }

    /// Whether every rule that the rows fail measures how far they are from it.
    fn is_measured(&self, rows: &[u32]) -> bool {
        let view = GroupView::new(self.table, rows);
        self.rules.others.iter().all(|rule| rule.excess(&view).is_some() || rule.is_met_by(&view))
    }

    /// Whether the rows meet the rules together, but for those that fewer rows may yet meet: if not, some of them are in
    /// excess and no way to group them helps.
    fn may_hold_together(&self, rows: &[u32]) -> bool {
        self.rules.hold_in_parts(&GroupView::new(self.table, rows))
    }

    /// The same if the commonest values were commoner by a quarter: rows that meet the rules only just cannot be grouped.
    fn has_room(&self, rows: &[u32]) -> bool {
        self.rules.hold_with_room(&GroupView::new(self.table, rows), 4)
    }

    /// What is sensitive of a row, as one number: of up to two columns, another one for other values.
    fn sensitive_code(&self, row: u32) -> u64 {
        let columns = self.table.sensitive.iter();
        columns.fold(0, |code, column| code.wrapping_mul(0x1_0000_0001).wrapping_add(column.codes[row as usize].into()))
    }

    /// The rows with values that are so common that the rules would fail if they were twice as common: others must be kept
    /// for them. Empty when there are none.
    fn crowded_rows(&self, rows: &[u32]) -> Vec<bool> {
        let view = GroupView::new(self.table, rows);
        if self.plain || self.rules.hold_with_room(&view, 1) {
            return Vec::new();
        }
        let columns = self.table.sensitive.iter();
        let commonest: Vec<Option<u32>> = columns.map(|column| commonest_code(&view.histogram(column))).collect();
        let is_common = |row: &u32| {
            let columns = self.table.sensitive.iter().zip(&commonest);
            columns.into_iter().any(|(column, commonest)| Some(column.codes[*row as usize]) == *commonest)
        };
        rows.iter().map(is_common).collect()
    }

    /// Rows at which a group that still fails a rule is abandoned.
    fn growth_limit(&self) -> usize {
        8 * self.expected + 32
    }
}

/// How a subspace is first grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    /// Cheapest boxes first.
    Cover,
    /// Row by row.
    Growth,
}

/// Everything that one space after the other is worked on with.
struct Worker<'a> {
    ruler: &'a Ruler,
    plan: &'static Plan,
    space: Space,
    grower: Grower,
    coverer: Coverer,
    halver: Halver,
    crowd: Crowd,
    rng: fastrand::Rng,
    /// What covers and growth have cost in the subspaces where both were tried.
    spent: (u64, u64),
    /// Subspaces so far in which either would do.
    seen: usize,
}

impl<'a> Worker<'a> {
    fn new(ruler: &'a Ruler, plan: &'static Plan, seed: u64) -> Self {
        Self {
            ruler,
            plan,
            space: Space::default(),
            grower: Grower::default(),
            coverer: Coverer::default(),
            halver: Halver::default(),
            crowd: Crowd::default(),
            rng: fastrand::Rng::with_seed(seed),
            spent: (0, 0),
            seen: 0,
        }
    }

    /// Groups the rows of a region, subspace by subspace.
    fn cluster_region(&mut self, judge: &Judge<'_>, rows: &[u32], least: usize, out: &mut Grouping) {
        let mut codes = Vec::with_capacity(rows.len() * judge.table.axes.len());
        rows.iter().for_each(|&row| codes.extend_from_slice(judge.table.row(row)));
        let region = Table::new(judge.table.axes.clone(), codes);
        // Cuts along boxes do not ask the rules.
        let (order, ends) = if self.ruler.is_lattice() && judge.plain {
            let all: Vec<u32> = (0..rows.len() as u32).collect();
            self.space.load_rows(self.ruler, &region, &all, |row| row);
            self.halver.cut_parts(self.ruler, &self.space, least, self.plan.cut, &mut self.rng)
        } else {
            cut_parts(&region, &GuardedGain { judge, names: Some(rows) }, least)
        };
        let mut start = 0;
        for end in ends {
            self.space.load_rows(self.ruler, &region, &order[start..end], |row| rows[row as usize]);
            self.cluster_rows(judge, out);
            start = end;
        }
    }

    /// Groups the rows of a subspace. Where all axes have hierarchies, a cover is best; elsewhere it may be growth.
    fn cluster_rows(&mut self, judge: &Judge<'_>, out: &mut Grouping) {
        if self.ruler.is_lattice() {
            self.start_groups(judge, Start::Cover, out);
            self.improve_space(judge, self.plan.passes);
        } else if judge.expected > MAX_GROWN {
            self.start_groups(judge, Start::Cover, out);
            self.improve_space(judge, self.plan.free_passes);
        } else {
            self.cluster_freely(judge, out);
        }
        self.hand_out(out);
    }

    /// Groups the rows of a subspace by growth or by a cover, whichever loses less here or in the first subspaces.
    fn cluster_freely(&mut self, judge: &Judge<'_>, out: &mut Grouping) {
        let passes = self.plan.free_passes;
        let many = self.plan.growth_favour > 0 && self.ruler.lanes.len() > MAX_TRIED;
        self.seen += 1;
        let tried = (self.seen <= self.plan.trials || self.seen.is_power_of_two()) && !many;
        let rows = judge.expected as u64;
        let near = self.spent.1 * 100 * rows <= self.spent.0 * (100 * rows + self.plan.growth_favour);
        let first = if !tried && near { Start::Growth } else { Start::Cover };
        let before = out.left_over.len();
        self.start_groups(judge, first, out);
        self.improve_space(judge, passes);
        if !tried {
            return;
        }
        let covered = (self.crowd.total_cost(), out.left_over.len() - before, std::mem::take(&mut self.crowd));
        let left_over = out.left_over.split_off(before);
        self.start_groups(judge, Start::Growth, out);
        self.improve_space(judge, passes);
        let grown = (self.crowd.total_cost(), out.left_over.len() - before);
        // A row that no group takes has lost everything.
        let all = u64::from(self.ruler.mean_unit()) * self.ruler.lanes.len() as u64;
        self.spent.0 += covered.0 + all * covered.1 as u64;
        self.spent.1 += grown.0 + all * grown.1 as u64;
        if (covered.1, covered.0) <= (grown.1, grown.0) {
            self.crowd = covered.2;
            out.left_over.truncate(before);
            out.left_over.extend(left_over);
        }
    }

    /// Makes groups of the rows of a subspace.
    fn start_groups(&mut self, judge: &Judge<'_>, start: Start, out: &mut Grouping) {
        let Self { ruler, plan, space, grower, coverer, crowd, rng, .. } = self;
        crowd.clear(space, space.rows.len() / judge.k + 1);
        let mut hosts = Vec::new();
        let mut finish = |group: &[u32]| crowd.push_group(ruler, space, group);
        // Whoever is common is seated first, as long as there are others beside them.
        let crowded = if judge.expected > MAX_GROWN { Vec::new() } else { judge.crowded_rows(&space.rows) };
        let mut rest: Vec<u32> = (0..space.rows.len() as u32).collect();
        if !crowded.is_empty() {
            rest = grower.grow_groups(ruler, space, judge, &rest, &crowded, &mut finish);
        }
        let left = match start {
            Start::Cover => coverer.cover_rows(Scene { ruler, space, judge }, &rest, plan.seeds, rng, finish),
            Start::Growth => grower.grow_groups(ruler, space, judge, &rest, &[], finish),
        };
        for row in left {
            crowd.scan_row(ruler, space, row);
            let joins = if judge.plain {
                crowd.cheapest_group(usize::MAX, judge.k, u64::MAX).map(|(target, _)| target)
            } else {
                crowd.nearest_groups(usize::MAX, judge.k, HOSTS, &mut hosts);
                hosts.iter().map(|&(_, target)| target).find(|&target| {
                    let wider = crowd.members[target].iter().chain([&row]).map(|&row| space.rows[row as usize]);
                    judge.allows_group(&wider.collect::<Vec<_>>())
                })
            };
            match joins {
                Some(target) => crowd.add_row(ruler, space, target, row),
                None => out.left_over.push(space.rows[row as usize]),
            }
        }
    }

    /// Improves groups that were made before.
    fn improve_groups<'g>(
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
        space.load_rows(ruler, judge.table, &rows, |row| row);
        crowd.clear(space, rows.len() / judge.k + 1);
        let mut start = 0;
        for end in ends {
            rows.clear();
            rows.extend(start..end);
            crowd.push_group(ruler, space, &rows);
            start = end;
        }
        self.improve_space(judge, passes);
        self.hand_out(out);
    }

    /// Improves the groups of the space.
    fn improve_space(&mut self, judge: &Judge<'_>, passes: &[Pass]) {
        let Self { ruler, space, crowd, coverer, grower, rng, .. } = self;
        let settled = vec![0; space.rows.len()];
        let mut search = Search {
            ruler,
            space,
            judge,
            crowd,
            coverer,
            grower,
            rng,
            nearest: Vec::new(),
            covers: Vec::new(),
            settled,
        };
        passes.iter().for_each(|&pass| search.run_pass(pass));
    }

    /// Adds the groups of the space to a grouping.
    fn hand_out(&self, out: &mut Grouping) {
        let mut rows = Vec::new();
        for members in &self.crowd.members {
            rows.clear();
            rows.extend(members.iter().map(|&row| self.space.rows[row as usize]));
            out.push(&rows);
        }
    }
}
