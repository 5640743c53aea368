//! What can be wrong with a hierarchy. Its labels are values of the data, or stand for them: people who hold the file may see
//! them quoted, logs of a run may not.

use std::fmt;

use thiserror::Error;

/// Number of problems of one hierarchy that are listed.
const SHOWN: usize = 10;

/// A hierarchy that cannot be used.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum HierarchyError {
    /// No lines, or a tree without values.
    #[error("the hierarchy is empty")]
    Empty,
    /// More leaves than codes.
    #[error("the hierarchy has {0} leaves, but the limit is {max}", max = super::MAX_LEAVES)]
    TooManyLeaves(usize),
    /// More levels than a hierarchy may have.
    #[error("the hierarchy has {0} levels, but the limit is {max}", max = super::MAX_LEVELS)]
    TooManyLevels(usize),
    /// The lines do not form one tree.
    #[error("{}", list_problems(.0, LineProblem::to_string))]
    Invalid(Vec<LineProblem>),
    /// A ladder, calendar or mask with impossible levels.
    #[error("{0}")]
    Levels(String),
}

impl HierarchyError {
    /// The error in words that quote no label of the hierarchy; its lines say where they stand.
    pub fn without_labels(&self) -> String {
        match self {
            Self::Invalid(problems) => {
                list_problems(problems, |problem| locate_message(problem.line, &problem.discreet))
            }
            other => other.to_string(),
        }
    }
}

/// One problem of a level file, and the line it is on (none for a tree in the job file).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineProblem {
    /// Line number, from 1.
    pub line: Option<u64>,
    /// What is wrong.
    pub message: String,
    /// The same without the labels that it is about.
    pub discreet: String,
}

impl LineProblem {
    /// A problem whose message needs no label.
    pub(crate) fn new(line: Option<u64>, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { line, discreet: message.clone(), message }
    }

    /// A problem with one message that quotes labels and one that does not.
    pub(crate) fn quoting(line: Option<u64>, message: String, discreet: String) -> Self {
        Self { line, message, discreet }
    }
}

impl fmt::Display for LineProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&locate_message(self.line, &self.message))
    }
}

fn locate_message(line: Option<u64>, message: &str) -> String {
    match line {
        Some(line) => format!("line {line}: {message}"),
        None => message.to_owned(),
    }
}

fn list_problems(problems: &[LineProblem], text: impl Fn(&LineProblem) -> String) -> String {
    let mut shown: Vec<String> = problems.iter().take(SHOWN).map(text).collect();
    if problems.len() > SHOWN {
        shown.push(format!("and {} more", problems.len() - SHOWN));
    }
    shown.join("; ")
}
