//! Policies from Rust: typed columns, hierarchies, rules and methods instead of TOML.
//!
//! The builder fills in the same plain data that a job file is parsed into, and [`PolicyBuilder::build`] runs the same
//! checks, so a policy from Rust and one from a file cannot differ in what they allow.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::definition::Policy;
use super::dependencies::{Dependency, Inference};
use super::measures::MeasureSpec;
use super::method::{Form, MethodName, MethodSpec};
use super::model::{
    CalendarUnit, Column, Constant, Defaults, HierarchySpec, Nulls, Privacy, Publish, Role, Side, Unknown,
};
use super::privacy::{Presence, PrivacyRule};
use super::slices::SliceSpec;
use super::window::Window;
use super::{IdentifierAction, forms};
use crate::auto::{self, Effort};
use crate::error::{Error, Result};
use crate::grouping::options::{Kind, Value};
use crate::hierarchy::InlineTree;
use crate::methods;

/// Builds a [`Policy`].
///
/// Every column of the input needs a role, by name or through [`other_columns`](Self::other_columns): a forgotten
/// column is an error, because forgetting one is how data leaks.
///
/// ```
/// use throng::{Column, HierarchySpec, LDiversity, Policy};
///
/// let policy = Policy::builder(10)
///     .column("name", Column::identifier())
///     .column("age", Column::quasi().with_hierarchy(HierarchySpec::widths([5.0, 10.0, 50.0])))
///     .column("zip", Column::quasi().with_hierarchy(HierarchySpec::mask_right()).with_priority(2.0))
///     .column("diagnosis", Column::sensitive())
///     .rule(LDiversity::distinct("diagnosis", 3))
///     .max_suppression(0.01)
///     .build()?;
/// assert_eq!(policy.k(), 10);
/// # Ok::<(), throng::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct PolicyBuilder {
    privacy: Privacy,
    defaults: Option<Defaults>,
    columns: BTreeMap<String, Column>,
    dependencies: Vec<Dependency>,
    method: MethodSpec,
    measures: MeasureSpec,
    window: Option<Window>,
    base: PathBuf,
}

impl Policy {
    /// Starts a policy under which every combination of published quasi-identifiers occurs at least `k` times.
    pub fn builder(k: u32) -> PolicyBuilder {
        PolicyBuilder {
            privacy: Privacy::new(k),
            defaults: None,
            columns: BTreeMap::new(),
            dependencies: Vec::new(),
            method: MethodSpec::default(),
            measures: MeasureSpec::default(),
            window: None,
            base: PathBuf::from("."),
        }
    }
}

impl PolicyBuilder {
    /// Sets the role of a column. A second call for the same name replaces the first.
    pub fn column(mut self, name: impl Into<String>, column: Column) -> Self {
        self.columns.insert(name.into(), column);
        self
    }

