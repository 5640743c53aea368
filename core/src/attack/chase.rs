//! The chase: a reader who knows functional dependencies can use them to distinguish the rows of a class.
//!
//! The reader holds the release and a register: which combinations of quasi-identifiers occur ([`View::profiles`]). A
//! published row may be anybody whom its labels cover. A dependency `X -> Y` with a column that is published as it is
//! rules some of them out: a row fits a person only if the person's quasi-identifiers and the row's own columns agree
//! with what is known of the dependency. Two conclusions are drawn in turn until nothing more is learnt:
//!
//! 1. Where everybody whom a row still fits has the same left side x, the right side of x is that of one of them. All
//!    rows that say something of x are taken together, so x is left with the right sides that agree with all of them.
//! 2. Whoever would give a known left side a right side that it does not have is ruled out, be it that the left side is
//!    known and the right side is not, the other way round, or neither.
//!
//! A dependency that is tolerated to fail in some rows is what most rows of a left side say: right sides that contradict
//! the fewest rows remain, and those that contradict no more than the tolerated share. Where no row fails, that is the
//! same as agreeing with all.
//!
//! Dependencies among quasi-identifiers alone rule nobody out, because everybody in the register obeys them, and those
//! among plain columns say nothing of people.
//!
//! [`count_crowds`] then counts, class by class, who still fits whom. Gorla's table R'' is such a case: the diagnosis reveals the
//! medication that was generalised to hide the people.
//!
//! Both look at one left side at a time. Where there are few enough values, everybody who is left is also tried: assume
//! that a row is they, draw the conclusions, and if some row then fits nobody, it is not they. Finding everything is
//! NP-hard; whoever is ruled out is ruled out for certain, and the tests compare with a reader who tries every completion
//! of the table.
//!
//! That every row is a different person is not used here: [`seats`](super::seats) continues with whoever is left.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::model::{Attribute, Dependency};

/// A set of small numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct BitSet(Vec<u64>);

impl BitSet {
    /// The empty set, with room for numbers below `len`.
    pub fn with_len(len: usize) -> Self {
        Self(vec![0; len.div_ceil(64)])
    }

    /// Adds a number.
    pub fn insert(&mut self, at: usize) {
        self.0[at / 64] |= 1 << (at % 64);
    }

    /// Whether a number is in the set.
    pub fn contains(&self, at: usize) -> bool {
        self.0[at / 64] >> (at % 64) & 1 == 1
    }

    /// What both sets hold.
    pub fn intersection(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(mine, theirs)| mine & theirs).collect())
    }

    /// Whether the set holds nothing.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    fn union_with(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(mine, theirs)| *mine |= theirs);
    }

    /// The numbers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(at, &word)| {
            let bits = std::iter::successors(Some(word), |word| (*word != 0).then(|| word & (word - 1)));
            bits.take_while(|word| *word != 0).map(move |word| at * 64 + word.trailing_zeros() as usize)
        })
    }
}

/// Published rows that look alike to a reader, wherever they stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// Their labels, by place in [`View::labels`].
    pub label: usize,
    /// Their plain columns, by place in [`View::plains`].
    pub plain: usize,
    /// How many there are.
    pub rows: u64,
}

/// What a reader has before any reasoning. Values are numbers that differ when the values do.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// The dependencies, and which share of the rows may contradict each. `Quasi` counts columns of profiles, `Plain`
    /// those of plains.
    pub dependencies: Vec<(Dependency, f64)>,
    /// Combinations of quasi-identifiers that occur.
    pub profiles: Vec<Vec<u32>>,
    /// Combinations of plain columns that are published.
    pub plains: Vec<Vec<u32>>,
    /// The profiles that each combination of labels covers.
    pub labels: Vec<BitSet>,
    /// The published rows.
    pub kinds: Vec<Kind>,
}

/// What a reader knows in the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Knowledge {
    /// The profiles that no dependency rules out, for every combination of plain columns.
    consistent: Vec<BitSet>,
}

