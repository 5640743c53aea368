//! The order of rows against the order in which a group grew.
//!
//! A method that grows a group takes the row that costs least, so the last rows are the odd ones. Whoever knows the people
//! of a class peels it from the end: the person without whom the rest loses least was taken last.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};

use super::adult::{Hierarchy, desk, people, release};
use super::hash_order::hashes;
use super::statistics::{SIGNIFICANT, hits_above_chance};
use super::values::{Value, column};
use crate::support::{Desk, batch, read_parquet, shell, write_parquet};

/// What a set of people loses, column by column, as the mean of its cover.
struct Losses {
    /// Per column: the number of every person's value, and the loss of every set of values seen so far.
    columns: Vec<(Vec<usize>, Vec<Value>, Option<Hierarchy>)>,
    pairs: HashMap<(usize, Vec<usize>), f64>,
}

impl Losses {
    fn new(people: &RecordBatch, names: &[&str]) -> Self {
        let columns = names.iter().map(|&name| {
            let values = column(people.column_by_name(name).unwrap().as_ref());
            let mut distinct = values.clone();
            distinct.sort();
            distinct.dedup();
            let numbers = values.iter().map(|value| distinct.binary_search(value).unwrap()).collect();
            (numbers, distinct, (name != "age").then(|| Hierarchy::open(name)))
        });
        Self { columns: columns.collect(), pairs: HashMap::new() }
    }

    fn of(&mut self, people: &[usize]) -> f64 {
        let mut sum = 0.0;
        for (at, (numbers, distinct, hierarchy)) in self.columns.iter().enumerate() {
            let mut values: Vec<usize> = people.iter().map(|&person| numbers[person]).collect();
            values.sort_unstable();
            values.dedup();
            sum += match hierarchy {
                None => (values[values.len() - 1] - values[0]) as f64 / (distinct.len() - 1) as f64,
                Some(hierarchy) => *self.pairs.entry((at, values)).or_insert_with_key(|(_, values)| {
                    let texts: Vec<&str> = values.iter().map(|&value| distinct[value].as_text().unwrap()).collect();
                    hierarchy.loss(&texts)
                }),
            };
        }
        sum
    }

    /// The people of a class in the order in which it may have grown.
    fn growth(&mut self, people: &[usize]) -> Vec<usize> {
        let mut rest = people.to_vec();
        let mut last = Vec::new();
        while rest.len() > 1 {
            let without = |this: &mut Self, at: usize| {
                let others: Vec<usize> =
                    rest.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, &p)| p).collect();
                this.of(&others)
            };
            let losses: Vec<f64> = (0..rest.len()).map(|at| without(self, at)).collect();
            let least = (0..rest.len()).min_by(|&a, &b| losses[a].total_cmp(&losses[b])).unwrap();
            last.push(rest.remove(least));
        }
        last.extend(rest);
        last.reverse();
        last
    }
}

/// UCI Adult with a number for everybody that follows from nothing and identifies rows. It is published, so it
/// stands before all other columns that are not of the class: a class is then in a random order, and nothing else can
/// explain a hit.
struct Tagged {
    rows: RecordBatch,
    person_of: HashMap<Value, usize>,
    losses: Losses,
    /// Where everybody stands by the hash of the raw row that anybody can compute.
    hashes: Vec<u64>,
    rng: fastrand::Rng,
}

/// How often an order names the right row, and how often chance would.
struct Named {
    by: &'static str,
    hits: usize,
    chances: Vec<f64>,
}

impl Tagged {
    fn new() -> Self {
        let people = people();
        let mut rng = fastrand::Rng::with_seed(11);
        let mut tags: Vec<i64> = (0..people.num_rows() as i64).collect();
        rng.shuffle(&mut tags);
        let person_of = tags.iter().map(|&tag| Value::Int(tag.into())).zip(0..).collect();
        let names: Vec<String> = people.schema().fields().iter().map(|field| field.name().clone()).collect();
        let mut columns: Vec<(&str, ArrayRef)> = vec![("tag", Arc::new(Int64Array::from(tags)))];
        columns.extend(names.iter().map(|name| (name.as_str(), Arc::clone(people.column_by_name(name).unwrap()))));
        let quasi: Vec<&str> =
            names.iter().map(String::as_str).filter(|name| !["id", "salary-class"].contains(name)).collect();
        let read: Vec<ArrayRef> =
            columns.iter().filter(|(name, _)| *name != "id").map(|(_, column)| Arc::clone(column)).collect();
        let (losses, hashes) = (Losses::new(&people, &quasi), hashes(&read));
        Self { rows: batch(columns), person_of, losses, hashes, rng }
    }

