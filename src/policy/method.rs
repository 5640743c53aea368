//! The `[method]` table: a name and a seed, how groups are published, and a table of options for each method that takes
//! some (`[method.toc]`).
//!
//! Which options a method takes and what may be written for them is decided by the list of methods ([`crate::methods`]);
//! nothing here names a method. Options of other methods than the named one may stand beside: they count when that method
//! is named, in the job or for a trial.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use datafusion::arrow::datatypes::Schema as TableSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};
use zeroize::Zeroizing;

use super::model::{Job, Role};
use super::slices::{self, SliceSpec};
use crate::error::{Error, Problem, Result};
use crate::grouping::entry::{Entry, Setting, Tuned};
use crate::grouping::options::{Key, Kind, Options, Value};
use crate::methods::{self, METHODS};
use crate::privacy::l_diversity::LDiversity;
use crate::privacy::presence::Presence;
use crate::privacy::range_diversity::RangeDiversity;
use crate::secret::RunKey;

/// How rows are grouped.
///
/// ```
/// use throng::{Effort, Form, MethodSpec};
///
/// let quick = MethodSpec::auto(Effort::Fast);
/// let uniform = MethodSpec::named("full-domain")?; // one level for all values of a column
/// let tables = MethodSpec::named("anatomy")?.with_seed(7);
/// assert_eq!((quick.name(), uniform.name(), tables.name()), ("auto", "full-domain", "anatomy"));
/// assert!(MethodSpec::named("mondrain").unwrap_err().to_string().contains("mondrian"));
/// # Ok::<(), throng::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MethodSpec {
    /// The grouping method.
    pub(crate) name: MethodName,
    /// Environment variable that holds the key of every random choice: same rows, policy and key, same release. Drawn
    /// anew for every run if neither it nor a seed is given.
    pub(crate) key_env: Option<String>,
    /// Seed of every random choice, for tests and experiments: whoever knows it can re-enact the run.
    pub(crate) seed: Option<u64>,
    /// How groups are published. Defaults to the usual form of the method.
    pub(crate) form: Option<Form>,
    /// Which columns stay together in the form `slice`.
    pub(crate) slices: Option<SliceSpec>,
    /// What is set of the options of each method, by the method's name.
    pub(crate) options: BTreeMap<&'static str, Options>,
}

impl MethodSpec {
    /// The key of every random choice, where the job fixes it. Errors do not quote its content.
    pub(crate) fn fixed_key(&self) -> Result<Option<RunKey>, String> {
        match (&self.key_env, self.seed) {
            (None, seed) => Ok(seed.map(RunKey::from_seed)),
            (Some(_), Some(_)) => Err("has both `key-env` and `seed`; give only one of them".into()),
            (Some(variable), None) => {
                let secret = std::env::var_os(variable).map(|value| Zeroizing::new(value.into_encoded_bytes()));
                let secret = secret.ok_or_else(|| format!("the environment variable `{variable}` is not set"))?;
                let key = RunKey::from_secret(&secret);
                key.map(Some).map_err(|error| format!("the environment variable `{variable}` {error}"))
            }
        }
    }

    /// The warning about a release that was made with a seed.
    pub(crate) fn seed_warning(&self) -> Option<Problem> {
        self.seed.map(|_| {
            Problem::warning("method.seed", "whoever knows the seed can re-enact the run and undo its grouping").help(
                "it is for tests and experiments; remove it, or name a secret with `key-env` to make runs repeatable",
            )
        })
    }

    /// What is set of the options of the method.
    pub(crate) fn options(&self) -> &Options {
        self.options.get(self.name.as_str()).unwrap_or(&NONE)
    }

    /// What is set of the options of the method, to be changed.
    pub(crate) fn options_mut(&mut self) -> &mut Options {
        self.options.entry(self.name.as_str()).or_default()
    }

    /// The same without what is set for other methods.
    pub(crate) fn without_unused(&self) -> Self {
        let mut spec = self.clone();
        spec.options.retain(|method, options| *method == self.name.as_str() && options.iter().next().is_some());
        spec
    }

