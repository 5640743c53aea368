//! Whether a release keeps everybody's chance to be in the source within the bounds: from the written files and the public
//! table alone, by counting who fits what.

use datafusion::prelude::{DataFrame, SessionContext};

use super::matching::Matching;
use super::public::Public;
use super::verify::Finding;
use crate::attack::Bounds;
use crate::error::Result;
use crate::job::Treatment;

/// Public people whose chance is outside the bounds, or cannot be told to be inside.
pub(super) async fn verify(
    published: &DataFrame,
    public: &Public,
    context: &SessionContext,
    treatment: &Treatment,
) -> Result<Vec<Finding>> {
    let Some(rule) = &treatment.policy.privacy.presence else { return Ok(Vec::new()) };
    let matching = matching(published, public, context, treatment).await?;
    let bounds = Bounds::new(rule.min, rule.max);
    let (mut low, mut high, mut unsure, mut more) = (0, 0, 0, 0);
    for (classes, people, belief) in matching.beliefs() {
        let within = |share| bounds.allow(share);
        match (within(belief.low()), within(belief.high())) {
            (true, true) => {}
            _ if classes.len() > 1 || belief.low() != belief.high() => unsure += people,
            _ if belief.low() < bounds.min() => low += people,
            _ => high += people,
        }
    }
    for (rows, people) in matching.rows.iter().zip(matching.people_of_class()) {
        more += rows.saturating_sub(people);
    }
    let finding = |count: u64, message: String| {
        (count > 0).then(|| Finding { rule: "presence".into(), count, message: format!("{count} {message}") })
    };
    Ok([
        finding(low, format!("public people are in the source with a chance below min = {}", rule.min)),
        finding(high, format!("public people are in the source with a chance above max = {}", rule.max)),
        finding(unsure, "public people fit several classes, so their chances cannot be told to be within".into()),
        finding(more, "published rows fit nobody of the public table".into()),
    ]
    .into_iter()
    .flatten()
    .collect())
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
