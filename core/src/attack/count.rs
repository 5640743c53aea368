//! The posterior of every person in a bucket, by counting classes of equal public rows instead of trying subsets.
//!
//! 1. *Settle.* A value that was published as often as people have it puts all of them in; one that was not published
//!    puts all of them out; and so on until nothing more follows.
//! 2. *Part.* Classes that share no value with each other are independent.
//! 3. *Count.* Class after class, choose how many of its people are in (a binomial number of ways); the state is what
//!    is still missing of every value. A forward and a backward pass give the share of worlds of every class.
//!
//! The number of states can still explode. Beyond the budget people get bounds instead: nobody's chance can be so high
//! that a value is published too often, or so low that it is not published often enough.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use num_bigint::BigUint;

use super::{Bounds, Bucket, Fraction};

/// States that a count may hold before it stops: some hundred megabytes.
pub const BUDGET: usize = 1 << 18;

/// How likely somebody is in the private table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Belief {
    /// Exactly so.
    Exact(Fraction),
    /// Between these two, ends included; more would be too much work.
    Between(Fraction, Fraction),
}

impl Belief {
    /// The least it can be.
    pub fn low(&self) -> &Fraction {
        match self {
            Self::Exact(share) | Self::Between(share, _) => share,
        }
    }

    /// The most it can be.
    pub fn high(&self) -> &Fraction {
        match self {
            Self::Exact(share) | Self::Between(_, share) => share,
        }
    }
}

/// What the adversary believes about every class of a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Posterior {
    /// Belief per class of [`Bucket::classes`].
    pub classes: Vec<Belief>,
}

impl Posterior {
    /// Beliefs per public row.
    pub fn row_beliefs<'a>(&'a self, bucket: &'a Bucket) -> impl Iterator<Item = &'a Belief> {
        bucket.class_of.iter().map(|&class| &self.classes[class as usize])
    }

    /// Whether everybody's chance surely lies within the bounds.
    pub fn is_within(&self, bounds: &Bounds) -> bool {
        self.classes
            .iter()
            .all(|belief| bounds.contains_fraction(belief.low()) && bounds.contains_fraction(belief.high()))
    }
}

/// The posterior of a bucket; `None` if no world fits, so that the release cannot come from these people.
pub fn compute_posterior(bucket: &Bucket, budget: usize) -> Option<Posterior> {
    if bucket.published.is_empty() {
        let share = Fraction::from((bucket.size as u64, bucket.public_rows()));
        let fits = bucket.size as u64 <= bucket.public_rows();
        return fits.then(|| Posterior { classes: vec![Belief::Exact(share); bucket.classes.len()] });
    }
    let mut open = Open::new(bucket);
    let mut beliefs: Vec<Option<Belief>> = vec![None; bucket.classes.len()];
    open.propagate_counts(&mut beliefs)?;
    let mut budget = budget;
    for part in open.connected_parts(&beliefs) {
        match open.count_worlds(&part, &mut budget) {
            Counted::Shares(shares) => {
                part.iter().zip(shares).for_each(|(&class, share)| beliefs[class] = Some(Belief::Exact(share)));
            }
            Counted::NoWorld => return None,
            Counted::TooMuch => part.iter().for_each(|&class| beliefs[class] = Some(open.bound_class(class))),
        }
    }
    let classes = beliefs.into_iter().map(|belief| belief.unwrap_or(Belief::Exact(Fraction::zero()))).collect();
    Some(Posterior { classes })
}

/// Whether everybody of a bucket is within bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Everybody surely is.
    Within,
    /// Somebody is not, or no world fits.
    Breaks,
    /// It would be too much work to decide.
    Uncounted,
}

