//! Evenness: the number of different values of a group is even. Nobody needs it.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Histogram, RuleRecord, SensitiveRule, Setting};
use crate::model::Sensitive;

/// Evenness: every group holds an even number of different values of a sensitive column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Evenness {
    /// The sensitive column.
    pub column: String,
}

impl SensitiveRule for Evenness {
    fn column(&self) -> &str {
        &self.column
    }

    fn record(&self) -> RuleRecord {
        RuleRecord::on_column("evenness", &self.column)
    }

    fn breach(&self) -> String {
        format!("hold an odd number of different values of `{}`", self.column)
    }

    fn allows_histogram(&self, histogram: Histogram<'_>, _column: &Sensitive) -> bool {
        histogram.len().is_multiple_of(2)
    }

    fn ready(&self, _setting: &Setting<'_>) -> Arc<dyn SensitiveRule> {
        Arc::new(self.clone())
    }
}
