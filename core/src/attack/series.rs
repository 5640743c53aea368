//! Several releases of the same people: the intersection attack.
//!
//! The adversary knows everybody's quasi-identifiers and who was in the source at which release, and knows no sensitive
//! value. For one sensitive column, release by release:
//!
//! 1. **Intersection.** A person's value is one of those in the classes that cover them. Only values that were there every
//!    time are still possible. When none is left, the value has changed since, and the newest classes alone count.
//! 2. **Candidates.** The rows of these classes that hold a possible value are all that can be theirs. The fewest that a
//!    release has left are what k promises to bound from below.
//! 3. **Subtraction.** Where two neighbouring releases hold everybody who was there, the later one's values less the earlier
//!    one's are those of arrivals less those of departures. When as many values are added as people have arrived, nothing has
//!    cancelled out, and arrivals hold the added values; departures likewise.
//!
//! Sets of values are kept once and named by number, because most people share theirs with others: what is remembered of a
//! person are two numbers.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

/// Rows of a class by their value, each value once.
pub type ClassValues = Vec<(u32, u64)>;

/// One release as the adversary sees it.
#[derive(Debug, Clone, Copy)]
pub struct Sighting<'a> {
    /// Values of every class.
    pub classes: &'a [ClassValues],
    /// Sets of classes that cover somebody, each class once.
    pub crowds: &'a [Vec<u32>],
    /// Everybody who was there, each person once, with the crowd that covers them; `None` if no class does.
    pub people: &'a [(i128, Option<u32>)],
}

/// What is known of people after some releases. Counts of people, never who.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exposure {
    /// Everybody who was in the source of any release so far.
    pub people: u64,
    /// Those of them whom no class has ever covered.
    pub never_covered: u64,
    /// The others by how many values they may still have.
    pub by_values: BTreeMap<u64, u64>,
    /// The same by the fewest rows that could be theirs in a release.
    pub by_candidates: BTreeMap<u64, u64>,
    /// Arrivals and departures of this release whose values were found by subtraction.
    pub subtracted: u64,
}

impl Exposure {
    /// People who may have fewer values than `least`.
    pub fn below_values(&self, least: u64) -> u64 {
        self.by_values.range(..least).map(|(_, people)| people).sum()
    }

    /// People of whom a release has left fewer rows than `least`.
    pub fn below_candidates(&self, least: u64) -> u64 {
        self.by_candidates.range(..least).map(|(_, people)| people).sum()
    }
}

/// The attack on one sensitive column, release after release.
#[derive(Debug, Default)]
pub struct Intersection {
    sets: ValueSets,
    people: HashMap<i128, Known>,
    /// Values of the release before, when it held everybody who was there.
    before: Option<BTreeMap<u32, i64>>,
    releases: u32,
}

/// What is known of a person.
#[derive(Debug, Clone, Copy)]
struct Known {
    /// Possible values; none before a class has covered them.
    possible: Option<u32>,
    candidates: u64,
    /// The last release that they were there for.
    seen: u32,
}

impl Intersection {
    /// Takes the next release into account.
    pub fn observe_release(&mut self, release: Sighting<'_>) -> Exposure {
        self.releases += 1;
        let arrivals = self.count_arrivals(&release);
        self.intersect_values(&release);
        let values = count_values(&release);
        let subtracted = match (self.before.take(), &values) {
            (Some(before), Some(now)) => self.subtract_release(&before, now, &arrivals),
            _ => 0,
        };
        self.before = values;
        Exposure { subtracted, ..self.measure_exposure() }
    }

    /// People who were not there for the release before.
    fn count_arrivals(&self, release: &Sighting<'_>) -> Vec<i128> {
        let before = self.releases - 1;
        let stays = |person: &i128| self.people.get(person).is_some_and(|known| known.seen == before);
        release.people.iter().map(|(person, _)| *person).filter(|person| !stays(person)).collect()
    }

