//! What happens to every column of a given table: the policy bound to a schema.
//!
//! A [`BoundPolicy`] is a [`Policy`] resolved against the schema of rows whose identifiers have been replaced, with the
//! schema that will be published. Only this crate makes one, after it has replaced them.

mod dependencies;
mod slices;

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use crate::error::{Error, Result};
use crate::hierarchy::Hierarchy;
use crate::policy::Policy;
use crate::policy::check;
use crate::policy::identifier::IdentifierAction;
use crate::policy::method::{COUNT, GROUP};
use crate::policy::model::{
    Column, ConfiguredRule, Constant, Form, HierarchySpec, Nulls, Publish, Ranges, Role, Unknown,
};
use crate::privacy::{Rule, Setting};
use crate::secret::RunKey;

/// A quasi-identifier of the input.
#[derive(Debug, Clone)]
pub(crate) struct QuasiColumn {
    /// Place in the input schema.
    pub index: usize,
    /// Name.
    pub name: String,
    /// Type of the original values.
    pub data_type: DataType,
    /// How values generalise.
    pub hierarchy: Option<Arc<Hierarchy>>,
    /// Number of intervals per level of a ladder that follows the quantiles of the data.
    pub quantiles: Option<Vec<u32>>,
    /// What to do with values that the hierarchy does not know.
    pub unknown: Unknown,
    /// What to do when every row holds the same value.
    pub constant: Constant,
    /// How rows with a null in it are handled.
    pub nulls: Nulls,
    /// Published form.
    pub publish: Publish,
    /// Weight in the search.
    pub weight: f64,
    /// Whether every value is published as the top of the domain.
    pub withheld: bool,
    /// Declared ends of a numeric domain.
    pub domain: Option<[f64; 2]>,
}

/// Whether the type is a number: its values have a position and can be published as a range or a mean.
pub(crate) fn is_number(data_type: &DataType) -> bool {
    data_type.is_numeric()
}

/// Whether the type is a date, timestamp or time of day: it has a position and can be published as a range.
pub(crate) fn is_time(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(_, _) | DataType::Time32(_) | DataType::Time64(_)
    )
}

impl QuasiColumn {
    /// Whether values are coded by their position on a line (rather than as words or leaves).
    pub(crate) fn is_ordinal(&self) -> bool {
        match self.hierarchy.as_deref() {
            _ if self.quantiles.is_some() => true,
            None => is_number(&self.data_type) || is_time(&self.data_type),
            Some(Hierarchy::Ladder(_) | Hierarchy::Calendar(_)) => true,
            Some(Hierarchy::Levels(_) | Hierarchy::Mask(_)) => false,
        }
    }
}

/// A sensitive column of the input.
#[derive(Debug, Clone)]
pub(crate) struct SensitiveColumn {
    /// Place in the input schema.
    pub index: usize,
    /// Name.
    pub name: String,
    /// Type of the values.
    pub data_type: DataType,
    /// Hierarchy, when distance between values follows one.
    pub hierarchy: Option<Arc<Hierarchy>>,
    /// Declared ends of a numeric domain.
    pub domain: Option<[f64; 2]>,
    /// Sensitive-range policy, when a rule names one.
    pub ranges: Ranges,
    /// Whether a rule compares groups with how often every value occurs in the whole table.
    pub compared: bool,
}

/// A policy bound to an input schema.
#[derive(Debug, Clone)]
pub(crate) struct BoundPolicy {
    /// The policy.
    pub(crate) policy: Arc<Policy>,
    /// Schema of the input.
    pub(crate) input: SchemaRef,
    /// Schema of the release.
    pub(crate) output: SchemaRef,
    /// Role of every input column; one whose identifiers were replaced is kept.
    pub(crate) roles: Vec<Role>,
    /// The quasi-identifiers, in input order.
    pub(crate) quasi: Vec<QuasiColumn>,
    /// The sensitive columns, in input order.
    pub(crate) sensitive: Vec<SensitiveColumn>,
    /// Index in the input of the column that identifies people, if k counts people.
    pub(crate) person: Option<usize>,
    /// Index of the column that marks rows of the source among public rows, if there are any.
    pub(crate) member: Option<usize>,
    /// What every random choice of the run comes from.
    pub(crate) key: RunKey,
}