    /// Sets the same role for several columns: `columns(["age", "zip"], Column::quasi())`.
    pub fn columns<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>, column: Column) -> Self {
        self.columns.extend(names.into_iter().map(|name| (name.into(), column.clone())));
        self
    }

    /// Sets the role of every column that is not named.
    pub fn other_columns(mut self, role: Role) -> Self {
        self.defaults.get_or_insert_default().role = Some(role);
        self
    }

    /// Sets how rows with a null in a quasi-identifier are handled, unless the column says otherwise.
    pub fn nulls(mut self, nulls: Nulls) -> Self {
        self.defaults.get_or_insert_default().nulls = Some(nulls);
        self
    }

    /// Adds a rule about a sensitive column.
    pub fn rule(mut self, rule: impl Into<PrivacyRule>) -> Self {
        self.privacy.add_rule(rule.into());
        self
    }

    /// Counts people by this column instead of rows.
    pub fn person(mut self, column: impl Into<String>) -> Self {
        self.privacy.person = Some(column.into());
        self
    }

    /// Sets the largest share of rows that may be suppressed.
    pub fn max_suppression(mut self, share: f64) -> Self {
        self.privacy.max_suppression = share;
        self
    }

    /// Sets the largest mean loss of any class (U).
    pub fn max_loss(mut self, loss: f64) -> Self {
        self.privacy.max_loss = Some(loss);
        self
    }

    /// Hides who is in the table at all from readers who hold a public table of people.
    pub fn presence(mut self, presence: Presence) -> Self {
        self.privacy.presence = Some(presence);
        self
    }

    /// Adds a functional dependency that readers may know.
    pub fn dependency(mut self, dependency: Dependency) -> Self {
        self.dependencies.push(dependency);
        self
    }

    /// Sets what happens if dependencies let readers distinguish rows of a class.
    pub fn inference(mut self, inference: Inference) -> Self {
        self.privacy.inference = inference;
        self
    }

    /// Sets how rows are grouped. Defaults to `auto` at balanced effort.
    pub fn method(mut self, method: MethodSpec) -> Self {
        self.method = method;
        self
    }

    /// Sets the optional measures.
    pub fn measures(mut self, measures: MeasureSpec) -> Self {
        self.measures = measures;
        self
    }

    /// Lets queries anonymise rows that never end, a window at a time.
    pub fn window(mut self, window: Window) -> Self {
        self.window = Some(window);
        self
    }

    /// Sets the folder to which hierarchy and key files are relative. Defaults to the working directory.
    pub fn base(mut self, folder: impl Into<PathBuf>) -> Self {
        self.base = folder.into();
        self
    }

    /// Checks the policy and loads its hierarchies.
    ///
    /// # Errors
    ///
    /// All problems are reported together, each with its key in the job file's terms, such as `columns.age.hierarchy`.
    pub fn build(self) -> Result<Policy> {
        let job =
            super::definition::policy_job(self.privacy, self.defaults, self.columns, self.dependencies, self.method);
        Policy::of(&super::Job { measures: self.measures, window: self.window, ..job }, &self.base)
    }
}

impl Column {
    /// Creates a column that names a person by itself: dropped, unless [`with_treat`](Self::with_treat) says otherwise.
    pub fn identifier() -> Self {
        Self::new(Role::Identifier)
    }

    /// Creates a column that could name a person together with others: generalised.
    pub fn quasi() -> Self {
        Self::new(Role::Quasi)
    }

    /// Creates a column that must not be linked to a person: published unchanged, guarded by the rules.
    pub fn sensitive() -> Self {
        Self::new(Role::Sensitive)
    }

    /// Creates a column that is published unchanged.
    pub fn kept() -> Self {
        Self::new(Role::Kept)
    }

    /// Sets the hierarchy.
    pub fn with_hierarchy(self, hierarchy: HierarchySpec) -> Self {
        Self { hierarchy: Some(hierarchy), ..self }
    }

    /// Sets the weight in the search: the higher, the less the column is generalised.
    pub fn with_priority(self, priority: f64) -> Self {
        Self { priority: Some(priority), ..self }
    }

    /// Sets the published form.
    pub fn with_publish(self, publish: Publish) -> Self {
        Self { publish: Some(publish), ..self }
    }

    /// Sets how nulls are handled.
    pub fn with_nulls(self, nulls: Nulls) -> Self {
        Self { nulls: Some(nulls), ..self }
    }

    /// Declares the ends of the domain of a numeric column.
    pub fn with_domain(self, smallest: f64, largest: f64) -> Self {
        Self { domain: Some([smallest, largest]), ..self }
    }

    /// The same column with another way to deal with values that its hierarchy does not know.
    pub fn with_unknown(self, unknown: Unknown) -> Self {
        Self { unknown: Some(unknown), ..self }
    }

    /// The same column, which may hold one value in every row.
    pub fn with_constant(self, constant: Constant) -> Self {
        Self { constant: Some(constant), ..self }
    }

    /// The same quasi-identifier with nothing published of it: every value is the top of the domain.
    pub fn withheld(self) -> Self {
        Self { withhold: true, ..self }
    }

    /// Replaces the identifier instead of dropping it.
    pub fn with_treat(self, treat: IdentifierAction) -> Self {
        Self { treat: Some(treat), ..self }
    }
}

