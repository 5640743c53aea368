//! What a policy means in algorithms: its rules and its method, and the parameters that it leaves open, which are found
//! by trying them out on the sample.

use std::sync::Arc;

use super::Tuned;
use crate::attack::Bounds;
use crate::domain::Table;
use crate::job::{self, Diversity, Effort, MethodName, MethodSpec, Treatment, Variant};
use crate::method::Method;
use crate::method::auto::{self, Auto};
use crate::method::k_members::KMembers;
use crate::method::mondrian::Mondrian;
use crate::method::mpalm::{Mpalm, Reading};
use crate::method::spalm::{self, Spalm};
use crate::method::toc::Toc;
use crate::method::tune::{self, Tuning};
use crate::method::upc::Upc;
use crate::partition::Cut;
use crate::partition::widest::{Ties, Widest, Width};
use crate::privacy::l_diversity::{self, LDiversity};
use crate::privacy::max_loss::MaxLoss;
use crate::privacy::presence::Presence;
use crate::privacy::range_diversity::RangeDiversity;
use crate::privacy::{Rule, Rules};

/// The rules of a policy.
pub(crate) fn rules(treatment: &Treatment) -> Rules {
    let privacy = &treatment.policy.privacy;
    let mut others: Vec<Arc<dyn Rule>> = Vec::new();
    if let Some(bound) = privacy.max_loss {
        others.push(Arc::new(MaxLoss { bound }));
    }
    for rule in &privacy.l_diversity {
        others.push(Arc::new(LDiversity { column: rule.column.clone(), kind: diversity(rule) }));
    }
    others.extend(range_rules(treatment).into_iter().map(|rule| Arc::new(rule) as Arc<dyn Rule>));
    others.extend(presence(treatment).map(|rule| Arc::new(rule) as Arc<dyn Rule>));
    Rules { k: privacy.k as usize, others }
}

/// The bounds on everybody's chance to be in the source, when the policy has some.
pub(crate) fn presence(treatment: &Treatment) -> Option<Presence> {
    treatment.policy.privacy.presence.as_ref().map(|rule| Presence::new(rule.min, rule.max))
}

fn range_rules(treatment: &Treatment) -> Vec<RangeDiversity> {
    let rules = &treatment.policy.privacy.range_diversity;
    rules.iter().map(|rule| RangeDiversity { column: rule.column.clone(), bound: rule.p }).collect()
}

fn diversity(rule: &job::LDiversity) -> l_diversity::Diversity {
    match rule.kind {
        Diversity::Distinct => l_diversity::Diversity::Distinct { l: rule.l as usize },
        Diversity::Entropy => l_diversity::Diversity::Entropy { l: rule.l },
        Diversity::Recursive => l_diversity::Diversity::Recursive { c: rule.c.unwrap_or(1.0), l: rule.l as usize },
    }
}

/// The threshold of `toc` when neither the job nor a sample has given one.
const DELTA: f64 = 0.25;

/// The method of a job. What the job leaves open is taken from the sample.
pub(crate) fn method(treatment: &Treatment, tuned: &Tuned) -> Arc<dyn Method> {
    let spec = &treatment.policy.method;
    let k = treatment.policy.privacy.k as usize;
    let least = spec.s.map(|s| s as usize).or(tuned.s).unwrap_or(4 * k);
    match spec.name {
        MethodName::Auto => Arc::new(Auto::new(match spec.effort.unwrap_or_default() {
            Effort::Fast => auto::Effort::Fast,
            Effort::Balanced => auto::Effort::Balanced,
            Effort::Thorough => auto::Effort::Thorough,
        })),
        MethodName::Mondrian => Arc::new(Mondrian { strict: spec.variant.unwrap_or_default() == Variant::Strict }),
        MethodName::KMembers => Arc::new(KMembers::default()),
        MethodName::Toc => Arc::new(toc(spec, spec.delta.or(tuned.delta).unwrap_or(DELTA), least)),
        MethodName::Upc => Arc::new(upc(treatment, least)),
        MethodName::Mpalm => Arc::new(Mpalm {
            bounds: presence(treatment).map_or_else(|| Bounds::new(0.0, 1.0), |rule| rule.bounds),
            reading: match spec.cuts.unwrap_or_default() {
                job::Cuts::Binary => Reading::Binary,
                job::Cuts::Multiway => Reading::Multiway,
            },
        }),
        MethodName::Spalm => Arc::new(Spalm {
            cost: match spec.cost.unwrap_or_default() {
                job::Cost::Loss => spalm::Cost::Loss,
                job::Cost::Discernibility => spalm::Cost::Discernibility,
                job::Cost::Height => spalm::Cost::Height,
            },
        }),
    }
}

fn toc(spec: &MethodSpec, delta: f64, least: usize) -> Toc {
    let utility = match (spec.w_utility, spec.w_protection) {
        (Some(utility), _) => utility,
        (None, Some(protection)) => 1.0 - protection,
        (None, None) => 0.5,
    };
    Toc { utility, split: cut(spec), ..Toc::new(delta, least) }
}

fn upc(treatment: &Treatment, least: usize) -> Upc {
    let max_loss = treatment.policy.privacy.max_loss.unwrap_or(1.0);
    Upc { split: cut(&treatment.policy.method), ..Upc::new(max_loss, range_rules(treatment), least) }
}

fn cut(spec: &MethodSpec) -> Cut {
    let width = match spec.width.unwrap_or_default() {
        job::Width::Normalised => Width::Normalised,
        job::Width::Raw => Width::Raw,
    };
    if spec.split == Some(job::Split::Gain) {
        return Cut::Gain;
    }
    let boundary = spec.split == Some(job::Split::WidestBoundary);
    Cut::Widest(Widest { width, ties: if boundary { Ties::Boundary } else { Ties::Divide }, next: boundary })
}

/// Finds what the job leaves open by trying it out on a sample.
pub(super) fn tune(treatment: &Treatment, sample: &Table) -> Tuned {
    let spec = &treatment.policy.method;
    let (rules, tuning) = (rules(treatment), Tuning::default());
    match spec.name {
        MethodName::Toc => {
            let found = || tune::delta(sample, &rules, &toc(spec, DELTA, rules.k), &tuning);
            let delta = spec.delta.or_else(found).unwrap_or(DELTA);
            let s = spec.s.map(|s| s as usize);
            let s = s.unwrap_or_else(|| tune::least(sample, &rules, &toc(spec, delta, rules.k), &tuning));
            Tuned { delta: Some(delta), s: Some(s) }
        }
        MethodName::Upc => {
            Tuned { delta: None, s: Some(tune::upc_least(sample, &rules, &upc(treatment, rules.k), &tuning)) }
        }
        _ => Tuned::default(),
    }
}
