//! Several releases of the same people, held together: the figures of `throng attack --series`. Counts and shares, never who.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{Expr, ident, lit};
use datafusion::prelude::DataFrame;
use futures::TryStreamExt;
use serde::{Deserialize, Serialize};

use super::matching::ClassIndex;
use crate::attack::series::{ClassValues, Exposure, Intersection, Sighting};
use crate::binding::BoundPolicy;
use crate::error::{Error, Result};
use crate::published::content_keys;

/// One release, and who was there.
pub(crate) struct Night {
    /// What the release is called.
    pub(crate) name: String,
    /// Its rows.
    pub(crate) published: DataFrame,
    /// Everybody who was in its source: the quasi-identifiers as in the source, then the identity of subjects.
    pub(crate) people: DataFrame,
}

/// The figures of an attack on several releases.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SeriesAttack {
    /// Smallest class that the policy allows.
    pub k: u32,
    /// The releases in the order in which they were compared.
    pub releases: Vec<ComparedRelease>,
    /// What is known by sensitive column.
    pub sensitive: BTreeMap<String, ColumnExposure>,
}

/// A release as it was compared.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ComparedRelease {
    /// Its run, or its folder.
    pub name: String,
    /// Published rows.
    pub rows: u64,
    /// People who were in its source.
    pub people: u64,
}

/// What is known of one sensitive column.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ColumnExposure {
    /// Fewest different values that the policy lets a class have, where it says so; otherwise 2.
    pub least_values: u64,
    /// What is known after each release.
    pub releases: Vec<ColumnRelease>,
}

/// What is known of one sensitive column after a release and all before it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ColumnRelease {
    /// People by values and by rows that are left.
    pub exposure: Exposure,
    /// Share of the people who may have fewer than `least_values` values.
    pub below_least: f64,
    /// Share of the people of whom a single value is left.
    pub one_value: f64,
    /// Share of the people of whom a release has left fewer than k rows.
    pub below_k: f64,
}

impl ColumnRelease {
    fn new(exposure: Exposure, least: u64, k: u32) -> Self {
        let share = |people: u64| people as f64 / exposure.people.max(1) as f64;
        let (below_least, one_value) = (share(exposure.below_values(least)), share(exposure.below_values(2)));
        let below_k = share(exposure.below_candidates(u64::from(k)));
        Self { exposure, below_least, one_value, below_k }
    }
}

/// Attacks releases in their order.
pub(crate) async fn attack_releases(nights: &[Night], bound_policy: &BoundPolicy) -> Result<SeriesAttack> {
    let k = bound_policy.policy.privacy.k;
    let mut found = SeriesAttack { k, releases: Vec::new(), sensitive: BTreeMap::new() };
    let mut columns: Vec<ColumnAttack> =
        bound_policy.sensitive.iter().map(|column| ColumnAttack::new(&column.name)).collect();
    for night in nights {
        let index = ClassIndex::read_classes(&night.published, bound_policy).await?;
        let seen = Seen::find_classes(night, &index, bound_policy.quasi.len()).await?;
        let (rows, people) = (index.rows.iter().sum(), seen.people.len() as u64);
        found.releases.push(ComparedRelease { name: night.name.clone(), rows, people });
        for column in &mut columns {
            let least = least_values(bound_policy, &column.name);
            let exposure = column.observe_night(night, &index, &seen, bound_policy).await?;
            let empty = || ColumnExposure { least_values: least, releases: Vec::new() };
            let releases = &mut found.sensitive.entry(column.name.clone()).or_insert_with(empty).releases;
            releases.push(ColumnRelease::new(exposure, least, k));
        }
    }
    Ok(found)
}

/// The fewest different values that the policy lets a class have of a column: what one release promises.
fn least_values(bound_policy: &BoundPolicy, column: &str) -> u64 {
    let rules = bound_policy.policy.privacy.l_diversity.iter().filter(|rule| rule.column == column);
    rules.map(|rule| rule.l.ceil() as u64).max().unwrap_or(0).max(2)
}