/// Asks of a bucket only whether everybody is within the bounds, which one person who is not answers early: what follows
/// from single values comes first, then parts from the smallest on.
pub fn judge_bucket(bucket: &Bucket, bounds: &Bounds, budget: usize) -> Verdict {
    let fits = |beliefs: &[Belief]| {
        beliefs.iter().all(|one| bounds.contains_fraction(one.low()) && bounds.contains_fraction(one.high()))
    };
    if bucket.published.is_empty() {
        return match compute_posterior(bucket, budget) {
            Some(found) if fits(&found.classes) => Verdict::Within,
            _ => Verdict::Breaks,
        };
    }
    let mut open = Open::new(bucket);
    let mut beliefs: Vec<Option<Belief>> = vec![None; bucket.classes.len()];
    if open.propagate_counts(&mut beliefs).is_none() {
        return Verdict::Breaks;
    }
    let decided: Vec<Belief> = beliefs.iter().flatten().cloned().collect();
    if !fits(&decided) {
        return Verdict::Breaks;
    }
    let mut parts = open.connected_parts(&beliefs);
    parts.sort_by_key(Vec::len);
    let mut budget = budget;
    for part in parts {
        match open.count_worlds(&part, &mut budget) {
            Counted::Shares(shares) if shares.iter().all(|share| bounds.contains_fraction(share)) => {}
            Counted::Shares(_) | Counted::NoWorld => return Verdict::Breaks,
            Counted::TooMuch => {
                let bounded: Vec<Belief> = part.iter().map(|&class| open.bound_class(class)).collect();
                if !fits(&bounded) {
                    return Verdict::Uncounted;
                }
            }
        }
    }
    Verdict::Within
}

/// The result of counting a part.
enum Counted {
    Shares(Vec<Fraction>),
    NoWorld,
    TooMuch,
}

/// Worlds by what is still missing of every value.
type States = HashMap<Box<[u32]>, BigUint, BuildHasherDefault<StateHasher>>;

/// Hashes states: short lists of small numbers that nobody chooses to collide, and millions of them.
#[derive(Default)]
struct StateHasher(u64);

impl Hasher for StateHasher {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
}

/// What is not decided yet of a bucket.
struct Open {
    /// Values of every class, as places in `need` and `supply`.
    values: Vec<Vec<usize>>,
    people: Vec<u64>,
    /// How often every value is still missing.
    need: Vec<u64>,
    /// How many undecided people have every value.
    supply: Vec<u64>,
}

impl Open {
    fn new(bucket: &Bucket) -> Self {
        let mut place: HashMap<(usize, u32), usize> = HashMap::new();
        let mut need = Vec::new();
        for (column, counts) in bucket.published.iter().enumerate() {
            for (&value, &count) in counts {
                place.insert((column, value), need.len());
                need.push(count);
            }
        }
        let mut values = Vec::with_capacity(bucket.classes.len());
        for (row, _) in &bucket.classes {
            let mut of_class = Vec::with_capacity(row.len());
            for (column, &value) in row.iter().enumerate() {
                of_class.push(*place.entry((column, value)).or_insert_with(|| {
                    need.push(0);
                    need.len() - 1
                }));
            }
            values.push(of_class);
        }
        let people: Vec<u64> = bucket.classes.iter().map(|&(_, count)| count).collect();
        let mut supply = vec![0; need.len()];
        for (of_class, count) in values.iter().zip(&people) {
            of_class.iter().for_each(|&value| supply[value] += count);
        }
        Self { values, people, need, supply }
    }

    /// Step 1; `None` if the counts contradict each other.
    fn propagate_counts(&mut self, beliefs: &mut [Option<Belief>]) -> Option<()> {
        loop {
            if self.need.iter().zip(&self.supply).any(|(need, supply)| need > supply) {
                return None;
            }
            let mut changed = false;
            for (class, belief) in beliefs.iter_mut().enumerate().filter(|(_, belief)| belief.is_none()) {
                let out = self.values[class].iter().any(|&value| self.need[value] == 0);
                let all = self.values[class].iter().any(|&value| self.need[value] == self.supply[value]);
                if out || all {
                    changed = true;
                    let people = self.people[class];
                    for &value in &self.values[class] {
                        self.supply[value] -= people;
                        if !out {
                            self.need[value] = self.need[value].checked_sub(people)?;
                        }
                    }
                    *belief = Some(Belief::Exact(if out { Fraction::zero() } else { Fraction::one() }));
                }
            }
            if !changed {
                return Some(());
            }
        }
    }