impl Knowledge {
    /// The profiles that a row fits. A row that contradicts what is known of the others fits whomever its labels cover.
    pub fn fitting_profiles(&self, label: &BitSet, plain: usize) -> BitSet {
        let both = label.intersection(&self.consistent[plain]);
        if both.is_empty() { label.clone() } else { both }
    }
}

/// One side of a value: the part that a profile has, and the part that plain columns have.
pub(super) type Side = (u32, u32);

/// Right sides that are left, by left side.
type Allowed = HashMap<Side, BTreeSet<Side>>;

/// A dependency with the sides of every profile and every combination of plain columns numbered.
pub(super) struct Numbered {
    tolerance: f64,
    from_profile: Vec<u32>,
    from_plain: Vec<u32>,
    to_profile: Vec<u32>,
    to_plain: Vec<u32>,
}

impl Numbered {
    pub(super) fn new(view: &View, (dependency, tolerance): &(Dependency, f64)) -> Self {
        let quasi = |attribute: &Attribute| if let Attribute::Quasi(at) = attribute { Some(*at) } else { None };
        let plain = |attribute: &Attribute| if let Attribute::Plain(at) = attribute { Some(*at) } else { None };
        let places = |side: &[Attribute], pick: &dyn Fn(&Attribute) -> Option<usize>| -> Vec<usize> {
            side.iter().filter_map(pick).collect()
        };
        Self {
            tolerance: *tolerance,
            from_profile: number_rows(&view.profiles, &places(&dependency.from, &quasi)),
            from_plain: number_rows(&view.plains, &places(&dependency.from, &plain)),
            to_profile: number_rows(&view.profiles, &places(&dependency.to, &quasi)),
            to_plain: number_rows(&view.plains, &places(&dependency.to, &plain)),
        }
    }

    pub(super) fn left_side(&self, profile: usize, plain: usize) -> Side {
        (self.from_profile[profile], self.from_plain[plain])
    }

    pub(super) fn right_side(&self, profile: usize, plain: usize) -> Side {
        (self.to_profile[profile], self.to_plain[plain])
    }
}

/// Numbers what rows have in some columns.
fn number_rows(rows: &[Vec<u32>], columns: &[usize]) -> Vec<u32> {
    let mut seen: HashMap<Vec<u32>, u32> = HashMap::new();
    let mut numbers = Vec::with_capacity(rows.len());
    for row in rows {
        let next = seen.len() as u32;
        numbers.push(*seen.entry(columns.iter().map(|&column| row[column]).collect()).or_insert(next));
    }
    numbers
}

/// What rows say of one left side.
#[derive(Default)]
struct Votes {
    rows: u64,
    agreeing: BTreeMap<Side, u64>,
}

impl Votes {
    /// Whether no right side agrees with all rows.
    fn are_split(&self) -> bool {
        self.agreeing.values().all(|agreeing| *agreeing < self.rows)
    }

    /// Right sides that contradict the fewest rows, or no more than is tolerated.
    fn allowed_sides(&self, tolerance: f64) -> BTreeSet<Side> {
        let fewest = self.agreeing.values().map(|agreeing| self.rows - agreeing).min().unwrap_or(0);
        let tolerated = fewest.max((self.rows as f64 * tolerance).floor() as u64);
        let stays = |(_, agreeing): &(&Side, &u64)| self.rows - **agreeing <= tolerated;
        self.agreeing.iter().filter(stays).map(|(side, _)| *side).collect()
    }
}

/// What has been concluded so far.
#[derive(Debug, Clone)]
struct Conclusions {
    /// Right sides that are left, by dependency and left side.
    allowed: Vec<Allowed>,
    /// Profiles that were tried and cannot be, by combination of plain columns.
    refuted: Vec<BitSet>,
    /// Whether rows contradict one another.
    contradicted: bool,
}

/// Most steps that trying whether somebody can be somewhere may take; beyond, conclusions are drawn one by one only.
const MAX_TRIAL_STEPS: usize = 1 << 24;

