//! Risks in the population that a source is a part of: against a public table, or estimated from the size of the population.

use serde::{Deserialize, Serialize};

use crate::attack::linkage::Linkage;
use crate::attack::population::{SampleClasses, Uniques};
use crate::measure::Classes;

/// What somebody can do who does not know that a person is in the source.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PopulationRisk {
    /// Chance to pick the right record of the most exposed person, found by the public table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journalist: Option<f64>,
    /// Expected share of correct links to the public table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marketer: Option<f64>,
    /// Fewest public people who fit a class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub k_map: Option<u64>,
    /// People in the population, if the policy says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub people: Option<u64>,
    /// Estimated unique people of it, were the source published as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Uniques>,
    /// Estimated unique people of it by the published classes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<Uniques>,
}

impl PopulationRisk {
    /// Adds the risks of being linked with a public table.
    pub(crate) fn add_linkage(&mut self, linkage: &Linkage) {
        if linkage.rows > 0 {
            self.journalist = Some(linkage.journalist_risk());
            self.marketer = Some(linkage.marketer_risk());
            self.k_map = linkage.k_map;
        }
    }

    /// Adds the estimates for a population of the given size.
    pub(crate) fn add_estimates(&mut self, people: u64, source: &Classes, release: &Classes) {
        let uniques = |classes: &Classes| SampleClasses::new(classes.histogram(), people).estimate_uniques();
        self.people = Some(people);
        self.source = Some(uniques(source));
        self.release = Some(uniques(release));
    }

    /// Itself, when anything is known.
    pub(crate) fn if_known(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }
}
