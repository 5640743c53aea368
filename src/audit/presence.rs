//! Whether a release keeps everybody's chance to be in the source within the bounds: from the written files and the public
//! table alone, by counting who fits what.

use std::collections::HashMap;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::{Decimal128Type, Int64Type};
use datafusion::functions_aggregate::expr_fn::{count, max};
use datafusion::logical_expr::{ident, lit};
use datafusion::prelude::{DataFrame, SessionContext};

use super::buckets::{Buckets, Look, Shown};
use super::matching::Matching;
use crate::attack::linkage::Linkage;
use crate::attack::overlap::Budget;
use crate::attack::{Belief, Bounds, Fraction};
use crate::binding::BoundPolicy;
use crate::error::Result;
use crate::policy::Presence;
use crate::published::content_key;
use crate::source::public::Public;
use crate::verify::Finding;

/// How much work the proof of one release may be.
const MEMBERSHIP_BUDGET: Budget = Budget { bucket: 1 << 18, whole: usize::MAX, joint: 1 << 20 };

/// Public people whose chance is outside the bounds, or cannot be shown to be inside; and the risks of being linked.
pub(crate) async fn verify_presence(
    published: &DataFrame,
    public: &Public,
    context: &SessionContext,
    bound_policy: &BoundPolicy,
) -> Result<(Vec<Finding>, Linkage)> {
    let Some(rule) = &bound_policy.policy.privacy.presence else { return Ok((Vec::new(), Linkage::default())) };
    let bounds = Bounds::new(rule.min, rule.max);
    let mut tested = Tested::default();
    let linkage = if bound_policy.form().is_numbered() {
        let people = read_people(public, context, bound_policy)?;
        let slices = bound_policy.resolve_slices(&[]);
        let shown = Shown::One(published.clone());
        let buckets = Buckets::read_buckets(&shown, bound_policy, &slices, Look::Quasi).await?;
        let fits = buckets.fit_people(&people).await?;
        let (beliefs, unmatched) = buckets.compute_beliefs(&fits, MEMBERSHIP_BUDGET);
        fits.crowds.iter().zip(&beliefs).for_each(|(crowd, belief)| tested.add_belief(&bounds, belief, crowd.people));
        tested.add_belief(&bounds, &Belief::Exact(Fraction::zero()), fits.outside);
        tested.more = unmatched;
        let people = buckets.count_people(&fits);
        tested.few = count_small_classes(rule, &people);
        tested.alike = count_alike_classes(published, bound_policy, rule, &buckets.bucket_keys()?, &people).await?;
        buckets.linkage_risks(&fits)
    } else {
        let matching = match_people(published, public, context, bound_policy).await?;
        matching.compute_beliefs().iter().for_each(|(people, belief)| tested.add_belief(&bounds, belief, *people));
        tested.add_belief(&bounds, &Belief::Exact(Fraction::zero()), matching.outside);
        let people = matching.people_of_class();
        tested.more = matching.rows.iter().zip(&people).map(|(rows, people)| rows.saturating_sub(*people)).sum();
        tested.few = count_small_classes(rule, &people);
        tested.alike = count_alike_classes(published, bound_policy, rule, &matching.names, &people).await?;
        matching.linkage_risks()
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
    /// Classes that too few people fit for their commonest sensitive value, by rule.
    alike: Vec<u64>,
}

impl Tested {
    fn add_belief(&mut self, bounds: &Bounds, belief: &Belief, people: u64) {
        let within = |share| bounds.contains_fraction(share);
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
        let bounds = [
            finding(self.low, format!("public people are in the source with a chance below min = {}", rule.min)),
            finding(self.high, format!("public people are in the source with a chance above max = {}", rule.max)),
            finding(
                self.unsure,
                "public people fit several classes, so their chances cannot be shown to be within the bounds".into(),
            ),
            finding(self.more, "published rows fit nobody in the public table".into()),
            finding(
                self.few,
                format!("classes fit fewer people of the public table than people = {}", rule.people.unwrap_or(0)),
            ),
        ];
        let alike = rule.diversity.iter().zip(&self.alike).map(|(rule, &count)| {
            let message = format!(
                "classes publish one value of `{}` for more than 1 in l = {} people of the public table who fit them",
                rule.column, rule.l
            );
            finding(count, message)
        });
        bounds.into_iter().chain(alike).flatten().collect()
    }
}

/// Classes that fewer people fit than the rule asks for.
fn count_small_classes(rule: &Presence, people: &[u64]) -> u64 {
    people.iter().filter(|&&people| people < rule.people.map_or(0, u64::from)).count() as u64
}

/// Classes whose commonest sensitive value is that of too many of the people who fit, for every rule that asks.
async fn count_alike_classes(
    published: &DataFrame,
    bound_policy: &BoundPolicy,
    rule: &Presence,
    names: &[i128],
    people: &[u64],
) -> Result<Vec<u64>> {
    let mut found = Vec::new();
    for rule in &rule.diversity {
        let keys = vec![content_key(&bound_policy.class_columns()).alias("class"), ident(&rule.column).alias("value")];
        let commonest = published
            .clone()
            .aggregate(keys, vec![count(lit(1)).alias("size")])?
            .aggregate(vec![ident("class")], vec![max(ident("size"))])?;
        let mut most: HashMap<i128, u64> = HashMap::new();
        for batch in commonest.collect().await? {
            let keys = batch.column(0).as_primitive::<Decimal128Type>();
            let sizes = batch.column(1).as_primitive::<Int64Type>();
            (0..batch.num_rows()).for_each(|row| _ = most.insert(keys.value(row), sizes.value(row) as u64));
        }
        // A class that cannot be found again cannot be shown to be diverse.
        let too_many = |(name, people): &(&i128, &u64)| {
            most.get(*name).is_none_or(|&commonest| !rule.allows_count(commonest, **people))
        };
        found.push(names.iter().zip(people).filter(too_many).count() as u64);
    }
    Ok(found)
}

/// The quasi-identifiers of the public table, as the source has them.
pub(crate) fn read_people(public: &Public, context: &SessionContext, bound_policy: &BoundPolicy) -> Result<DataFrame> {
    let columns: Vec<_> =
        bound_policy.quasi.iter().map(|quasi| (quasi.name.clone(), quasi.data_type.clone())).collect();
    Ok(public.frame(context).select(public.quasi_exprs(&columns)?)?)
}

/// Who of the public table fits which class of a release.
pub(crate) async fn match_people(
    published: &DataFrame,
    public: &Public,
    context: &SessionContext,
    bound_policy: &BoundPolicy,
) -> Result<Matching> {
    let columns: Vec<_> =
        bound_policy.quasi.iter().map(|quasi| (quasi.name.clone(), quasi.data_type.clone())).collect();
    Matching::new(published, &public.frame(context), &public.quasi_exprs(&columns)?, bound_policy).await
}
