//! Counting: every published row is somebody else, so who can be where is a question of seats.
//!
//! The reader knows everybody's quasi-identifiers and which classes cover them. A world puts a different person on every
//! published row, and in it no two rows contradict a dependency. Three people of one x are on three rows of one s where
//! `x -> s`, and if a class has three such rows only once, everybody knows whose they are: no single row says so, their
//! number does. [`possible_places`] computes for every person and every kind of row whether some world has them there.
//!
//! 1. *Answers.* A dependency asks a question for every left side: what is its right side? Somebody in some seat uses one
//!    answer. A world is a way to fill all seats that uses no two answers of one question.
//! 2. *Components.* People and seats that neither a possible place nor an open question connects are looked at by
//!    themselves; so a class that overlaps with no other is mostly a component of its own.
//! 3. *Filling* is a flow from seats to people, where those who are alike are one node. The source itself is the first
//!    world. In the residual graph of a world, places on a cycle are possible as well.
//! 4. *Trying.* For every place that is left, a person is put there, what contradicts it is emptied and filled again along
//!    augmenting paths, and where the flow uses two answers of one question, each is tried in turn. A place for which all
//!    of that fails is impossible: the search is complete.
//!
//! Finding everything is NP-hard. A component may take [`MAX_STEPS`] steps; places that were not decided until then are
//! [`Place::Unknown`], and whoever counts must say so.

mod circles;
mod graph;

use std::collections::HashMap;

use graph::Graph;

use super::chase::{BitSet, Crowds, Member, Numbered, View, count_crowds};

/// Most steps that the search of one component may take.
pub const MAX_STEPS: u64 = 1 << 26;

/// People who are alike to a reader: of one profile, and covered by the same classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct People {
    /// Their quasi-identifiers, by place among the profiles.
    pub profile: usize,
    /// How many there are.
    pub number: u32,
}

/// Published rows of one class that look alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seat {
    /// Their plain columns, by place among the plains.
    pub plain: usize,
    /// How many there are.
    pub rows: u32,
    /// Who may be there, by number, and whether the source has some of them beside these plain columns.
    pub candidates: Vec<(u32, bool)>,
}

/// Whether people can be on rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In some world they are.
    Possible,
    /// In no world they are.
    Impossible,
    /// The search ran out of steps.
    Unknown,
}

/// For every seat, whether each of its candidates can be there. Profiles, plains and dependencies are those of the view;
/// dependencies that may fail in some rows rule nobody out by counting.
pub fn possible_places(view: &View, people: &[People], seats: &[Seat], max_steps: u64) -> Vec<Vec<Place>> {
    let certain = view.dependencies.iter().filter(|(_, tolerance)| *tolerance == 0.0);
    let dependencies: Vec<Numbered> = certain.map(|given| Numbered::new(view, given)).collect();
    let mut graph = Graph::new(&dependencies, people, seats);
    for component in graph.component_places() {
        graph.decide_component(&component, max_steps);
    }
    let mut found: Vec<Vec<Place>> = seats.iter().map(|seat| vec![Place::Unknown; seat.candidates.len()]).collect();
    for (edge, place) in graph.edges.iter().zip(&graph.places) {
        found[edge.seat as usize][edge.at as usize] = *place;
    }
    found
}

/// What is left of a class, given its seats and who can be there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counted {
    /// Among how many rows people can hide, if whoever is not decided can be where they may be.
    pub crowds: Crowds,
    /// Rows that a set of fewer than k rows may be left for, if they cannot.
    pub undecided: u64,
}

