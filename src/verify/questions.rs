//! What is asked of every class, and the answers, both in a form that can be sent: classes are asked where they are counted.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use serde::{Deserialize, Serialize};

use super::figures::Weakest;
use super::rules::{Asked, asked_rules};
use crate::binding::{BoundPolicy, SensitiveColumn};
use crate::error::{Error, Result};
use crate::measure::Classes;
use crate::published::exact::{Keys, Ranks};
use crate::published::key_counts::{Histogram, read_key_counts, rows_of};
use crate::published::values::{Table, Values};

/// A sensitive column that is looked at.
#[derive(Debug, Clone)]
pub(crate) struct Looked {
    pub(crate) name: String,
    pub(crate) rules: Vec<Asked>,
    values: Values,
}

/// What is asked of every class, in a form that can be sent: the policy has the rules, and the published table what they
/// are compared with.
#[derive(Debug, Clone)]
pub(crate) struct Questions {
    bound_policy: Arc<BoundPolicy>,
    asked: AskedOf,
    looked: Vec<Looked>,
}

/// The part of [`Questions`] that does not follow from the policy.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AskedOf {
    /// Columns of an aggregated row before its tallies.
    pub(crate) width: usize,
    /// Whether the last tally is of people.
    pub(crate) people: bool,
    pub(crate) columns: Vec<Measured>,
}

/// A sensitive column, and what the published rows say of its values as a whole.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) name: String,
    /// Bits of the distance between the ends of the domain.
    width: u64,
    distinct: u64,
    /// High and low half of every key, and how often it is published.
    table: Option<Vec<(u64, u64, u64)>>,
    /// Every published value, where keys are ranks.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "rank_digits")]
    ranks: Option<Arc<Ranks>>,
}

/// Ranks as the digits of their values.
pub(super) mod rank_digits {
    use std::sync::Arc;

    use datafusion::arrow::datatypes::i256;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

    use crate::published::exact::Ranks;

    pub(crate) fn serialize<S: Serializer>(ranks: &Option<Arc<Ranks>>, to: S) -> Result<S::Ok, S::Error> {
        let digits = ranks.as_ref().map(|ranks| ranks.values().iter().map(i256::to_string).collect::<Vec<_>>());
        digits.serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Arc<Ranks>>, D::Error> {
        let Some(digits) = Option::<Vec<String>>::deserialize(from)? else { return Ok(None) };
        let digits = digits.iter().map(|digits| i256::from_string(digits)).collect::<Option<Vec<i256>>>();
        digits.map(|digits| Some(Arc::new(Ranks::new(digits)))).ok_or_else(|| de::Error::custom("no digits"))
    }
}

impl Measured {
    /// A column whose published values lie so far apart, are so many, occur so often, and have these ranks if they need any.
    pub(crate) fn new(
        name: &str,
        width: f64,
        distinct: u64,
        table: Option<BTreeMap<i128, u64>>,
        ranks: Option<Arc<Ranks>>,
    ) -> Self {
        let halves = |(key, rows): (i128, u64)| ((key as u128 >> 64) as u64, key as u64, rows);
        let table = table.map(|counts| counts.into_iter().map(halves).collect());
        Self { name: name.to_owned(), width: width.to_bits(), distinct, table, ranks }
    }

    fn values(&self, column: &SensitiveColumn) -> Values {
        let key = |high: u64, low: u64| (u128::from(high) << 64 | u128::from(low)) as i128;
        let table = self.table.as_ref().map(|counts| {
            Arc::new(Table::new(counts.iter().map(|&(high, low, rows)| (key(high, low), rows)).collect()))
        });
        Values::new(column, f64::from_bits(self.width), self.distinct, table, self.ranks.as_ref())
    }

    /// How the values of the column become keys.
    pub(crate) fn keys(&self, column: &SensitiveColumn) -> Keys {
        Keys::of_column(column, self.ranks.as_ref())
    }
}

impl Questions {
    /// The questions of a policy about some columns.
    pub(crate) fn new(bound_policy: Arc<BoundPolicy>, asked_of: AskedOf) -> Result<Self> {
        let rules = asked_rules(&bound_policy)?;
        let mut looked = Vec::new();
        for measured in &asked_of.columns {
            let column = bound_policy.sensitive.iter().find(|column| column.name == measured.name);
            let missing = || Error::internal("a class is asked about a column that is not there");
            let column = column.ok_or_else(missing)?;
            looked.push(Looked {
                name: column.name.clone(),
                rules: rules.iter().filter(|rule| rule.column == column.name).cloned().collect(),
                values: measured.values(column),
            });
        }
        Ok(Self { bound_policy, asked: asked_of, looked })
    }

    pub(crate) fn bound_policy(&self) -> &BoundPolicy {
        &self.bound_policy
    }

    pub(crate) fn asked_of(&self) -> &AskedOf {
        &self.asked
    }

    /// The columns that are looked at.
    pub(crate) fn looked(&self) -> &[Looked] {
        &self.looked
    }

    /// How many rules are asked.
    pub(crate) fn rules(&self) -> usize {
        self.looked.iter().map(|looked| looked.rules.len()).sum()
    }

    /// The answer before any class was asked.
    pub(crate) fn counted(&self) -> Counted {
        Counted {
            broken: self.looked.iter().map(|looked| vec![0; looked.rules.len()]).collect(),
            weakest: vec![Weakest::default(); self.looked.len()],
            ..Counted::default()
        }
    }

    /// Asks every class of a batch: the columns of the class, then a tally for each column and one of people.
    pub(crate) fn ask_classes(&self, classes: &RecordBatch, counted: &mut Counted) {
        let tallies = &classes.columns()[self.asked.width..];
        let mut histograms = vec![Histogram::new(); tallies.len()];
        for row in 0..classes.num_rows() {
            histograms.iter_mut().zip(tallies).for_each(|(into, column)| read_key_counts(column, row, into));
            counted.classes.add_classes(histograms.first().map_or(0, |histogram| rows_of(histogram)), 1);
            for (at, (looked, histogram)) in self.looked.iter().zip(&histograms).enumerate() {
                for (rule, broken) in looked.rules.iter().zip(&mut counted.broken[at]) {
                    *broken += u64::from(!rule.allows_class(histogram, &looked.values));
                }
                counted.weakest[at].add_class(histogram, &looked.values);
            }
            if let Some(people) = histograms.last().filter(|_| self.asked.people) {
                counted.people.add_classes(people.len() as u64, 1);
            }
        }
    }
}

/// What all classes show of the columns that were examined by them.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Counted {
    pub(crate) classes: Classes,
    pub(crate) people: Classes,
    /// How many classes break each rule, column by column.
    pub(crate) broken: Vec<Vec<u64>>,
    pub(crate) weakest: Vec<Weakest>,
}

impl Counted {
    pub(crate) fn merge(&mut self, other: Self) {
        self.classes.merge(&other.classes);
        self.people.merge(&other.people);
        let pairs = self.broken.iter_mut().flatten().zip(other.broken.into_iter().flatten());
        pairs.for_each(|(mine, theirs)| *mine += theirs);
        self.weakest.iter_mut().zip(other.weakest).for_each(|(mine, theirs)| mine.merge(theirs));
    }
}
