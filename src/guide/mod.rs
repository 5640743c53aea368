//! Guides, for people rather than for compilers. All code in them is run by the tests, commands included.
//!
//! | guide | for |
//! |---|---|
//! | [`first_job`] | a release in five minutes, from a folder that nobody has looked at yet |
//! | [`choosing`] | choosing k, rules, and how much loss to accept |
//! | [`hierarchies`] | how values become coarser, and how to say so |
//! | [`embedding`] | anonymising inside another program |
//! | [`operating`] | running it every night |
//! | [`threats`] | what a release protects against, and what not |
//! | [`methods`] | the methods and where they come from |

pub mod choosing;
pub mod embedding;
pub mod first_job;
pub mod hierarchies;
pub mod methods;
pub mod operating;
pub mod threats;