    /// The name of the method.
    pub fn name(&self) -> &'static str {
        self.name.as_str()
    }

    /// How groups are published.
    pub(crate) fn form(&self) -> Form {
        self.form.unwrap_or(match self.name.entry().form {
            methods::Form::Generalise => Form::Generalise,
            methods::Form::Anatomy => Form::Anatomy,
            methods::Form::Combined => Form::Combined,
            methods::Form::Slice => Form::Slice,
        })
    }
}

/// How groups are published.
///
/// ```
/// use throng::columns::SliceSpec;
/// use throng::{Form, MethodSpec};
///
/// let sliced = MethodSpec::default().with_form(Form::Slice).with_slices(SliceSpec::Count(3));
/// # drop(sliced);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// One table: the quasi-identifiers of every group are generalised to one combination.
    Generalise,
    /// Two tables, linked by a group number: quasi-identifiers as they are, and sensitive values with their counts. It
    /// hides which value belongs to whom in a group, not who is in the table.
    Anatomy,
    /// The same two tables with every quasi-identifier permuted on its own inside its group.
    AnatomyPermuted,
    /// One table with group numbers: quasi-identifiers as they are, sensitive values permuted inside their group.
    Bucketise,
    /// One table with group numbers: values as they are; columns that depend on each other stay together, and each such
    /// slice is permuted on its own inside its group. `slices` says how many there are, or which.
    Slice,
    /// One table with group numbers: values as they are, every column permuted on its own inside its group.
    Permute,
    /// One table with group numbers: in every group the least generalisation with which permuting each column hides who is
    /// in the source.
    Combined,
}

impl Form {
    /// The name as it is written in the job file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Generalise => "generalise",
            Self::Anatomy => "anatomy",
            Self::AnatomyPermuted => "anatomy-permuted",
            Self::Bucketise => "bucketise",
            Self::Slice => "slice",
            Self::Permute => "permute",
            Self::Combined => "combined",
        }
    }

    /// Whether a release is two tables.
    pub fn is_two_tables(self) -> bool {
        matches!(self, Self::Anatomy | Self::AnatomyPermuted)
    }

    /// Whether quasi-identifiers are published as they are.
    pub fn is_exact(self) -> bool {
        !matches!(self, Self::Generalise | Self::Combined)
    }

    /// Whether groups are identified by a number, not by what they publish.
    pub fn is_numbered(self) -> bool {
        self != Self::Generalise
    }

    /// Whether values change places inside their group by chance.
    pub fn is_permuted(self) -> bool {
        !matches!(self, Self::Generalise | Self::Anatomy)
    }
}

/// The name of a grouping method.
#[derive(Clone, Copy)]
pub(crate) struct MethodName(&'static Entry);

impl MethodName {
    /// Returns the method of that name.
    pub(crate) fn new(name: &str) -> Option<Self> {
        methods::find_method(name).map(Self)
    }

    /// The name as it is written in the job file.
    pub(crate) fn as_str(self) -> &'static str {
        self.0.name
    }

    /// Its catalogue entry.
    pub(crate) fn entry(self) -> &'static Entry {
        self.0
    }
}

impl Default for MethodName {
    fn default() -> Self {
        Self(&METHODS[0])
    }
}

impl PartialEq for MethodName {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for MethodName {}

impl fmt::Debug for MethodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name)
    }
}

impl Serialize for MethodName {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.0.name)
    }
}

static NAMES: LazyLock<Vec<&'static str>> = LazyLock::new(|| METHODS.iter().map(|entry| entry.name).collect());

/// Keys of the table, those of options left out: these stand in the table of their method.
const KEYS: [&str; 5] = ["name", "key-env", "seed", "form", "slices"];

/// Everything that may stand in the table.
static FIELDS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let tables = METHODS.iter().filter(|entry| !entry.options.is_empty()).map(|entry| entry.name);
    KEYS.into_iter().chain(tables).collect()
});

/// Names of the options of each method.
static OPTIONS: LazyLock<BTreeMap<&'static str, Vec<&'static str>>> = LazyLock::new(|| {
    METHODS.iter().map(|entry| (entry.name, entry.options.iter().map(|key| key.name).collect())).collect()
});

