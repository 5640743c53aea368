//! How well a release protects one sensitive column, whatever its policy asks for: the parameters with which each of the
//! usual rules would just hold. They are found where the published files are read back.

use serde::{Deserialize, Serialize};

/// The parameters with which each rule just holds for one sensitive column.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Distinct l-diversity, and p-sensitivity: fewest different values of any class.
    pub l: u64,
    /// Entropy l-diversity: e to the smallest entropy.
    pub entropy_l: f64,
    /// Recursive (c, l)-diversity with the l above: it holds for every c above this.
    pub c: f64,
    /// (alpha, k): the largest share of one value in a class.
    pub alpha: f64,
    /// Least difference of the largest and the smallest number of a class; see [`k_e`](super::k_e).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<f64>,
    /// Least variance of the numbers of a class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variance: Option<f64>,
    /// t-closeness: ordered distance for numbers, dates and times, else equal distance.
    pub t: Option<f64>,
    /// t-closeness by the hierarchy of the column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub t_hierarchical: Option<f64>,
    /// Basic beta-likeness.
    pub beta: Option<f64>,
    /// Enhanced beta-likeness: the basic beta; `None` if some value exceeds -ln of its share, so that no beta will do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beta_enhanced: Option<f64>,
    /// delta-disclosure: it holds for every delta above this.
    pub delta: Option<f64>,
}
