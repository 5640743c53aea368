//! Refusals: every one has a reason that the case knows, and a table that is small enough was tried in every way.

use super::case::{Case, SMALL};
use super::quasi::{Columns, Nulls, Quasi};
use super::rules::Rule;
use crate::adversary::values::{self, Value};
use crate::support::{Ran, WHOLE_TABLE};

/// Why a run ended without a release, in a word; or that it should not have.
pub fn explain(case: &Case, ran: &Ran) -> Result<&'static str, String> {
    let said = ran.err.lines().next().unwrap_or("");
    let wrong = |what: &str| Err(format!("{what}: exit {:?}: {said}", ran.code));
    let source = case.source();
    let public = case.public.as_ref();
    let missing = |quasi: &Quasi| {
        let listed = public.map(|public| values::column(public.table.column_by_name(&quasi.name).unwrap().as_ref()));
        let all = source[&quasi.name].iter().cloned().chain(listed.into_iter().flatten());
        all.map(|value| Quasi::is_missing(&value)).collect::<Vec<_>>()
    };
    let rejected = |quasi: &Quasi| quasi.nulls == Nulls::Reject && missing(quasi).contains(&true);
    let empty = |quasi: &Quasi| missing(quasi).iter().all(|missing| *missing);
    let taking_part = taking_part(case, &source);
    match ran.code {
        Some(4) if ran.err.contains("are to be rejected") => match case.quasi.iter().any(rejected) {
            true => Ok("a null that is to be rejected"),
            false => wrong("no null is to be rejected"),
        },
        Some(4) if ran.err.contains("so it cannot be a quasi-identifier") => match case.quasi.iter().any(empty) {
            true => Ok("a quasi-identifier without values"),
            false => wrong("every quasi-identifier has values"),
        },
        Some(4 | 5) if ran.err.contains("nulls = \"drop\"") && taking_part.is_empty() => Ok("every row is dropped"),
        Some(5) if case.infers && ran.err.contains("dependenc") => Ok("dependencies reveal too much"),
        // `*` as a value reads like the top.
        Some(5)
            if ran.err.contains("fit several classes")
                && case.quasi.iter().any(|quasi| source[&quasi.name].contains(&Value::text("*"))) =>
        {
            Ok("a value that reads like a label")
        }
        // Their definition suppresses rows that others could place: see the guide.
        Some(5) if ["anatomy", "datafly"].contains(&case.method) && ran.err.contains("max-suppression") => {
            Ok("a method that suppresses rows of its own accord")
        }
        Some(5) => match satisfiable(case, &source, &taking_part) {
            Some(how) => wrong(&format!("false refusal, {how} would do")),
            None if case.table.num_rows() <= SMALL => Ok("no grouping would do"),
            None => Ok("not all rows in one class would do"),
        },
        _ => wrong("no reason is known"),
    }
}

/// The rows that take part: those without a null where nulls are dropped.
fn taking_part(case: &Case, source: &Columns) -> Vec<usize> {
    let dropping: Vec<&Quasi> = case.quasi.iter().filter(|quasi| quasi.nulls == Nulls::Drop).collect();
    let present = |row: &usize| dropping.iter().all(|quasi| !Quasi::is_missing(&source[&quasi.name][*row]));
    (0..case.table.num_rows()).filter(present).collect()
}

/// How the policy can be met, if that is known: in one class, or for small tables in any.
fn satisfiable(case: &Case, source: &Columns, rows: &[usize]) -> Option<String> {
    let trial = Trial { case, source, rows };
    let everybody = rows.to_vec();
    // Cells are grouped apart, and a rule that compares with the table may hold in all of it and in no part.
    let compared = |rule: &Rule| matches!(rule, Rule::Closeness(..) | Rule::Disclosure(_) | Rule::Likeness(..));
    let whole = case.cell_rows >= case.table.num_rows() || !case.rules.iter().any(|(_, rule)| compared(rule));
    if whole && trial.allows(std::slice::from_ref(&everybody)) {
        return Some("one class of all rows".to_owned());
    }
    // Whole columns take one level, slices and public tables ask for more than every group by itself.
    let by_group = !WHOLE_TABLE.contains(&case.method) && case.method != "combined" && case.public.is_none();
    if !by_group || case.infers || case.table.num_rows() > SMALL {
        return None;
    }
    let mut groups = Vec::new();
    trial.place(0, &mut groups).then(|| format!("{} classes of {} rows", groups.len(), groups.concat().len()))
}