/// Name of the column that marks rows of the source (true) among rows of the public table (false). It is never published.
pub(crate) const MEMBER_COLUMN: &str = "__throng_member";

impl BoundPolicy {
    /// Binds a policy without identifiers to the columns of a source; all problems are reported together.
    #[cfg(test)]
    pub(crate) fn new(policy: Arc<Policy>, input: SchemaRef) -> Result<Self> {
        Self::ensure_columns_fit(&policy, &input)?;
        let key = policy.new_run_key()?;
        let bound_policy = Self::bind_schema(policy, input, key)?;
        bound_policy.ensure_public_rows_present()?;
        Ok(bound_policy)
    }

    /// Rejects rows without the public ones among which the policy wants them hidden.
    pub(crate) fn ensure_public_rows_present(&self) -> Result<()> {
        if self.policy.privacy.presence.is_none() || self.member.is_some() {
            return Ok(());
        }
        let message =
            "privacy.presence: only `throng run` reads the public table; remove the rule for queries and trials";
        Err(Error::job(message))
    }

    /// Whether an input column is read: everything but dropped identifiers, and what identifies people, or members among
    /// the public.
    pub(crate) fn reads_column(&self, index: usize) -> bool {
        self.roles[index] != Role::Identifier || [self.person, self.member].contains(&Some(index))
    }

    /// Rejects a source whose columns do not fit a policy.
    pub(crate) fn ensure_columns_fit(policy: &Policy, input: &Schema) -> Result<()> {
        let problems: Vec<String> = check::check_columns(policy, input)
            .into_iter()
            .filter(|problem| problem.is_error())
            .map(|problem| problem.to_string())
            .collect();
        if problems.is_empty() { Ok(()) } else { Err(Error::job(problems.join("\n"))) }
    }

    /// Binds a policy to a schema that has passed the check before, and has since had its identifiers replaced and may
    /// have lost columns that are not published. The key is that of the run, however often its policy is bound to a schema.
    pub(crate) fn bind_schema(policy: Arc<Policy>, input: SchemaRef, key: RunKey) -> Result<Self> {
        let mut bound_policy = Self {
            output: Arc::clone(&input),
            roles: Vec::with_capacity(input.fields().len()),
            quasi: Vec::new(),
            sensitive: Vec::new(),
            person: None,
            member: None,
            policy,
            input: Arc::clone(&input),
            key,
        };
        let mut published: Vec<Field> = Vec::new();
        for (index, field) in input.fields().iter().enumerate() {
            if field.name() == MEMBER_COLUMN {
                bound_policy.member = Some(index);
                bound_policy.roles.push(Role::Identifier);
                continue;
            }
            let column = bound_policy.find_column(field.name())?;
            // An identifier that has been replaced is kept as it is now.
            let replaced = column.identifier_action().is_some_and(|treat| *treat != IdentifierAction::Drop);
            let role = if replaced { Role::Kept } else { column.role };
            bound_policy.roles.push(role);
            match role {
                Role::Identifier => {}
                Role::Kept => published.push(field.as_ref().clone()),
                Role::Sensitive => {
                    published.push(field.as_ref().clone());
                    let sensitive = bound_policy.sensitive_column(index, field, &column);
                    bound_policy.sensitive.push(sensitive);
                }
                Role::Quasi => {
                    let quasi = bound_policy.quasi_column(index, field, &column);
                    published.extend(published_fields(&quasi));
                    bound_policy.quasi.push(quasi);
                }
            }
        }
        if bound_policy.form().is_numbered() {
            let taken = |name: &&str| published.iter().any(|field| field.name() == name);
            let added = [GROUP, COUNT].into_iter().filter(|name| *name == GROUP || bound_policy.form().is_two_tables());
            if let Some(name) = added.into_iter().find(|name| taken(name)) {
                return Err(Error::job(format!(
                    "columns.{name}: the form `{}` adds a column of this name, but the source has one; rename it in the \
                     source",
                    bound_policy.form().as_str()
                )));
            }
            published = bound_policy.numbered_fields(published);
        }
        bound_policy.output = Arc::new(Schema::new(published));
        if let Some(person) = &bound_policy.policy.privacy.person {
            // Without it, people could not be counted and k would silently count rows.
            let index = input.index_of(person).map_err(|_| Error::job(format!("there is no column `{person}`")))?;
            bound_policy.person = Some(index);
        }
        Ok(bound_policy)
    }

