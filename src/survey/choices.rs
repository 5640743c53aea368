//! The rules and the method of a policy, and the parameters that it leaves open, which are found
//! by trying them out on the sample.

use std::sync::Arc;

use crate::binding::BoundPolicy;
use crate::dependency::Dependencies;
use crate::grouping::Method;
use crate::grouping::entry::{Setting, Tuned};
use crate::model::Table;
use crate::permutation::Slices;
use crate::policy::{diversity_rules, presence_rule, range_rules};
use crate::privacy::beside::Beside;
use crate::privacy::k_map::KMap;
use crate::privacy::max_loss::MaxLoss;
use crate::privacy::presence::Presence;
use crate::privacy::{OnColumn, Rule, Rules};

/// The rules of a policy whose groups are published in these slices.
pub(crate) fn build_rules(bound_policy: &BoundPolicy, slices: &Slices) -> Rules {
    let privacy = &bound_policy.policy.privacy;
    let mut others: Vec<Arc<dyn Rule>> = Vec::new();
    if let Some(bound) = privacy.max_loss {
        others.push(Arc::new(MaxLoss { bound }));
    }
    for listed in bound_policy.configured_rules(true) {
        let column = bound_policy.sensitive.iter().find(|column| column.name == listed.rule.column());
        let axes = column.map(|column| bound_policy.columns_beside(column.index, slices)).unwrap_or_default();
        let rule: Arc<dyn Rule> = Arc::new(OnColumn { record: listed.record, rule: listed.rule });
        others.push(if axes.is_empty() { rule } else { Arc::new(Beside { rule, axes }) });
    }
    others.extend(presence_bounds(bound_policy).map(|rule| Arc::new(rule) as Arc<dyn Rule>));
    if let Some(people) = privacy.presence.as_ref().and_then(|rule| rule.people) {
        others.push(Arc::new(KMap { people: people as usize }));
    }
    let diverse = privacy.presence.iter().flat_map(|rule| &rule.diversity);
    others.extend(diverse.map(|rule| Arc::new(rule.clone()) as Arc<dyn Rule>));
    Rules { k: privacy.k as usize, others }
}

/// The bounds on everybody's chance to be in the source, when the policy has some.
pub(crate) fn presence_bounds(bound_policy: &BoundPolicy) -> Option<Presence> {
    presence_rule(&bound_policy.policy.privacy)
}

/// What the method of a job is made from.
fn method_setting<'a>(bound_policy: &'a BoundPolicy, tuned: &Tuned) -> Setting<'a> {
    let privacy = &bound_policy.policy.privacy;
    Setting {
        options: bound_policy.policy.method.options(),
        k: privacy.k as usize,
        max_loss: privacy.max_loss,
        range_diversity: range_rules(privacy),
        l_diversity: diversity_rules(privacy),
        presence: presence_rule(privacy).map(|rule| rule.bounds),
        quasi: Some(bound_policy.quasi.iter().map(|column| column.name.clone()).collect()),
        sensitive: Some(bound_policy.sensitive.iter().map(|column| column.name.clone()).collect()),
        tuned: *tuned,
        dependencies: Arc::default(),
        slices: Vec::new(),
    }
}

/// The method of a job. What the job leaves open is taken from the sample.
pub(crate) fn build_method(
    bound_policy: &BoundPolicy,
    tuned: &Tuned,
    dependencies: &Arc<Dependencies>,
    slices: &Slices,
) -> Arc<dyn Method> {
    let mut setting = Setting { dependencies: Arc::clone(dependencies), ..method_setting(bound_policy, tuned) };
    setting.slices = quasi_slices(bound_policy, slices, setting.bucket_column().as_deref());
    (bound_policy.policy.method.name.entry().make)(&setting)
}

/// The quasi-identifiers of every slice, those beside a sensitive column last.
fn quasi_slices(bound_policy: &BoundPolicy, slices: &Slices, sensitive: Option<&str>) -> Vec<Vec<usize>> {
    let place = |column: &usize| bound_policy.quasi.iter().position(|quasi| quasi.index == *column);
    let is_guarded = |column: &usize| Some(bound_policy.input.field(*column).name().as_str()) == sensitive;
    let (beside, others): (Vec<_>, Vec<_>) = slices.columns.iter().partition(|slice| slice.iter().any(is_guarded));
    let of = |slice: &Vec<usize>| slice.iter().filter_map(place).collect::<Vec<_>>();
    let others = others.into_iter().map(of).filter(|slice| !slice.is_empty());
    others.chain(beside.first().map(|slice| of(slice))).collect()
}

/// Whether the job leaves parameters open that can be tuned on a sample.
pub(crate) fn has_open_parameters(bound_policy: &BoundPolicy) -> bool {
    (bound_policy.policy.method.name.entry().open)(&method_setting(bound_policy, &Tuned::default()))
}

/// Finds what the job leaves open by trying it out on a sample.
pub(crate) fn tune_parameters(bound_policy: &BoundPolicy, sample: &Table) -> Tuned {
    let setting = method_setting(bound_policy, &Tuned::default());
    (bound_policy.policy.method.name.entry().tune)(
        &setting,
        &build_rules(bound_policy, &bound_policy.resolve_slices(&[])),
        sample,
    )
}
