//! Who of a public table fits which published class: what a reader with that table would find out, from the published
//! values alone.
//!
//! 1. The distinct classes are read, and what each of them covers on every quasi-identifier becomes an interval.
//! 2. A tree of boxes over the intervals finds the classes that cover a row; where an interval is not exact, the
//!    published values decide.
//! 3. The partitions of the public table are matched side by side. Most people fit one class, and are counted there; those
//!    who fit the same several classes are alike to the reader, and counted together.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{Expr, ident, lit};
use datafusion::prelude::DataFrame;
use futures::TryStreamExt;

use super::places::{Column, Values};
use crate::attack::confidence::ConfidenceHistogram;
use crate::attack::linkage::Linkage;
use crate::attack::{Belief, Fraction};
use crate::binding::{BoundPolicy, published_fields};
use crate::error::{Error, Result};
use crate::plan::join_parts;
use crate::published::{BoxTree, content_keys};

/// People of a public table by the classes that they fit.
#[derive(Debug, Default)]
pub(crate) struct Matching {
    /// The identity of every class: the key of its published values.
    pub names: Vec<i128>,
    /// Published rows of every class.
    pub rows: Vec<u64>,
    /// People who fit no class.
    pub outside: u64,
    /// How many people fit each class and no other.
    pub alone: Vec<u64>,
    /// How many people fit each set of several classes (by number, ascending).
    pub several: HashMap<Vec<u32>, u64>,
}

/// The classes of a release, and how to find those that cover a row.
pub(crate) struct ClassIndex {
    /// The identity of every class: the key of its published values.
    pub(crate) names: Vec<i128>,
    /// Published rows of every class.
    pub(crate) rows: Vec<u64>,
    columns: Vec<Column>,
    boxes: BoxTree,
}

impl Matching {
    /// Matches a public table, given its quasi-identifiers as the source has them, with the classes of a release.
    pub(crate) async fn new(
        published: &DataFrame,
        public: &DataFrame,
        quasi: &[Expr],
        bound_policy: &BoundPolicy,
    ) -> Result<Self> {
        let public = public.clone().select(quasi.to_vec())?;
        let classes = Arc::new(ClassIndex::read_classes(published, bound_policy).await?);
        let (names, rows) = (classes.names.clone(), classes.rows.clone());
        let none = vec![0; rows.len()];
        let parts = public.execute_stream_partitioned().await?.into_iter().map(|mut stream| {
            let (classes, mut part) = (Arc::clone(&classes), Self { alone: none.clone(), ..Self::default() });
            async move {
                while let Some(batch) = stream.try_next().await? {
                    classes.find_fitting(&batch, |_, fitting| part.add_person(fitting))?;
                }
                Ok::<_, Error>(part)
            }
        });
        let mut whole = Self { names, rows, alone: none.clone(), ..Self::default() };
        join_parts("a task of the matching", parts.collect::<Vec<_>>(), |part| {
            whole.merge(part);
            Ok(())
        })
        .await?;
        Ok(whole)
    }

    /// Counts a person who fits some classes, ascending.
    fn add_person(&mut self, fitting: &[u32]) {
        match fitting {
            [] => self.outside += 1,
            [class] => self.alone[*class as usize] += 1,
            several => match self.several.get_mut(several) {
                Some(people) => *people += 1,
                None => _ = self.several.insert(several.to_vec(), 1),
            },
        }
    }

    /// Adds the people of another part of the public table.
    fn merge(&mut self, other: Self) {
        self.outside += other.outside;
        self.alone.iter_mut().zip(other.alone).for_each(|(people, more)| *people += more);
        other.several.into_iter().for_each(|(classes, people)| *self.several.entry(classes).or_default() += people);
    }

    /// People who fit each class, whatever else they fit.
    pub(crate) fn people_of_class(&self) -> Vec<u64> {
        let mut fitting = self.alone.clone();
        for (classes, people) in &self.several {
            classes.iter().for_each(|&class| fitting[class as usize] += people);
        }
        fitting
    }