    /// How groups are published.
    pub(crate) fn form(&self) -> Form {
        self.policy.method.form()
    }

    /// The columns of a form that numbers its groups, the number among them. Two tables stand side by side:
    /// quasi-identifiers and kept columns, then the group, then sensitive values and how often they occur in it. There are
    /// fewer values than rows: those that are left have none, and a count of null.
    fn numbered_fields(&self, generalised: Vec<Field>) -> Vec<Field> {
        let fields = || self.input.fields().iter().zip(&self.roles);
        let of = |wanted: &[Role]| -> Vec<Field> {
            fields().filter(|(_, role)| wanted.contains(role)).map(|(field, _)| field.as_ref().clone()).collect()
        };
        let group = Field::new(GROUP, DataType::UInt64, false);
        if !self.form().is_exact() {
            return generalised.into_iter().chain([group]).collect();
        }
        if !self.form().is_two_tables() {
            return of(&[Role::Quasi, Role::Kept, Role::Sensitive]).into_iter().chain([group]).collect();
        }
        let sensitive = of(&[Role::Sensitive]).into_iter().map(|field| field.with_nullable(true));
        let count = Field::new(COUNT, DataType::UInt64, true);
        of(&[Role::Quasi, Role::Kept]).into_iter().chain([group]).chain(sensitive).chain([count]).collect()
    }

    /// Names of the published columns of each quasi-identifier: what a class is made of.
    pub(crate) fn class_columns(&self) -> Vec<String> {
        if self.form().is_numbered() {
            return vec![GROUP.to_owned()];
        }
        self.quasi.iter().flat_map(published_fields).map(|field| field.name().clone()).collect()
    }

    /// The rules about sensitive columns as they are asked: of groups while they are built, or of what is published.
    pub(crate) fn configured_rules(&self, building: bool) -> Vec<ConfiguredRule> {
        let reserve = building && self.policy.privacy.max_suppression > 0.0;
        let rules = self.policy.privacy.rules().into_iter();
        let ready = rules.map(|listed| {
            let levels = match self.policy.hierarchies.get(listed.rule.column()).map(AsRef::as_ref) {
                Some(Hierarchy::Levels(levels)) => Some(levels),
                _ => None,
            };
            ConfiguredRule { rule: listed.rule.ready(&Setting { levels, reserve }), ..listed }
        });
        ready.collect()
    }

    fn find_column(&self, name: &str) -> Result<Column> {
        match (self.policy.columns.get(name), self.policy.defaults.as_ref().and_then(|defaults| defaults.role)) {
            (Some(column), _) => Ok(column.clone()),
            (None, Some(role)) => Ok(Column::new(role)),
            (None, None) => Err(Error::job(format!("column `{name}` has no role"))),
        }
    }

    fn quasi_column(&self, index: usize, field: &Field, column: &Column) -> QuasiColumn {
        let hierarchy = self.policy.hierarchies.get(field.name()).cloned();
        let default_nulls = self.policy.defaults.as_ref().and_then(|defaults| defaults.nulls);
        let ordered = is_number(field.data_type()) || is_time(field.data_type());
        let quantiles = match &column.hierarchy {
            Some(HierarchySpec::Quantiles { quantiles }) => Some(quantiles.clone()),
            _ => None,
        };
        let default =
            if hierarchy.is_none() && quantiles.is_none() && ordered { Publish::Range } else { Publish::Label };
        QuasiColumn {
            index,
            name: field.name().clone(),
            data_type: field.data_type().clone(),
            hierarchy,
            quantiles,
            unknown: column.unknown.unwrap_or_default(),
            constant: column.constant.unwrap_or_default(),
            nulls: column.nulls.or(default_nulls).unwrap_or_default(),
            publish: column.publish.unwrap_or(default),
            weight: column.priority.unwrap_or(1.0),
            withheld: column.withhold,
            domain: column.domain,
        }
    }

