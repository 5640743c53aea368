//! From the values of a TOML text to the model: a deserialiser whose errors know what is wrong and with which key.
//!
//! The deserialiser of `toml` says so in sentences, from which key and reason would have to be read back.

use std::fmt;
use std::ops::Range;

use serde::de::value::{MapAccessDeserializer, SeqDeserializer};
use serde::de::{DeserializeSeed, Deserializer, Error, Expected, IntoDeserializer, MapAccess, Unexpected, Visitor};
use serde::forward_to_deserialize_any;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What cannot be read, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) what: Wrong,
    /// The keys that lead to it, from the outside.
    pub(crate) keys: Vec<String>,
    /// Its place in the text.
    pub(crate) span: Option<Range<usize>>,
}

/// What is wrong with a key or a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// The table knows other keys.
    UnknownKey(String, &'static [&'static str]),
    /// The key knows other values.
    UnknownValue(String, &'static [&'static str]),
    /// The table has not got the key.
    MissingKey(&'static str),
    /// Anything else, for people.
    Value(String),
}

impl Fault {
    fn new(what: Wrong) -> Self {
        Self { what, keys: Vec::new(), span: None }
    }

    /// The same with its place, if it does not know a closer one.
    fn at_span(self, span: &Range<usize>) -> Self {
        Self { span: self.span.or_else(|| Some(span.clone())), ..self }
    }

    /// The same below a key.
    fn below_key(mut self, key: String) -> Self {
        self.keys.insert(0, key);
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            Wrong::UnknownKey(key, _) => write!(f, "unknown key `{key}`"),
            Wrong::UnknownValue(value, _) => write!(f, "`{value}` is not a known value"),
            Wrong::MissingKey(key) => write!(f, "`{key}` is missing"),
            Wrong::Value(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Fault {}

impl Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(Wrong::Value(message.to_string()))
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::custom(format!("wrong type: {}, expected {}", found_words(found), expected_words(expected, None)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let wanted = expected_words(expected, Some(found));
        Self::custom(format!("invalid value: {}, expected {wanted}", found_words(found)))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::new(Wrong::UnknownKey(field.to_owned(), expected))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self::new(Wrong::UnknownValue(variant.to_owned(), expected))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(Wrong::MissingKey(field))
    }
}

/// A value in the words of a job file.
fn found_words(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Str(text) => format!("the text {text:?}"),
        Unexpected::Signed(number) => format!("the number `{number}`"),
        Unexpected::Unsigned(number) => format!("the number `{number}`"),
        Unexpected::Float(number) => format!("the number `{number:?}`"),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a table".to_owned(),
        other => other.to_string(),
    }
}

/// What was expected, without Rust's names of types: serde tells it as text alone. `found` is a value of the right type.
fn expected_words(expected: &dyn Expected, found: Option<Unexpected<'_>>) -> String {
    let text = expected.to_string();
    // A number that is not below 0 is refused because it is too large.
    let too_large = match found {
        Some(Unexpected::Signed(number)) => number >= 0,
        Some(Unexpected::Unsigned(_)) => true,
        _ => false,
    };
    match text.as_str() {
        "u32" if too_large => format!("a whole number of at most {}", u32::MAX),
        "u32" | "u64" | "usize" => "a whole number of 0 or more".to_owned(),
        "f64" => "a number".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a string" => "a text".to_owned(),
        _ if text.starts_with("struct ") => "a table".to_owned(),
        _ => text,
    }
}

/// A value with its place.
pub(crate) struct Node<'a> {
    value: DeValue<'a>,
    span: Range<usize>,
}

impl<'a> Node<'a> {
    /// A whole text.
    pub(crate) fn of_table(table: Spanned<DeTable<'a>>) -> Self {
        Self { span: table.span(), value: DeValue::Table(table.into_inner()) }
    }

