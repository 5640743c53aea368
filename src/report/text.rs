//! Numbers and names as the page writes them.

/// Text that is safe between tags and in attributes.
pub(crate) fn escape_html(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

/// A count with its thousands apart.
pub(crate) fn format_count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A share as a percentage.
pub(crate) fn format_share(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".into(),
        small if small < 0.1 => "< 0.1 %".into(),
        percent => format!("{percent:.1} %"),
    }
}

/// A score that may not be there.
pub(crate) fn format_optional(score: Option<f64>) -> String {
    score.map_or("none".into(), |score| format!("{score:.4}"))
}

/// A number in as few digits as identify it.
pub(crate) fn format_number(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_as_people_do() {
        assert_eq!((format_count(999), format_count(1_234_567)), ("999".into(), "1,234,567".into()));
        assert_eq!(
            (format_share(0.0), format_share(0.0004), format_share(0.256)),
            ("0 %".into(), "< 0.1 %".into(), "25.6 %".into())
        );
        assert_eq!(
            (format_number(0.5), format_number(20.0), format_number(0.12345)),
            ("0.5".into(), "20".into(), "0.1235".into())
        );
    }
}