/// Groupings of the rows of a case.
struct Trial<'a> {
    case: &'a Case,
    source: &'a Columns,
    rows: &'a [usize],
}

impl Trial<'_> {
    /// Puts one row after the other into every group, a new one or none, until all is allowed.
    fn place(&self, at: usize, groups: &mut Vec<Vec<usize>>) -> bool {
        let Some(&row) = self.rows.get(at) else { return self.allows(groups) };
        for group in 0..groups.len() {
            groups[group].push(row);
            if self.place(at + 1, groups) {
                return true;
            }
            groups[group].pop();
        }
        groups.push(vec![row]);
        if self.place(at + 1, groups) {
            return true;
        }
        groups.pop();
        self.place(at + 1, groups)
    }

    /// Whether a grouping keeps the policy for sure, the rows in none of its groups being suppressed.
    fn allows(&self, groups: &[Vec<usize>]) -> bool {
        let (case, read) = (self.case, self.case.table.num_rows());
        let published: Vec<usize> = groups.concat();
        let suppressed = (read - published.len()) as f64;
        if published.is_empty() || suppressed > case.max_suppression * read as f64 {
            return false;
        }
        let size = |group: &Vec<usize>| match &case.person {
            Some(person) => {
                let people = group.iter().map(|&row| &self.source[person][row]);
                people.collect::<std::collections::BTreeSet<_>>().len()
            }
            None => group.len(),
        };
        groups.iter().all(|group| size(group) >= case.k && self.loses_little(group))
            && case.rules.iter().all(|(name, rule)| self.keeps(name, rule, groups, &published))
            && self.hides(groups, &published)
    }

    /// Whether every group keeps a rule, against what is published and against what is read.
    fn keeps(&self, name: &str, rule: &Rule, groups: &[Vec<usize>], published: &[usize]) -> bool {
        let of = |rows: &[usize]| -> Vec<Value> { rows.iter().map(|&row| self.source[name][row].clone()).collect() };
        let (all, reported) = (of(self.rows), of(published));
        let built = rule.reserved();
        groups.iter().all(|group| {
            let values = of(group);
            rule.holds_surely(&values, &reported) && built.holds_surely(&values, &all)
        })
    }

    fn loses_little(&self, group: &[usize]) -> bool {
        let Some(bound) = self.case.max_loss else { return true };
        let of = |quasi: &Quasi| {
            let column = &self.source[&quasi.name];
            let domain: Vec<Value> = self.rows.iter().map(|&row| column[row].clone()).collect();
            quasi.loss_of_group(&group.iter().map(|&row| &column[row]).collect::<Vec<_>>(), &domain)
        };
        self.case.quasi.iter().map(of).sum::<f64>() / self.case.quasi.len() as f64 <= bound - 1e-6
    }

    /// Whether one class hides who is in the source, the public people being all who fit it.
    fn hides(&self, groups: &[Vec<usize>], published: &[usize]) -> bool {
        let Some(public) = &self.case.public else { return true };
        // Rows that are left out would be public people without a class.
        let whole = groups.len() == 1 && published.len() == self.case.table.num_rows();
        let drops = self.case.quasi.iter().any(|quasi| quasi.nulls == Nulls::Drop);
        let people = public.table.num_rows();
        let chance = published.len() as f64 / people as f64;
        whole && !drops && people >= public.people && (public.min + 1e-9..=public.max - 1e-9).contains(&chance)
    }
}
