//! (k, e)-anonymity for numbers (Zhang et al.; Tinabo, section 4): every group holds at least k different sensitive
//! values, and they span at least e, so that nobody's number is known closely.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Flaw, Histogram, Needs, RuleRecord, SensitiveRule, Setting};
use crate::model::{Sensitive, SensitiveShape};

/// (k, e)-anonymity: the numbers of every group are different and far apart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct KE {
    /// The sensitive column, of numbers.
    pub column: String,
    /// Fewest different values in a group.
    #[schemars(range(min = 1))]
    pub k: u32,
    /// Least difference of the largest and the smallest value of a group, in the unit of the column.
    #[schemars(range(min = 0.0))]
    pub e: f64,
}

/// The different numbers of a group, ascending. Nulls and NaN are left out.
fn distinct_numbers<'a>(
    histogram: Histogram<'a>,
    column: &'a Sensitive,
    at: &'a [f64],
) -> impl Iterator<Item = f64> + 'a {
    let known = histogram.iter().filter(|(code, _)| Some(*code) != column.null);
    known.map(|&(code, _)| at[code as usize]).filter(|number| !number.is_nan())
}

/// The largest minus the smallest number of a group, and how many different ones there are.
pub fn number_range(histogram: Histogram<'_>, column: &Sensitive) -> (f64, usize) {
    let SensitiveShape::Number { at, .. } = &column.shape else { return (0.0, histogram.len()) };
    let mut values = distinct_numbers(histogram, column, at);
    let Some(first) = values.next() else { return (0.0, 0) };
    let (last, count) = values.fold((first, 1), |(_, count), value| (value, count + 1));
    (last - first, count)
}

impl SensitiveRule for KE {
    fn column(&self) -> &str {
        &self.column
    }

    fn record(&self) -> RuleRecord {
        let record = RuleRecord::on_column("k-e", &self.column);
        record.with_parameter("k", f64::from(self.k)).with_parameter("e", self.e)
    }

    fn breach(&self) -> String {
        let Self { column, k, e } = self;
        format!("hold fewer than k = {k} different values of `{column}`, or values less than e = {e} apart")
    }

    fn allows_histogram(&self, histogram: Histogram<'_>, column: &Sensitive) -> bool {
        let (range, different) = number_range(histogram, column);
        different >= self.k as usize && range >= self.e
    }

    fn needs(&self) -> Needs {
        Needs { numbers: true, ..Needs::default() }
    }

    fn flaws(&self, _levels: Option<&crate::hierarchy::LevelTree>) -> Vec<Flaw> {
        let few = (self.k == 0).then(|| Flaw::new("k", "must be at least 1, got 0"));
        few.into_iter().chain(Flaw::not_above("e", self.e, 0.0)).collect()
    }

    fn ready(&self, _setting: &Setting<'_>) -> Arc<dyn SensitiveRule> {
        Arc::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grouping::fixtures;

    #[test]
    fn tinabo_k_e_asks_for_different_values_and_a_range() {
        // The group of Loukides, 2.6: a range of 40 and two different values.
        let column = fixtures::income(&[0.0, 40.0], &[]);
        let rule = |k, e| KE { column: "income".into(), k, e };
        let group = [(0, 1), (1, 2)];
        assert!(rule(2, 40.0).allows_histogram(&group, &column));
        assert!(!rule(3, 40.0).allows_histogram(&group, &column), "three rows, but two values");
        assert!(!rule(2, 41.0).allows_histogram(&group, &column));
    }

    #[test]
    fn nulls_are_no_numbers() {
        let mut column = fixtures::income(&[0.0, 40.0], &[]);
        column.null = Some(2);
        assert_eq!(number_range(&[(0, 1), (2, 5)], &column), (0.0, 1));
        assert_eq!(number_range(&[(2, 5)], &column), (0.0, 0));
    }
}