/// Words of the options of each method that take one of several.
static WORDS: LazyLock<BTreeMap<(&'static str, &'static str), Vec<&'static str>>> = LazyLock::new(|| {
    let options = METHODS.iter().flat_map(|entry| entry.options.iter().map(move |key| (entry.name, key)));
    let words = options.filter_map(|(method, key)| match key.kind {
        Kind::Word(words) => Some(((method, key.name), words.iter().map(|(word, _)| *word).collect())),
        _ => None,
    });
    words.collect()
});

/// No options.
static NONE: LazyLock<Options> = LazyLock::new(Options::default);

impl<'de> Deserialize<'de> for MethodName {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = String::deserialize(from)?;
        Self::new(&name).ok_or_else(|| de::Error::unknown_variant(&name, &NAMES))
    }
}

impl Serialize for MethodSpec {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("name", &self.name)?;
        if let Some(variable) = &self.key_env {
            map.serialize_entry("key-env", variable)?;
        }
        if let Some(seed) = self.seed {
            map.serialize_entry("seed", &seed)?;
        }
        if let Some(form) = self.form {
            map.serialize_entry("form", &form)?;
        }
        if let Some(slices) = &self.slices {
            map.serialize_entry("slices", slices)?;
        }
        for (name, options) in &self.options {
            map.serialize_entry(name, &OptionTable(options))?;
        }
        map.end()
    }
}

/// The table of the options of a method.
struct OptionTable<'a>(&'a Options);

impl Serialize for OptionTable<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        for (name, value) in self.0.iter() {
            match value {
                Value::Number(number) => map.serialize_entry(name, number)?,
                Value::Count(count) => map.serialize_entry(name, count)?,
                Value::Switch(on) => map.serialize_entry(name, on)?,
                Value::Text(text) => map.serialize_entry(name, text)?,
                Value::List(list) => map.serialize_entry(name, list)?,
            }
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for MethodSpec {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Table;
        impl<'de> Visitor<'de> for Table {
            type Value = MethodSpec;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<MethodSpec, A::Error> {
                let mut spec = MethodSpec::default();
                while let Some(field) = map.next_key()? {
                    match field {
                        Field::Name => spec.name = map.next_value()?,
                        Field::KeyEnv => spec.key_env = Some(map.next_value()?),
                        Field::Seed => spec.seed = Some(map.next_value()?),
                        Field::Form => spec.form = Some(map.next_value()?),
                        Field::Slices => spec.slices = Some(map.next_value()?),
                        Field::Options(entry) => {
                            let options = map.next_value_seed(OptionsOf(entry))?;
                            _ = spec.options.insert(entry.name, options);
                        }
                    }
                }
                Ok(spec)
            }
        }
        from.deserialize_map(Table)
    }
}

/// A key of the table. An unknown one is refused where it stands, so that the error knows its line.
enum Field {
    Name,
    KeyEnv,
    Seed,
    Form,
    Slices,
    Options(&'static Entry),
}

impl<'de> Deserialize<'de> for Field {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Name;
        impl Visitor<'_> for Name {
            type Value = Field;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }
            fn visit_str<E: de::Error>(self, name: &str) -> Result<Field, E> {
                match name {
                    "name" => Ok(Field::Name),
                    "key-env" => Ok(Field::KeyEnv),
                    "seed" => Ok(Field::Seed),
                    "form" => Ok(Field::Form),
                    "slices" => Ok(Field::Slices),
                    _ => {
                        if let Some(entry) = methods::find_method(name).filter(|entry| !entry.options.is_empty()) {
                            return Ok(Field::Options(entry));
                        }
                        match methods::option_owners(name).first() {
                            Some(owner) => Err(E::custom(format!(
                                "`{name}` is an option of a method and stands in the table of that method, such as \
                                 [method.{owner}]"
                            ))),
                            None => Err(E::unknown_field(name, &FIELDS)),
                        }
                    }
                }
            }
        }
        from.deserialize_identifier(Name)
    }
}

