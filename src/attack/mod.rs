//! What an adversary could do with a release.

pub mod chase;
