//! Deserialises values of the job file that have more than one form.
//!
//! Serde's untagged enums would do, but their only error is "did not match any variant". These visitors look at what
//! was written, choose the form, and let the form's own error through, with the line it is on.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::model::{CalendarUnit, HierarchySpec, ListedRange, RangeOf, Ranges, Side, Values};
use crate::hierarchy::InlineTree;

/// The default mask character.
pub(super) const MASK_CHAR: char = '*';

/// Any number of things of one kind: `{ ... }` is a list of one, `[{ ... }, ...]` a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct OneOrMany<T>(Vec<T>);

impl<T> OneOrMany<T> {
    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T> Default for OneOrMany<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> From<Vec<T>> for OneOrMany<T> {
    fn from(all: Vec<T>) -> Self {
        Self(all)
    }
}

impl<T> Deref for OneOrMany<T> {
    type Target = Vec<T>;
    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T> DerefMut for OneOrMany<T> {
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.0
    }
}

impl<'a, T> IntoIterator for &'a OneOrMany<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct OneOrMany<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for OneOrMany<T> {
            type Value = Vec<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table or a list of tables")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Vec<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(|one| vec![one])
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Vec<T>, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq))
            }
        }
        from.deserialize_any(OneOrMany(PhantomData)).map(Self)
    }
}

impl<T: JsonSchema> JsonSchema for OneOrMany<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("Several_{}", T::schema_name()).into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (one, many) = (generator.subschema_for::<T>(), generator.subschema_for::<Vec<T>>());
        json_schema!({ "anyOf": [one, many] })
    }
}

/// A hierarchy written as a table: exactly one of its main keys is set.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct HierarchyTable {
    mask: Option<Side>,
    char: Option<char>,
    keep: Option<Vec<usize>>,
    widths: Option<Vec<f64>>,
    origin: Option<f64>,
    bounds: Option<Vec<Vec<f64>>>,
    quantiles: Option<Vec<u32>>,
    calendar: Option<Vec<CalendarUnit>>,
    tree: Option<Forest>,
}

impl HierarchyTable {
    fn into_spec(self) -> Result<HierarchySpec, &'static str> {
        let mask_options = self.char.is_some() || self.keep.is_some();
        let origin = self.origin;
        let mut forms = [
            self.mask.map(|mask| HierarchySpec::Mask { mask, fill: self.char.unwrap_or(MASK_CHAR), keep: self.keep }),
            self.widths.map(|widths| HierarchySpec::Widths { widths, origin: origin.unwrap_or(0.0) }),
            self.bounds.map(|bounds| HierarchySpec::Bounds { bounds }),
            self.quantiles.map(|quantiles| HierarchySpec::Quantiles { quantiles }),
            self.calendar.map(|calendar| HierarchySpec::Calendar { calendar }),
            self.tree.map(|Forest(tree)| HierarchySpec::Tree { tree }),
        ]
        .into_iter()
        .flatten();
        let spec = forms
            .next()
            .ok_or("a hierarchy table needs one of `mask`, `widths`, `bounds`, `quantiles`, `calendar`, `tree`")?;
        if forms.next().is_some() {
            return Err("a hierarchy may have only one of `mask`, `widths`, `bounds`, `quantiles`, `calendar`, `tree`");
        }
        if mask_options && !matches!(spec, HierarchySpec::Mask { .. }) {
            return Err("`char` and `keep` belong to a hierarchy with `mask`");
        }
        if origin.is_some() && !matches!(spec, HierarchySpec::Widths { .. }) {
            return Err("`origin` belongs to a hierarchy with `widths`");
        }
        Ok(spec)
    }
}

impl<'de> Deserialize<'de> for HierarchySpec {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Spec;
        impl<'de> Visitor<'de> for Spec {
            type Value = HierarchySpec;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the path of a level CSV file, or a table such as { widths = [5, 10] }")
            }
            fn visit_str<E: Error>(self, path: &str) -> Result<HierarchySpec, E> {
                Ok(HierarchySpec::File(path.to_owned()))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<HierarchySpec, A::Error> {
                HierarchyTable::deserialize(MapAccessDeserializer::new(map))?.into_spec().map_err(A::Error::custom)
            }
        }
        from.deserialize_any(Spec)
    }
}

/// The children of a node of an inline tree.
struct Forest(Vec<InlineTree>);

impl<'de> Deserialize<'de> for Forest {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Children;
        impl<'de> Visitor<'de> for Children {
            type Value = Forest;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value, a list of values, or a table of nodes")
            }
            fn visit_str<E: Error>(self, leaf: &str) -> Result<Forest, E> {
                Ok(Forest(vec![InlineTree::Leaf(leaf.to_owned())]))
            }
            fn visit_i64<E: Error>(self, leaf: i64) -> Result<Forest, E> {
                self.visit_str(&leaf.to_string())
            }
            fn visit_u64<E: Error>(self, leaf: u64) -> Result<Forest, E> {
                self.visit_str(&leaf.to_string())
            }
            fn visit_bool<E: Error>(self, leaf: bool) -> Result<Forest, E> {
                self.visit_str(if leaf { "true" } else { "false" })
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Forest, A::Error> {
                let mut all = Vec::new();
                while let Some(Forest(children)) = seq.next_element()? {
                    all.extend(children);
                }
                Ok(Forest(all))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Forest, A::Error> {
                let mut all = Vec::new();
                while let Some((label, Forest(children))) = map.next_entry()? {
                    all.push(InlineTree::Node(label, children));
                }
                Ok(Forest(all))
            }
        }
        from.deserialize_any(Children)
    }
}

