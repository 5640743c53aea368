//! Everything that is decided before pass 2: coders, cells, method and rules, made from a treatment and its survey.

use std::sync::Arc;

use crate::domain::{Axis, Table};
use crate::encode::Coder;
use crate::error::{Error, Result};
use crate::job::{self, Diversity, Effort, MethodName, MethodSpec, Treatment, Variant};
use crate::measure::Groups as Measures;
use crate::method::Method;
use crate::method::auto::{self, Auto};
use crate::method::k_members::KMembers;
use crate::method::mondrian::Mondrian;
use crate::method::toc::Toc;
use crate::method::tune::{self, Tuning};
use crate::method::upc::Upc;
use crate::partition::Cut;
use crate::partition::widest::{Ties, Widest, Width};
use crate::privacy::l_diversity::LDiversity;
use crate::privacy::max_loss::MaxLoss;
use crate::privacy::range_diversity::RangeDiversity;
use crate::privacy::{Rule, Rules, l_diversity, within};
use crate::survey::{Survey, Tuned};

/// What every partition of pass 2 works by. Immutable.
#[derive(Debug)]
pub struct Blueprint {
    /// What happens to every column.
    pub treatment: Arc<Treatment>,
    /// What the table looks like.
    pub survey: Survey,
    /// One coder per quasi-identifier.
    pub coders: Vec<Coder>,
    /// The axes of the coders.
    pub axes: Arc<[Axis]>,
    /// How rows are grouped.
    pub method: Arc<dyn Method>,
    /// What every group must satisfy.
    pub rules: Rules,
}

impl Blueprint {
    /// Lays a survey over a treatment.
    pub fn new(treatment: Arc<Treatment>, survey: Survey) -> Result<Self> {
        let coders = treatment
            .quasi
            .iter()
            .zip(&survey.facts)
            .map(|(column, facts)| Coder::new(column, facts))
            .collect::<Result<Vec<_>>>()?;
        let axes = coders.iter().map(|coder| coder.axis().clone()).collect();
        let method = method(&treatment, &survey.tuned);
        let rules = rules(&treatment);
        Ok(Self { treatment, survey, coders, axes, method, rules })
    }
}

impl Blueprint {
    /// Refuses a result that loses more in a group, or has suppressed more rows, than the policy allows.
    pub(super) fn refuse(&self, measures: &Measures) -> Result<()> {
        if let (Some(bound), Some(worst)) = (self.treatment.policy.privacy.max_loss, measures.loss.wgu())
            && !within(worst, bound)
        {
            return Err(Error::Privacy(format!(
                "the worst group loses {worst:.4}, more than privacy.max-loss = {bound} allows; raise it, or lower k"
            )));
        }
        let suppressed = measures.loss.suppressed();
        let rows = suppressed + measures.loss.rows();
        let share = suppressed as f64 / rows.max(1) as f64;
        let allowed = self.treatment.policy.privacy.max_suppression;
        if rows == 0 || measures.loss.rows() > 0 && share <= allowed {
            return Ok(());
        }
        let others = self.rules.others.iter().map(|rule| rule.name());
        let rules: Vec<String> = others.chain([format!("k = {}", self.rules.k)]).collect();
        Err(Error::Privacy(format!(
            "{suppressed} of {rows} rows ({:.2} %) fit into no group that meets the rules ({}), and \
             privacy.max-suppression allows {:.2} %; relax a rule (a lower k or l, a higher max-loss or p), or allow \
             more suppression",
            share * 100.0,
            rules.join(", "),
            allowed * 100.0
        )))
    }
}

/// The rules of a policy.
fn rules(treatment: &Treatment) -> Rules {
    let privacy = &treatment.policy.privacy;
    let mut others: Vec<Arc<dyn Rule>> = Vec::new();
    if let Some(bound) = privacy.max_loss {
        others.push(Arc::new(MaxLoss { bound }));
    }
    for rule in &privacy.l_diversity {
        others.push(Arc::new(LDiversity { column: rule.column.clone(), kind: diversity(rule) }));
    }
    others.extend(range_rules(treatment).into_iter().map(|rule| Arc::new(rule) as Arc<dyn Rule>));
    Rules { k: privacy.k as usize, others }
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
fn method(treatment: &Treatment, tuned: &Tuned) -> Arc<dyn Method> {
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
pub fn tune(treatment: &Treatment, sample: &Table) -> Tuned {
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
