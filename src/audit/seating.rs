//! Who of the source may be on which published row, everybody counted once: the reader knows all quasi-identifiers of
//! everybody, not only those that dependencies speak of, and so which classes cover them.
//!
//! People who are covered by the same classes and alike in the dependencies are counted together, so that there are as
//! many of them as classes, more or less. Where classes overlap so much that too many places are possible, nobody is
//! counted, which the caller must say.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::Decimal128Type;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::logical_expr::{Expr, ident};
use datafusion::prelude::DataFrame;
use futures::TryStreamExt;

use super::places::{Column, Values};
use crate::attack::seats::{People, Seat};
use crate::binding::{BoundPolicy, published_fields};
use crate::error::Result;
use crate::published::{BoxTree, content_key};

/// Maximum number of places (pairs of equal people and equal rows) that are examined.
const MAX_PLACES: usize = 1 << 22;
/// Bytes of a place while it is looked at, about.
const PLACE_BYTES: usize = 96;

/// Rows of a class that look alike.
#[derive(Debug, Clone)]
pub(super) struct Alike {
    /// The key of the class.
    pub class: i128,
    pub label: usize,
    pub plain: usize,
    pub rows: u64,
    /// The keys of the plain columns.
    pub plain_keys: Vec<i128>,
}

/// People of the source and the rows that they may be.
#[derive(Debug, Default)]
pub(super) struct Seating {
    pub people: Vec<People>,
    /// One for each set of rows that look alike.
    pub seats: Vec<Seat>,
}

/// Profile and classes of people who are alike.
type Key = (usize, Vec<u32>);

impl Seating {
    /// Seats the people of the source; `None` if there are too many places. `read_columns` reads profile and plain columns of a row
    /// of a batch, the columns of which are all quasi-identifiers and `plain`; `fits` says whether somebody with a profile
    /// can be on rows that look alike.
    pub(super) async fn read_seating(
        (published, bound_policy): (&DataFrame, &BoundPolicy),
        source: &DataFrame,
        plain: Vec<Expr>,
        alike: &[Alike],
        memory: &MemoryReservation,
        mut read_columns: impl FnMut(&RecordBatch) -> Result<Vec<(usize, usize)>>,
        fits: impl Fn(&Alike, usize) -> bool,
    ) -> Result<Option<Self>> {
        if bound_policy.form().is_numbered() {
            return Ok(None);
        }
        let classes = read_classes(published, bound_policy).await?;
        let numbers: HashMap<i128, u32> =
            classes.column(0).as_primitive::<Decimal128Type>().values().iter().copied().zip(0..).collect();
        let mut columns = Vec::new();
        let mut first = 1;
        for quasi in &bound_policy.quasi {
            let width = published_fields(quasi).len();
            columns.push(Column::read_generalised(quasi, &classes.columns()[first..first + width])?);
            first += width;
        }
        let boxes = BoxTree::new(columns.iter().map(|column| column.extents.as_slice()).collect(), classes.num_rows());
        let mut of_class: Vec<Vec<usize>> = vec![Vec::new(); classes.num_rows()];
        for (at, one) in alike.iter().enumerate() {
            if let Some(&class) = numbers.get(&one.class) {
                of_class[class as usize].push(at);
            }
        }

        let mut wanted: Vec<Expr> = bound_policy.quasi.iter().map(|quasi| ident(&quasi.name)).collect();
        wanted.extend(plain);
        let mut found: HashMap<Key, (u32, BTreeSet<usize>)> = HashMap::new();
        let mut places = 0;
        let mut stream = source.clone().select(wanted)?.execute_stream().await?;
        while let Some(batch) = stream.try_next().await? {
            let read_columns = read_columns(&batch)?;
            let read = columns.iter().zip(batch.columns()).map(|(column, array)| column.read_values(array));
            let values = read.collect::<Result<Vec<Values>>>()?;
            let mut at = vec![0.0; values.len()];
            for (row, (profile, plain)) in read_columns.into_iter().enumerate() {
                at.iter_mut().zip(&values).for_each(|(at, values)| *at = values.at[row]);
                let mut classes = Vec::new();
                boxes.query_point(&at, |class| {
                    if columns.iter().zip(&values).all(|(column, values)| column.covers(class as usize, values, row)) {
                        classes.push(class);
                    }
                });
                classes.sort_unstable();
                let (number, beside) = found.entry((profile, classes)).or_insert_with_key(|(_, classes)| {
                    places += classes.iter().map(|&class| of_class[class as usize].len()).sum::<usize>();
                    (0, BTreeSet::new())
                });
                *number += 1;
                beside.insert(plain);
            }
            if places > MAX_PLACES || memory.try_resize(places * PLACE_BYTES).is_err() {
                return Ok(None);
            }
        }
        Ok(Some(Self::seat_people(found, alike, &of_class, fits)))
    }

