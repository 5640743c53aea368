//! The representation that makes grouping fast: codes, axes, covers and the encoded table.
//!
//! Every quasi-identifier value becomes an order-preserving 16-bit [`Code`] on an [`Axis`]. A group of rows is then
//! one interval (or one small set) per axis, its [`Cover`], and everything the algorithms ask - how much information
//! does this group lose, what would one more row cost - is asked of codes alone.
//!
//! Codes *steer*; they never publish. A wide numeric domain is quantised to 65,000 steps, and that only makes the
//! search a little blind: the published bounds are taken from the original values when a group is recoded.

mod axis;
mod cover;
mod dependency;
mod levels;
mod region;
mod sensitive;
mod shares;
mod smallest;
mod table;
mod tree;
pub(crate) mod wire;

pub use axis::{Axis, Code, LINE_STEPS, MAX_SET_VALUES, NULL_ON_LINE, Shape};
pub use cover::Cover;
pub use dependency::{Attribute, Dependency};
pub use levels::{Levels, lattice_nodes};
pub use region::Region;
pub(crate) use region::published_ends;
pub use sensitive::{Sensitive, SensitiveShape};
pub use shares::Shares;
pub use smallest::keep_smallest;
pub use table::{Grouping, Table};
pub use tree::{Node, Tree};
