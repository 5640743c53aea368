//! The options of a method as data: name, allowed values, and the value that was given.
//!
//! A method declares its options as [`Key`]s beside its code. The job file's `[method]` table, its checks and its JSON
//! schema are generated from them, so a new option is declared in one place.

use std::collections::BTreeMap;

/// The values that an option accepts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// A number from 0 to 1.
    Share,
    /// A number of at least so much.
    Number {
        /// The least.
        least: f64,
    },
    /// A whole number of at least so much.
    Count {
        /// The least.
        least: u64,
    },
    /// True or false.
    Switch,
    /// One of several words, each with its meaning.
    Word(&'static [(&'static str, &'static str)]),
    /// The name of a column.
    Column,
    /// Names of columns.
    Columns,
}

/// An option: its name in the job file, its purpose, and its accepted values. Methods may share one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Key {
    /// Name in the job file.
    pub name: &'static str,
    /// Its purpose and its default.
    pub about: &'static str,
    /// The values that it accepts.
    pub kind: Kind,
}

impl Key {
    /// An option.
    pub const fn new(name: &'static str, about: &'static str, kind: Kind) -> Self {
        Self { name, about, kind }
    }
}

/// The value of an option.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A number.
    Number(f64),
    /// A whole number.
    Count(u64),
    /// True or false.
    Switch(bool),
    /// A word or the name of a column.
    Text(String),
    /// Names of columns.
    List(Vec<String>),
}

/// The options that a job has set.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options(BTreeMap<&'static str, Value>);

impl Options {
    /// Sets an option.
    pub fn set(&mut self, key: &Key, value: Value) {
        self.0.insert(key.name, value);
    }

    /// Returns the options with one more.
    pub fn with_option(mut self, key: &Key, value: Value) -> Self {
        self.set(key, value);
        self
    }

    /// Returns the options without one.
    pub fn without_option(mut self, key: &Key) -> Self {
        self.0.remove(key.name);
        self
    }

    /// Whether an option is set.
    pub fn has(&self, key: &Key) -> bool {
        self.0.contains_key(key.name)
    }

    /// All options that are set, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.0.iter().map(|(name, value)| (*name, value))
    }

    /// A number.
    pub fn number(&self, key: &Key) -> Option<f64> {
        match self.0.get(key.name)? {
            Value::Number(number) => Some(*number),
            Value::Count(count) => Some(*count as f64),
            _ => None,
        }
    }

    /// A whole number.
    pub fn count(&self, key: &Key) -> Option<usize> {
        match self.0.get(key.name)? {
            Value::Count(count) => usize::try_from(*count).ok(),
            _ => None,
        }
    }

    /// True or false.
    pub fn switch(&self, key: &Key) -> Option<bool> {
        match self.0.get(key.name)? {
            Value::Switch(on) => Some(*on),
            _ => None,
        }
    }

    /// A word or the name of a column.
    pub fn text(&self, key: &Key) -> Option<&str> {
        match self.0.get(key.name)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Names of columns.
    pub fn list(&self, key: &Key) -> Option<&[String]> {
        match self.0.get(key.name)? {
            Value::List(list) => Some(list),
            _ => None,
        }
    }
}

impl Kind {
    /// Describes the accepted values, for messages.
    pub fn describe_expected(&self) -> String {
        match self {
            Self::Share => "a number from 0 to 1".into(),
            Self::Number { least } => format!("a number of at least {least}"),
            Self::Count { least } => format!("a whole number of at least {least}"),
            Self::Switch => "true or false".into(),
            Self::Word(words) => words.iter().map(|(word, _)| format!("`{word}`")).collect::<Vec<_>>().join(" or "),
            Self::Column => "the name of a column".into(),
            Self::Columns => "names of columns".into(),
        }
    }

    /// The error of a value of the right type that is out of range.
    pub fn range_error(&self, value: &Value) -> Option<String> {
        match (self, value) {
            (Self::Share, Value::Number(share)) if !(0.0..=1.0).contains(share) => {
                Some(format!("must be from 0 to 1, got {share}"))
            }
            (Self::Number { least }, Value::Number(number)) if !(number.is_finite() && number >= least) => {
                Some(format!("must be at least {least}, got {number}"))
            }
            (Self::Count { least }, Value::Count(count)) if count < least => {
                Some(format!("must be at least {least}, got {count}"))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_told_from_their_bounds() {
        assert_eq!(Kind::Share.range_error(&Value::Number(1.0)), None);
        assert_eq!(Kind::Share.range_error(&Value::Number(1.5)).unwrap(), "must be from 0 to 1, got 1.5");
        assert!(Kind::Number { least: 1.0 }.range_error(&Value::Number(f64::NAN)).is_some());
        assert!(Kind::Count { least: 2 }.range_error(&Value::Count(1)).is_some());
    }

    #[test]
    fn options_answer_in_the_type_they_were_set_in() {
        let (s, sort) = (Key::new("s", "", Kind::Count { least: 1 }), Key::new("sort", "", Kind::Switch));
        let options = Options::default().with_option(&s, Value::Count(7)).with_option(&sort, Value::Switch(false));
        assert_eq!((options.count(&s), options.number(&s), options.switch(&sort)), (Some(7), Some(7.0), Some(false)));
        assert_eq!((options.text(&s), options.has(&Key::new("x", "", Kind::Share))), (None, false));
    }
}