/// Reads the table of the options of a method.
struct OptionsOf(&'static Entry);

impl<'de> DeserializeSeed<'de> for OptionsOf {
    type Value = Options;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Options, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for OptionsOf {
    type Value = Options;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a table of options of the method `{}`", self.0.name)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Options, A::Error> {
        let mut options = Options::default();
        while let Some(key) = map.next_key_seed(OptionKey(self.0))? {
            options.set(key, map.next_value_seed(OptionValue(self.0, key))?);
        }
        Ok(options)
    }
}

/// Reads the name of an option of a method.
struct OptionKey(&'static Entry);

impl<'de> DeserializeSeed<'de> for OptionKey {
    type Value = &'static Key;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<&'static Key, D::Error> {
        from.deserialize_identifier(self)
    }
}

impl Visitor<'_> for OptionKey {
    type Value = &'static Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of an option")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<&'static Key, E> {
        let known = OPTIONS.get(self.0.name).map_or(&[][..], Vec::as_slice);
        self.0.options.iter().find(|key| key.name == name).ok_or_else(|| E::unknown_field(name, known))
    }
}

/// Reads the value of an option of a method.
struct OptionValue(&'static Entry, &'static Key);

impl<'de> DeserializeSeed<'de> for OptionValue {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        let Self(entry, key) = self;
        Ok(match key.kind {
            Kind::Share | Kind::Number { .. } => Value::Number(f64::deserialize(from)?),
            Kind::Count { .. } => Value::Count(u64::deserialize(from)?),
            Kind::Switch => Value::Switch(bool::deserialize(from)?),
            Kind::Word(_) => {
                let word = String::deserialize(from)?;
                let known = WORDS.get(&(entry.name, key.name)).map_or(&[][..], Vec::as_slice);
                if !known.contains(&word.as_str()) {
                    return Err(de::Error::unknown_variant(&word, known));
                }
                Value::Text(word)
            }
            Kind::Column => Value::Text(String::deserialize(from)?),
            Kind::Columns => Value::List(Vec::deserialize(from)?),
        })
    }
}

/// Words and what they mean.
fn describe_words(words: impl Iterator<Item = (&'static str, String)>) -> Vec<Json> {
    words.map(|(word, about)| json!({ "const": word, "description": about })).collect()
}

impl JsonSchema for MethodName {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "MethodName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        // Those that everybody needs come first.
        let (research, usual): (Vec<&Entry>, Vec<&Entry>) = METHODS.iter().partition(|entry| entry.research);
        let names = describe_words(usual.into_iter().chain(research).map(|entry| (entry.name, entry.describe())));
        json_schema!({ "description": "The grouping methods.", "oneOf": names })
    }
}

impl JsonSchema for MethodSpec {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "MethodSpec".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let described = |schema: Schema, about: &str| {
            let mut value = schema.to_value();
            value["description"] = json!(about);
            value
        };
        let mut properties = Map::new();
        let name = described(generator.subschema_for::<MethodName>(), "The grouping method. Defaults to `auto`.");
        properties.insert("name".into(), name);
        let about = "Environment variable that holds the secret key of every random choice, of at least 32 characters: \
                     same rows, policy and key, same release. Defaults to a new key for every run.";
        properties.insert("key-env".into(), json!({ "type": "string", "description": about }));
        let about = "Seed of every random choice, for tests and experiments: whoever knows it can re-enact the run.";
        properties.insert("seed".into(), json!({ "type": "integer", "minimum": 0, "description": about }));
        let about = "How groups are published. Defaults to the usual form of the method.";
        properties.insert("form".into(), described(generator.subschema_for::<Form>(), about));
        let about = "Which columns stay together in the form `slice`: how many slices there are, or the columns of each. \
                     Columns that are not named are slices of their own.";
        properties.insert("slices".into(), described(generator.subschema_for::<SliceSpec>(), about));
        for entry in METHODS.iter().filter(|entry| !entry.options.is_empty()) {
            properties.insert(entry.name.into(), options_schema(entry));
        }
        json_schema!({
            "description": "How rows are grouped.",
            "type": "object",
            "properties": properties,
            "additionalProperties": false,
        })
    }
}

