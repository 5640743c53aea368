//! What a release must satisfy, as it stands in the job file: `k`, a few bounds, and the list of rules about sensitive
//! columns.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::dependencies::Inference;
use super::forms::OneOrMany;
use super::model::{DEFAULT_MAX_SUPPRESSION, LDiversity, RangeDiversity};
use super::presence::Presence;
use crate::privacy::alpha_k::AlphaK;
use crate::privacy::beta_likeness::BetaLikeness;
use crate::privacy::delta_disclosure::DeltaDisclosure;
use crate::privacy::guarding::Guarding;
use crate::privacy::k_e::KE;
use crate::privacy::p_sensitive::PSensitive;
use crate::privacy::t_closeness::TCloseness;
use crate::privacy::{RuleRecord, SensitiveRule};

fn default_max_suppression() -> f64 {
    DEFAULT_MAX_SUPPRESSION
}

/// Makes [`Privacy`] with a key for every rule of the list.
macro_rules! privacy {
    ($($(#[$doc:meta])* $key:ident: $rule:ident;)*) => {
        /// What the release must satisfy.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields)]
        pub(crate) struct Privacy {
            /// Every combination of published quasi-identifier values occurs at least this often. At least 2.
            #[schemars(range(min = 2))]
            pub k: u32,
            /// The column that identifies people, if a person may have several rows: k then counts people, not rows.
            /// It need not be published; rows without a value in it count as one person.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub person: Option<String>,
            /// The largest share of rows that may be left out of the release.
            #[serde(default = "default_max_suppression")]
            #[schemars(range(min = 0.0, max = 1.0))]
            pub max_suppression: f64,
            /// The largest mean information loss of any group over its quasi-identifiers (U). Unbounded by default.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            #[schemars(range(min = 0.0, max = 1.0))]
            pub max_loss: Option<f64>,
            /// What to do if a reader who knows the dependencies can distinguish rows of a class, so that fewer than k
            /// are left.
            #[serde(default, skip_serializing_if = "Inference::is_default")]
            pub inference: Inference,
            /// Hides who is in the source at all from readers who hold a public table of people (delta-presence).
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub presence: Option<Presence>,
            $(
                $(#[$doc])*
                #[serde(default, skip_serializing_if = "OneOrMany::is_empty")]
                pub $key: OneOrMany<$rule>,
            )*
        }

        /// A rule about a sensitive column, of any kind.
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum PrivacyRule {
            $(
                $(#[$doc])*
                $rule($rule),
            )*
        }

        $(
            impl From<$rule> for PrivacyRule {
                fn from(rule: $rule) -> Self {
                    Self::$rule(rule)
                }
            }
        )*

        impl Privacy {
            /// k and nothing else.
            pub(crate) fn new(k: u32) -> Self {
                Self {
                    k,
                    person: None,
                    max_suppression: DEFAULT_MAX_SUPPRESSION,
                    max_loss: None,
                    inference: Inference::default(),
                    presence: None,
                    $($key: OneOrMany::default(),)*
                }
            }

            /// Adds a rule.
            pub(crate) fn add_rule(&mut self, rule: PrivacyRule) {
                match rule {
                    $(PrivacyRule::$rule(rule) => self.$key.push(rule),)*
                }
            }

            /// All rules about sensitive columns, each with its key in the job file.
            pub(crate) fn rules(&self) -> Vec<ConfiguredRule> {
                let mut rules = Vec::new();
                $(
                    let name = stringify!($key).replace('_', "-");
                    for (index, rule) in self.$key.iter().enumerate() {
                        let place = if self.$key.len() > 1 { format!("[{index}]") } else { String::new() };
                        let key = format!("privacy.{name}{place}");
                        let rule: Arc<dyn SensitiveRule> = Arc::new(rule.clone());
                        rules.push(ConfiguredRule { name: name.clone(), key, record: rule.record(), rule });
                    }
                )*
                rules
            }
        }
    };
}

// The list of rules. The comment of a line is the description of its key in the JSON schema.
privacy! {
    /// Bounds on how surely a sensitive value can be placed in a range (P). One rule, or a list of rules.
    range_diversity: RangeDiversity;
    /// Demands on the variety of sensitive values in every group. One rule, or a list of rules.
    l_diversity: LDiversity;
    /// Bounds on how far the distribution of sensitive values in a group is from that of the table. One rule, or a list.
    t_closeness: TCloseness;
    /// Bounds on the share of a group that holds the same sensitive value. One rule, or a list of rules.
    alpha_k: AlphaK;
    /// Demands on the number of different sensitive values in every group. One rule, or a list of rules.
    p_sensitive: PSensitive;
    /// Demands on the number of different sensitive numbers in every group and on their range. One rule, or a list.
    k_e: KE;
    /// Bounds on how much more or less a group reveals of a sensitive value than the table. One rule, or a list of rules.
    delta_disclosure: DeltaDisclosure;
    /// Bounds on how much more common a sensitive value is in a group than in the table. One rule, or a list of rules.
    beta_likeness: BetaLikeness;
    /// Nodes of a sensitive column's hierarchy below which a group may hold few values. One rule, or a list of rules.
    guarding: Guarding;
}

/// A rule of the job.
#[derive(Debug, Clone)]
pub(crate) struct ConfiguredRule {
    /// The key of its kind, such as `l-diversity`.
    pub name: String,
    /// Its own key, such as `privacy.l-diversity[1]`.
    pub key: String,
    /// Name and parameters as the job has them.
    pub record: RuleRecord,
    /// The rule.
    pub rule: Arc<dyn SensitiveRule>,
}

impl Privacy {
    /// Whether a rule is about a column.
    pub(crate) fn guards_column(&self, column: &str) -> bool {
        self.rules().iter().any(|listed| listed.rule.column() == column)
    }

    /// Whether a rule compares the groups' values of a column with those of the whole table.
    pub(crate) fn compares_column(&self, column: &str) -> bool {
        self.rules().iter().any(|listed| listed.rule.column() == column && listed.rule.needs().table)
    }
}
