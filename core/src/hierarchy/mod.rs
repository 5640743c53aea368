//! Hierarchies: how a value becomes a less precise one that still covers it.
//!
//! Four kinds, each in its own file. All of them can do three things: check themselves, turn into a
//! [`domain::Tree`](crate::model::Tree) over codes (what the search sees), and name or recognise a published value
//! (what the release and its verification see).
//!
//! | kind | made from | a published value |
//! |---|---|---|
//! | [`LevelTree`] | level CSV, or a tree in the job file | the name of a node |
//! | [`Ladder`] | widths, bounds or quantiles of numbers | `[20, 25)` |
//! | [`Calendar`] | calendar units of dates and timestamps | `2024-Q1` |
//! | [`Mask`] | the characters of a code | `NW1*` |

mod buckets;
mod calendar;
mod civil;
mod decimal;
mod draw;
mod error;
mod label;
mod ladder;
mod level_rows;
mod levels;
mod mask;

pub use calendar::{Calendar, Period, Unit};
pub use civil::{date_of, day_of};
pub use decimal::Decimal;
pub use draw::Outline;
pub use error::{HierarchyError, LineProblem};
pub use label::{IntervalLabel, SetLabel};
pub use ladder::{Bucket, Ladder};
pub use level_rows::InlineTree;
pub use levels::LevelTree;
pub use mask::{End, Mask};

/// The name of the top of a hierarchy that has no name of its own for it.
pub const TOP: &str = "*";

/// Maximum number of leaves of a hierarchy: they must fit a [`Code`](crate::model::Code) with room for null and unknown.
pub const MAX_LEAVES: usize = 60_000;

/// Maximum number of levels of a hierarchy above its values.
pub const MAX_LEVELS: usize = 100;

/// A hierarchy of any kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Hierarchy {
    /// Named nodes over listed values.
    Levels(LevelTree),
    /// Nested intervals of numbers.
    Ladder(Ladder),
    /// Nested calendar units.
    Calendar(Calendar),
    /// Masked characters.
    Mask(Mask),
}