/// The table of the options of a method.
fn options_schema(entry: &Entry) -> Json {
    let mut properties = Map::new();
    for key in entry.options {
        let mut schema = match key.kind {
            Kind::Share => json!({ "type": "number", "minimum": 0, "maximum": 1 }),
            Kind::Number { least } => json!({ "type": "number", "minimum": least }),
            Kind::Count { least } => json!({ "type": "integer", "minimum": least }),
            Kind::Switch => json!({ "type": "boolean" }),
            Kind::Word(known) => {
                json!({ "oneOf": describe_words(known.iter().map(|(word, about)| (*word, (*about).to_owned()))) })
            }
            Kind::Column => json!({ "type": "string" }),
            Kind::Columns => json!({ "type": "array", "items": { "type": "string" } }),
        };
        schema["description"] = json!(key.about);
        properties.insert(key.name.into(), schema);
    }
    json!({
        "description": format!("Options of the method `{}`.", entry.name),
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    })
}

/// The key of an option in the job file.
fn option_key(entry: &Entry, option: &str) -> String {
    format!("method.{}.{option}", entry.name)
}

/// Checks the method of a job and adds notes.
pub(crate) fn check_method(job: &Job, problems: &mut Vec<Problem>) {
    let (method, entry) = (&job.method, job.method.name.entry());
    match method.fixed_key() {
        Err(message) => problems.push(
            Problem::error("method", message)
                .help("create a key with `openssl rand -hex 32`; without `key-env` every run draws its own"),
        ),
        Ok(_) => problems.extend(method.seed_warning()),
    }
    for other in method.options.keys().filter(|name| **name != entry.name) {
        let message = format!("is not used: the method is `{}`", entry.name);
        problems.push(Problem::warning(format!("method.{other}"), message).help("remove it, or change method.name"));
    }
    for (name, value) in method.options().iter() {
        let key = entry.options.iter().find(|key| key.name == name);
        let outside = key.and_then(|key| key.kind.range_error(value));
        problems.extend(outside.map(|message| Problem::error(option_key(entry, name), message)));
    }
    let named = |role: Role| {
        let open = job.defaults.as_ref().is_some_and(|defaults| defaults.role == Some(role));
        let columns = job.columns.iter().filter(|(_, column)| column.role == role).map(|(name, _)| name.clone());
        (!open).then(|| columns.collect())
    };
    let setting = Setting {
        options: method.options(),
        k: job.privacy.k as usize,
        max_loss: job.privacy.max_loss,
        range_diversity: range_rules(&job.privacy),
        l_diversity: diversity_rules(&job.privacy),
        presence: presence_rule(&job.privacy).map(|rule| rule.bounds),
        quasi: named(Role::Quasi),
        sensitive: named(Role::Sensitive),
        tuned: Tuned::default(),
        dependencies: std::sync::Arc::default(),
        slices: Vec::new(),
    };
    for remark in (entry.check)(&setting) {
        // Methods may share an option, and do not know under which of their names it was set.
        let option =
            remark.key.strip_prefix("method.").filter(|name| entry.options.iter().any(|key| key.name == *name));
        let key = option.map_or_else(|| remark.key.to_owned(), |name| option_key(entry, name));
        let problem = match remark.error {
            true => Problem::error(key, remark.message),
            false => Problem::warning(key, remark.message),
        };
        problems.push(if remark.help.is_empty() { problem } else { problem.help(remark.help) });
    }
    if entry.generalised_only && method.form().is_exact() {
        let message = format!(
            "`{}` fills groups in the order of quasi-identifiers: published as they are, they give away which sensitive \
             value is whose",
            entry.name
        );
        let help = "set form = \"generalise\", or use the method `anatomy`, which fills groups at random";
        problems.push(Problem::error("method.form", message).help(help));
    }
    slices::check_form(job, setting.sensitive.as_deref(), problems);
}

/// Column that numbers the groups in every form but `generalise`.
pub(crate) const GROUP: &str = "group";
/// Column of the form `anatomy` that says how often a sensitive value occurs in its group.
pub(crate) const COUNT: &str = "count";

/// Folder of the quasi-identifier table below that of the run.
pub(crate) const QIT: &str = "qit";
/// Folder of the sensitive table below that of the run.
pub(crate) const ST: &str = "st";

/// Columns of the quasi-identifier table, the group included, when rows of this schema are both tables side by side.
pub(crate) fn qit_width(schema: &TableSchema) -> Result<usize> {
    let group = schema.index_of(GROUP).map_err(|_| Error::internal("two tables without a group column"))?;
    Ok(group + 1)
}

