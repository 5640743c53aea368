//! The catalogue of methods: what a job can name, which options each takes, and how it is constructed.
//!
//! A method is one file with a type that implements [`Method`](crate::grouping::Method) and a constant [`Entry`]; it is added
//! through one line in [`METHODS`], on which job file, checks, JSON schema, survey and operator all rely.

pub mod anatomy;
#[cfg(test)]
mod by_column;
pub mod combined;
pub mod density;
pub mod full_domain;
pub mod g_anatomy;
pub mod k_assemble;
pub mod k_members;
pub mod k_members_p;
pub mod kl_redinfo;
pub mod l_mondrian;
pub mod mondrian;
pub mod pair_enum;
pub mod reviewed;
pub mod slicing;
pub mod spalm;
pub mod toc;
pub mod top_down;
pub mod tune;
pub mod upc;

use crate::auto;
pub use crate::grouping::entry::{Entry, Form, Remark, Setting};
use crate::grouping::mpalm;

/// All methods; the first is the default. Those that are there for research are marked: to be compared with, or for the
/// questions of one paper. Who only wants a table published needs the others.
pub static METHODS: &[Entry] = &[
    auto::ENTRY,
    toc::ENTRY.for_research(),
    upc::ENTRY.for_research(),
    mondrian::ENTRY,
    l_mondrian::ENTRY.for_research(),
    k_members::ENTRY.for_research(),
    k_members_p::ENTRY.for_research(),
    top_down::ENTRY.for_research(),
    full_domain::ENTRY,
    density::DENSITY.for_research(),
    density::DENSITY_CM.for_research(),
    pair_enum::ENTRY.for_research(),
    k_assemble::ENTRY.for_research(),
    kl_redinfo::ENTRY.for_research(),
    g_anatomy::ENTRY.for_research(),
    anatomy::ENTRY,
    mpalm::ENTRY,
    spalm::ENTRY.for_research(),
    combined::ENTRY.for_research(),
    slicing::ENTRY.for_research(),
    reviewed::incognito::ENTRY.for_research(),
    reviewed::samarati::ENTRY.for_research(),
    reviewed::datafly::ENTRY.for_research(),
    reviewed::oka::ENTRY.for_research(),
];

/// Finds a method by its name.
pub fn find_method(name: &str) -> Option<&'static Entry> {
    METHODS.iter().find(|entry| entry.name == name)
}

/// Returns the names of the methods that take an option.
pub fn option_owners(key: &str) -> Vec<&'static str> {
    let takes = |entry: &&Entry| entry.options.iter().any(|option| option.name == key);
    METHODS.iter().filter(takes).map(|entry| entry.name).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::grouping::options::{Key, Kind, Options, Value};
    use crate::grouping::{fixtures, group_rows};
    use crate::measure::Placement;
    use crate::methods::by_column;
    use crate::model::{Grouping, Region, Table};
    use crate::privacy::l_diversity::{Diversity, LDiversity};
    use crate::privacy::presence::Presence;
    use crate::privacy::range_diversity::RangeDiversity;
    use crate::privacy::{GroupView, Rules};

    /// A random accepted value of an option.
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
            assert_eq!(find_method(entry.name).map(|found| found.about), Some(entry.about));
            assert!(METHODS[..at].iter().all(|other| other.name != entry.name), "{}", entry.name);
            for key in entry.options {
                assert!(!key.about.is_empty() && !["name", "seed", "form", "slices"].contains(&key.name));
            }
            let options = Options::default();
            assert_eq!((entry.make)(&Setting::new(&options, 2)).name(), entry.name);
        }
        assert_eq!(option_owners("variant"), ["mondrian"]);
        let usual: Vec<&str> = METHODS.iter().filter(|entry| !entry.research).map(|entry| entry.name).collect();
        assert_eq!(usual, ["auto", "mondrian", "full-domain", "anatomy", "mpalm"]);
        assert!(find_method("nothing").is_none());
    }

    /// What CONTRIBUTING.md shows of adding a method and a rule is what is compiled here, and the method is tested with those
    /// of the list.
    #[test]
    fn contributing_shows_what_compiles() {
        let shown = include_str!("../../../CONTRIBUTING.md");
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
        let refused = grouped.refused.len();
        let mut seen: Vec<u32> =
            grouped.rows().iter().chain(&grouped.left_over).chain(&grouped.refused).copied().collect();
        seen.sort_unstable();
        prop_assert!(seen.iter().copied().eq(0..table.rows() as u32), "{} keeps every row once", entry.name);
        let (settled, built) = group_rows(&*method, table, rules, 1);
        let placement = Placement::of_groups(&built, &settled);
        let placed = placement.method + placement.left_over + placement.repair;
        prop_assert_eq!(placed as usize, settled.rows().len(), "every row was placed by something");
        for group in settled.iter() {
            prop_assert!(rules.are_met_by(&GroupView::new(table, group)), "{}: {group:?} fails", entry.name);
        }
        prop_assert_eq!(settled.rows().len() + settled.left_over.len(), table.rows());
        let own = method.own_rules(table);
        if rules.only_rows(table) && own.is_empty() && table.rows() - refused >= rules.k {
            prop_assert_eq!(settled.left_over.len(), refused, "k alone never needs suppression");
        }
        prop_assert_eq!(&settled, &group_rows(&*method, table, rules, 1).0);
        Ok(settled)
    }

    fn with_rules(options: &Options, k: usize) -> Setting<'_> {
        let mut setting = Setting::new(options, k);
        setting.max_loss = Some(0.6);
        setting.range_diversity = vec![RangeDiversity { column: "s".into(), bound: 0.7 }];
        setting.l_diversity = vec![LDiversity { column: "s".into(), kind: Diversity::Distinct { l: 3 } }];
        setting.dependencies = crate::grouping::enforce::tests::first_axis();
        setting
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        /// Every method in the list, with any of its options, under any rules.
        #[test]
        fn every_method_meets_every_rule_with_any_options(
            table in fixtures::tables(), rules in crate::grouping::enforce::tests::policies(), seed in any::<u64>()
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
                for (kind, rule) in crate::grouping::enforce::tests::one_of_each() {
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
            mut rules in crate::grouping::enforce::tests::policies(),
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
                let region = |group: &[u32]| Region::from_cover(&table.axes, &table.cover(group));
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
