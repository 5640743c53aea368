//! The order of rows against a hash that anybody can compute.
//!
//! If the rows of a class stand in the order of a hash of what they hold, then every guess at who has which sensitive
//! value predicts an order, and most guesses are refuted by the order that was published. Counting the guesses that are
//! left says how likely each value is for each person; often only one is left.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, RecordBatch, StringArray, StringViewArray};
use datafusion::arrow::compute::{cast, concat_batches};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::hash_utils::{QualityRandomState, create_hashes};

use super::adult::{Class, classes, desk, people, release};
use super::statistics::{SIGNIFICANT, gain_above_zero};
use super::values::column;

/// The hash of a row as the program computed it, with the seed that it used when a job set none.
pub fn hashes(columns: &[ArrayRef]) -> Vec<u64> {
    const SEED: u64 = 42;
    let state = QualityRandomState::with_seed(SEED);
    let rows = columns[0].len();
    let (mut hashes, mut scratch) = (vec![SEED; rows], vec![0; rows]);
    for column in columns {
        let text = matches!(column.data_type(), DataType::Utf8 | DataType::LargeUtf8);
        let column = if text { cast(column, &DataType::Utf8View).unwrap() } else { Arc::clone(column) };
        create_hashes([&column], &state, &mut scratch).unwrap();
        for (hash, value) in hashes.iter_mut().zip(&scratch) {
            let mixed = (*hash ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            *hash = mixed ^ (mixed >> 29);
        }
    }
    hashes
}

/// The hashes of everybody, if everybody had one value of a sensitive column; of the columns that are read, in their order.
pub fn hashes_with(people: &RecordBatch, read: &[String], sensitive: &str, value: &str) -> Vec<u64> {
    let assumed: ArrayRef = Arc::new(StringViewArray::from_iter_values(std::iter::repeat_n(value, people.num_rows())));
    let column = |name: &String| match name == sensitive {
        true => Arc::clone(&assumed),
        false => Arc::clone(people.column_by_name(name).unwrap()),
    };
    hashes(&read.iter().map(column).collect::<Vec<_>>())
}

/// How many assignments of values to people give the published sequence, by what each person has in them.
struct Worlds<'a> {
    /// Person, value and hash, ascending by hash.
    events: &'a [(usize, usize)],
    /// The published values in their order.
    sequence: &'a [usize],
    known: HashMap<(usize, u64), f64>,
}

impl Worlds<'_> {
    /// Ways to go on from an event, when the people in `used` have taken their places.
    fn count(&mut self, event: usize, used: u64) -> f64 {
        let place = used.count_ones() as usize;
        if event == self.events.len() {
            return f64::from(u8::from(place == self.sequence.len()));
        }
        if let Some(&ways) = self.known.get(&(event, used)) {
            return ways;
        }
        let ways = self.skip(event, used) + self.take(event, used);
        self.known.insert((event, used), ways);
        ways
    }

    fn take(&mut self, event: usize, used: u64) -> f64 {
        let (person, value) = self.events[event];
        let place = used.count_ones() as usize;
        if used >> person & 1 == 1 || self.sequence.get(place) != Some(&value) {
            return 0.0;
        }
        self.count(event + 1, used | 1 << person)
    }

    fn skip(&mut self, event: usize, used: u64) -> f64 {
        let (person, _) = self.events[event];
        let later = self.events[event + 1..].iter().any(|&(other, _)| other == person);
        if used >> person & 1 == 0 && !later { 0.0 } else { self.count(event + 1, used) }
    }
}

/// How likely the attack holds every value for every person of a class; none when no assignment fits.
fn chances(class_hashes: &[Vec<u64>], sequence: &[usize]) -> Option<Vec<Vec<f64>>> {
    let (people, values) = (class_hashes[0].len(), class_hashes.len());
    let mut events: Vec<(usize, usize)> =
        (0..people).flat_map(|person| (0..values).map(move |value| (person, value))).collect();
    events.sort_by_key(|&(person, value)| class_hashes[value][person]);
    let mut worlds = Worlds { events: &events, sequence, known: HashMap::new() };
    let all = worlds.count(0, 0);
    if all == 0.0 {
        return None;
    }
    // Forward: ways to reach a state times ways to go on from it when the event is taken.
    let mut reached: HashMap<u64, f64> = HashMap::from([(0, 1.0)]);
    let mut chances = vec![vec![0.0; values]; people];
    for (event, &(person, value)) in events.iter().enumerate() {
        let mut next: HashMap<u64, f64> = HashMap::new();
        for (used, ways) in reached {
            let (taking, skipping) = (worlds.take(event, used), worlds.skip(event, used));
            if taking > 0.0 {
                chances[person][value] += ways * taking / all;
                *next.entry(used | 1 << person).or_default() += ways;
            }
            if skipping > 0.0 {
                *next.entry(used).or_default() += ways;
            }
        }
        reached = next;
    }
    Some(chances)
}