    fn intersect_values(&mut self, release: &Sighting<'_>) {
        let unions: Vec<u32> = release.crowds.iter().map(|crowd| self.sets.values_of(crowd, release.classes)).collect();
        let mut counted: HashMap<(u32, u32), u64> = HashMap::new();
        for &(person, crowd) in release.people {
            let known = self.people.entry(person).or_insert(Known {
                possible: None,
                candidates: u64::MAX,
                seen: self.releases,
            });
            known.seen = self.releases;
            let Some(crowd) = crowd else { continue };
            let here = unions[crowd as usize];
            let possible = known.possible.map_or(here, |earlier| self.sets.intersect_sets(earlier, here));
            let possible = if self.sets.is_empty(possible) { here } else { possible };
            let rows = *counted.entry((crowd, possible)).or_insert_with(|| {
                let classes = release.crowds[crowd as usize].iter().map(|class| &release.classes[*class as usize]);
                classes
                    .flatten()
                    .filter(|(value, _)| self.sets.set_contains(possible, *value))
                    .map(|(_, rows)| rows)
                    .sum()
            });
            known.possible = Some(possible);
            known.candidates = known.candidates.min(rows);
        }
    }

    /// Narrows the values of those who came and went between two releases that held everybody; how many people that were.
    fn subtract_release(&mut self, before: &BTreeMap<u32, i64>, now: &BTreeMap<u32, i64>, arrivals: &[i128]) -> u64 {
        let gone = |known: &&Known| known.seen + 1 == self.releases;
        let departures = self.people.iter().filter(|(_, known)| gone(known)).map(|(person, _)| *person);
        let departures: Vec<i128> = departures.collect();
        let values: BTreeSet<u32> = before.keys().chain(now.keys()).copied().collect();
        let rows = |table: &BTreeMap<u32, i64>, value: &u32| table.get(value).copied().unwrap_or(0);
        let change: Vec<(u32, i64)> =
            values.iter().map(|value| (*value, rows(now, value) - rows(before, value))).collect();
        let part = |sign: i64| -> ClassValues {
            let signed = change.iter().filter(|(_, change)| change * sign > 0);
            signed.map(|(value, change)| (*value, change.unsigned_abs())).collect()
        };
        self.narrow_people(arrivals, &part(1)) + self.narrow_people(&departures, &part(-1))
    }

    /// People who together hold exactly these values, unless some of them have cancelled out.
    fn narrow_people(&mut self, people: &[i128], held: &ClassValues) -> u64 {
        if people.is_empty() || held.iter().map(|(_, rows)| rows).sum::<u64>() != people.len() as u64 {
            return 0;
        }
        let here = self.sets.values_of(&[0], std::slice::from_ref(held));
        let mut narrowed = 0;
        for person in people {
            let Some(known) = self.people.get_mut(person) else { continue };
            let possible = known.possible.map_or(here, |earlier| self.sets.intersect_sets(earlier, here));
            if self.sets.is_empty(possible) {
                continue;
            }
            let rows =
                held.iter().filter(|(value, _)| self.sets.set_contains(possible, *value)).map(|(_, rows)| rows).sum();
            known.possible = Some(possible);
            known.candidates = known.candidates.min(rows);
            narrowed += 1;
        }
        narrowed
    }

    fn measure_exposure(&self) -> Exposure {
        let mut found = Exposure { people: self.people.len() as u64, ..Exposure::default() };
        for known in self.people.values() {
            match known.possible {
                None => found.never_covered += 1,
                Some(possible) => {
                    *found.by_values.entry(self.sets.set_len(possible)).or_default() += 1;
                    *found.by_candidates.entry(known.candidates).or_default() += 1;
                }
            }
        }
        found
    }
}

/// How often each value is published, when as many rows are as there were people.
fn count_values(release: &Sighting<'_>) -> Option<BTreeMap<u32, i64>> {
    let mut values = BTreeMap::new();
    let mut rows = 0;
    for &(value, count) in release.classes.iter().flatten() {
        *values.entry(value).or_default() += count as i64;
        rows += count;
    }
    (rows == release.people.len() as u64).then_some(values)
}

/// Sets of values, each kept once.
#[derive(Debug, Default)]
struct ValueSets {
    sets: Vec<Box<[u32]>>,
    numbers: HashMap<Box<[u32]>, u32>,
    intersections: HashMap<(u32, u32), u32>,
}

impl ValueSets {
    /// The number of a set, given in ascending order.
    fn intern_set(&mut self, set: Vec<u32>) -> u32 {
        let set = set.into_boxed_slice();
        if let Some(&number) = self.numbers.get(&set) {
            return number;
        }
        let number = self.sets.len() as u32;
        self.sets.push(set.clone());
        self.numbers.insert(set, number);
        number
    }

    /// All values of some classes.
    fn values_of(&mut self, crowd: &[u32], classes: &[ClassValues]) -> u32 {
        let values = crowd.iter().flat_map(|class| classes[*class as usize].iter().map(|(value, _)| *value));
        let values: BTreeSet<u32> = values.collect();
        self.intern_set(values.into_iter().collect())
    }