impl HierarchySpec {
    /// Reads a CSV file of lines `leaf;level 1;...;*`.
    pub fn file(path: impl Into<String>) -> Self {
        Self::File(path.into())
    }

    /// Masks codes from their last character on.
    pub fn mask_right() -> Self {
        Self::Mask { mask: Side::Right, fill: forms::MASK_CHAR, keep: None }
    }

    /// Numbers in intervals that hold about equally many rows: numbers of intervals, descending.
    pub fn quantiles(intervals: impl Into<Vec<u32>>) -> Self {
        Self::Quantiles { quantiles: intervals.into() }
    }

    /// Puts numbers into intervals of nested widths, each a multiple of the one before.
    pub fn widths(widths: impl Into<Vec<f64>>) -> Self {
        Self::Widths { widths: widths.into(), origin: 0.0 }
    }

    /// Puts numbers into intervals between listed bounds, finest level first.
    pub fn bounds(bounds: impl Into<Vec<Vec<f64>>>) -> Self {
        Self::Bounds { bounds: bounds.into() }
    }

    /// Puts dates and timestamps into calendar units, ascending.
    pub fn calendar(units: impl Into<Vec<CalendarUnit>>) -> Self {
        Self::Calendar { calendar: units.into() }
    }

    /// A tree of named nodes.
    pub fn tree(children: impl Into<Vec<InlineTree>>) -> Self {
        Self::Tree { tree: children.into() }
    }
}

impl MethodSpec {
    /// Selects `auto` at an effort.
    pub fn auto(effort: Effort) -> Self {
        let mut spec = Self::default();
        spec.options_mut().set(&auto::EFFORT, Value::Text(effort.name().to_owned()));
        spec
    }

    /// Selects a method by its name in the catalogue.
    ///
    /// # Errors
    ///
    /// If there is no such method; the message lists the known ones.
    pub fn named(name: &str) -> Result<Self> {
        let known = || methods::METHODS.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ");
        let found = MethodName::new(name);
        let name =
            found.ok_or_else(|| Error::job(format!("there is no method `{name}`; expected one of {}", known())))?;
        Ok(Self { name, ..Self::default() })
    }

    /// Sets an option of the method.
    ///
    /// # Errors
    ///
    /// If the method has no such option, or the option takes another type of value.
    pub fn with_option(mut self, name: &str, value: impl Into<MethodOption>) -> Result<Self> {
        let entry = self.name.entry();
        let Some(key) = entry.options.iter().find(|key| key.name == name) else {
            let known: Vec<&str> = entry.options.iter().map(|key| key.name).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(Error::job(format!("method `{}` has no option `{name}`; its options: {known}", entry.name)));
        };
        let value = match (key.kind, value.into().0) {
            (Kind::Share | Kind::Number { .. }, Value::Count(count)) => Value::Number(count as f64),
            (Kind::Share | Kind::Number { .. }, value @ Value::Number(_))
            | (Kind::Count { .. }, value @ Value::Count(_))
            | (Kind::Switch, value @ Value::Switch(_))
            | (Kind::Column, value @ Value::Text(_))
            | (Kind::Columns, value @ Value::List(_)) => value,
            (Kind::Word(words), Value::Text(word)) if words.iter().any(|(known, _)| *known == word) => {
                Value::Text(word)
            }
            (kind, _) => {
                return Err(Error::job(format!("method.{}.{name} takes {}", entry.name, kind.describe_expected())));
            }
        };
        self.options_mut().set(key, value);
        Ok(self)
    }

    /// Sets the form in which groups are published.
    #[must_use]
    pub fn with_form(self, form: Form) -> Self {
        Self { form: Some(form), ..self }
    }

    /// The same method with columns that stay together in the form `slice`.
    #[must_use]
    pub fn with_slices(self, slices: SliceSpec) -> Self {
        Self { slices: Some(slices), ..self }
    }