/// Draws all conclusions.
pub fn chase_dependencies(view: &View) -> Knowledge {
    let dependencies: Vec<Numbered> = view.dependencies.iter().map(|given| Numbered::new(view, given)).collect();
    let mut conclusions = Conclusions {
        allowed: dependencies.iter().map(|_| Allowed::new()).collect(),
        refuted: vec![BitSet::with_len(view.profiles.len()); view.plains.len()],
        contradicted: false,
    };
    let mut knowledge = propagate_conclusions(view, &dependencies, &mut conclusions);
    let pairs = view.profiles.len().saturating_mul(view.plains.len());
    let steps = pairs.saturating_mul(pairs.saturating_add(view.kinds.len()));
    // Where rows may contradict a dependency, a contradiction proves nothing.
    let exact = dependencies.iter().all(|dependency| dependency.tolerance == 0.0);
    while exact && steps <= MAX_TRIAL_STEPS && refute_placements(view, &dependencies, &mut conclusions, &knowledge) {
        knowledge = propagate_conclusions(view, &dependencies, &mut conclusions);
    }
    knowledge
}

/// Tries everybody everywhere, and strikes out whom some other row contradicts; whether there was any.
fn refute_placements(
    view: &View,
    dependencies: &[Numbered],
    conclusions: &mut Conclusions,
    knowledge: &Knowledge,
) -> bool {
    let mut found = false;
    for plain in 0..view.plains.len() {
        for profile in knowledge.consistent[plain].iter() {
            let mut trial = conclusions.clone();
            for (dependency, allowed) in dependencies.iter().zip(&mut trial.allowed) {
                let right = BTreeSet::from([dependency.right_side(profile, plain)]);
                allowed.insert(dependency.left_side(profile, plain), right);
            }
            let then = propagate_conclusions(view, dependencies, &mut trial);
            let fits_nobody =
                |kind: &Kind| view.labels[kind.label].intersection(&then.consistent[kind.plain]).is_empty();
            if trial.contradicted || view.kinds.iter().any(fits_nobody) {
                conclusions.refuted[plain].insert(profile);
                found = true;
            }
        }
    }
    found
}

/// Draws the two conclusions in turn until nothing more is learnt.
fn propagate_conclusions(view: &View, dependencies: &[Numbered], conclusions: &mut Conclusions) -> Knowledge {
    loop {
        let knowledge = rule_out(view, dependencies, conclusions);
        let mut learnt = false;
        for (dependency, allowed) in dependencies.iter().zip(&mut conclusions.allowed) {
            for (left, votes) in count_votes(view, dependency, &knowledge) {
                let found = votes.allowed_sides(dependency.tolerance);
                let known = allowed.get(&left);
                // What is known never grows, so this ends.
                let both = match known {
                    Some(known) => known.intersection(&found).copied().collect(),
                    None => found,
                };
                conclusions.contradicted |= both.is_empty() || votes.are_split();
                if !both.is_empty() && known != Some(&both) {
                    allowed.insert(left, both);
                    learnt = true;
                }
            }
        }
        if !learnt {
            return knowledge;
        }
    }
}

/// What the rows say of the left sides of a dependency, where it is certain which one they have.
fn count_votes(view: &View, dependency: &Numbered, knowledge: &Knowledge) -> HashMap<Side, Votes> {
    let mut votes: HashMap<Side, Votes> = HashMap::new();
    for kind in &view.kinds {
        let fitting = view.labels[kind.label].intersection(&knowledge.consistent[kind.plain]);
        let Some(first) = fitting.iter().next() else { continue };
        let left = dependency.left_side(first, kind.plain);
        if fitting.iter().any(|profile| dependency.left_side(profile, kind.plain) != left) {
            continue;
        }
        let votes = votes.entry(left).or_default();
        votes.rows += kind.rows;
        let rights: BTreeSet<Side> = fitting.iter().map(|profile| dependency.right_side(profile, kind.plain)).collect();
        rights.into_iter().for_each(|right| *votes.agreeing.entry(right).or_default() += kind.rows);
    }
    votes
}