    fn intersect_sets(&mut self, a: u32, b: u32) -> u32 {
        if a == b {
            return a;
        }
        let pair = (a.min(b), a.max(b));
        if let Some(&known) = self.intersections.get(&pair) {
            return known;
        }
        let both = self.sets[a as usize].iter().filter(|value| self.set_contains(b, **value)).copied().collect();
        let number = self.intern_set(both);
        self.intersections.insert(pair, number);
        number
    }

    fn set_contains(&self, set: u32, value: u32) -> bool {
        self.sets[set as usize].binary_search(&value).is_ok()
    }

    fn is_empty(&self, set: u32) -> bool {
        self.sets[set as usize].is_empty()
    }

    fn set_len(&self, set: u32) -> u64 {
        self.sets[set as usize].len() as u64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A release as plain rows: (class, value), and people with the classes that cover them.
    #[derive(Debug, Clone)]
    struct Plain {
        rows: Vec<(u32, u32)>,
        people: Vec<(i128, Vec<u32>)>,
    }

    /// Observes a plain release.
    fn observe(attack: &mut Intersection, plain: &Plain) -> Exposure {
        let classes = plain.rows.iter().map(|(class, _)| class + 1).max().unwrap_or(0) as usize;
        let mut values = vec![BTreeMap::<u32, u64>::new(); classes.max(8)];
        plain.rows.iter().for_each(|(class, value)| *values[*class as usize].entry(*value).or_default() += 1);
        let values: Vec<ClassValues> = values.into_iter().map(|class| class.into_iter().collect()).collect();
        let mut crowds: Vec<Vec<u32>> = Vec::new();
        let mut people = Vec::new();
        for (person, covering) in &plain.people {
            let crowd = (!covering.is_empty()).then(|| {
                crowds.iter().position(|crowd| crowd == covering).unwrap_or_else(|| {
                    crowds.push(covering.clone());
                    crowds.len() - 1
                }) as u32
            });
            people.push((*person, crowd));
        }
        attack.observe_release(Sighting { classes: &values, crowds: &crowds, people: &people })
    }

    /// One person by the definition, from all releases so far: possible values and the fewest rows.
    fn reference(releases: &[Plain], person: i128) -> Option<(u64, u64)> {
        let mut possible: Option<BTreeSet<u32>> = None;
        let mut fewest = u64::MAX;
        let there = |release: &Plain| release.people.iter().any(|(other, _)| *other == person);
        let whole = |release: &Plain| release.rows.len() == release.people.len();
        for (at, release) in releases.iter().enumerate() {
            if let Some((_, covering)) = release.people.iter().find(|(other, _)| *other == person)
                && !covering.is_empty()
            {
                let rows: Vec<u32> = release
                    .rows
                    .iter()
                    .filter(|(class, _)| covering.contains(class))
                    .map(|(_, value)| *value)
                    .collect();
                let here: BTreeSet<u32> = rows.iter().copied().collect();
                let both = possible.as_ref().map_or(here.clone(), |earlier| earlier & &here);
                let both = if both.is_empty() { here } else { both };
                fewest = fewest.min(rows.iter().filter(|value| both.contains(value)).count() as u64);
                possible = Some(both);
            }
            let Some(before) = at.checked_sub(1).map(|before| &releases[before]) else { continue };
            if !whole(before) || !whole(release) || there(before) == there(release) {
                continue;
            }
            // Rows that are in one release and not in the other, one by one.
            let (more, less) = if there(release) { (release, before) } else { (before, release) };
            let mut left: Vec<u32> = more.rows.iter().map(|(_, value)| *value).collect();
            for (_, value) in &less.rows {
                if let Some(found) = left.iter().position(|other| other == value) {
                    left.swap_remove(found);
                }
            }
            let alike = more.people.iter().filter(|(other, _)| less.people.iter().all(|(one, _)| one != other)).count();
            if left.len() != alike {
                continue;
            }
            let here: BTreeSet<u32> = left.iter().copied().collect();
            let both = possible.as_ref().map_or(here.clone(), |earlier| earlier & &here);
            if !both.is_empty() {
                fewest = fewest.min(left.iter().filter(|value| both.contains(value)).count() as u64);
                possible = Some(both);
            }
        }
        possible.map(|possible| (possible.len() as u64, fewest))
    }

    /// Everybody by the definition.
    fn expected(releases: &[Plain]) -> Exposure {
        let everybody: BTreeSet<i128> =
            releases.iter().flat_map(|release| release.people.iter().map(|(person, _)| *person)).collect();
        let mut found = Exposure { people: everybody.len() as u64, ..Exposure::default() };
        for person in everybody {
            match reference(releases, person) {
                None => found.never_covered += 1,
                Some((values, rows)) => {
                    *found.by_values.entry(values).or_default() += 1;
                    *found.by_candidates.entry(rows).or_default() += 1;
                }
            }
        }
        found
    }

    /// A release of some of 12 people: some hold classes of true rows, some anything at all.
    fn release() -> impl Strategy<Value = Plain> {
        let person = (0..6_u32, 0..4_u32, any::<bool>(), prop::option::weighted(0.3, 0..6_u32));
        let people = prop::collection::vec(prop::option::weighted(0.8, person), 12);
        (people, prop::option::weighted(0.2, prop::collection::vec((0..6_u32, 0..4_u32), 0..5))).prop_map(
            |(people, unmatched)| {
                let mut plain = Plain { rows: unmatched.unwrap_or_default(), people: Vec::new() };
                for (number, person) in people.into_iter().enumerate() {
                    let Some((class, value, covered, also)) = person else { continue };
                    // Values stay with most people, so that subtraction has something to find.
                    let value = if value == 0 { 0 } else { number as u32 % 4 };
                    plain.rows.push((class, value));
                    let covering: BTreeSet<u32> =
                        [class].into_iter().chain(also).filter(|_| covered || number > 3).collect();
                    plain.people.push((number as i128, covering.into_iter().collect()));
                }
                plain
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(600))]

        #[test]
        fn what_is_known_is_what_the_definition_says(releases in prop::collection::vec(release(), 1..6)) {
            let mut attack = Intersection::default();
            for until in 1..=releases.len() {
                let found = observe(&mut attack, &releases[until - 1]);
                let expected = Exposure { subtracted: found.subtracted, ..expected(&releases[..until]) };
                prop_assert_eq!(found, expected);
            }
        }
    }

    /// Classes of people in the order of their numbers, `size` each, from `first` on; values go round.
    fn in_order(people: std::ops::Range<u32>, first: u32, size: u32, values: u32) -> Plain {
        let class = |person: u32| (person + first) / size;
        let rows = people.clone().map(|person| (class(person), person % values)).collect();
        let people = people.map(|person| (i128::from(person), vec![class(person)])).collect();
        Plain { rows, people }
    }

    #[test]
    fn the_same_classes_again_tell_nothing_more() {
        let (release, mut attack) = (in_order(0..12, 0, 4, 4), Intersection::default());
        let first = observe(&mut attack, &release);
        assert_eq!((first.by_values.clone(), first.by_candidates.clone()), ([(4, 12)].into(), [(4, 12)].into()));
        assert_eq!(observe(&mut attack, &release), first);
    }

    #[test]
    fn classes_that_shift_are_intersected() {
        let mut attack = Intersection::default();
        observe(&mut attack, &in_order(0..12, 0, 4, 12));
        // Pairs of people have been in the same class twice.
        let found = observe(&mut attack, &in_order(0..12, 2, 4, 12));
        assert_eq!((found.below_values(3), found.below_candidates(3), found.people), (12, 12, 12));
    }

    #[test]
    fn one_newcomer_is_found_by_subtraction() {
        let mut attack = Intersection::default();
        observe(&mut attack, &in_order(0..12, 0, 4, 4));
        let mut grown = in_order(0..12, 0, 4, 4);
        grown.rows.push((0, 3));
        grown.people.push((12, vec![0]));
        let found = observe(&mut attack, &grown);
        assert_eq!((found.subtracted, found.below_values(2), found.below_candidates(2)), (1, 1, 1));
        // And whoever leaves alone, too: here the same person.
        let found = observe(&mut attack, &in_order(0..12, 0, 4, 4));
        assert_eq!((found.subtracted, found.below_values(2)), (1, 1));
    }

    #[test]
    fn a_value_that_has_changed_starts_anew() {
        let mut attack = Intersection::default();
        let release = |value: u32| Plain { rows: vec![(0, value), (0, value + 1)], people: vec![(1, vec![0])] };
        observe(&mut attack, &release(0));
        assert_eq!(observe(&mut attack, &release(5)).by_values, [(2, 1)].into());
    }
}
