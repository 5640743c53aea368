//! The catalogue entry of a method: its name, its options, how it is constructed and from what.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Method;
use super::options::{Key, Options};
use crate::attack::Bounds;
use crate::dependency::Dependencies;
use crate::model::Table;
use crate::privacy::Rules;
use crate::privacy::l_diversity::{Diversity, LDiversity};
use crate::privacy::range_diversity::RangeDiversity;

/// The form in which groups of a method are published by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// Every group's quasi-identifiers are generalised to one combination.
    #[default]
    Generalise,
    /// Two linked tables: quasi-identifiers as they are, and sensitive values counted by group.
    Anatomy,
    /// Every group as little generalised as permuting its columns allows.
    Combined,
    /// Slices of columns, each permuted on its own.
    Slice,
}

/// The catalogue entry of a method.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Name in the job file.
    pub name: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// The options that it takes.
    pub options: &'static [Key],
    /// The form in which its groups are published by default.
    pub form: Form,
    /// Whether it fills groups with different sensitive values, so that their counts determine beforehand what it can do.
    pub buckets: bool,
    /// Whether it preserves the dependencies of the job, so that there must be some.
    pub preserves: bool,
    /// Whether its groups mean something for a whole table only, so that the table must fit one cell.
    pub whole: bool,
    /// Whether it places rows by their quasi-identifiers and sensitive values together, so that whoever sees the
    /// quasi-identifiers of a group as they are can infer which sensitive value is whose.
    pub generalised_only: bool,
    /// Whether it is there to be compared with, or for the questions of one paper.
    pub research: bool,
    /// Constructs the method for a policy.
    pub make: fn(&Setting<'_>) -> Arc<dyn Method>,
    /// Checks a policy with this method and returns errors and remarks.
    pub check: fn(&Setting<'_>) -> Vec<Remark>,
    /// Whether the job leaves parameters open that can be tuned on a sample.
    pub open: fn(&Setting<'_>) -> bool,
    /// Tunes these parameters on a sample.
    pub tune: fn(&Setting<'_>, &Rules, &Table) -> Tuned,
}

impl Entry {
    /// A method without options of its own.
    pub const fn new(name: &'static str, about: &'static str, make: fn(&Setting<'_>) -> Arc<dyn Method>) -> Self {
        Self {
            name,
            about,
            options: &[],
            form: Form::Generalise,
            buckets: false,
            preserves: false,
            whole: false,
            generalised_only: false,
            research: false,
            make,
            check: |_| Vec::new(),
            open: |_| false,
            tune: |_, _, _| Tuned { delta: None, s: None },
        }
    }

    /// With options.
    pub const fn options(self, options: &'static [Key]) -> Self {
        Self { options, ..self }
    }

    /// With checks of its own.
    pub const fn check(self, check: fn(&Setting<'_>) -> Vec<Remark>) -> Self {
        Self { check, ..self }
    }

    /// Marks a method whose open parameters are tuned on a sample.
    pub const fn tune(self, open: fn(&Setting<'_>) -> bool, tune: fn(&Setting<'_>, &Rules, &Table) -> Tuned) -> Self {
        Self { open, tune, ..self }
    }

    /// Marks a method that fills groups with different sensitive values.
    pub const fn of_buckets(self) -> Self {
        Self { buckets: true, ..self }
    }

    /// Marks a method that preserves the dependencies of the job.
    pub const fn of_dependencies(self) -> Self {
        Self { preserves: true, ..self }
    }

    /// Marks a method whose groups must not be published with exact quasi-identifiers.
    pub const fn only_generalised(self) -> Self {
        Self { generalised_only: true, ..self }
    }

    /// Marks a method that must see all rows at once.
    pub const fn of_whole_tables(self) -> Self {
        Self { whole: true, ..self }
    }

    /// That is there for research: to be compared with, or for the questions of one paper.
    pub const fn for_research(self) -> Self {
        Self { research: true, ..self }
    }

    /// What it does, and whether it is there for research.
    pub fn describe(&self) -> String {
        let mark = if self.research { " (research)" } else { "" };
        format!("{}{mark}", self.about)
    }

    /// Sets the published form.
    pub const fn form(self, form: Form) -> Self {
        Self { form, ..self }
    }
}

/// Parameters found from a sample.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Tuned {
    /// Threshold of `toc`.
    pub delta: Option<f64>,
    /// Subspace size of `toc` and `upc`.
    pub s: Option<usize>,
}

/// What a method is made from: the options of the job and the rules that it should build for.
#[derive(Debug, Clone)]
pub struct Setting<'a> {
    /// What the job has set.
    pub options: &'a Options,
    /// Fewest rows in a group.
    pub k: usize,
    /// U: the upper bound on the loss of any group.
    pub max_loss: Option<f64>,
    /// P on every protected column.
    pub range_diversity: Vec<RangeDiversity>,
    /// l-diversity on every column that asks for it.
    pub l_diversity: Vec<LDiversity>,
    /// What everybody's chance to be in the source must lie between, when the rest of a public table is there too.
    pub presence: Option<Bounds>,
    /// The quasi-identifiers, when all are known by name.
    pub quasi: Option<Vec<String>>,
    /// The sensitive columns, when all are known by name.
    pub sensitive: Option<Vec<String>>,
    /// Parameters that were tuned on a sample.
    pub tuned: Tuned,
    /// What is to be preserved between columns, once the table is known.
    pub dependencies: Arc<Dependencies>,
    /// Quasi-identifiers that stay together when groups are permuted, those beside the first sensitive column last; once
    /// the table is known.
    pub slices: Vec<Vec<usize>>,
}

impl<'a> Setting<'a> {
    /// Only options and k.
    pub fn new(options: &'a Options, k: usize) -> Self {
        Self {
            options,
            k,
            max_loss: None,
            range_diversity: Vec::new(),
            l_diversity: Vec::new(),
            presence: None,
            quasi: None,
            sensitive: None,
            tuned: Tuned::default(),
            dependencies: Arc::default(),
            slices: Vec::new(),
        }
    }

    /// The sensitive column that a method of buckets is built on: the one that must be diverse, else the first.
    pub fn bucket_column(&self) -> Option<String> {
        let diverse = self.l_diversity.first().map(|rule| rule.column.clone());
        diverse.or_else(|| self.sensitive.as_ref().and_then(|columns| columns.first().cloned()))
    }

    /// The most different values that a rule on the column asks every group for.
    pub fn max_distinct(&self, column: Option<&str>) -> usize {
        let of = |rule: &LDiversity| match rule.kind {
            Diversity::Distinct { l } | Diversity::Recursive { l, .. } => l,
            Diversity::Entropy { l } => l.ceil() as usize,
        };
        let rules = self.l_diversity.iter().filter(|rule| Some(rule.column.as_str()) == column);
        rules.map(of).max().unwrap_or(1)
    }
}

/// A remark about a policy for its author.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// The key of the job file.
    pub key: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: String,
    /// Whether the job cannot run.
    pub error: bool,
}

impl Remark {
    /// Creates a remark that stops the job.
    pub fn error(key: &'static str, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { key, message: message.into(), help: help.into(), error: true }
    }

    /// Creates a remark that does not stop the job.
    pub fn warning(key: &'static str, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { error: false, ..Self::error(key, message, help) }
    }
}

/// The error of a method that hides members among public rows if the policy has no `presence` rule.
pub(crate) fn needs_presence(setting: &Setting<'_>) -> Vec<Remark> {
    let message = "is missing: the method groups public rows under its bounds";
    let help = "add presence = { public = \"...\", min = 0.05, max = 0.9 }";
    setting.presence.is_none().then(|| Remark::error("privacy.presence", message, help)).into_iter().collect()
}
