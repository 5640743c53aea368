//! The list of methods: what a job can name, which options each takes, and how it is made.
//!
//! A method is one file with a type that implements [`Method`] and a constant [`Entry`]; it becomes known by one line in
//! [`METHODS`]. Job file, checks, JSON schema, survey and operator all ask this list.

use std::sync::Arc;

use super::options::{Key, Options};
use super::tune::Tuned;
use super::{Method, anatomy, auto, density, g_anatomy, k_assemble, k_members, k_members_p, kl_redinfo, l_mondrian};
use super::{combined, full_domain, mondrian, mpalm, pair_enum, slicing, spalm, toc, top_down, upc};
use crate::attack::Bounds;
use crate::domain::Table;
use crate::measure::dependency::Dependencies;
use crate::privacy::Rules;
use crate::privacy::l_diversity::{Diversity, LDiversity};
use crate::privacy::range_diversity::RangeDiversity;

/// All methods; the first is the default.
pub static METHODS: &[Entry] = &[
    auto::ENTRY,
    toc::ENTRY,
    upc::ENTRY,
    mondrian::ENTRY,
    l_mondrian::ENTRY,
    k_members::ENTRY,
    k_members_p::ENTRY,
    top_down::ENTRY,
    full_domain::ENTRY,
    density::DENSITY,
    density::DENSITY_CM,
    pair_enum::ENTRY,
    k_assemble::ENTRY,
    kl_redinfo::ENTRY,
    g_anatomy::ENTRY,
    anatomy::ENTRY,
    mpalm::ENTRY,
    spalm::ENTRY,
    combined::ENTRY,
    slicing::ENTRY,
];

/// How the groups of a method are published when the job does not say.
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

/// A method as the list knows it.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Name as it stands in the job file.
    pub name: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// The options that it takes.
    pub options: &'static [Key],
    /// How its groups are published when the job does not say.
    pub form: Form,
    /// Whether it fills groups with different sensitive values, so that their counts tell beforehand what it can do.
    pub buckets: bool,
    /// Whether it preserves the dependencies of the job, so that there must be some.
    pub preserves: bool,
    /// Whether its groups mean something for a whole table only, so that the table must fit one cell.
    pub whole: bool,
    /// Makes the method for a policy.
    pub make: fn(&Setting<'_>) -> Arc<dyn Method>,
    /// What is wrong, or worth knowing, about a policy with this method.
    pub check: fn(&Setting<'_>) -> Vec<Remark>,
    /// Whether the job leaves something open that a sample can tell.
    pub open: fn(&Setting<'_>) -> bool,
    /// Finds it by trying it out on a sample.
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

    /// With parameters that a sample can tell when they are open.
    pub const fn tune(self, open: fn(&Setting<'_>) -> bool, tune: fn(&Setting<'_>, &Rules, &Table) -> Tuned) -> Self {
        Self { open, tune, ..self }
    }

    /// That fills groups with different sensitive values.
    pub const fn of_buckets(self) -> Self {
        Self { buckets: true, ..self }
    }

    /// That preserves the dependencies of the job.
    pub const fn of_dependencies(self) -> Self {
        Self { preserves: true, ..self }
    }

    /// That must see all rows at once.
    pub const fn of_whole_tables(self) -> Self {
        Self { whole: true, ..self }
    }

    /// With another published form.
    pub const fn form(self, form: Form) -> Self {
        Self { form, ..self }
    }
}

/// What a method is made from: the options of the job and the rules that it should build for.
#[derive(Debug, Clone)]
pub struct Setting<'a> {
    /// What the job has set.
    pub options: &'a Options,
    /// Fewest rows in a group.
    pub k: usize,
    /// U: the most that any group may lose.
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
    /// What a sample has told.
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
    pub fn distinct(&self, column: Option<&str>) -> usize {
        let of = |rule: &LDiversity| match rule.kind {
            Diversity::Distinct { l } | Diversity::Recursive { l, .. } => l,
            Diversity::Entropy { l } => l.ceil() as usize,
        };
        let rules = self.l_diversity.iter().filter(|rule| Some(rule.column.as_str()) == column);
        rules.map(of).max().unwrap_or(1)
    }
}

/// Something about a policy that its author should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// The key of the job file.
    pub key: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: String,
    /// Whether the job cannot run like this.
    pub error: bool,
}

