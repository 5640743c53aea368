//! What can be wrong with a hierarchy. Labels of a hierarchy are configuration, not data, so errors may name them.

use std::fmt;

use thiserror::Error;

/// How many problems of one hierarchy are spelt out.
const SHOWN: usize = 10;

/// A hierarchy that cannot be used.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum HierarchyError {
    /// No lines, or a tree without values.
    #[error("the hierarchy is empty")]
    Empty,
    /// More leaves than codes.
    #[error("the hierarchy has {0} leaves, the most is {max}", max = super::MAX_LEAVES)]
    TooManyLeaves(usize),
    /// The lines do not form one tree.
    #[error("{}", list(.0))]
    Invalid(Vec<LineProblem>),
    /// A ladder, calendar or mask with impossible levels.
    #[error("{0}")]
    Levels(String),
}

/// One problem of a level file, and the line it is on (none for a tree in the job file).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineProblem {
    /// Line number, from 1.
    pub line: Option<u64>,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for LineProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

fn list(problems: &[LineProblem]) -> String {
    let mut shown: Vec<String> = problems.iter().take(SHOWN).map(LineProblem::to_string).collect();
    if problems.len() > SHOWN {
        shown.push(format!("and {} more", problems.len() - SHOWN));
    }
    shown.join("; ")
}