/// The profiles that what is known leaves to every combination of plain columns.
fn rule_out(view: &View, dependencies: &[Numbered], conclusions: &Conclusions) -> Knowledge {
    let agrees = |profile: usize, plain: usize| {
        !conclusions.refuted[plain].contains(profile)
            && dependencies.iter().zip(&conclusions.allowed).all(|(dependency, allowed)| {
                let rights = allowed.get(&dependency.left_side(profile, plain));
                rights.is_none_or(|rights| rights.contains(&dependency.right_side(profile, plain)))
            })
    };
    let consistent = (0..view.plains.len()).map(|plain| {
        let mut profiles = BitSet::with_len(view.profiles.len());
        (0..view.profiles.len()).filter(|&profile| agrees(profile, plain)).for_each(|profile| profiles.insert(profile));
        profiles
    });
    Knowledge { consistent: consistent.collect() }
}

/// Rows of one class that look alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// How many there are.
    pub rows: u64,
    /// The profiles they fit.
    pub fitting: BitSet,
    /// Those of them whom the rows can be in truth: the source has them with the same plain columns.
    pub people: BitSet,
}

/// A set of rows of a class which fit a person who may be one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crowd {
    /// The rows, by place among the members of the class.
    pub members: Vec<usize>,
    /// How many there are.
    pub rows: u64,
}

/// What is left of a class.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Crowds {
    /// The different sets of rows among which somebody of the class can hide.
    pub crowds: Vec<Crowd>,
    /// The smallest of those in which each member may have to, in rows.
    pub smallest: Vec<u64>,
}