    fn of_value(value: Spanned<DeValue<'a>>) -> Self {
        Self { span: value.span(), value: value.into_inner() }
    }
}

/// Why a number cannot be held.
fn number_overflow(kind: &str, text: &str) -> Fault {
    Fault::custom(format!("invalid value: the number `{text}` is too large for {kind}"))
}

impl<'de> Deserializer<'de> for Node<'de> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let Self { value, span } = self;
        let read = match value {
            DeValue::String(text) => visitor.visit_str(&text),
            DeValue::Boolean(flag) => visitor.visit_bool(flag),
            DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
                Ok(number) => visitor.visit_i64(number),
                Err(_) => match u64::from_str_radix(number.as_str(), number.radix()) {
                    Ok(number) => visitor.visit_u64(number),
                    Err(_) => Err(number_overflow("a whole number", &number.to_string())),
                },
            },
            DeValue::Float(number) => match number.as_str().parse::<f64>() {
                Ok(parsed) if parsed.is_finite() || number.as_str().ends_with(['f', 'n']) => visitor.visit_f64(parsed),
                _ => Err(number_overflow("a number", number.as_str())),
            },
            DeValue::Datetime(_) => {
                Err(Fault::invalid_type(Unexpected::Other("a date or time without quotes"), &visitor))
            }
            DeValue::Array(list) => visitor.visit_seq(SeqDeserializer::new(list.into_iter().map(Node::of_value))),
            DeValue::Table(table) => visitor.visit_map(Entries::of_table(table)),
        };
        read.map_err(|fault| fault.at_span(&span))
    }

    /// What is there is some.
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let span = self.span.clone();
        visitor.visit_some(self).map_err(|fault| fault.at_span(&span))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Fault> {
        let span = self.span.clone();
        visitor.visit_newtype_struct(self).map_err(|fault| fault.at_span(&span))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let Self { value, span } = self;
        let read = match value {
            DeValue::String(text) => visitor.visit_enum((&*text).into_deserializer()),
            DeValue::Table(table) => visitor.visit_enum(MapAccessDeserializer::new(Entries::of_table(table))),
            _ => Err(Fault::custom("wrong type: expected one of the known values")),
        };
        read.map_err(|fault| fault.at_span(&span))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

impl<'de> IntoDeserializer<'de, Fault> for Node<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// The keys and values of a table.
struct Entries<'a> {
    entries: <DeTable<'a> as IntoIterator>::IntoIter,
    /// The value of the key that was read last.
    next: Option<(String, Node<'a>)>,
}

impl<'a> Entries<'a> {
    fn of_table(table: DeTable<'a>) -> Self {
        Self { entries: table.into_iter(), next: None }
    }
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        let Some((key, value)) = self.entries.next() else { return Ok(None) };
        let (span, name) = (key.span(), key.into_inner().into_owned());
        let read = seed.deserialize(name.as_str().into_deserializer());
        self.next = Some((name, Node::of_value(value)));
        read.map(Some).map_err(|fault: Fault| fault.at_span(&span))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        match self.next.take() {
            Some((name, value)) => {
                let span = value.span.clone();
                seed.deserialize(value).map_err(|fault| fault.at_span(&span).below_key(name))
            }
            None => Err(Fault::custom("a value was read before its key")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "kebab-case", deny_unknown_fields)]
    struct Outer {
        size: Option<u32>,
        share: Option<f64>,
        colour: Option<Colour>,
        #[serde(default)]
        inner: BTreeMap<String, Inner>,
        #[serde(default)]
        list: Vec<Inner>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "kebab-case", deny_unknown_fields)]
    struct Inner {
        name: String,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum Colour {
        Red,
        Mixed(Vec<String>),
    }

    fn read(text: &str) -> Result<Outer, Fault> {
        Outer::deserialize(Node::of_table(DeTable::parse(text).unwrap()))
    }

    fn value(text: &str) -> String {
        match read(text).unwrap_err().what {
            Wrong::Value(message) => message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn values_of_all_kinds_are_read() {
        let found =
            read("size = 0x1F\nshare = 2\ncolour = \"red\"\n[inner.\"a.b\"]\nname = \"x\"\n[[list]]\nname = 'y'");
        let inner = |name: &str| Inner { name: name.into() };
        assert_eq!(
            found.unwrap(),
            Outer {
                size: Some(31),
                share: Some(2.0),
                colour: Some(Colour::Red),
                inner: [("a.b".to_owned(), inner("x"))].into(),
                list: vec![inner("y")],
            }
        );
        assert_eq!(read("share = -inf").unwrap().share, Some(f64::NEG_INFINITY));
        assert!(read("share = +nan").unwrap().share.is_some_and(f64::is_nan));
        assert_eq!(read("colour = { mixed = [\"a\"] }").unwrap().colour, Some(Colour::Mixed(vec!["a".into()])));
    }

    /// A key with a dot in it is one key, which the sentences of another crate would not tell.
    #[test]
    fn faults_know_their_keys_and_places() {
        let text = "size = 1\n[inner.\"a.b\"]\nname = 7\n";
        let fault = read(text).unwrap_err();
        assert_eq!(fault.keys, ["inner", "a.b", "name"]);
        assert_eq!(&text[fault.span.unwrap()], "7");
        let text = "[inner.x]\nnmae = \"a\"\n";
        let fault = read(text).unwrap_err();
        assert_eq!(fault.what, Wrong::UnknownKey("nmae".into(), &["name"]));
        assert_eq!((fault.keys, &text[fault.span.unwrap()]), (vec!["inner".to_owned(), "x".to_owned()], "nmae"));
        let fault = read("[[list]]\n").unwrap_err();
        assert_eq!((fault.what, fault.keys), (Wrong::MissingKey("name"), vec!["list".to_owned()]));
        let fault = read("colour = \"blue\"").unwrap_err();
        assert_eq!(fault.what, Wrong::UnknownValue("blue".into(), &["red", "mixed"]));
    }

    #[test]
    fn values_are_told_in_the_words_of_a_job_file() {
        assert_eq!(value("size = \"a\""), "wrong type: the text \"a\", expected a whole number of 0 or more");
        assert_eq!(value("size = -1"), "invalid value: the number `-1`, expected a whole number of 0 or more");
        assert_eq!(
            value("size = 4294967296"),
            "invalid value: the number `4294967296`, expected a whole number of at most 4294967295"
        );
        assert_eq!(value("size = [1]"), "wrong type: a list, expected a whole number of 0 or more");
        assert_eq!(value("size = 1.5"), "wrong type: the number `1.5`, expected a whole number of 0 or more");
        assert_eq!(value("share = {}"), "wrong type: a table, expected a number");
        assert_eq!(value("list = 3"), "wrong type: the number `3`, expected a list");
        assert_eq!(value("inner.a = 3"), "wrong type: the number `3`, expected a table");
        assert_eq!(value("inner.a.name = 3"), "wrong type: the number `3`, expected a text");
        assert_eq!(value("colour = 3"), "wrong type: expected one of the known values");
        assert_eq!(value("inner.a.name = 2026-11-16"), "wrong type: a date or time without quotes, expected a text");
        assert_eq!(
            value("size = 99999999999999999999"),
            "invalid value: the number `99999999999999999999` is too large for a whole number"
        );
        assert_eq!(value("share = 1e999"), "invalid value: the number `1e999` is too large for a number");
    }
}
