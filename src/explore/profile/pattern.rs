//! The shape of the values of a text column, guessed from a sample of them.

/// Shapes that reveal what a text is, whatever its column is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pattern {
    /// `somebody@example.org`.
    Email,
    /// `+44 20 7946 0000`.
    Phone,
    /// `GB82 WEST 1234 5698 7654 32`.
    Iban,
    /// `123e4567-e89b-12d3-a456-426614174000`, or a long number in base 16.
    Uuid,
    /// `192.0.2.1`.
    Ip,
    /// `2024-03-07`, `07.03.2024`, `3/7/24`.
    Date,
    /// Short codes of one length, digits or capitals: `23417`, `AB12`.
    Code,
    /// Many words: `came in with a cough`.
    Prose,
}

impl Pattern {
    /// What such values are.
    pub(super) fn describe_kind(self) -> &'static str {
        match self {
            Self::Email => "e-mail addresses",
            Self::Phone => "telephone numbers",
            Self::Iban => "bank accounts",
            Self::Uuid => "long random numbers",
            Self::Ip => "network addresses",
            Self::Date => "dates",
            Self::Code => "codes of one length",
            Self::Prose => "whole sentences",
        }
    }

    /// Whether such a value points at one person, account or device on its own.
    pub(super) fn is_identifying(self) -> bool {
        matches!(self, Self::Email | Self::Phone | Self::Iban | Self::Uuid | Self::Ip)
    }
}

/// A shape and how to recognise it.
type Test = (Pattern, fn(&str) -> bool);

/// Share of the values that must have a shape.
const MOST: f64 = 0.9;

/// The shape that nearly all of the values have.
pub(super) fn find_pattern<'a>(values: impl Iterator<Item = &'a str> + Clone) -> Option<Pattern> {
    let total = values.clone().count();
    if total == 0 {
        return None;
    }
    let tests: [Test; 7] = [
        (Pattern::Email, is_email),
        (Pattern::Uuid, is_uuid),
        (Pattern::Ip, is_ip),
        (Pattern::Iban, is_iban),
        (Pattern::Date, is_date),
        (Pattern::Phone, is_phone),
        (Pattern::Prose, is_prose),
    ];
    let nearly_all =
        |fits: fn(&str) -> bool| values.clone().filter(|value| fits(value)).count() as f64 >= MOST * total as f64;
    let found = tests.into_iter().find(|(_, fits)| nearly_all(*fits)).map(|(pattern, _)| pattern);
    found.or_else(|| (total >= 20 && nearly_all(is_code) && one_length(values.clone())).then_some(Pattern::Code))
}

fn is_email(value: &str) -> bool {
    let Some((local, domain)) = value.split_once('@') else { return false };
    !local.is_empty() && !value.contains(char::is_whitespace) && domain.contains('.') && !domain.contains('@')
}

fn is_uuid(value: &str) -> bool {
    let digits = value.bytes().filter(u8::is_ascii_hexdigit).count();
    digits >= 24 && value.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

fn is_ip(value: &str) -> bool {
    value.parse::<std::net::IpAddr>().is_ok()
}

fn is_iban(value: &str) -> bool {
    let plain: Vec<u8> = value.bytes().filter(|byte| *byte != b' ').collect();
    (15..=34).contains(&plain.len())
        && plain[..2].iter().all(u8::is_ascii_uppercase)
        && plain[2..4].iter().all(u8::is_ascii_digit)
        && plain[4..].iter().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
}

fn is_date(value: &str) -> bool {
    let day = value.split(['T', ' ']).next().unwrap_or_default();
    let Some(separator) = day.chars().find(|c| "-./".contains(*c)) else { return false };
    let parts: Vec<&str> = day.split(separator).collect();
    let number = |part: &&str| (1..=4).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    let [first, second, third] = parts[..] else { return false };
    parts.iter().all(number) && second.len() <= 2 && (first.len() <= 2 || third.len() <= 2)
}

fn is_phone(value: &str) -> bool {
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let marked = value.starts_with('+') || value.contains([' ', '-', '(', '/']);
    (8..=15).contains(&digits) && marked && value.chars().all(|c| c.is_ascii_digit() || "+ -()/.".contains(c))
}

fn is_prose(value: &str) -> bool {
    value.split_whitespace().count() >= 5
}

fn is_code(value: &str) -> bool {
    let plain = value.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase() || b" -".contains(&byte));
    plain && (3..=12).contains(&value.len()) && value.bytes().any(|byte| byte.is_ascii_digit())
}

/// Whether lengths differ by two characters at most.
fn one_length<'a>(values: impl Iterator<Item = &'a str> + Clone) -> bool {
    let lengths = values.map(str::len);
    lengths.clone().max().unwrap_or(0) - lengths.min().unwrap_or(0) <= 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_told_apart() {
        let of = |values: &[&str]| find_pattern(values.iter().copied());
        assert_eq!(of(&["a.b@c.org", "x@y.co.uk"]), Some(Pattern::Email));
        assert_eq!(of(&["+44 20 7946 0000", "020 7946 0000"]), Some(Pattern::Phone));
        assert_eq!(of(&["GB82 WEST 1234 5698 7654 32"]), Some(Pattern::Iban));
        assert_eq!(of(&["123e4567-e89b-12d3-a456-426614174000"]), Some(Pattern::Uuid));
        assert_eq!(of(&["192.0.2.1", "2001:db8::1"]), Some(Pattern::Ip));
        assert_eq!(of(&["2024-03-07", "2024-03-07T12:00:00", "7.3.2024", "3/7/24"]), Some(Pattern::Date));
        assert_eq!(of(&["he came in with a cough"]), Some(Pattern::Prose));
        assert_eq!(of(&["nurse", "teacher", "1.2.3"]), None);
        let codes: Vec<String> = (0..50).map(|n| format!("{:05}", n * 731)).collect();
        assert_eq!(find_pattern(codes.iter().map(String::as_str)), Some(Pattern::Code));
    }

    #[test]
    fn one_stray_value_in_ten_is_let_pass() {
        let mut values = vec!["a@b.org"; 9];
        values.push("none");
        assert_eq!(find_pattern(values.iter().copied()), Some(Pattern::Email));
        values.push("unknown");
        assert_eq!(find_pattern(values.iter().copied()), None);
    }
}