/// Counts the rows of a class among which people can hide.
pub fn count_hiding_rows(seats: &[Seat], places: &[Vec<Place>], k: u64) -> Counted {
    let mut numbers: HashMap<u32, usize> = HashMap::new();
    for (person, _) in seats.iter().flat_map(|seat| &seat.candidates) {
        let next = numbers.len();
        numbers.entry(*person).or_insert(next);
    }
    let hide = |fits: &dyn Fn(Place) -> bool| {
        let member = |(seat, places): (&Seat, &Vec<Place>)| {
            let [mut fitting, mut people] = [0, 1].map(|_| BitSet::with_len(numbers.len()));
            for ((person, occurs), place) in seat.candidates.iter().zip(places) {
                if fits(*place) {
                    fitting.insert(numbers[person]);
                }
                if *occurs && *place != Place::Impossible {
                    people.insert(numbers[person]);
                }
            }
            Member { rows: u64::from(seat.rows), fitting, people }
        };
        count_crowds(&seats.iter().zip(places).map(member).collect::<Vec<_>>())
    };
    let crowds = hide(&|place| place != Place::Impossible);
    let is_decided = places.iter().flatten().all(|place| *place != Place::Unknown);
    let mut undecided = 0;
    if !is_decided {
        let least = hide(&|place| place == Place::Possible).smallest;
        let open = |(most, least): (&u64, &u64)| *most >= k && *least < k;
        let both = crowds.smallest.iter().zip(&least);
        undecided = seats.iter().zip(both).filter(|(_, both)| open(*both)).map(|(seat, _)| u64::from(seat.rows)).sum();
    }
    Counted { crowds, undecided }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::attack::chase::Kind;
    use crate::model::{Attribute, Dependency};

    /// A small table: quasi-identifiers and plain columns of everybody, the class of those who are published, and for every
    /// class and column the values that it covers.
    #[derive(Debug, Clone)]
    struct Small {
        quasi: Vec<Vec<u32>>,
        plain: Vec<Vec<u32>>,
        class: Vec<Option<usize>>,
        covered: Vec<Vec<BTreeSet<u32>>>,
        dependencies: Vec<Dependency>,
    }

    /// People, whom each row of the source is among; seats, class and a row of each, and the seat of each row.
    type Together = (Vec<People>, Vec<usize>, Vec<Seat>, Vec<(usize, usize)>, Vec<usize>);

    impl Small {
        /// Random tables in which one or two dependencies hold; now and then somebody is suppressed.
        fn random(rng: &mut fastrand::Rng) -> Self {
            use Attribute::{Plain, Quasi};
            let rows = rng.usize(3..8);
            let mut quasi: Vec<Vec<u32>> = (0..rows).map(|_| (0..2).map(|_| rng.u32(0..4)).collect()).collect();
            let mut plain: Vec<Vec<u32>> = (0..rows).map(|_| (0..2).map(|_| rng.u32(0..3)).collect()).collect();
            let shapes = [
                vec![(vec![Quasi(0)], vec![Plain(0)])],
                vec![(vec![Quasi(0), Quasi(1)], vec![Plain(0)])],
                vec![(vec![Plain(1)], vec![Quasi(1)])],
                vec![(vec![Quasi(0), Plain(1)], vec![Plain(0)])],
                vec![(vec![Quasi(0), Plain(1)], vec![Quasi(1)])],
                vec![(vec![Quasi(0)], vec![Plain(0)]), (vec![Quasi(1)], vec![Plain(1)])],
                vec![(vec![Quasi(0)], vec![Plain(1)]), (vec![Plain(1)], vec![Quasi(1)])],
            ];
            let dependencies: Vec<Dependency> = shapes[rng.usize(..shapes.len())]
                .iter()
                .map(|(from, to)| Dependency { from: from.clone(), to: to.clone() })
                .collect();
            for dependency in &dependencies {
                let mut function: HashMap<Vec<u32>, u32> = HashMap::new();
                for row in 0..rows {
                    let left = dependency.from.iter().map(|one| match one {
                        Quasi(at) => quasi[row][*at],
                        Plain(at) => plain[row][*at],
                    });
                    let right = *function.entry(left.collect()).or_insert_with(|| rng.u32(0..3));
                    match dependency.to[0] {
                        Quasi(at) => quasi[row][at] = right,
                        Plain(at) => plain[row][at] = right,
                    }
                }
            }
            let classes = rng.usize(1..4);
            let mut class: Vec<Option<usize>> = (0..rows).map(|_| Some(rng.usize(..classes))).collect();
            // Half of the tables are cut so that no classes overlap.
            if rng.bool() {
                class = quasi.iter().map(|row| Some((row[0] / 2) as usize)).collect();
            }
            if rng.u8(..4) == 0 {
                class[rng.usize(..rows)] = None;
            }
            let mut covered = vec![vec![BTreeSet::new(); 2]; 3];
            for row in 0..rows {
                if let Some(class) = class[row] {
                    (0..2).for_each(|at| _ = covered[class][at].insert(quasi[row][at]));
                }
            }
            Self { quasi, plain, class, covered, dependencies }
        }

        fn covers(&self, class: usize, person: usize) -> bool {
            self.covered[class].iter().zip(&self.quasi[person]).all(|(covered, value)| covered.contains(value))
        }

        fn published(&self) -> Vec<usize> {
            (0..self.class.len()).filter(|&row| self.class[row].is_some()).collect()
        }

        fn side(&self, side: &[Attribute], person: usize, row: usize) -> Vec<u32> {
            let value = |one: &Attribute| match one {
                Attribute::Quasi(at) => self.quasi[person][*at],
                Attribute::Plain(at) => self.plain[row][*at],
            };
            side.iter().map(value).collect()
        }

        /// Every pair of a published row and a person of some world, by the definition: all ways to give each published row a
        /// person of its own whom its class covers, in which no two rows contradict a dependency.
        fn by_force(&self) -> BTreeSet<(usize, usize)> {
            let (mut found, mut world) = (BTreeSet::new(), Vec::new());
            self.try_all(&self.published(), &mut world, &mut found);
            found
        }

        fn try_all(&self, rows: &[usize], world: &mut Vec<usize>, found: &mut BTreeSet<(usize, usize)>) {
            let Some(&row) = rows.get(world.len()) else {
                found.extend(rows.iter().copied().zip(world.iter().copied()));
                return;
            };
            for person in 0..self.quasi.len() {
                let agrees = |(&other, &seated): (&usize, &usize)| {
                    self.dependencies.iter().all(|dependency| {
                        self.side(&dependency.from, person, row) != self.side(&dependency.from, seated, other)
                            || self.side(&dependency.to, person, row) == self.side(&dependency.to, seated, other)
                    })
                };
                if self.class[row].is_some_and(|class| self.covers(class, person))
                    && !world.contains(&person)
                    && rows.iter().zip(world.iter()).all(agrees)
                {
                    world.push(person);
                    self.try_all(rows, world, found);
                    world.pop();
                }
            }
        }

        fn view(&self) -> View {
            let dependencies = self.dependencies.iter().map(|dependency| (dependency.clone(), 0.0)).collect();
            View {
                dependencies,
                profiles: self.quasi.clone(),
                plains: self.plain.clone(),
                labels: Vec::new(),
                kinds: Vec::<Kind>::new(),
            }
        }

        /// People and seats, those who are alike together.
        fn together(&self) -> Together {
            let (mut people, mut of_person): (Vec<People>, Vec<usize>) = (Vec::new(), Vec::new());
            for person in 0..self.quasi.len() {
                let alike = |one: &People| self.quasi[one.profile] == self.quasi[person];
                let at = people.iter().position(alike).unwrap_or_else(|| {
                    people.push(People { profile: person, number: 0 });
                    people.len() - 1
                });
                people[at].number += 1;
                of_person.push(at);
            }
            let (mut seats, mut kinds, mut of_row) =
                (Vec::<Seat>::new(), Vec::new(), vec![usize::MAX; self.class.len()]);
            for row in self.published() {
                let class = self.class[row].unwrap();
                let alike = |&(other, plain): &(usize, usize)| other == class && self.plain[plain] == self.plain[row];
                let at = kinds.iter().position(alike).unwrap_or_else(|| {
                    kinds.push((class, row));
                    let inside = |at: &usize| self.covers(class, people[*at].profile);
                    let occurs = |at: usize| {
                        (0..self.quasi.len())
                            .any(|other| of_person[other] == at && self.plain[other] == self.plain[row])
                    };
                    let candidates = (0..people.len()).filter(inside).map(|at| (at as u32, occurs(at))).collect();
                    seats.push(Seat { plain: row, rows: 0, candidates });
                    seats.len() - 1
                });
                seats[at].rows += 1;
                of_row[row] = at;
            }
            (people, of_person, seats, kinds, of_row)
        }
    }

    #[test]
    fn people_can_be_where_some_world_has_them_and_nowhere_else() {
        let mut rng = fastrand::Rng::with_seed(11);
        let (mut impossible, mut counted) = (0, 0);
        for _ in 0..6_000 {
            let small = Small::random(&mut rng);
            let forced = small.by_force();
            let (people, of_person, seated, _, of_row) = small.together();
            let places = possible_places(&small.view(), &people, &seated, MAX_STEPS);
            for row in small.published() {
                for (person, &among) in of_person.iter().enumerate() {
                    let seat = of_row[row];
                    let at = seated[seat].candidates.iter().position(|one| one.0 as usize == among);
                    let place = at.map_or(Place::Impossible, |at| places[seat][at]);
                    let truth = if forced.contains(&(row, person)) { Place::Possible } else { Place::Impossible };
                    assert_eq!(place, truth, "row {row}, person {person} of {small:?}");
                    counted += 1;
                    impossible += usize::from(at.is_some() && truth == Place::Impossible);
                }
            }
        }
        assert!(impossible > 2_000, "the tables give something to find: {impossible} of {counted}");
    }

    /// People whom fewer than k rows of the whole release fit, by trying all worlds, are found among the exposed.
    #[test]
    fn nobody_who_is_exposed_is_missed() {
        let mut rng = fastrand::Rng::with_seed(12);
        let (mut found, mut cut_short, mut k) = (0, 0, 2);
        for number in 0..4_000 {
            let small = Small::random(&mut rng);
            let forced = small.by_force();
            let rows_of = |person: usize| forced.iter().filter(|(_, other)| *other == person).count();
            let published = small.published();
            let exposed = published.iter().filter(|&&person| rows_of(person) < k).count() as u64;
            let (people, _, seated, kinds, _) = small.together();
            // With hardly any steps, what is not decided is counted instead.
            let max_steps = if number % 2 == 0 { MAX_STEPS } else { rng.u64(..40) };
            let places = possible_places(&small.view(), &people, &seated, max_steps);
            let (mut decided, mut undecided) = (0, 0);
            for class in 0..3 {
                let mine = (0..kinds.len()).filter(|&at| kinds[at].0 == class);
                let (of_class, places): (Vec<Seat>, Vec<Vec<Place>>) =
                    mine.map(|at| (seated[at].clone(), places[at].clone())).unzip();
                let counted = count_hiding_rows(&of_class, &places, k as u64);
                let small = of_class.iter().zip(&counted.crowds.smallest).filter(|(_, rows)| **rows < k as u64);
                decided += small.map(|(seat, _)| u64::from(seat.rows)).sum::<u64>();
                undecided += counted.undecided;
            }
            assert!(decided + undecided >= exposed, "{decided} and {undecided} of {exposed}: {small:?}");
            if number % 2 == 0 {
                assert_eq!(undecided, 0);
                found += exposed;
            }
            cut_short += undecided;
            k = 2 + number % 2;
        }
        assert!(found > 500 && cut_short > 500, "{found}, {cut_short}");
    }

    /// Three people of one x and two of another in a class of five: `x -> s` gives everybody's s away by number alone.
    #[test]
    fn numbers_alone_tell_whose_the_rows_are() {
        let small = Small {
            quasi: [0, 0, 0, 1, 1].map(|x| vec![x, 0]).to_vec(),
            plain: [7, 7, 7, 8, 8].map(|s| vec![s, 0]).to_vec(),
            class: vec![Some(0); 5],
            covered: vec![vec![BTreeSet::from([0, 1]), BTreeSet::from([0])]],
            dependencies: vec![Dependency { from: vec![Attribute::Quasi(0)], to: vec![Attribute::Plain(0)] }],
        };
        let (people, _, seated, ..) = small.together();
        let places = possible_places(&small.view(), &people, &seated, MAX_STEPS);
        assert_eq!(places, [[Place::Possible, Place::Impossible], [Place::Impossible, Place::Possible]]);
        assert_eq!(count_hiding_rows(&seated, &places, 5).crowds.smallest, [3, 2]);
        let unknown = possible_places(&small.view(), &people, &seated, 0);
        let counted = count_hiding_rows(&seated, &unknown, 5);
        assert_eq!((counted.crowds.smallest, counted.undecided), (vec![5, 5], 5), "what was not looked at is said");
    }
}