impl Remark {
    /// The job cannot run like this.
    pub fn error(key: &'static str, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { key, message: message.into(), help: help.into(), error: true }
    }

    /// The job can run, but its author should know.
    pub fn warning(key: &'static str, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { error: false, ..Self::error(key, message, help) }
    }
}

/// What a method that hides members among public rows says when the policy does not ask for it.
pub(super) fn needs_presence(setting: &Setting<'_>) -> Vec<Remark> {
    let message = "is missing: the method groups public rows under its bounds";
    let help = "add presence = { public = \"...\", min = 0.05, max = 0.9 }";
    setting.presence.is_none().then(|| Remark::error("privacy.presence", message, help)).into_iter().collect()
}

/// The method of a name.
pub fn find(name: &str) -> Option<&'static Entry> {
    METHODS.iter().find(|entry| entry.name == name)
}

/// Every option of any method, once.
pub fn keys() -> Vec<&'static Key> {
    let mut keys: Vec<&'static Key> = Vec::new();
    for key in METHODS.iter().flat_map(|entry| entry.options) {
        if keys.iter().all(|known| known.name != key.name) {
            keys.push(key);
        }
    }
    keys
}

/// Names of the methods that take an option.
pub fn owners(key: &str) -> Vec<&'static str> {
    let takes = |entry: &&Entry| entry.options.iter().any(|option| option.name == key);
    METHODS.iter().filter(takes).map(|entry| entry.name).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::{Grouping, Region};
    use crate::method::options::{Kind, Value};
    use crate::method::{by_column, fixtures, settle};
    use crate::privacy::GroupView;
    use crate::privacy::presence::Presence;

    /// Something that may be written for an option.
    fn value(key: &'static Key, rng: &mut fastrand::Rng) -> Value {
        match key.kind {
            Kind::Share => Value::Number(rng.f64()),
            Kind::Number { least } => Value::Number(least + 3.0 * rng.f64()),
            Kind::Count { least } => Value::Count(least + rng.u64(2..60)),
            Kind::Switch => Value::Switch(rng.bool()),
            Kind::Word(words) => Value::Text(words[rng.usize(..words.len())].0.to_owned()),
            Kind::Column => Value::Text("s".into()),
            Kind::Columns => Value::List(vec!["axis".into()]),
        }
    }

    #[test]
    fn names_and_options_are_told_apart() {
        for (at, entry) in METHODS.iter().enumerate() {
            assert_eq!(find(entry.name).map(|found| found.about), Some(entry.about));
            assert!(METHODS[..at].iter().all(|other| other.name != entry.name), "{}", entry.name);
            for key in entry.options {
                assert!(!key.about.is_empty() && !["name", "seed", "form", "slices"].contains(&key.name));
                assert_eq!(keys().into_iter().find(|known| known.name == key.name), Some(key), "one meaning of a name");
            }
            let options = Options::default();
            assert_eq!((entry.make)(&Setting::new(&options, 2)).name(), entry.name);
        }
        assert_eq!(owners("variant"), ["mondrian"]);
        assert!(find("nothing").is_none());
    }

    /// What CONTRIBUTING.md shows of adding a method and a rule is what is compiled here, and the method is tested with those
    /// of the list.
    #[test]
    fn contributing_shows_what_compiles() {
        let shown = include_str!("../../CONTRIBUTING.md");
        for file in [include_str!("by_column.rs"), include_str!("../privacy/evenness.rs")] {
            assert!(
                shown.contains(&format!("```rust\n{file}```")),
                "CONTRIBUTING.md shows something else than\n{file}"
            );
        }
        let method = |column: &str| {
            let mut options = Options::default();
            options.set(&by_column::ENTRY.options[0], Value::Text(column.into()));
            let mut setting = Setting::new(&options, 2);
            setting.quasi = Some(vec!["age".into(), "height".into(), "postcode".into()]);
            let table = fixtures::table_3_5();
            let grouping = (by_column::ENTRY.make)(&setting).group(&table, &Rules::k(2), 0);
            ((by_column::ENTRY.check)(&setting).len(), grouping.iter().map(<[u32]>::to_vec).collect::<Vec<_>>())
        };
        assert_eq!(method("height"), (0, vec![vec![0, 2], vec![4, 6], vec![1, 3], vec![5, 7]]));
        assert_eq!(method("weight").0, 1);
    }

    /// Groups rows by a method, and asserts that none is lost, that settled groups meet every rule, and that it is so again.
    fn assert_sound(
        entry: &Entry,
        setting: &Setting<'_>,
        table: &Table,
        rules: &Rules,
    ) -> Result<Grouping, TestCaseError> {
        let method = (entry.make)(setting);
        let grouped = method.group(table, rules, 1);
        let mut seen: Vec<u32> = grouped.rows().iter().chain(&grouped.left_over).copied().collect();
        seen.sort_unstable();
        prop_assert!(seen.iter().copied().eq(0..table.rows() as u32), "{} keeps every row once", entry.name);
        let settled = settle(table, grouped, rules);
        for group in settled.iter() {
            prop_assert!(rules.hold(&GroupView::new(table, group)), "{}: {group:?} fails", entry.name);
        }
        prop_assert_eq!(settled.rows().len() + settled.left_over.len(), table.rows());
        if rules.only_rows(table) && table.rows() >= rules.k {
            prop_assert!(settled.left_over.is_empty(), "k alone never needs suppression");
        }
        prop_assert_eq!(&settled, &settle(table, method.group(table, rules, 1), rules));
        Ok(settled)
    }

    fn with_rules(options: &Options, k: usize) -> Setting<'_> {
        let mut setting = Setting::new(options, k);
        setting.max_loss = Some(0.6);
        setting.range_diversity = vec![RangeDiversity { column: "s".into(), bound: 0.7 }];
        setting.l_diversity = vec![LDiversity { column: "s".into(), kind: Diversity::Distinct { l: 3 } }];
        setting.dependencies = settle::tests::first_axis();
        setting
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        /// Every method in the list, with any of its options, under any rules.
        #[test]
        fn every_method_meets_every_rule_with_any_options(
            table in fixtures::tables(), rules in settle::tests::policies(), seed in any::<u64>()
        ) {
            let mut rng = fastrand::Rng::with_seed(seed);
            for entry in METHODS.iter().chain(&[by_column::ENTRY]) {
                let mut options = Options::default();
                for key in entry.options {
                    if rng.bool() {
                        options.set(key, value(key, &mut rng));
                    }
                }
                assert_sound(entry, &with_rules(&options, rules.k), &table, &rules)?;
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]
        /// Every method under every kind of rule, one at a time: random policies may leave a pair out.
        #[test]
        fn every_method_meets_every_rule(table in fixtures::tables(), k in 2..8_usize) {
            for entry in METHODS {
                for (kind, rule) in settle::tests::one_of_each() {
                    let options = Options::default();
                    let rules = Rules { k, others: vec![rule] };
                    let sound = assert_sound(entry, &with_rules(&options, k), &table, &rules);
                    prop_assert!(sound.is_ok(), "{} under {kind}: {sound:?}", entry.name);
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        /// Every method with public rows to hide among, under presence and any other rules: everybody's share is within the
        /// bounds, and no published value covers people of two groups.
        #[test]
        fn every_method_hides_members_beside_every_rule(
            table in fixtures::public_tables(),
            mut rules in settle::tests::policies(),
            (min, max) in prop_oneof![Just((0.0, 0.9)), Just((0.05, 0.95)), Just((0.2, 0.8))],
            seed in any::<u64>(),
        ) {
            let mut rng = fastrand::Rng::with_seed(seed);
            let presence = Presence::new(min, max);
            rules.others.push(Arc::new(presence.clone()));
            for entry in METHODS.iter().chain(&[by_column::ENTRY]) {
                let mut options = Options::default();
                for key in entry.options {
                    if rng.bool() {
                        options.set(key, value(key, &mut rng));
                    }
                }
                let mut setting = with_rules(&options, rules.k);
                setting.presence = Some(presence.bounds.clone());
                let settled = assert_sound(entry, &setting, &table, &rules)?;
                let region = |group: &[u32]| Region::of(&table.axes, &table.cover(group));
                let regions: Vec<Region> = settled.iter().map(region).collect();
                for (at, group) in settled.iter().enumerate() {
                    let view = GroupView::new(&table, group);
                    prop_assert!(presence.bounds.allow_counts(view.members() as u64, group.len() as u64));
                    prop_assert!(regions[..at].iter().all(|other| !other.meets(&regions[at])), "{}", entry.name);
                }
            }
        }
    }
}