    /// Fixes the seed, for tests and experiments: whoever knows it can re-enact the run.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed: Some(seed), ..self }
    }

    /// Takes the key from an environment variable, which makes runs repeatable for whoever holds it.
    #[must_use]
    pub fn with_key_env(self, variable: impl Into<String>) -> Self {
        Self { key_env: Some(variable.into()), ..self }
    }
}

/// The value of a method's option: a number, a whole number, a truth value, a word, or names of columns.
#[derive(Debug, Clone, PartialEq)]
pub struct MethodOption(Value);

macro_rules! option_from {
    ($($from:ty => |$value:ident| $into:expr;)*) => {
        $(impl From<$from> for MethodOption {
            fn from($value: $from) -> Self {
                Self($into)
            }
        })*
    };
}

option_from! {
    f64 => |number| Value::Number(number);
    u64 => |count| Value::Count(count);
    u32 => |count| Value::Count(u64::from(count));
    usize => |count| Value::Count(count as u64);
    bool => |on| Value::Switch(on);
    &str => |text| Value::Text(text.to_owned());
    String => |text| Value::Text(text);
    Vec<String> => |names| Value::List(names);
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::policy::{LDiversity, RangeDiversity};

    #[test]
    fn a_policy_from_rust_is_the_policy_from_toml() {
        let written = "privacy.k = 5\nprivacy.max-suppression = 0.02\nprivacy.l-diversity = { column = \"ill\", l = 2 }\n\
                       defaults = { role = \"kept\", nulls = \"drop\" }\n[columns]\nname.role = \"identifier\"\n\
                       age = { role = \"quasi\", hierarchy.widths = [5, 10], priority = 2 }\n\
                       day = { role = \"quasi\", hierarchy.calendar = [\"month\", \"year\"] }\nill.role = \"sensitive\"\n\
                       [method]\nname = \"toc\"\nseed = 7\ntoc = { delta = 0.25, s = 40 }\n";
        let written = Policy::from_table(toml::from_str(written).unwrap(), Path::new(".")).unwrap();
        let method = MethodSpec::named("toc").unwrap().with_option("delta", 0.25).unwrap();
        let method = method.with_option("s", 40_u32).unwrap().with_seed(7);
        let calendar = HierarchySpec::calendar([CalendarUnit::Month, CalendarUnit::Year]);
        let built = Policy::builder(5)
            .max_suppression(0.02)
            .rule(LDiversity::distinct("ill", 2))
            .other_columns(Role::Kept)
            .nulls(Nulls::Drop)
            .column("name", Column::identifier())
            .column("age", Column::quasi().with_hierarchy(HierarchySpec::widths([5.0, 10.0])).with_priority(2.0))
            .column("day", Column::quasi().with_hierarchy(calendar))
            .column("ill", Column::sensitive())
            .method(method)
            .build()
            .unwrap();
        assert_eq!(built, written);
    }

    #[test]
    fn everything_wrong_with_a_policy_is_reported_at_once() {
        let refused = Policy::builder(1)
            .column("age", Column::quasi().with_hierarchy(HierarchySpec::widths([5.0, 7.0])))
            .rule(RangeDiversity::new("ill", 0.5))
            .build();
        let message = refused.unwrap_err().to_string();
        for key in ["privacy.k", "columns.age.hierarchy", "privacy.range-diversity"] {
            assert!(message.contains(key), "{key} in {message}");
        }
    }

    #[test]
    fn options_are_those_of_the_method() {
        let refused = |refused: Result<MethodSpec>| refused.unwrap_err().to_string();
        assert!(refused(MethodSpec::named("mondrain")).contains("auto"));
        assert!(refused(MethodSpec::auto(Effort::Fast).with_option("delta", 0.5)).contains("no option `delta`"));
        let toc = || MethodSpec::named("toc").unwrap();
        assert!(refused(toc().with_option("delta", true)).contains("number"));
        assert!(refused(toc().with_option("s", 0.5)).contains("whole number"));
        assert_eq!(MethodSpec::auto(Effort::Fast), MethodSpec::default().with_option("effort", "fast").unwrap());
    }
}