/// The attack on one sensitive column.
struct ColumnAttack {
    name: String,
    /// Numbers of its values, the same in all releases.
    values: HashMap<i128, u32>,
    state: Intersection,
}

impl ColumnAttack {
    fn new(name: &str) -> Self {
        Self { name: name.to_owned(), values: HashMap::new(), state: Intersection::default() }
    }

    async fn observe_night(
        &mut self,
        night: &Night,
        index: &ClassIndex,
        seen: &Seen,
        bound_policy: &BoundPolicy,
    ) -> Result<Exposure> {
        let classes = self.class_values(&night.published, index, &bound_policy.class_columns()).await?;
        Ok(self.state.observe_release(Sighting { classes: &classes, crowds: &seen.crowds, people: &seen.people }))
    }

    /// How often each value stands in each class.
    async fn class_values(
        &mut self,
        published: &DataFrame,
        index: &ClassIndex,
        class_columns: &[String],
    ) -> Result<Vec<ClassValues>> {
        let keys: Vec<Expr> = class_columns.iter().chain([&self.name]).map(ident).collect();
        let counted = published.clone().aggregate(keys, vec![count(lit(1)).alias("__rows")])?;
        let schema = Arc::new(counted.schema().as_arrow().clone());
        let counted = concat_batches(&schema, &counted.collect().await?)?;
        let (rows, width) = (counted.num_rows(), class_columns.len());
        let classes = content_keys(&counted.columns()[..width], rows)?;
        let values = content_keys(&counted.columns()[width..=width], rows)?;
        let sizes = counted.column(width + 1).as_primitive::<Int64Type>();
        let numbers: HashMap<i128, usize> = index.names.iter().enumerate().map(|(at, name)| (*name, at)).collect();
        let mut found = vec![ClassValues::new(); index.names.len()];
        for ((class, value), size) in classes.iter().zip(values).zip(sizes.values()) {
            let next = self.values.len() as u32;
            let value = *self.values.entry(value).or_insert(next);
            if let Some(&class) = numbers.get(class) {
                found[class].push((value, *size as u64));
            }
        }
        Ok(found)
    }
}

/// Who was there for a release, and which classes cover them.
#[derive(Debug, Default)]
struct Seen {
    crowds: Vec<Vec<u32>>,
    people: Vec<(i128, Option<u32>)>,
}

impl Seen {
    /// Finds the classes of everybody; the columns of subjects follow the quasi-identifiers.
    async fn find_classes(night: &Night, index: &ClassIndex, quasi: usize) -> Result<Self> {
        let mut seen = Self::default();
        let mut numbers: HashMap<Vec<u32>, u32> = HashMap::new();
        let mut stream = night.people.clone().execute_stream().await?;
        while let Some(batch) = stream.try_next().await? {
            let subjects = content_keys(&batch.columns()[quasi..], batch.num_rows())?;
            index.find_fitting(&batch, |row, fitting| {
                let crowd = (!fitting.is_empty()).then(|| match numbers.get(fitting) {
                    Some(&number) => number,
                    None => {
                        let number = seen.crowds.len() as u32;
                        seen.crowds.push(fitting.to_vec());
                        numbers.insert(fitting.to_vec(), number);
                        number
                    }
                });
                seen.people.push((subjects[row], crowd));
            })?;
        }
        seen.ensure_unique(&night.name)?;
        Ok(seen)
    }

    fn ensure_unique(&mut self, name: &str) -> Result<()> {
        self.people.sort_unstable();
        let twice = self.people.windows(2).filter(|pair| pair[0].0 == pair[1].0).count();
        if twice == 0 {
            return Ok(());
        }
        Err(Error::input(format!(
            "{twice} rows of the public table for `{name}` are of a subject that another row is of; name the columns that \
             identify subjects with --subject"
        )))
    }
}
