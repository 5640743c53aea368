//! The guess of a column's role: from its name, its type, how many values it has and what they look like.
//!
//! When in doubt, it chooses the more protective role: unknown columns are generalised if possible and dropped otherwise.

use datafusion::arrow::datatypes::DataType;

use super::column_profiler::ColumnStats;
use super::names::{find_hint, is_number_of};
use super::pattern::{Pattern, find_pattern};
use crate::binding::{is_number, is_time};
use crate::policy::Role;

/// The guessed role of a column, and the reason.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Guess {
    pub role: Role,
    pub reason: String,
    /// Whether values are codes whose first characters mean most.
    pub code: bool,
}

/// Share of distinct values above which a text identifies people on its own.
const TELLING: f64 = 0.5;

/// Share of distinct values above which whole numbers are taken for numbers of rows.
const NUMBERED: f64 = 0.95;

/// Rows below which the share of distinct values means nothing.
const FEW_ROWS: u64 = 50;

/// Guesses the role of a column.
pub(super) fn guess_role(name: &str, data_type: &DataType, stats: &ColumnStats) -> Guess {
    let values = stats.rows - stats.nulls;
    let share = stats.distinct as f64 / values.max(1) as f64;
    let guess = |role, reason: String| Guess { role, reason, code: false };
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    if values == 0 {
        return guess(Role::Identifier, "no values at all: left out".into());
    }
    if is_nested(data_type) {
        return guess(Role::Identifier, "nested values cannot be generalised: left out until you decide".into());
    }
    if stats.distinct == 1 && stats.nulls == 0 {
        return guess(Role::Kept, "the same value in every row".into());
    }
    let look = find_pattern(stats.sample.iter().map(String::as_str));
    if let Some(look) = look.filter(|look| look.is_identifying()) {
        return guess(Role::Identifier, format!("values look like {}", look.describe_kind()));
    }
    let text = is_text(data_type);
    let telling = share > TELLING && values >= FEW_ROWS;
    let hint = find_hint(name);
    let numbered = is_number_of(name);
    if let Some(hint) = hint.filter(|hint| hint.role == Role::Identifier) {
        return guess(Role::Identifier, format!("its name says `{}`: {}", hint.word, hint.what));
    }
    // A number of something is an identifier, unless it repeats as codes of places or jobs do.
    if numbered && (telling || hint.is_none()) && hint.is_none_or(|hint| !hint.code) {
        let reason = if telling { percent(share) + " of its values differ, and" } else { String::new() };
        return guess(Role::Identifier, format!("{reason} its name is that of a number").trim_start().to_owned());
    }
    if is_time(data_type) && telling && matches!(data_type, DataType::Timestamp(..)) {
        return guess(Role::Identifier, format!("times so precise that {} of them differ", percent(share)));
    }
    if let Some(hint) = hint {
        let dated = hint.role == Role::Sensitive && is_time(data_type);
        let role = if dated { Role::Quasi } else { hint.role };
        if role == Role::Quasi && text && telling && !hint.code && look != Some(Pattern::Date) {
            let reason = format!("its name says `{}`, but {} of its values differ", hint.word, percent(share));
            return guess(Role::Identifier, reason);
        }
        let code = hint.code || (text && look == Some(Pattern::Code));
        return Guess { role, reason: format!("its name says `{}`: {}", hint.word, hint.what), code };
    }
    match look {
        Some(Pattern::Prose) => return guess(Role::Identifier, "free text, which may name people".into()),
        Some(Pattern::Date) => return guess(Role::Quasi, "values look like dates".into()),
        Some(Pattern::Code) if !telling => {
            return Guess { role: Role::Quasi, reason: "values look like codes of one length".into(), code: true };
        }
        _ => {}
    }
    if text && telling {
        return guess(Role::Identifier, format!("text of which {} differs", percent(share)));
    }
    if data_type.is_integer() && share > NUMBERED && values >= FEW_ROWS {
        return guess(Role::Identifier, format!("whole numbers of which {} differ", percent(share)));
    }
    let what = match data_type {
        _ if is_time(data_type) => "a date: somebody may know it from elsewhere",
        _ if is_number(data_type) => "of unknown meaning: generalised to be safe",
        _ => "few values of unknown meaning: generalised to be safe",
    };
    guess(Role::Quasi, what.into())
}

/// Whether a type can be neither generalised nor guarded.
pub(super) fn is_nested(data_type: &DataType) -> bool {
    !(is_text(data_type) || is_number(data_type) || is_time(data_type) || *data_type == DataType::Boolean)
}

/// Whether a type is text, dictionaries of text included.
pub(super) fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => is_text(values),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::TimeUnit;

    use super::*;

    fn stats(rows: u64, distinct: u64, sample: &[&str]) -> ColumnStats {
        let sample = sample.iter().map(|value| (*value).to_owned()).collect();
        ColumnStats { rows, nulls: 0, distinct, sample, ..ColumnStats::default() }
    }

    fn role(name: &str, data_type: DataType, distinct: u64, sample: &[&str]) -> Role {
        guess_role(name, &data_type, &stats(1000, distinct, sample)).role
    }

    #[test]
    fn content_tells_when_the_name_does_not() {
        assert_eq!(role("c7", DataType::Utf8, 1000, &["a@b.org", "c@d.org"]), Role::Identifier);
        assert_eq!(role("c7", DataType::Utf8, 990, &["x", "y"]), Role::Identifier);
        assert_eq!(role("c7", DataType::Utf8, 5, &["x", "y"]), Role::Quasi);
        assert_eq!(role("c7", DataType::Int64, 1000, &[]), Role::Identifier);
        assert_eq!(role("c7", DataType::Float64, 1000, &[]), Role::Quasi);
        assert_eq!(role("c7", DataType::Utf8, 1, &["x"]), Role::Kept);
        assert_eq!(role("c7", DataType::Utf8, 900, &["he came in with a cough"]), Role::Identifier);
    }

    #[test]
    fn a_number_that_repeats_is_a_code() {
        assert_eq!(role("person_id", DataType::Int64, 1000, &[]), Role::Identifier);
        assert_eq!(role("state_id", DataType::Int64, 50, &[]), Role::Quasi);
        assert_eq!(role("household_no", DataType::Int64, 900, &[]), Role::Identifier);
    }

    #[test]
    fn exact_times_identify_and_dates_of_diagnosis_are_quasi() {
        let time = DataType::Timestamp(TimeUnit::Microsecond, None);
        assert_eq!(role("updated_at", time, 990, &[]), Role::Identifier);
        assert_eq!(role("diagnosis_date", DataType::Date32, 300, &[]), Role::Quasi);
        assert_eq!(role("zip", DataType::Utf8, 800, &["12345"]), Role::Quasi);
    }

    #[test]
    fn a_reason_never_holds_a_value() {
        let secret = "b7kanarienvogel@example.org";
        let found = guess_role("c7", &DataType::Utf8, &stats(1000, 1000, &[secret]));
        assert!(!found.reason.contains(secret));
    }
}