/// Writes an inline tree in the shortest form that [`HierarchySpec`] reads back.
pub(super) fn serialize_tree<S: Serializer>(tree: &[InlineTree], to: S) -> Result<S::Ok, S::Error> {
    struct Children<'a>(&'a [InlineTree]);
    impl Serialize for Children<'_> {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            serialize_tree(self.0, to)
        }
    }
    struct Single<'a>(&'a InlineTree);
    impl Serialize for Single<'_> {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            match self.0 {
                InlineTree::Leaf(label) => to.serialize_str(label),
                InlineTree::Node(label, children) => to.collect_map([(label, Children(children))]),
            }
        }
    }
    if !tree.is_empty() && tree.iter().all(|child| matches!(child, InlineTree::Node(..))) {
        let mut map = to.serialize_map(Some(tree.len()))?;
        for child in tree {
            if let InlineTree::Node(label, children) = child {
                map.serialize_entry(label, &Children(children))?;
            }
        }
        return map.end();
    }
    let mut seq = to.serialize_seq(Some(tree.len()))?;
    for child in tree {
        seq.serialize_element(&Single(child))?;
    }
    seq.end()
}

/// Schema of an inline tree.
pub(super) fn tree_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["object", "array"] })
}

/// A number or a text, inside a list of sensitive values.
enum Scalar {
    Number(f64),
    Text(String),
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either;
        impl Visitor<'_> for Either {
            type Value = Scalar;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number or a text")
            }
            fn visit_f64<E: Error>(self, number: f64) -> Result<Scalar, E> {
                Ok(Scalar::Number(number))
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Scalar, E> {
                Ok(Scalar::Number(number as f64))
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<Scalar, E> {
                Ok(Scalar::Number(number as f64))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Scalar, E> {
                Ok(Scalar::Text(text.to_owned()))
            }
        }
        from.deserialize_any(Either)
    }
}

/// Two numbers are an interval, texts are a list, anything else is neither.
fn values_of(scalars: Vec<Scalar>) -> Result<Values, &'static str> {
    let mut numbers = Vec::new();
    let mut texts = Vec::new();
    for scalar in scalars {
        match scalar {
            Scalar::Number(number) => numbers.push(number),
            Scalar::Text(text) => texts.push(text),
        }
    }
    match (numbers.as_slice(), texts.is_empty()) {
        (&[lowest, highest], true) => Ok(Values::Between([lowest, highest])),
        ([], false) => Ok(Values::Listed(texts)),
        _ => Err("expected two numbers, [lowest, highest], or a list of texts"),
    }
}

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        values_of(Vec::deserialize(from)?).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for RangeOf {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Form;
        impl<'de> Visitor<'de> for Form {
            type Value = RangeOf;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("two numbers, the name of a hierarchy node, or a list of texts")
            }
            fn visit_str<E: Error>(self, node: &str) -> Result<RangeOf, E> {
                Ok(RangeOf::Node(node.to_owned()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<RangeOf, A::Error> {
                match Values::deserialize(SeqAccessDeserializer::new(seq))? {
                    Values::Between(ends) => Ok(RangeOf::Between(ends)),
                    Values::Listed(texts) => Ok(RangeOf::Listed(texts)),
                }
            }
        }
        from.deserialize_any(Form)
    }
}

/// The forms of [`Ranges`] as they stand in the file.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(deny_unknown_fields)]
enum RangesForm {
    /// `"identity"`: every value is its own range.
    Word(RangesWord),
    /// The ancestor this many levels above the value.
    Level {
        /// Levels above the value; the value itself is level 0.
        level: u32,
    },
    /// The interval centred on the value.
    Interval {
        /// Total length of the interval.
        interval: f64,
    },
    /// Listed ranges; a value in none of them is its own range.
    Listed(Vec<ListedRange>),
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum RangesWord {
    Identity,
}

/// A range policy written as a table.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct RangesTable {
    level: Option<u32>,
    interval: Option<f64>,
}

impl Serialize for Ranges {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Identity => RangesForm::Word(RangesWord::Identity),
            Self::Level(level) => RangesForm::Level { level: *level },
            Self::Interval(interval) => RangesForm::Interval { interval: *interval },
            Self::Listed(listed) => RangesForm::Listed(listed.clone()),
        }
        .serialize(to)
    }
}

impl JsonSchema for Ranges {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Ranges".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        RangesForm::json_schema(generator)
    }
}

impl<'de> Deserialize<'de> for Ranges {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Form;
        impl<'de> Visitor<'de> for Form {
            type Value = Ranges;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"identity\", { level = ... }, { interval = ... } or a list of { values, range }")
            }
            fn visit_str<E: Error>(self, word: &str) -> Result<Ranges, E> {
                let word = serde::de::value::StrDeserializer::new(word);
                RangesWord::deserialize(word).map(|RangesWord::Identity| Ranges::Identity)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Ranges, A::Error> {
                match RangesTable::deserialize(MapAccessDeserializer::new(map))? {
                    RangesTable { level: Some(level), interval: None } => Ok(Ranges::Level(level)),
                    RangesTable { level: None, interval: Some(interval) } => Ok(Ranges::Interval(interval)),
                    _ => Err(A::Error::custom("ranges need exactly one of `level` and `interval`")),
                }
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Ranges, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq)).map(Ranges::Listed)
            }
        }
        from.deserialize_any(Form)
    }
}