    fn sensitive_column(&self, index: usize, field: &Field, column: &Column) -> SensitiveColumn {
        SensitiveColumn {
            index,
            name: field.name().clone(),
            data_type: field.data_type().clone(),
            hierarchy: self.policy.hierarchies.get(field.name()).cloned(),
            domain: column.domain,
            ranges: self.policy.column_ranges(field.name()),
            compared: self.policy.privacy.compares_column(field.name()),
        }
    }
}

/// The published fields of a quasi-identifier: one, or two for `bounds`.
pub(crate) fn published_fields(quasi: &QuasiColumn) -> Vec<Field> {
    let of = |name: &str| Field::new(name, without_dictionary(&quasi.data_type), true);
    match quasi.publish {
        Publish::Label => vec![Field::new(&quasi.name, DataType::Utf8View, true)],
        Publish::Range => {
            let ends = [of("min"), of("max")];
            vec![Field::new(&quasi.name, DataType::Struct(ends.into_iter().collect()), true)]
        }
        Publish::Bounds => vec![of(&format!("{}_min", quasi.name)), of(&format!("{}_max", quasi.name))],
        Publish::Centroid => vec![of(&quasi.name)],
    }
}

/// The type without a dictionary around it.
fn without_dictionary(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Dictionary(_, values) => values.as_ref().clone(),
        other => other.clone(),
    }
}

impl BoundPolicy {
    /// Returns one line for plans: rules, method and columns by role.
    pub(crate) fn summary(&self) -> String {
        let names = |names: Vec<&str>| names.join(", ");
        let privacy = &self.policy.privacy;
        let mut text = format!("k={}, method={}", privacy.k, self.policy.method.name.as_str());
        if let Some(bound) = privacy.max_loss {
            text += &format!(", max-loss={bound}");
        }
        for rule in &privacy.range_diversity {
            text += &format!(", range-diversity({})={}", rule.column, rule.p);
        }
        for rule in &privacy.l_diversity {
            text += &format!(", l-diversity({})={}", rule.column, rule.l);
        }
        if let Some(rule) = &privacy.presence {
            text += &format!(", presence={}..{}", rule.min, rule.max);
            text += &rule.people.map_or(String::new(), |people| format!(" among {people} people"));
            rule.diversity.iter().for_each(|rule| text += &format!(", {}", rule.record()));
        }
        for listed in privacy.rules() {
            if !["range-diversity", "l-diversity"].contains(&listed.name.as_str()) {
                text += &format!(", {}", listed.record);
            }
        }
        if let Some(person) = &privacy.person {
            text += &format!(", person={person}");
        }
        if self.form().is_numbered() {
            text += &format!(", form={}", self.form().as_str());
        }
        text += &format!(", quasi=[{}]", names(self.quasi.iter().map(|column| column.name.as_str()).collect()));
        text += &format!(", sensitive=[{}]", names(self.sensitive.iter().map(|column| column.name.as_str()).collect()));
        for (action, wanted) in [("pseudonym", true), ("constant", false)] {
            let treated = self.policy.columns.iter().filter(|(_, column)| match column.identifier_action() {
                Some(IdentifierAction::Pseudonym(_)) => wanted,
                Some(IdentifierAction::Constant(_)) => !wanted,
                _ => false,
            });
            let treated: Vec<&str> = treated.map(|(name, _)| name.as_str()).collect();
            if !treated.is_empty() {
                text += &format!(", {action}=[{}]", names(treated));
            }
        }
        text
    }
}