/// The bounds on range diversity, as the methods know them.
pub(crate) fn range_rules(privacy: &super::Privacy) -> Vec<RangeDiversity> {
    let of = |rule: &super::RangeDiversity| RangeDiversity { column: rule.column.clone(), bound: rule.p };
    privacy.range_diversity.iter().map(of).collect()
}

/// The demands for l-diversity, as the methods know them.
pub(crate) fn diversity_rules(privacy: &super::Privacy) -> Vec<LDiversity> {
    use crate::privacy::l_diversity::Diversity as Kind;
    let kind = |rule: &super::LDiversity| match rule.kind {
        super::Diversity::Distinct => Kind::Distinct { l: rule.l as usize },
        super::Diversity::Entropy => Kind::Entropy { l: rule.l },
        super::Diversity::Recursive => Kind::Recursive { c: rule.c.unwrap_or(1.0), l: rule.l as usize },
    };
    privacy.l_diversity.iter().map(|rule| LDiversity { column: rule.column.clone(), kind: kind(rule) }).collect()
}

/// The bounds on everybody's chance to be in the source, as the methods know them.
pub(crate) fn presence_rule(privacy: &super::Privacy) -> Option<Presence> {
    privacy.presence.as_ref().map(|rule| Presence::new(rule.min, rule.max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_written_back() {
        let text = "name = \"density\"\nseed = 7\n[density]\npriorities = [\"b\", \"a\"]\ns = 50\nbeta = 2.5\n\
                    weights = \"height\"\n[toc]\ns = 40\n";
        let spec: MethodSpec = toml::from_str(text).unwrap();
        assert_eq!((spec.name.as_str(), spec.seed, spec.form()), ("density", Some(7), Form::Generalise));
        let again: MethodSpec = toml::from_str(&toml::to_string(&spec).unwrap()).unwrap();
        assert_eq!(again, spec);
        assert_eq!((again.options().iter().count(), again.options["toc"].iter().count()), (4, 1));
        let used = again.without_unused();
        assert_eq!((used.options().iter().count(), used.options.len()), (4, 1));
    }

    #[test]
    fn wrong_names_words_and_types_are_refused() {
        let error = |text: &str| toml::from_str::<MethodSpec>(text).unwrap_err().to_string();
        assert!(error("name = \"mondrain\"").contains("unknown variant `mondrain`, expected one of `auto`"));
        assert!(error("auto.efort = \"fast\"").contains("unknown field `efort`, expected `effort`"));
        assert!(error("auto.effort = \"slow\"").contains("unknown variant `slow`, expected one of `fast`"));
        assert!(error("toc.s = \"many\"").contains("invalid type"));
        assert!(error("nmae = \"toc\"").contains("unknown field `nmae`, expected one of `name`"));
        assert!(error("anatomy.s = 4").contains("unknown field `anatomy`"), "a method without options");
        assert!(error("delta = 0.4").contains("stands in the table of that method, such as [method.toc]"));
    }

    /// The error names the line and suggests what was probably meant.
    #[test]
    fn an_unknown_option_is_found_where_it_stands() {
        let text =
            "version = 1\nsource.url = \"a\"\nsink.url = \"b\"\nprivacy.k = 2\n[method.auto]\n\nefort = \"fast\"\n";
        let error = Job::parse(text, std::path::Path::new("job.toml")).unwrap_err().to_string();
        assert_eq!(
            error,
            "job.toml:7: method.auto.efort: unknown key `efort` in [method.auto]\n  help: did you mean `effort`?"
        );
        let wrong =
            Job::parse(&text.replace("efort = \"fast\"", "effort = \"fats\""), std::path::Path::new("job.toml"));
        let error = wrong.unwrap_err().to_string();
        assert_eq!(error, "job.toml:7: method.auto.effort: `fats` is not a known value\n  help: did you mean `fast`?");
    }

    #[test]
    fn the_form_follows_the_method_unless_it_is_set() {
        let form = |text: &str| toml::from_str::<MethodSpec>(text).unwrap().form();
        assert_eq!(form("name = \"anatomy\""), Form::Anatomy);
        assert_eq!(form("name = \"anatomy\"\nform = \"generalise\""), Form::Generalise);
        assert_eq!(form("form = \"anatomy\""), Form::Anatomy);
    }
}