    /// Step 2: undecided classes that hang together.
    fn connected_parts(&self, beliefs: &[Option<Belief>]) -> Vec<Vec<usize>> {
        let mut root: Vec<usize> = (0..self.need.len()).collect();
        fn find_root(root: &mut [usize], mut at: usize) -> usize {
            while root[at] != at {
                root[at] = root[root[at]];
                at = root[at];
            }
            at
        }
        let undecided: Vec<usize> = (0..self.values.len()).filter(|&class| beliefs[class].is_none()).collect();
        for &class in &undecided {
            for pair in self.values[class].windows(2) {
                let (a, b) = (find_root(&mut root, pair[0]), find_root(&mut root, pair[1]));
                root[a.max(b)] = a.min(b);
            }
        }
        let mut parts: Vec<(usize, Vec<usize>)> = Vec::new();
        for class in undecided {
            let Some(&first) = self.values[class].first() else { continue };
            let at = find_root(&mut root, first);
            match parts.iter_mut().find(|(root, _)| *root == at) {
                Some((_, part)) => part.push(class),
                None => parts.push((at, vec![class])),
            }
        }
        parts.into_iter().map(|(_, part)| part).collect()
    }

    /// The values of some classes, numbered anew, so that states are short; and how often each is needed.
    fn number_values(&self, classes: &[usize]) -> (Vec<Vec<usize>>, Vec<u32>) {
        let mut local: HashMap<usize, usize> = HashMap::new();
        let mut need: Vec<u32> = Vec::new();
        let mut values: Vec<Vec<usize>> = Vec::with_capacity(classes.len());
        for &class in classes {
            let mut of_class = Vec::with_capacity(self.values[class].len());
            for &value in &self.values[class] {
                of_class.push(*local.entry(value).or_insert_with(|| {
                    need.push(self.need[value] as u32);
                    need.len() - 1
                }));
            }
            values.push(of_class);
        }
        (values, need)
    }

    /// Step 3: the share of worlds that hold each person of a class. `budget` is lowered by the states held.
    fn count_worlds(&self, part: &[usize], budget: &mut usize) -> Counted {
        let order = self.closing_order(part);
        let (values, need) = self.number_values(&order);
        // How many people with the value come after each class, for the values of that class.
        let mut after: Vec<Vec<u64>> = vec![Vec::new(); order.len()];
        let mut coming = vec![0_u64; need.len()];
        for step in (0..order.len()).rev() {
            after[step] = values[step].iter().map(|&value| coming[value]).collect();
            values[step].iter().for_each(|&value| coming[value] += self.people[order[step]]);
        }
        let range = |state: &[u32], step: usize| {
            let needs = || values[step].iter().map(|&value| u64::from(state[value]));
            let least = needs().zip(&after[step]).map(|(need, after)| need.saturating_sub(*after)).max().unwrap_or(0);
            let most = needs().min().unwrap_or(0).min(self.people[order[step]]);
            least..=most
        };
        let less = |state: &[u32], step: usize, chosen: u64| -> Box<[u32]> {
            let mut next: Box<[u32]> = state.into();
            values[step].iter().for_each(|&value| next[value] -= chosen as u32);
            next
        };
        let ways: Vec<Vec<BigUint>> = order.iter().map(|&class| binomial_coefficients(self.people[class])).collect();
        let mut layers: Vec<States> = Vec::with_capacity(order.len() + 1);
        layers.push(States::from_iter([(need.into_boxed_slice(), BigUint::from(1_u8))]));
        for step in 0..order.len() {
            let mut next = States::default();
            for (state, count) in &layers[step] {
                for chosen in range(state, step) {
                    *next.entry(less(state, step, chosen)).or_default() += count * &ways[step][chosen as usize];
                }
                if next.len() > *budget {
                    return Counted::TooMuch;
                }
            }
            *budget -= next.len();
            layers.push(next);
        }
        let Some(worlds) = layers.last().and_then(|last| last.values().next()).cloned() else {
            return Counted::NoWorld;
        };
        let mut shares: HashMap<usize, Fraction> = HashMap::new();
        let mut behind: States =
            layers.pop().unwrap_or_default().into_keys().map(|state| (state, BigUint::from(1_u8))).collect();
        for step in (0..order.len()).rev() {
            let Some(layer) = layers.pop() else { break };
            let people = self.people[order[step]];
            let mut holding = BigUint::ZERO;
            let mut here = States::with_capacity_and_hasher(layer.len(), BuildHasherDefault::default());
            for (state, count) in layer {
                let mut completions = BigUint::ZERO;
                for chosen in range(&state, step) {
                    let Some(rest) = behind.get(&less(&state, step, chosen)) else { continue };
                    let worlds = rest * &ways[step][chosen as usize];
                    // Of `people` alike, `chosen` are in: one of them is in `chosen / people` of these worlds.
                    holding += &count * &worlds * chosen;
                    completions += worlds;
                }
                if completions != BigUint::ZERO {
                    here.insert(state, completions);
                }
            }
            shares.insert(order[step], Fraction::new(holding, &worlds * people));
            behind = here;
        }
        Counted::Shares(part.iter().map(|class| shares.remove(class).unwrap_or_else(Fraction::zero)).collect())
    }