    /// What a reader believes of the people who fit the same classes: exact where these classes cover nobody else in
    /// common with others; bounds otherwise, from how often members must and can be among them. Those who fit none are
    /// left out.
    pub(crate) fn compute_beliefs(&self) -> Vec<(u64, Belief)> {
        let fitting = self.people_of_class();
        let alone = self.alone.iter().enumerate().filter(|(_, people)| **people > 0);
        let alone = alone.map(|(class, &people)| match fitting[class] == people {
            true => (people, Belief::Exact(Fraction::from((self.rows[class], people)))),
            false => (people, self.belief_between(&[class as u32], people, &fitting)),
        });
        let several = self.several.iter();
        alone
            .chain(several.map(|(classes, &people)| (people, self.belief_between(classes, people, &fitting))))
            .collect()
    }

    fn belief_between(&self, classes: &[u32], people: u64, fitting: &[u64]) -> Belief {
        let sizes = || classes.iter().map(|&class| (self.rows[class as usize], fitting[class as usize]));
        let most = sizes().map(|(rows, _)| rows).sum::<u64>().min(people);
        let least = sizes().map(|(rows, all)| rows.saturating_sub(all - people)).max().unwrap_or(0);
        Belief::Between(Fraction::from((least.min(people), people)), Fraction::from((most, people)))
    }

    /// People by how surely they are known to be in the source.
    pub(crate) fn confidence_histogram(&self) -> ConfidenceHistogram {
        let mut tally = ConfidenceHistogram {
            released: self.rows.iter().sum(),
            buckets: self.rows.len() as u64,
            ..ConfidenceHistogram::default()
        };
        tally.add_outside(self.outside);
        for (people, belief) in self.compute_beliefs() {
            let mut part = ConfidenceHistogram::default();
            part.add_bucket(0, [(&belief, people)]);
            part.buckets = 0;
            tally.merge(&part);
        }
        tally
    }

    /// Risks of linking published rows with public people.
    pub(crate) fn linkage_risks(&self) -> Linkage {
        let mut linkage = Linkage::default();
        self.rows.iter().zip(self.people_of_class()).for_each(|(&rows, people)| linkage.add_class(rows, people));
        linkage
    }
}

impl ClassIndex {
    /// Reads the classes of a release, to be asked about a public table that begins with its quasi-identifiers.
    pub(crate) async fn read_classes(published: &DataFrame, bound_policy: &BoundPolicy) -> Result<Self> {
        let keys = bound_policy.class_columns().iter().map(ident).collect();
        let classes = published.clone().aggregate(keys, vec![count(lit(1)).alias("__rows")])?;
        let schema = Arc::new(classes.schema().as_arrow().clone());
        let classes = concat_batches(&schema, &classes.collect().await?)?;
        let width = classes.num_columns() - 1;
        let names = content_keys(&classes.columns()[..width], classes.num_rows())?;
        let sizes = classes.column(width).as_primitive::<Int64Type>();
        let rows: Vec<u64> = sizes.values().iter().map(|&size| size as u64).collect();
        let mut columns = Vec::new();
        let mut first = 0;
        for quasi in &bound_policy.quasi {
            let width = published_fields(quasi).len();
            columns.push(Column::read_generalised(quasi, &classes.columns()[first..first + width])?);
            first += width;
        }
        let boxes = BoxTree::new(columns.iter().map(|column| column.extents.as_slice()).collect(), rows.len());
        columns.iter_mut().for_each(|column| column.extents = Vec::new());
        Ok(Self { names, rows, columns, boxes })
    }

