//! Values as they stand in published files, read back exactly: what each says and what it covers. Written anew for
//! the verification, which shares nothing with the code that published them.

pub(crate) mod box_tree;
pub(crate) mod cover;
pub(crate) mod digest;
pub(crate) mod exact;
pub(crate) mod key_counts;
pub(crate) mod read;
pub(crate) mod values;

pub(crate) use box_tree::BoxTree;
pub(crate) use exact::{content_key, content_keys};