/// Among how many rows of their class people can still hide.
pub fn count_crowds(members: &[Member]) -> Crowds {
    let mut people = members.first().map(|member| member.people.clone()).unwrap_or_default();
    members.iter().for_each(|member| people.union_with(&member.people));
    let mut found: BTreeMap<Vec<usize>, u64> = BTreeMap::new();
    let mut smallest = vec![u64::MAX; members.len()];
    for person in people.iter() {
        let fits = |at: &usize| members[*at].fitting.contains(person);
        let crowd: Vec<usize> = (0..members.len()).filter(fits).collect();
        let rows: u64 = crowd.iter().map(|&at| members[at].rows).sum();
        for (member, smallest) in members.iter().zip(&mut smallest) {
            if member.people.contains(person) {
                *smallest = rows.min(*smallest);
            }
        }
        found.insert(crowd, rows);
    }
    // Rows that can be nobody mislead the reader: nothing true is learnt of them.
    let all = members.iter().map(|member| member.rows).sum();
    smallest.iter_mut().filter(|smallest| **smallest == u64::MAX).for_each(|smallest| *smallest = all);
    let crowds = found.into_iter().map(|(members, rows)| Crowd { members, rows }).collect();
    Crowds { crowds, smallest }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A small table, as it is and as it is published: quasi-identifiers and plain columns of every row, and its class.
    #[derive(Debug, Clone)]
    struct Small {
        quasi: Vec<Vec<u32>>,
        plain: Vec<Vec<u32>>,
        class: Vec<usize>,
        /// Per class and column, the values that are published.
        shown: Vec<Vec<BTreeSet<u32>>>,
        dependencies: Vec<(Dependency, f64)>,
    }

    impl Small {
        fn covers(&self, class: usize, profile: &[u32]) -> bool {
            self.shown[class].iter().zip(profile).all(|(set, value)| set.contains(value))
        }

        fn view(&self) -> View {
            let distinct = |rows: &[Vec<u32>]| rows.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect();
            let (profiles, plains): (Vec<Vec<u32>>, Vec<Vec<u32>>) = (distinct(&self.quasi), distinct(&self.plain));
            let mut labels = Vec::new();
            for class in 0..self.shown.len() {
                let mut covered = BitSet::with_len(profiles.len());
                let inside = |at: &usize| self.covers(class, &profiles[*at]);
                (0..profiles.len()).filter(inside).for_each(|at| covered.insert(at));
                labels.push(covered);
            }
            let place = |plain: &Vec<u32>| plains.iter().position(|other| other == plain).unwrap();
            let kind = |row: usize| Kind { label: self.class[row], plain: place(&self.plain[row]), rows: 1 };
            let kinds = (0..self.quasi.len()).map(kind).collect();
            View { dependencies: self.dependencies.clone(), profiles, plains, labels, kinds }
        }

        /// For every row, the smallest crowd in which its person may have to hide, by the chase.
        fn chased(&self) -> Vec<u64> {
            let view = self.view();
            let knowledge = chase_dependencies(&view);
            let mut smallest = vec![0; self.quasi.len()];
            for class in 0..self.shown.len() {
                let rows: Vec<usize> = (0..self.class.len()).filter(|&row| self.class[row] == class).collect();
                let member = |&row: &usize| {
                    let plain = view.kinds[row].plain;
                    let fitting = knowledge.fitting_profiles(&view.labels[class], plain);
                    let mut people = BitSet::with_len(view.profiles.len());
                    for (at, profile) in view.profiles.iter().enumerate() {
                        let occurs = (0..self.quasi.len())
                            .any(|other| self.quasi[other] == *profile && self.plain[other] == self.plain[row]);
                        if occurs && fitting.contains(at) {
                            people.insert(at);
                        }
                    }
                    Member { rows: 1, fitting, people }
                };
                let members: Vec<Member> = rows.iter().map(member).collect();
                rows.iter().zip(count_crowds(&members).smallest).for_each(|(&row, crowd)| smallest[row] = crowd);
            }
            smallest
        }

        fn value(&self, attribute: &Attribute, profile: &[u32], row: usize) -> u32 {
            match attribute {
                Attribute::Quasi(at) => profile[*at],
                Attribute::Plain(at) => self.plain[row][*at],
            }
        }

        /// Everything that a row can be in some completion of the table, by trying them all: every row is somebody of the
        /// register whom its class covers, and no two rows contradict a dependency.
        fn completions(&self) -> Vec<BTreeSet<Vec<u32>>> {
            let register: BTreeSet<Vec<u32>> = self.quasi.iter().cloned().collect();
            let mut possible = vec![BTreeSet::new(); self.quasi.len()];
            self.complete(&register, &mut Vec::new(), &mut possible);
            possible
        }

        fn complete(
            &self,
            register: &BTreeSet<Vec<u32>>,
            chosen: &mut Vec<Vec<u32>>,
            possible: &mut [BTreeSet<Vec<u32>>],
        ) {
            let row = chosen.len();
            if row == self.quasi.len() {
                possible.iter_mut().zip(chosen).for_each(|(possible, profile)| _ = possible.insert(profile.clone()));
                return;
            }
            for profile in register.iter().filter(|profile| self.covers(self.class[row], profile)) {
                let agrees = (0..row).all(|other| {
                    self.dependencies.iter().all(|(dependency, _)| {
                        let same = |side: &[Attribute]| {
                            side.iter()
                                .all(|one| self.value(one, profile, row) == self.value(one, &chosen[other], other))
                        };
                        !same(&dependency.from) || same(&dependency.to)
                    })
                });
                if agrees {
                    chosen.push(profile.clone());
                    self.complete(register, chosen, possible);
                    chosen.pop();
                }
            }
        }

        /// For every row, the fewest rows of its class that can be a person who may be that row.
        fn by_force(&self) -> Vec<u64> {
            let possible = self.completions();
            let rows = 0..self.quasi.len();
            let crowd = |class: usize, person: &Vec<u32>| {
                rows.clone().filter(|&row| self.class[row] == class && possible[row].contains(person)).count() as u64
            };
            let occurs = |person: &Vec<u32>, plain: &Vec<u32>| {
                rows.clone().any(|row| self.quasi[row] == *person && self.plain[row] == *plain)
            };
            let smallest = |row: usize| {
                let people = possible[row].iter().filter(|person| occurs(person, &self.plain[row]));
                people.map(|person| crowd(self.class[row], person)).min().unwrap()
            };
            rows.clone().map(smallest).collect()
        }

        /// For every row, the rows of its class that can be its own person.
        fn of_true_people(&self) -> Vec<u64> {
            let possible = self.completions();
            let rows = 0..self.quasi.len();
            let fits = |row: usize, other: usize| {
                self.class[row] == self.class[other] && possible[other].contains(&self.quasi[row])
            };
            rows.clone().map(|row| rows.clone().filter(|&other| fits(row, other)).count() as u64).collect()
        }
    }

    /// Tables of up to six rows with three quasi-identifiers and two plain columns, in which two dependencies hold.
    fn tables() -> impl Strategy<Value = Small> {
        use Attribute::{Plain, Quasi};
        let row = (prop::collection::vec(0..3_u32, 3), prop::collection::vec(0..2_u32, 2), 0..3_usize);
        let more = prop::collection::vec(prop::collection::vec(any::<bool>(), 9), 3);
        let shape = 0..6_usize;
        (prop::collection::vec(row, 2..7), more, shape, prop::collection::vec(0..3_u32, 64)).prop_map(
            |(rows, more, shape, function)| {
                let sides = [
                    (vec![Quasi(0), Plain(0)], vec![Quasi(1)]),
                    (vec![Plain(0)], vec![Quasi(1)]),
                    (vec![Quasi(0)], vec![Plain(0)]),
                    (vec![Quasi(0), Quasi(2)], vec![Plain(1)]),
                    (vec![Quasi(0), Plain(1)], vec![Quasi(1), Plain(0)]),
                    (vec![Plain(0), Plain(1)], vec![Quasi(1), Quasi(2)]),
                ];
                let second = (vec![Plain(1), Quasi(1)], vec![Quasi(2)]);
                let mut small = Small {
                    quasi: rows.iter().map(|row| row.0.clone()).collect(),
                    plain: rows.iter().map(|row| row.1.clone()).collect(),
                    class: rows.iter().map(|row| row.2).collect(),
                    shown: vec![vec![BTreeSet::new(); 3]; 3],
                    dependencies: [sides[shape].clone()]
                        .into_iter()
                        .chain((shape < 2).then_some(second))
                        .map(|(from, to)| (Dependency { from, to }, 0.0))
                        .collect(),
                };
                // Right sides are made a function of the left, in an order in which none undoes another.
                for (dependency, _) in small.dependencies.clone() {
                    for row in 0..small.quasi.len() {
                        let key = dependency
                            .from
                            .iter()
                            .fold(0, |key, one| key * 3 + small.value(one, &small.quasi[row], row) as usize);
                        for (at, to) in dependency.to.iter().enumerate() {
                            let value = function[(key + 29 * at) % 64];
                            match to {
                                Quasi(column) => small.quasi[row][*column] = value,
                                Plain(column) => small.plain[row][*column] = value % 2,
                            }
                        }
                    }
                }
                for row in 0..small.quasi.len() {
                    let profile = small.quasi[row].clone();
                    let shown = &mut small.shown[small.class[row]];
                    shown.iter_mut().zip(&profile).for_each(|(set, value)| _ = set.insert(*value));
                }
                for (class, more) in small.shown.iter_mut().zip(more) {
                    for (at, _) in more.iter().enumerate().filter(|(_, more)| **more) {
                        class[at / 3].insert((at % 3) as u32);
                    }
                }
                small
            },
        )
    }

    /// Many different tables, the same in every run.
    fn sampled(number: usize) -> impl Iterator<Item = Small> {
        use proptest::strategy::ValueTree;
        use proptest::test_runner::TestRunner;
        let mut runner = TestRunner::deterministic();
        (0..number).map(move |_| tables().new_tree(&mut runner).unwrap().current())
    }

    #[test]
    fn the_chase_finds_what_trying_every_completion_finds() {
        let (mut rows, mut exposed, mut missed) = (0, 0, 0);
        for small in sampled(5_000) {
            let (chased, forced, truth) = (small.chased(), small.by_force(), small.of_true_people());
            let sizes = (0..small.class.len())
                .map(|row| small.class.iter().filter(|&&class| class == small.class[row]).count());
            for (((chased, forced), truth), size) in chased.iter().zip(&forced).zip(&truth).zip(sizes) {
                assert!(chased >= forced, "nobody is ruled out who can be there: {small:?}");
                assert!(forced <= truth, "{small:?}");
                rows += 1;
                exposed += usize::from(*forced < size as u64);
                missed += usize::from(chased > forced);
            }
        }
        assert!(exposed > 1_500, "the tables give something to find: {exposed} of {rows} rows");
        assert_eq!(missed, 0, "{missed} of {exposed} rows that can be distinguished were not found");
    }

    fn view(dependency: (&[Attribute], &[Attribute]), tolerance: f64, kinds: Vec<(usize, usize, u64)>) -> View {
        let dependency = Dependency { from: dependency.0.to_vec(), to: dependency.1.to_vec() };
        // Profiles (0, 0), (0, 1), (1, 0), (1, 1); labels: everything, the first column alone, the second alone, both.
        let profiles: Vec<Vec<u32>> = vec![vec![0, 0], vec![0, 1], vec![1, 0], vec![1, 1]];
        let label = |covered: &[usize]| {
            let mut set = BitSet::with_len(4);
            covered.iter().for_each(|&at| set.insert(at));
            set
        };
        let labels =
            [&[0, 1, 2, 3][..], &[0, 1], &[2, 3], &[0, 2], &[1, 3], &[0], &[1], &[2], &[3]].map(label).to_vec();
        let kinds = kinds.into_iter().map(|(label, plain, rows)| Kind { label, plain, rows }).collect();
        View { dependencies: vec![(dependency, tolerance)], profiles, plains: vec![vec![0], vec![1]], labels, kinds }
    }

    fn fitting(view: &View, label: usize, plain: usize) -> Vec<usize> {
        chase_dependencies(view).fitting_profiles(&view.labels[label], plain).iter().collect()
    }

    #[test]
    fn left_sides_are_ruled_out_by_right_sides() {
        use Attribute::{Plain, Quasi};
        // (0, plain 0) -> 0 is published. A row with plain 0 and right side 1 is not 0 on the left.
        let view = view((&[Quasi(0), Plain(0)], &[Quasi(1)]), 0.0, vec![(5, 0, 1), (4, 0, 1)]);
        assert_eq!(fitting(&view, 4, 0), [3]);
        assert_eq!(fitting(&view, 4, 1), [1, 3], "nothing is known of the other plain value");
        assert_eq!(fitting(&view, 0, 0), [0, 3], "and what was learnt from the second row narrows others");
    }

    #[test]
    fn right_sides_that_are_published_as_they_are_tell_left_sides() {
        use Attribute::{Plain, Quasi};
        let view = view((&[Quasi(0)], &[Plain(0)]), 0.0, vec![(1, 0, 1), (0, 1, 1)]);
        assert_eq!(fitting(&view, 0, 1), [2, 3]);
        assert_eq!(fitting(&view, 0, 0), [0, 1], "the second row revealed what 1 has on the right");
    }

    #[test]
    fn one_contradicting_row_does_not_hide_what_all_others_say() {
        use Attribute::{Plain, Quasi};
        let sides = (&[Plain(0)][..], &[Quasi(1)][..]);
        // 99 rows of plain 0 show 0, one shows 1.
        let mut view = view(sides, 0.02, vec![(3, 0, 99), (4, 0, 1), (0, 0, 5)]);
        assert_eq!(fitting(&view, 0, 0), [0, 2]);
        assert_eq!(fitting(&view, 4, 0), [1, 3], "the row that contradicts the others stays as it is");
        // With half of the rows tolerated, the one row proves nothing against five that say nothing.
        view.kinds =
            vec![(4, 0, 1), (0, 0, 5)].into_iter().map(|(label, plain, rows)| Kind { label, plain, rows }).collect();
        view.dependencies[0].1 = 0.5;
        assert_eq!(fitting(&view, 0, 0), [0, 1, 2, 3]);
    }

    #[test]
    fn bits_are_a_set() {
        let mut set = BitSet::with_len(130);
        [3, 64, 129].into_iter().for_each(|at| set.insert(at));
        assert_eq!(set.iter().collect::<Vec<_>>(), [3, 64, 129]);
        assert!(set.contains(64) && !set.contains(65) && !set.is_empty());
        let mut other = BitSet::with_len(130);
        other.insert(64);
        assert_eq!(set.intersection(&other), other);
        assert!(BitSet::with_len(130).is_empty());
    }
}