/// What an attack on the classes of a release came to.
#[derive(Debug, Default)]
struct Outcome {
    classes: usize,
    people: usize,
    certain: usize,
    right: usize,
    /// Per class, how much more chance the attack gives to the truth than the class itself does.
    gains: Vec<f64>,
}

fn attack(read: &[String], people: &RecordBatch, classes: &[Class], published: &RecordBatch) -> Outcome {
    const SENSITIVE: &str = "salary-class";
    let truth = column(people.column_by_name(SENSITIVE).unwrap().as_ref());
    let shown = column(published.column_by_name(SENSITIVE).unwrap().as_ref());
    let mut values = truth.clone();
    values.sort();
    values.dedup();
    let number = |value| values.iter().position(|other| other == value).unwrap();
    let assumed: Vec<Vec<u64>> =
        values.iter().map(|value| hashes_with(people, read, SENSITIVE, value.as_text().unwrap())).collect();
    let mut outcome = Outcome::default();
    for class in classes {
        let sequence: Vec<usize> = class.rows.iter().map(|&row| number(&shown[row])).collect();
        let mixed = sequence.iter().any(|value| *value != sequence[0]);
        if !mixed || class.people.len() > 14 || outcome.classes == 300 {
            continue;
        }
        outcome.classes += 1;
        outcome.people += class.people.len();
        let of_class: Vec<Vec<u64>> =
            assumed.iter().map(|hashes| class.people.iter().map(|&person| hashes[person]).collect()).collect();
        let share =
            |value: usize| sequence.iter().filter(|&&other| other == value).count() as f64 / sequence.len() as f64;
        let mut gain = 0.0;
        if let Some(chances) = chances(&of_class, &sequence) {
            for (chances, &person) in chances.iter().zip(&class.people) {
                let true_value = number(&truth[person]);
                gain += chances[true_value] - share(true_value);
                if let Some(value) = chances.iter().position(|&chance| chance > 1.0 - 1e-9) {
                    outcome.certain += 1;
                    outcome.right += usize::from(value == true_value);
                }
            }
        }
        outcome.gains.push(gain);
    }
    outcome
}

/// Mondrian on Adult, k = 10: on a version that ordered rows by this hash, the salary class of a third of the people in
/// mixed classes became certain, every one right.
#[test]
fn salaries_cannot_be_told_by_hashing_guesses() {
    let desk = desk("adult.toml");
    let people = people();
    // What is hashed are the columns that are read, in the order of the source.
    let read: Vec<String> = people.schema().fields().iter().map(|field| field.name().clone()).collect();
    let read: Vec<String> = read.into_iter().filter(|name| name != "id").collect();
    let publication = release(&desk, &["method.name=\"mondrian\""]);
    let pieces: Vec<RecordBatch> = publication.pieces.iter().map(|piece| piece.rows.clone()).collect();
    let published = concat_batches(&pieces[0].schema(), &pieces).unwrap();
    let classes = classes(&published, &publication.class_columns(), &people);
    let outcome = attack(&read, &people, &classes, &published);
    let gain = gain_above_zero(&outcome.gains);
    let mean = outcome.gains.iter().sum::<f64>() / outcome.people.max(1) as f64;
    println!(
        "hash order, mondrian: {} mixed classes of {} people; certain {}, of them right {}; chance of the truth {mean:+.4} \
         against the class alone ({gain:.1} standard errors)",
        outcome.classes, outcome.people, outcome.certain, outcome.right
    );
    assert!(outcome.classes >= 100, "too few classes for a test: {}", outcome.classes);
    assert!(gain < SIGNIFICANT, "the order of rows reveals salaries");
}

#[test]
fn the_attack_finds_what_a_hash_order_tells() {
    // Three people and two values: of the six orders of a class, the hashes of the truth give one.
    let hashes = vec![vec![10, 40, 50], vec![60, 20, 30]];
    // Person 0 has value 0, persons 1 and 2 have value 1: sequence by hash 10, 20, 30.
    let chances = chances(&hashes, &[0, 1, 1]).unwrap();
    assert_eq!(chances, vec![vec![1.0, 0.0], vec![0.0, 1.0], vec![0.0, 1.0]]);
    let text: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "a"]));
    let hashed = super::hash_order::hashes(&[text]);
    assert!(hashed[0] == hashed[2] && hashed[0] != hashed[1]);
}
