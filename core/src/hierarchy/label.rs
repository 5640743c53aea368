//! The grammar of published labels: what a value of text or of numbers becomes when a class publishes it as text.
//!
//! ```text
//! label   = "*"                            everything
//!         | "{" member { ", " member } "}" one of these texts
//!         | "[" low ", " high "]"          from `low` to `high`, both included
//!         | "[" low ", " high ")"          from `low`, included, to `high`, left out
//!         | "< " high | ">= " low          the same without one of the ends
//!         | value                          the value itself
//! member  = text                           one that neither begins with a quote nor holds ", "
//!         | '"' text '"'                   any, its own quotes doubled
//! ```
//!
//! Which of them a column can hold follows from its type: text has sets ([`SetLabel`]), whatever has an order has intervals
//! ([`IntervalLabel`]). A single text that would be read as something else, such as `{a}` or `*`, is a set of one quoted
//! member. What a label means is therefore never a matter of the values that the column happens to hold. Names of nodes,
//! masks and units of the calendar are grammars of their hierarchies.

use std::borrow::Cow;
use std::fmt;

use super::TOP;

/// A published label of a text column without a hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetLabel<'a> {
    /// Every text, and null with it.
    Top,
    /// One of these.
    Members(Vec<Cow<'a, str>>),
}

impl<'a> SetLabel<'a> {
    /// The label of some texts.
    pub fn of_members(members: impl IntoIterator<Item = &'a str>) -> Self {
        Self::Members(members.into_iter().map(Cow::Borrowed).collect())
    }

    /// Reads a label. Every text is one: what is no set is a single value.
    pub fn parse(label: &'a str) -> Self {
        if label == TOP {
            return Self::Top;
        }
        let inside = label.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        Self::Members(inside.and_then(split_members).unwrap_or_else(|| vec![Cow::Borrowed(label)]))
    }

    /// The members; none of the label that stands for everything.
    pub fn members(&self) -> Option<&[Cow<'a, str>]> {
        match self {
            Self::Top => None,
            Self::Members(members) => Some(members),
        }
    }
}

impl fmt::Display for SetLabel<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Top => f.write_str(TOP),
            Self::Members(members) => match members.as_slice() {
                [single] if !is_ambiguous(single) => f.write_str(single),
                [single] => write!(f, "{{{}}}", quote_member(single)),
                several => {
                    f.write_str("{")?;
                    for (place, member) in several.iter().enumerate() {
                        let separator = if place > 0 { ", " } else { "" };
                        let quoted = member.starts_with('"') || member.contains(", ");
                        let member =
                            if quoted { Cow::Owned(quote_member(member)) } else { Cow::Borrowed(member.as_ref()) };
                        write!(f, "{separator}{member}")?;
                    }
                    f.write_str("}")
                }
            },
        }
    }
}

/// Whether a text by itself would be read as something else.
fn is_ambiguous(text: &str) -> bool {
    text == TOP || (text.starts_with('{') && text.ends_with('}') && text.len() > 1)
}

fn quote_member(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// The members of what stands between braces; none when that is no list of members, but a text that happens to have braces.
fn split_members(inside: &str) -> Option<Vec<Cow<'_, str>>> {
    let mut members = Vec::new();
    let mut rest = inside;
    loop {
        let (member, behind) = match rest.strip_prefix('"') {
            Some(quoted) => split_quoted(quoted)?,
            None => {
                let end = rest.find(", ").unwrap_or(rest.len());
                (Cow::Borrowed(&rest[..end]), &rest[end..])
            }
        };
        members.push(member);
        if behind.is_empty() {
            return Some(members);
        }
        rest = behind.strip_prefix(", ")?;
    }
}

/// A member up to its closing quote, and what follows that.
fn split_quoted(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let mut from = 0;
    loop {
        let end = from + text[from..].find('"')?;
        if text[end + 1..].starts_with('"') {
            from = end + 2;
            continue;
        }
        let member = &text[..end];
        let member =
            if member.contains('"') { Cow::Owned(member.replace("\"\"", "\"")) } else { Cow::Borrowed(member) };
        return Some((member, &text[end + 1..]));
    }
}

