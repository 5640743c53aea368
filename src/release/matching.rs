//! Who of a public table fits which published class: what a reader with that table would find out, from the published
//! values alone.
//!
//! 1. The distinct classes are read, and what each of them covers on every quasi-identifier becomes an interval: of
//!    numbers and points in time as published, of texts in the order of the public table's own values.
//! 2. A tree of bounding boxes over the intervals finds the few classes that may cover a row; the published values decide.
//! 3. Equal public rows are looked up once. People who fit the same classes are alike to the reader, and counted together.

use std::collections::HashMap;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{Expr, ident, lit};
use datafusion::prelude::DataFrame;
use futures::TryStreamExt;

use super::boxes::Boxes;
use super::cover::Original;
use super::places::Column;
use crate::attack::linkage::Linkage;
use crate::attack::tally::Tally;
use crate::attack::{Belief, Share};
use crate::error::Result;
use crate::job::{Treatment, published_fields};

/// People of a public table by the classes that they fit.
#[derive(Debug, Default)]
pub struct Matching {
    /// Published rows of every class.
    pub rows: Vec<u64>,
    /// How many people fit each set of classes (by number, ascending).
    pub people: HashMap<Vec<u32>, u64>,
}

impl Matching {
    /// Matches a public table, given its quasi-identifiers as the source has them, with the classes of a release.
    pub async fn new(published: &DataFrame, public: &DataFrame, quasi: &[Expr], treatment: &Treatment) -> Result<Self> {
        let keys = treatment.class_columns().iter().map(ident).collect();
        let classes = published.clone().aggregate(keys, vec![count(lit(1)).alias("size")])?;
        let schema = std::sync::Arc::new(classes.schema().as_arrow().clone());
        let classes = concat_batches(&schema, &classes.collect().await?)?;
        let sizes = classes.column(classes.num_columns() - 1).as_primitive::<Int64Type>();
        let rows: Vec<u64> = sizes.values().iter().map(|&size| size as u64).collect();

        let public = public.clone().select(quasi.to_vec())?;
        let mut columns = Vec::new();
        let mut first = 0;
        for quasi in &treatment.quasi {
            let width = published_fields(quasi).len();
            columns.push(Column::read(quasi, &classes.columns()[first..first + width], &public).await?);
            first += width;
        }
        let boxes = Boxes::new(columns.iter().map(|column| column.extents.as_slice()).collect(), rows.len());

        let names: Vec<Expr> = treatment.quasi.iter().map(|quasi| ident(&quasi.name)).collect();
        let distinct = public.aggregate(names, vec![count(lit(1)).alias("size")])?;
        let mut people: HashMap<Vec<u32>, u64> = HashMap::new();
        let mut stream = distinct.execute_stream().await?;
        while let Some(batch) = stream.try_next().await? {
            match_batch(&columns, &boxes, &batch, &mut people)?;
        }
        Ok(Self { rows, people })
    }

    /// People who fit each class, whatever else they fit.
    pub fn people_of_class(&self) -> Vec<u64> {
        let mut fitting = vec![0; self.rows.len()];
        for (classes, people) in &self.people {
            classes.iter().for_each(|&class| fitting[class as usize] += people);
        }
        fitting
    }

    /// People who fit no class.
    pub fn outside(&self) -> u64 {
        self.people.get([].as_slice()).copied().unwrap_or(0)
    }

    /// What a reader believes of the people who fit the same classes: exact where these classes cover nobody else in
    /// common with others; bounds otherwise, from how often members must and can be among them.
    pub fn beliefs(&self) -> Vec<(&[u32], u64, Belief)> {
        let fitting = self.people_of_class();
        let mut beliefs = Vec::with_capacity(self.people.len());
        for (classes, &people) in &self.people {
            let sizes = || classes.iter().map(|&class| (self.rows[class as usize], fitting[class as usize]));
            let belief = match classes.as_slice() {
                [] => Belief::Exact(Share::none()),
                [class] if fitting[*class as usize] == people => {
                    Belief::Exact(Share::from((self.rows[*class as usize], people)))
                }
                _ => {
                    let most = sizes().map(|(rows, _)| rows).sum::<u64>().min(people);
                    let least = sizes().map(|(rows, all)| rows.saturating_sub(all - people)).max().unwrap_or(0);
                    Belief::Between(Share::from((least.min(people), people)), Share::from((most, people)))
                }
            };
            beliefs.push((classes.as_slice(), people, belief));
        }
        beliefs
    }

    /// People by how surely they are known to be in the source.
    pub fn tally(&self) -> Tally {
        let mut tally = Tally { released: self.rows.iter().sum(), buckets: self.rows.len() as u64, ..Tally::default() };
        for (classes, people, belief) in self.beliefs() {
            let mut part = Tally::default();
            if classes.is_empty() {
                part.add_outside(people);
            } else {
                part.add_bucket(0, [(&belief, people)]);
                part.buckets = 0;
            }
            tally.merge(&part);
        }
        tally
    }

    /// Risks of linking published rows with public people.
    pub fn linkage(&self) -> Linkage {
        let mut linkage = Linkage::default();
        self.rows.iter().zip(self.people_of_class()).for_each(|(&rows, people)| linkage.add(rows, people));
        linkage
    }
}

fn match_batch(
    columns: &[Column<'_>],
    boxes: &Boxes,
    batch: &RecordBatch,
    people: &mut HashMap<Vec<u32>, u64>,
) -> Result<()> {
    let mut originals = Vec::with_capacity(columns.len());
    let mut places = Vec::with_capacity(columns.len());
    for (column, array) in columns.iter().zip(batch.columns()) {
        let original = Original::read(column.quasi, array)?;
        places.push(column.places(array, &original)?);
        originals.push(original);
    }
    let sizes = batch.column(batch.num_columns() - 1).as_primitive::<Int64Type>();
    let mut at = vec![0.0; columns.len()];
    let mut fitting = Vec::new();
    for row in 0..batch.num_rows() {
        at.iter_mut().zip(&places).for_each(|(at, places)| *at = places[row]);
        fitting.clear();
        boxes.holding(&at, |class| {
            let covers =
                |(column, original): (&Column<'_>, &Original)| column.published.covers(class as usize, original, row);
            if columns.iter().zip(&originals).all(covers) {
                fitting.push(class);
            }
        });
        fitting.sort_unstable();
        match people.get_mut(&fitting) {
            Some(known) => *known += sizes.value(row) as u64,
            None => _ = people.insert(fitting.clone(), sizes.value(row) as u64),
        }
    }
    Ok(())
}