    /// Classes in the order that closes values early: sorted by the column with the most values, then the next.
    fn closing_order(&self, part: &[usize]) -> Vec<usize> {
        let width = part.first().map_or(0, |&class| self.values[class].len());
        let distinct = |column: usize| {
            let mut seen: Vec<usize> = part.iter().map(|&class| self.values[class][column]).collect();
            seen.sort_unstable();
            seen.dedup();
            seen.len()
        };
        let mut columns: Vec<(usize, usize)> = (0..width).map(|column| (distinct(column), column)).collect();
        columns.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        let mut order = part.to_vec();
        order.sort_by_key(|&class| columns.iter().map(|&(_, column)| self.values[class][column]).collect::<Vec<_>>());
        order
    }

    /// Bounds on an undecided class: `need - others <= people in <= need` for each of its values.
    fn bound_class(&self, class: usize) -> Belief {
        let people = self.people[class];
        let (mut least, mut most) = (0, people);
        for &value in &self.values[class] {
            let others = self.supply[value] - people;
            least = least.max(self.need[value].saturating_sub(others));
            most = most.min(self.need[value]);
        }
        Belief::Between(Fraction::from((least, people)), Fraction::from((most, people)))
    }
}

/// Ways to choose 0, 1, ... of n.
fn binomial_coefficients(n: u64) -> Vec<BigUint> {
    let mut row = vec![BigUint::from(1_u8)];
    for chosen in 0..n {
        let next = row[chosen as usize].clone() * (n - chosen) / (chosen + 1);
        row.push(next);
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attack::fixtures;
    use crate::attack::worlds::enumerate_worlds;
    use proptest::prelude::*;

    fn exact(bucket: &Bucket) -> Option<Vec<Fraction>> {
        let found = compute_posterior(bucket, BUDGET)?;
        Some(
            found
                .row_beliefs(bucket)
                .map(|belief| if let Belief::Exact(share) = belief { share.clone() } else { panic!("bounds") })
                .collect(),
        )
    }

    /// Small random tables: 0 to 12 people, 1 to 4 attributes of 1 to 4 values, some of the people in.
    fn small() -> impl Strategy<Value = (Vec<Vec<u32>>, Vec<bool>)> {
        (1..=4_usize, 0..=12_usize, 1..=4_u32).prop_flat_map(|(width, rows, values)| {
            (
                prop::collection::vec(prop::collection::vec(0..values, width), rows),
                prop::collection::vec(any::<bool>(), rows),
            )
        })
    }

    fn chosen(public: &[Vec<u32>], inside: &[bool]) -> Vec<Vec<u32>> {
        public.iter().zip(inside).filter(|(_, inside)| **inside).map(|(row, _)| row.clone()).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn the_verdict_is_that_of_the_posterior((public, inside) in small(), budget in prop_oneof![Just(3), Just(BUDGET)]) {
            let bucket = Bucket::new(&public, &chosen(&public, &inside));
            for bounds in [Bounds::new(0.1, 0.8), Bounds::new(0.0, 0.9)] {
                let within = compute_posterior(&bucket, BUDGET).is_some_and(|found| found.is_within(&bounds));
                match judge_bucket(&bucket, &bounds, budget) {
                    Verdict::Uncounted => prop_assert!(budget < BUDGET),
                    verdict => prop_assert_eq!(verdict == Verdict::Within, within),
                }
            }
        }

        #[test]
        fn counting_equals_trying_every_subset((public, inside) in small(), fused in any::<bool>()) {
            let released = chosen(&public, &inside);
            let columns: Vec<Vec<usize>> = match public.first().map_or(0, Vec::len) {
                width if fused && width > 1 => [vec![0, 1]].into_iter().chain((2..width).map(|c| vec![c])).collect(),
                width => (0..width).map(|c| vec![c]).collect(),
            };
            let bucket = Bucket::sliced(&public, &released, &columns);
            let (worlds, expected) = enumerate_worlds(&bucket).unwrap();
            prop_assert!(worlds >= 1);
            prop_assert_eq!(exact(&bucket), Some(expected.clone()));

            // Bounds hold what they bound, and the mean of a value's people is what was published of it.
            let bounds = compute_posterior(&bucket, 0).unwrap();
            for (belief, share) in bounds.row_beliefs(&bucket).zip(&expected) {
                prop_assert!(belief.low() <= share && share <= belief.high());
            }
            for (low, high) in [(0.0, 0.5), (0.25, 0.75), (0.1, 1.0)] {
                let allowed = Bounds::new(low, high);
                if bucket.surely_breaks(&allowed) {
                    prop_assert!(expected.iter().any(|share| !allowed.contains_fraction(share)));
                }
            }
        }

        #[test]
        fn a_release_of_strangers_is_found_out((public, inside) in small(), other in prop::collection::vec(0..4_u32, 4)) {
            let mut released = chosen(&public, &inside);
            let width = public.first().map_or(1, Vec::len);
            released.push(other[..width].to_vec());
            let bucket = Bucket::new(&public, &released);
            prop_assert_eq!(exact(&bucket), enumerate_worlds(&bucket).map(|(_, shares)| shares));
        }
    }

    #[test]
    fn toth_goldens_by_counting() {
        let (public, private) = fixtures::p1_t1();
        let bucket = Bucket::new(&public, &private);
        assert_eq!(exact(&bucket), enumerate_worlds(&bucket).map(|(_, shares)| shares));
        assert!(bucket.surely_breaks(&Bounds::new(0.1, 0.9)), "5371 was published for both who live there");
    }

    #[test]
    fn large_buckets_are_counted_exactly() {
        // 3000 people in 6 classes: the number of worlds has hundreds of digits.
        let public: Vec<[u32; 2]> = (0..3000).map(|row| [row % 2, row % 3]).collect();
        let released: Vec<[u32; 2]> = public.iter().copied().step_by(7).collect();
        let bucket = Bucket::new(&public, &released);
        let found = exact(&bucket).unwrap();
        let mean = found.iter().map(Fraction::to_f64).sum::<f64>();
        assert!((mean - released.len() as f64).abs() < 1e-6, "chances add up to the published rows: {mean}");
    }

    #[test]
    fn too_much_work_gives_bounds() {
        let public: Vec<[u32; 4]> = (0..400).map(|row| [row % 7, row % 11, row % 13, row % 17]).collect();
        let released: Vec<[u32; 4]> = public.iter().copied().step_by(3).collect();
        let bucket = Bucket::new(&public, &released);
        let found = compute_posterior(&bucket, 1000).unwrap();
        assert!(found.classes.iter().all(|belief| matches!(belief, Belief::Between(low, high) if low < high)));
        assert!(!found.is_within(&Bounds::new(0.0, 0.9)));
    }
}