/// A published label of a column whose values have an order, with its ends as they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntervalLabel<'a> {
    /// Every value, and null with it.
    Top,
    /// A single value, or a unit of the calendar.
    Value(&'a str),
    /// From the first to the second, both included.
    Closed(&'a str, &'a str),
    /// From the first, included, to the second, left out.
    HalfOpen(&'a str, &'a str),
    /// Everything below.
    Below(&'a str),
    /// This and everything above.
    AtLeast(&'a str),
}

impl<'a> IntervalLabel<'a> {
    /// The label from one value to another, which is the value itself when there is one only.
    pub fn closed(low: &'a str, high: &'a str) -> Self {
        if low == high { Self::Value(low) } else { Self::Closed(low, high) }
    }

    /// Reads a label. Every text is one: what is no interval is a single value.
    pub fn parse(label: &'a str) -> Self {
        if label == TOP {
            return Self::Top;
        }
        if let Some(high) = label.strip_prefix("< ") {
            return Self::Below(high);
        }
        if let Some(low) = label.strip_prefix(">= ") {
            return Self::AtLeast(low);
        }
        let ends = |close: char| label.strip_prefix('[')?.strip_suffix(close)?.split_once(", ");
        match (ends(']'), ends(')')) {
            (Some((low, high)), _) => Self::Closed(low, high),
            (_, Some((low, high))) => Self::HalfOpen(low, high),
            _ => Self::Value(label),
        }
    }
}

impl fmt::Display for IntervalLabel<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Top => f.write_str(TOP),
            Self::Value(value) => f.write_str(value),
            Self::Closed(low, high) => write!(f, "[{low}, {high}]"),
            Self::HalfOpen(low, high) => write!(f, "[{low}, {high})"),
            Self::Below(high) => write!(f, "< {high}"),
            Self::AtLeast(low) => write!(f, ">= {low}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Texts made of what the grammar is made of.
    fn hostile_text() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            Just("{"),
            Just("}"),
            Just("\""),
            Just("\"\""),
            Just(", "),
            Just(","),
            Just(" "),
            Just("*"),
            Just("a"),
            Just("ä"),
            Just("["),
            Just(")"),
            Just("\\"),
            Just("< "),
        ];
        proptest::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn sets_are_read_as_they_were_written(members in proptest::collection::vec(hostile_text(), 1..5)) {
            let label = SetLabel::of_members(members.iter().map(String::as_str));
            let text = label.to_string();
            prop_assert_eq!(SetLabel::parse(&text), label, "{}", text);
        }

        /// Two different sets never share a label, whatever their members hold.
        #[test]
        fn different_sets_have_different_labels(
            one in proptest::collection::vec(hostile_text(), 1..4),
            other in proptest::collection::vec(hostile_text(), 1..4),
        ) {
            let text = |members: &[String]| SetLabel::of_members(members.iter().map(String::as_str)).to_string();
            prop_assert_eq!(text(&one) == text(&other), one == other);
        }

        /// Whoever has changed a file must not stop its reader.
        #[test]
        fn every_text_is_a_label(text in hostile_text()) {
            prop_assert!(SetLabel::parse(&text).members().is_none_or(|members| !members.is_empty()));
            IntervalLabel::parse(&text);
        }

        #[test]
        fn intervals_are_read_as_they_were_written(low in "-?[0-9]{1,4}(\\.[0-9]{1,3})?", high in "[0-9T:-]{1,12}") {
            let (low, high) = (low.as_str(), high.as_str());
            use IntervalLabel::{AtLeast, Below, Closed, HalfOpen, Top, Value};
            for label in [Top, Value(low), Closed(low, high), HalfOpen(low, high), Below(high), AtLeast(low)] {
                let text = label.to_string();
                prop_assert_eq!(IntervalLabel::parse(&text), label, "{}", text);
            }
        }
    }

    #[test]
    fn labels_look_as_documented() {
        let text = |members: &[&str]| SetLabel::of_members(members.iter().copied()).to_string();
        assert_eq!(text(&["a", "b c"]), "{a, b c}");
        assert_eq!(text(&["Smith, John", "Jones"]), "{\"Smith, John\", Jones}");
        assert_eq!(text(&["say \"hi\", he did", "\"x"]), "{\"say \"\"hi\"\", he did\", \"\"\"x\"}");
        assert_eq!(
            (text(&["a, b"]), text(&["{a}"]), text(&["*"])),
            ("a, b".into(), "{\"{a}\"}".into(), "{\"*\"}".into())
        );
        assert_eq!((text(&["{"]), text(&[""]), text(&["\"x"])), ("{".into(), String::new(), "\"x".into()));
        assert_eq!(SetLabel::Top.to_string(), "*");
        assert_eq!(IntervalLabel::closed("7", "7").to_string(), "7");
        assert_eq!(IntervalLabel::closed("7", "9").to_string(), "[7, 9]");
    }
}
