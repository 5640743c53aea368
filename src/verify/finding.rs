//! What a verification finds: a rule, a count and what that means, never a value.

use crate::error::{Error, Result};

/// A rule that a release breaks, and how often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: String,
    /// How many rows, classes or files break it.
    pub count: u64,
    /// What that means.
    pub message: String,
}

impl Finding {
    /// A finding.
    pub(crate) fn new(rule: impl Into<String>, count: u64, message: impl Into<String>) -> Self {
        Self { rule: rule.into(), count, message: message.into() }
    }

    /// The finding about a number of things, if there are any.
    pub(crate) fn if_any(rule: &str, count: u64, message: impl FnOnce(u64) -> String) -> Option<Self> {
        (count > 0).then(|| Self::new(rule, count, message(count)))
    }

    /// All findings as one error.
    pub fn ensure_none(findings: &[Self]) -> Result<()> {
        if findings.is_empty() {
            return Ok(());
        }
        let lines: Vec<String> =
            findings.iter().map(|finding| format!("{}: {}", finding.rule, finding.message)).collect();
        Err(Error::privacy(format!("the release does not keep its promises\n  {}", lines.join("\n  "))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn nothing_is_found_of_nothing() {
        let found = |count| Finding::if_any("k", count, |count| format!("{count} classes are small"));
        assert_eq!(found(0), None);
        assert_eq!(found(3), Some(Finding::new("k", 3, "3 classes are small")));
    }

    #[test]
    fn findings_are_one_error_that_lists_them() {
        assert!(Finding::ensure_none(&[]).is_ok());
        let findings = [Finding::new("k", 2, "2 classes are small"), Finding::new("files", 1, "`a` is missing")];
        let error = Finding::ensure_none(&findings).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Privacy);
        assert_eq!(
            error.message(),
            "the release does not keep its promises\n  k: 2 classes are small\n  files: `a` is missing"
        );
    }
}