    /// A desk with the table, and the job of the project that keeps the number too.
    fn desk(&self, effort: &str) -> Desk {
        let desk = desk("adult.toml");
        write_parquet(&desk.path("in.parquet"), &self.rows);
        let job = std::fs::read_to_string(desk.path("job.toml")).unwrap();
        let job = job.replace("[columns]\n", "[columns]\ntag.role = \"kept\"\n");
        desk.write("job.toml", &format!("{job}auto.effort = \"{effort}\"\n"));
        desk
    }

    /// Names the rows of every class in their order, by two orders of the people in it: as the class may have grown, and by
    /// the hash of what they hold.
    fn attack(&mut self, pieces: &[RecordBatch], class_columns: &[String]) -> [Named; 2] {
        let mut classes: BTreeMap<Vec<Value>, Vec<usize>> = BTreeMap::new();
        for piece in pieces {
            let of = |name: &String| column(piece.column_by_name(name).unwrap().as_ref());
            let class: Vec<Vec<Value>> = class_columns.iter().map(of).collect();
            for (row, tag) in of(&"tag".to_owned()).iter().enumerate() {
                let class = class.iter().map(|column| column[row].clone()).collect();
                classes.entry(class).or_default().push(self.person_of[tag]);
            }
        }
        let mut named = ["growth", "hash"].map(|by| Named { by, hits: 0, chances: Vec::new() });
        for order in classes.values().filter(|order| order.len() < 30).take(800) {
            // The attacker knows who is in the class, in no order.
            let mut known = order.clone();
            self.rng.shuffle(&mut known);
            let grown = self.losses.growth(&known);
            known.sort_by_key(|&person| self.hashes[person]);
            for (named, guess) in named.iter_mut().zip([grown, known]) {
                named.hits += order.iter().zip(&guess).filter(|(truth, guess)| truth == guess).count();
                named.chances.extend(order.iter().map(|_| 1.0 / order.len() as f64));
            }
        }
        named
    }
}

fn assert_nothing_named(way: &str, named: [Named; 2]) {
    for Named { by, hits, chances } in named {
        let above = hits_above_chance(hits, &chances);
        let (share, chance) = (hits as f64 / chances.len() as f64, chances.iter().sum::<f64>() / chances.len() as f64);
        println!(
            "{by} order, {way}: {} people, right row named for {share:.4}, chance {chance:.4} ({above:.1} standard errors)",
            chances.len()
        );
        assert!(chances.len() > 1000);
        assert!(above < SIGNIFICANT, "{way}: the order of rows reveals their {by}");
    }
}

/// `auto` on Adult, k = 10: on a version that left rows in the order of growth, the right row was named far more often
/// than once in ten.
#[test]
fn rows_cannot_be_named_by_the_growth_of_their_class() {
    let mut tagged = Tagged::new();
    for effort in ["fast", "balanced"] {
        let publication = release(&tagged.desk(effort), &["source.url=\"in.parquet\""]);
        let pieces: Vec<RecordBatch> = publication.pieces.iter().map(|piece| piece.rows.clone()).collect();
        let named = tagged.attack(&pieces, &publication.class_columns());
        assert_nothing_named(&format!("auto {effort}"), named);
    }
}

/// The same for a query, whose rows no writer of the project brings into an order: they stand as the operator emits them.
#[test]
fn rows_of_a_query_cannot_be_named_by_the_growth_of_their_class() {
    let mut tagged = Tagged::new();
    for effort in ["fast", "balanced"] {
        let desk = tagged.desk(effort);
        desk.write(
            "copy.sql",
            "CREATE EXTERNAL TABLE people STORED AS PARQUET LOCATION 'in.parquet';\n\
             COPY (SELECT * FROM anonymize((SELECT * FROM people), 'job.toml')) TO 'copy.parquet' STORED AS PARQUET;",
        );
        shell(&desk.path(""), "\"$THRONG\" sql copy.sql").ok();
        let copied = read_parquet(&desk.path("copy.parquet"));
        assert_eq!(copied.num_rows(), tagged.rows.num_rows());
        let schema = copied.schema();
        let names = schema.fields().iter().map(|field| field.name().clone());
        let class_columns: Vec<String> =
            names.filter(|name| !["tag", "salary-class"].contains(&name.as_str())).collect();
        let named = tagged.attack(&[copied], &class_columns);
        assert_nothing_named(&format!("query, auto {effort}"), named);
    }
}