    /// Seats people: `found` counts those who fit the same classes, `of_class` are the rows of every class that look alike.
    fn seat_people(
        found: HashMap<Key, (u32, BTreeSet<usize>)>,
        alike: &[Alike],
        of_class: &[Vec<usize>],
        fits: impl Fn(&Alike, usize) -> bool,
    ) -> Self {
        let seat = |one: &Alike| Seat { plain: one.plain, rows: one.rows as u32, candidates: Vec::new() };
        let mut seating = Self { people: Vec::with_capacity(found.len()), seats: alike.iter().map(seat).collect() };
        let mut found: Vec<(Key, (u32, BTreeSet<usize>))> = found.into_iter().collect();
        found.sort_unstable();
        for ((profile, classes), (number, beside)) in found {
            let person = seating.people.len() as u32;
            seating.people.push(People { profile, number });
            for at in classes.iter().flat_map(|&class| &of_class[class as usize]) {
                if fits(&alike[*at], profile) {
                    seating.seats[*at].candidates.push((person, beside.contains(&alike[*at].plain)));
                }
            }
        }
        seating
    }
}

/// Every class of a release, its key and then its published columns.
async fn read_classes(published: &DataFrame, bound_policy: &BoundPolicy) -> Result<RecordBatch> {
    let mut keys = vec![content_key(&bound_policy.class_columns()).alias("__class")];
    keys.extend(bound_policy.class_columns().iter().map(ident));
    let classes = published.clone().aggregate(keys, vec![])?;
    let schema = Arc::new(classes.schema().as_arrow().clone());
    Ok(concat_batches(&schema, &classes.collect().await?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of two classes, somebody who fits both may sit in either, but only where profile and row go together.
    #[test]
    fn people_sit_where_class_and_profile_allow() {
        let alike = |class, plain, rows| Alike { class, label: 0, plain, rows, plain_keys: Vec::new() };
        let rows = [alike(7, 0, 2), alike(7, 1, 1), alike(9, 0, 3)];
        let of_class = vec![vec![0, 1], vec![2]];
        let one = ((5, vec![0, 1]), (2, BTreeSet::from([1])));
        let other = ((6, vec![1]), (4, BTreeSet::from([0])));
        let found = HashMap::from([one, other]);
        let seating = Seating::seat_people(found, &rows, &of_class, |row, profile| profile == 6 || row.plain == 1);
        let people: Vec<(usize, u32)> = seating.people.iter().map(|people| (people.profile, people.number)).collect();
        assert_eq!(people, [(5, 2), (6, 4)]);
        let candidates: Vec<_> = seating.seats.iter().map(|seat| seat.candidates.clone()).collect();
        assert_eq!(candidates, [vec![], vec![(0, true)], vec![(1, true)]], "a seat for each set of rows");
        assert_eq!(seating.seats.iter().map(|seat| seat.rows).collect::<Vec<_>>(), [2, 1, 3]);
    }
}
