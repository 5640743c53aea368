//! Whether a release keeps everybody's chance to be in the source within the bounds: from the written files and the public
//! table alone, by counting who fits what.

use datafusion::prelude::{DataFrame, SessionContext};

use super::buckets::{Buckets, Look, Shown};
use super::matching::Matching;
use super::public::Public;
use super::verify::Finding;
use crate::attack::linkage::Linkage;
use crate::attack::overlap::Effort;
use crate::attack::{Belief, Bounds, Share};
use crate::error::Result;
use crate::job::{Presence, Treatment};

/// How much work the proof of one release may be.
const EFFORT: Effort = Effort { bucket: 1 << 18, whole: usize::MAX, joint: 1 << 20 };

/// Public people whose chance is outside the bounds, or cannot be told to be inside; and the risks of being linked.
pub(super) async fn verify(
    published: &DataFrame,
    public: &Public,
    context: &SessionContext,
    treatment: &Treatment,
) -> Result<(Vec<Finding>, Linkage)> {
    let Some(rule) = &treatment.policy.privacy.presence else { return Ok((Vec::new(), Linkage::default())) };
    let bounds = Bounds::new(rule.min, rule.max);
    let mut tested = Tested::default();
    let linkage = if treatment.form().is_numbered() {
        let people = people(public, context, treatment)?;
        let slices = treatment.slices(&[]);
        let shown = Shown::One(published.clone());
        let buckets = Buckets::read(&shown, treatment, &slices, Look::Quasi, &people).await?;
        let fits = buckets.fit(&people).await?;
        let (beliefs, strangers) = buckets.beliefs(&fits, EFFORT);
        fits.crowds.iter().zip(&beliefs).for_each(|(crowd, belief)| tested.add(&bounds, belief, crowd.people));
        tested.add(&bounds, &Belief::Exact(Share::none()), fits.outside);
        tested.more = strangers;
        tested.few = few(rule, &buckets.people(&fits));
        buckets.linkage(&fits)
    } else {
        let matching = matching(published, public, context, treatment).await?;
        matching.beliefs().iter().for_each(|(people, belief)| tested.add(&bounds, belief, *people));
        tested.add(&bounds, &Belief::Exact(Share::none()), matching.outside);
        let people = matching.people_of_class();
        tested.more = matching.rows.iter().zip(&people).map(|(rows, people)| rows.saturating_sub(*people)).sum();
        tested.few = few(rule, &people);
        matching.linkage()
    };
    Ok((tested.findings(rule), linkage))
}

/// People by how they miss the bounds.
#[derive(Debug, Default)]
struct Tested {
    low: u64,
    high: u64,
    unsure: u64,
    /// Published rows that fit nobody.
    more: u64,
    /// Classes that too few people fit.
    few: u64,
}

impl Tested {
    fn add(&mut self, bounds: &Bounds, belief: &Belief, people: u64) {
        let within = |share| bounds.allow(share);
        match (within(belief.low()), within(belief.high())) {
            (true, true) => {}
            _ if belief.low() != belief.high() => self.unsure += people,
            _ if belief.low() < bounds.min() => self.low += people,
            _ => self.high += people,
        }
    }

    fn findings(&self, rule: &Presence) -> Vec<Finding> {
        let finding = |count: u64, message: String| {
            (count > 0).then(|| Finding { rule: "presence".into(), count, message: format!("{count} {message}") })
        };
        [
            finding(self.low, format!("public people are in the source with a chance below min = {}", rule.min)),
            finding(self.high, format!("public people are in the source with a chance above max = {}", rule.max)),
            finding(
                self.unsure,
                "public people fit several classes, so their chances cannot be told to be within".into(),
            ),
            finding(self.more, "published rows fit nobody of the public table".into()),
            finding(
                self.few,
                format!("classes fit fewer people of the public table than people = {}", rule.people.unwrap_or(0)),
            ),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// Classes that fewer people fit than the rule asks for.
fn few(rule: &Presence, people: &[u64]) -> u64 {
    people.iter().filter(|&&people| people < rule.people.map_or(0, u64::from)).count() as u64
}

/// The quasi-identifiers of the public table, as the source has them.
pub(super) fn people(public: &Public, context: &SessionContext, treatment: &Treatment) -> Result<DataFrame> {
    let columns: Vec<_> = treatment.quasi.iter().map(|quasi| (quasi.name.clone(), quasi.data_type.clone())).collect();
    Ok(public.frame(context).select(public.quasi(&columns)?)?)
}

/// Who of the public table fits which class of a release.
pub(super) async fn matching(
    published: &DataFrame,
    public: &Public,
    context: &SessionContext,
    treatment: &Treatment,
) -> Result<Matching> {
    let columns: Vec<_> = treatment.quasi.iter().map(|quasi| (quasi.name.clone(), quasi.data_type.clone())).collect();
    Matching::new(published, &public.frame(context), &public.quasi(&columns)?, treatment).await
}