    /// Finds the classes that every row of a batch fits, ascending.
    pub(crate) fn find_fitting(&self, batch: &RecordBatch, mut each: impl FnMut(usize, &[u32])) -> Result<()> {
        let columns = self.columns.iter().zip(batch.columns());
        let values = columns.map(|(column, array)| column.read_values(array)).collect::<Result<Vec<Values>>>()?;
        let mut at = vec![0.0; values.len()];
        let mut fitting = Vec::new();
        for row in 0..batch.num_rows() {
            at.iter_mut().zip(&values).for_each(|(at, values)| *at = values.at[row]);
            fitting.clear();
            self.boxes.query_point(&at, |class| {
                if self.columns.iter().zip(&values).all(|(column, values)| column.covers(class as usize, values, row)) {
                    fitting.push(class);
                }
            });
            fitting.sort_unstable();
            each(row, &fitting);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::Path;

    use datafusion::arrow::array::{ArrayRef, Date32Array, Float64Array, Int32Array, StringViewArray, StructArray};
    use datafusion::arrow::buffer::NullBuffer;
    use datafusion::arrow::datatypes::{DataType, Field, Fields, Schema};
    use datafusion::prelude::{SessionConfig, SessionContext};
    use proptest::prelude::*;

    use super::*;
    use crate::policy::Policy;
    use crate::published::cover::{Original, Published};

    const POLICY: &str = r#"
        privacy.k = 2
        columns.age.role = "quasi"
        columns.town.role = "quasi"
        columns.kind = { role = "quasi", hierarchy = { tree = [{ x = ["a", "b"] }, { y = ["c", { z = ["d", "e"] }] }] } }
        columns.code = { role = "quasi", hierarchy = { mask = "right" } }
        columns.day = { role = "quasi", hierarchy = { calendar = ["day", "month", "year"] } }
        columns.size = { role = "quasi", hierarchy = { widths = [5.0, 10.0] } }
    "#;

    /// A person by every kind of column: number, set, tree, mask, calendar and ladder.
    type Person = (Option<i32>, Option<String>, Option<String>, Option<String>, Option<i32>, Option<f64>);
    /// A class by what is published of them: the ends of an interval, and labels.
    type Class = (Option<(Option<i32>, Option<i32>)>, [Option<String>; 5]);

    fn person() -> impl Strategy<Value = Person> {
        (
            prop::option::weighted(0.9, 0..8_i32),
            prop::option::weighted(0.9, "[abc]|a, b"),
            prop::option::weighted(0.9, "[a-f]"),
            prop::option::weighted(0.9, "[12]{1,3}"),
            prop::option::weighted(0.9, 18_300..18_500_i32),
            prop::option::weighted(0.9, prop_oneof![0.0..12.0_f64, Just(5.0), Just(f64::NAN), Just(f64::NEG_INFINITY)]),
        )
    }

    fn class() -> impl Strategy<Value = Class> {
        let ends = prop_oneof![
            4 => (0..8_i32, 0..5_i32).prop_map(|(low, more)| Some((Some(low), Some(low + more)))),
            1 => Just(Some((None, None))),
            1 => Just(None),
        ];
        let label = |labels: &'static str| prop::option::weighted(0.8, prop_oneof![labels, Just("*".to_owned())]);
        let labels = (
            label("[abc]|\\{[ab], [bc]\\}|\\{a, b, c\\}|a, b"),
            label("[a-f]|[xyz]"),
            label("[12]{1,3}|[12]\\*|[12]\\*\\*|[12]{2}\\*"),
            label("2020-0[2-7]|2020|2020-0[2-7]-1[1-9]"),
            label("\\[0, 5\\)|\\[5, 10\\)|\\[0, 10\\)|5|< 5|>= 5"),
        );
        (ends, labels).prop_map(|(ends, (a, b, c, d, e))| (ends, [a, b, c, d, e]))
    }

    fn public(people: &[Person]) -> RecordBatch {
        let texts = |of: fn(&Person) -> &Option<String>| -> ArrayRef {
            Arc::new(StringViewArray::from_iter(people.iter().map(|person| of(person).as_deref())))
        };
        let columns: [(&str, ArrayRef); 6] = [
            ("age", Arc::new(Int32Array::from_iter(people.iter().map(|person| person.0)))),
            ("town", texts(|person| &person.1)),
            ("kind", texts(|person| &person.2)),
            ("code", texts(|person| &person.3)),
            ("day", Arc::new(Date32Array::from_iter(people.iter().map(|person| person.4)))),
            ("size", Arc::new(Float64Array::from_iter(people.iter().map(|person| person.5)))),
        ];
        let fields: Vec<Field> =
            columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true)).collect();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns.map(|(_, array)| array).to_vec()).unwrap()
    }

    /// Every class as often as its number says, from 1 on: the number of its rows names it.
    fn published(classes: &[Class], schema: &Arc<Schema>) -> RecordBatch {
        let rows: Vec<&Class> =
            classes.iter().enumerate().flat_map(|(at, class)| std::iter::repeat_n(class, at + 1)).collect();
        let ends = |high: bool| -> ArrayRef {
            let end = |class: &&Class| class.0.and_then(|(low, top)| if high { top } else { low });
            Arc::new(Int32Array::from_iter(rows.iter().map(end)))
        };
        let fields = ["min", "max"].map(|name| Field::new(name, DataType::Int32, true));
        let valid = NullBuffer::from_iter(rows.iter().map(|class| class.0.is_some()));
        let age = StructArray::new(Fields::from(fields.to_vec()), vec![ends(false), ends(true)], Some(valid));
        let mut columns: Vec<ArrayRef> = vec![Arc::new(age)];
        for label in 0..5 {
            let labels = rows.iter().map(|class| class.1[label].as_deref());
            columns.push(Arc::new(StringViewArray::from_iter(labels)));
        }
        let named = schema.fields().iter().zip(&columns);
        let fields: Vec<Field> =
            named.map(|(field, array)| Field::new(field.name(), array.data_type().clone(), true)).collect();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
    }

    /// People by the rows of the classes that they fit.
    fn found(people: &RecordBatch, classes: &RecordBatch, bound_policy: &BoundPolicy) -> BTreeMap<Vec<u64>, u64> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let matching = runtime.block_on(async {
            let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(3));
            let (public, published) = (context.read_batch(people.clone()), context.read_batch(classes.clone()));
            let quasi: Vec<Expr> = bound_policy.quasi.iter().map(|quasi| ident(&quasi.name)).collect();
            Matching::new(&published.unwrap(), &public.unwrap(), &quasi, bound_policy).await.unwrap()
        });
        let mut found: BTreeMap<Vec<u64>, u64> = BTreeMap::new();
        found.insert(Vec::new(), matching.outside);
        matching.rows.iter().zip(&matching.alone).for_each(|(&rows, &people)| _ = found.insert(vec![rows], people));
        for (classes, people) in &matching.several {
            let mut sizes: Vec<u64> = classes.iter().map(|&class| matching.rows[class as usize]).collect();
            sizes.sort_unstable();
            found.insert(sizes, *people);
        }
        found.retain(|_, people| *people > 0);
        found
    }

    /// The same by asking every class of every person.
    fn expected(people: &RecordBatch, classes: &RecordBatch, bound_policy: &BoundPolicy) -> BTreeMap<Vec<u64>, u64> {
        let columns = bound_policy.quasi.iter().zip(classes.columns());
        let shown: Vec<Published> = columns
            .map(|(quasi, array)| Published::read_columns(quasi, std::slice::from_ref(array)).unwrap())
            .collect();
        let columns = bound_policy.quasi.iter().zip(people.columns());
        let originals: Vec<Original> =
            columns.map(|(quasi, array)| Original::read_column(quasi, array).unwrap()).collect();
        let mut expected: BTreeMap<Vec<u64>, u64> = BTreeMap::new();
        for person in 0..people.num_rows() {
            let covers =
                |row: usize| shown.iter().zip(&originals).all(|(shown, original)| shown.covers(row, original, person));
            // The first row of class n stands at 0 + 1 + ... + n - 1.
            let classes = (1..).take_while(|n| n * (n - 1) / 2 < classes.num_rows());
            let fitting = classes.filter(|n| covers(n * (n - 1) / 2)).map(|n| n as u64).collect();
            *expected.entry(fitting).or_default() += 1;
        }
        expected
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn people_fit_the_classes_that_cover_them(
            people in prop::collection::vec(person(), 1..60),
            classes in prop::collection::vec(class(), 1..25),
        ) {
            let mut seen = BTreeSet::new();
            let mut classes = classes;
            classes.retain(|class| seen.insert(class.clone()));
            let people = public(&people);
            let policy = Policy::from_table(toml::from_str(POLICY).unwrap(), Path::new(".")).unwrap();
            let bound_policy = BoundPolicy::new(Arc::new(policy), people.schema()).unwrap();
            let classes = published(&classes, &people.schema());
            prop_assert_eq!(found(&people, &classes, &bound_policy), expected(&people, &classes, &bound_policy));
        }
    }
}
