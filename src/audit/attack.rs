//! What an adversary learns from a release: the figures of `throng attack`. Counts and shares, never who.

use std::collections::BTreeMap;

use datafusion::prelude::DataFrame;
use serde::Serialize;

use super::inferred::Inferred;
use crate::attack::confidence::ConfidenceHistogram;
use crate::attack::disclosure::Disclosure;
use crate::attack::linkage::Linkage;
use crate::attack::population::{SampleClasses, Uniques};
use crate::binding::{BoundPolicy, SensitiveColumn};
use crate::error::Result;
use crate::measure::Classes;
use crate::policy::Form;
use crate::verify::{InProcess, class_sizes, fold_histograms};

/// The figures of an attack.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Attack {
    /// The release.
    pub run: String,
    /// How its groups are published, when it is not by generalising.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<Form>,
    /// Published rows.
    pub rows: u64,
    /// Classes of equal published quasi-identifiers, or numbered groups.
    pub classes: u64,
    /// Who of a public table is known to be in the source, or not to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub membership: Option<Membership>,
    /// The chance to pick the right record of a person.
    pub linkage: Risks,
    /// The classes to a reader who knows the dependencies of the policy, when it has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inference: Option<Inferred>,
    /// How surely sensitive values are known, by column.
    pub sensitive: BTreeMap<String, Disclosure>,
    /// Estimates for a population without a public table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub population: Option<Population>,
}

/// Membership of public people.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Membership {
    /// People by confidence.
    #[serde(flatten)]
    pub tally: ConfidenceHistogram,
    /// Share of the members who are known to be.
    pub reidentified: f64,
    /// Share of the others who are known not to be.
    pub ruled_out: f64,
}

/// Linkage risks.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Risks {
    /// The most exposed person's, from somebody who knows that they are in.
    pub prosecutor: f64,
    /// The mean of that.
    pub prosecutor_mean: f64,
    /// The most exposed person's, from somebody who holds the public table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub journalist: Option<f64>,
    /// Expected share of correct links to the public table.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marketer: Option<f64>,
    /// Fewest public people who fit a class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub k_map: Option<u64>,
}

/// Unique people of a population.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Population {
    /// People.
    pub people: u64,
    /// Estimated uniques if the source were published as it is.
    pub source: Uniques,
    /// Estimated uniques by the published values.
    pub release: Uniques,
}

impl Membership {
    /// Rates of a tally.
    pub(crate) fn new(tally: ConfidenceHistogram) -> Self {
        let (reidentified, ruled_out) = (tally.reidentified_share(), tally.ruled_out());
        Self { tally, reidentified, ruled_out }
    }
}

impl Risks {
    /// Risks by published classes, and by who fits them if that is known.
    pub(crate) fn new(classes: &Classes, linkage: Option<&Linkage>) -> Self {
        Self {
            prosecutor: classes.smallest().map_or(0.0, |rows| 1.0 / rows as f64),
            prosecutor_mean: classes.classes() as f64 / classes.rows().max(1) as f64,
            journalist: linkage.map(Linkage::journalist_risk),
            marketer: linkage.map(Linkage::marketer_risk),
            k_map: linkage.and_then(|linkage| linkage.k_map),
        }
    }
}

/// Uniques of a population that the source and the release are samples of.
pub(crate) async fn estimate_population(
    people: u64,
    source: &DataFrame,
    release: &Classes,
    bound_policy: &BoundPolicy,
) -> Result<Population> {
    let raw = class_sizes(&InProcess, source, &bound_policy.quasi_names()).await?;
    let uniques = |classes: &Classes| SampleClasses::new(classes.histogram(), people).estimate_uniques();
    Ok(Population { people, source: uniques(&raw), release: uniques(release) })
}

/// How surely the values of a sensitive column are known from the class that a person is in.
pub(crate) async fn measure_disclosure(
    rows: &DataFrame,
    class_columns: &[String],
    column: &SensitiveColumn,
) -> Result<Disclosure> {
    let add = |found: &mut Disclosure, counts: &mut dyn Iterator<Item = u64>, range: Option<f64>| {
        found.add_class(counts, range)
    };
    let merge = |found: &mut Disclosure, other: Disclosure| found.merge(&other);
    fold_histograms(rows, class_columns, column, Disclosure::default(), add, merge).await
}
