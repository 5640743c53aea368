//! Problems of a job.

use std::fmt;

/// The severity of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// For information.
    Note,
    /// The job runs, but probably not as intended.
    Warning,
    /// The job cannot run.
    Error,
}

/// One problem of a job file, at a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Its severity.
    pub severity: Severity,
    /// Line of the job file, from 1, where it is known.
    pub line: Option<usize>,
    /// The key it is about, such as `privacy.k`.
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// Advice on what to do about it.
    pub help: Option<String>,
}

impl Problem {
    /// Creates an error at a key.
    pub fn error(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Error, line: None, key: key.into(), message: message.into(), help: None }
    }

    /// Creates a warning at a key.
    pub fn warning(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(key, message) }
    }

    /// Creates a note at a key.
    pub fn note(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Note, ..Self::error(key, message) }
    }

    /// Adds advice on what to do about it.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Whether the job cannot run.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.severity {
            Severity::Error => {}
            Severity::Warning => f.write_str("warning: ")?,
            Severity::Note => f.write_str("note: ")?,
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, "\n  help: {help}"),
            None => Ok(()),
        }
    }
}

/// The candidate most similar to a word, if any is similar.
pub(crate) fn nearest_word<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let likeness = |candidate: &str| strsim::jaro_winkler(&word.to_lowercase(), &candidate.to_lowercase());
    candidates
        .into_iter()
        .map(|candidate| (likeness(candidate), candidate))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_with_key_and_help() {
        let problem = Problem::error("privacy.k", "must be at least 2, got 1");
        assert_eq!(problem.to_string(), "privacy.k: must be at least 2, got 1");
        let warning = Problem::warning("privacy.k", "small").help("use 5");
        assert_eq!(warning.to_string(), "warning: privacy.k: small\n  help: use 5");
        assert!(problem.is_error() && !warning.is_error());
    }

    #[test]
    fn the_nearest_word_is_found() {
        assert_eq!(nearest_word("heirarchy", ["role", "hierarchy", "publish"]), Some("hierarchy"));
        assert_eq!(nearest_word("zzz", ["role", "hierarchy"]), None);
    }
}
