//! The identity of what a run has read, by which a later run knows that there is nothing new to release.
//!
//! The identity stands in the manifest and, when nobody gives one, makes up the name of the run, so every reader has it. The
//! size of a raw file and its version tag, which is a hash of its content on many stores, are functions of all of its rows,
//! suppressed ones too: whoever knows all rows but one would confirm a guess of that one row by them. Hashing them does not
//! help, nor does a salt that must stand beside the hash, nor a slow hash: the last row has few values, and each of them
//! costs one try. What helps is a secret that outlasts the run, or to leave the content out. So there are two identities:
//!
//! - with `[method] key-env`, names, sizes and version tags of all files, hashed under that key. Only holders of the key,
//!   who could re-enact the run anyway, can confirm a guess;
//! - without, the names of files and when each was last changed, and for a Delta table its version: no function of any row.
//!   It confirms a guess of the exact moments when all files were written, and nothing else.
//!
//! The second one takes a file that was rewritten with the same content for a new one, and for the same one that was changed
//! and given its old time back, or moved on a local disk between folders whose names are values that are not published.
//! Neither harms anybody who is in the data by itself, but a second release of the same
//! people can be intersected with the first: whoever writes the same files again and again sets `key-env`.
//! That files stay the same *while* they are read is checked by sizes and tags, which never leave the process.

use object_store::ObjectMeta;

use crate::secret::{Purpose, RunKey};

/// What was read, as far as two runs need it to be the same.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    /// Nothing that follows from rows.
    open: blake3::Hasher,
    /// Everything.
    full: blake3::Hasher,
    /// Files of the last table, whose order reveals folder values that are not shown.
    files: Vec<String>,
}

impl Snapshot {
    /// Of a source that is read in some way.
    pub(crate) fn new(reading: &str) -> Self {
        let mut snapshot = Self { open: blake3::Hasher::new(), full: blake3::Hasher::new(), files: Vec::new() };
        snapshot.add_both(reading);
        snapshot
    }

    /// Begins a table of the source.
    pub(crate) fn add_table(&mut self, name: &str) {
        self.flush();
        self.add_both(&format!("{name}\n"));
    }

    /// Adds a file of a table by the name that may be shown.
    pub(crate) fn add_file(&mut self, name: &str, file: &ObjectMeta) {
        let modified = file.last_modified.to_rfc3339();
        let tag = file.e_tag.as_deref().unwrap_or(&modified);
        self.full.update(format!("{}\0{}\0{tag}\n", file.location, file.size).as_bytes());
        self.files.push(format!("{name}\0{modified}\n"));
    }

    /// Adds a version of a table that has versions.
    #[cfg(feature = "delta")]
    pub(crate) fn add_version(&mut self, identity: &str) {
        self.add_both(&format!("{identity}\n"));
    }

    /// The identity that is published, under a key that outlasts the run if there is one.
    pub(crate) fn identity(mut self, key: Option<&RunKey>) -> String {
        self.flush();
        match key {
            Some(key) => key.digest(Purpose::Snapshot, self.full.finalize().as_bytes()),
            None => self.open.finalize().to_hex().to_string(),
        }
    }

    fn add_both(&mut self, text: &str) {
        self.open.update(text.as_bytes());
        self.full.update(text.as_bytes());
    }

    fn flush(&mut self) {
        self.files.sort_unstable();
        for file in self.files.drain(..) {
            self.open.update(file.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use object_store::path::Path;

    use super::*;

    fn file(path: &str, size: u64, tag: &str, second: i64) -> ObjectMeta {
        let last_modified = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(second as u64);
        let (location, e_tag) = (Path::from(path), Some(tag.to_owned()));
        ObjectMeta { location, last_modified: last_modified.into(), size, e_tag, version: None }
    }

    fn identity(files: &[ObjectMeta], key: Option<&RunKey>) -> String {
        let mut snapshot = Snapshot::new("plain");
        snapshot.add_table("t");
        files.iter().for_each(|file| snapshot.add_file("town=*/a.parquet", file));
        snapshot.identity(key)
    }

    /// A reader who has guessed all rows but one cannot confirm a guess of the last one by the identity.
    #[test]
    fn content_is_told_to_holders_of_the_key_only() {
        let raw = file("town=Ely/a.parquet", 1000, "0cc175b9", 7);
        let others = [
            file("town=Ely/a.parquet", 1001, "0cc175b9", 7),
            file("town=Ely/a.parquet", 1000, "92eb5ffe", 7),
            file("town=Bath/a.parquet", 1000, "0cc175b9", 7),
        ];
        let key = RunKey::from_seed(1);
        for other in others {
            let (mine, theirs) = (std::slice::from_ref(&raw), std::slice::from_ref(&other));
            assert_eq!(identity(mine, None), identity(theirs, None), "{other:?}");
            assert_ne!(identity(mine, Some(&key)), identity(theirs, Some(&key)), "{other:?}");
        }
        let mine = std::slice::from_ref(&raw);
        assert_ne!(identity(mine, Some(&key)), identity(mine, Some(&RunKey::from_seed(2))));
        assert_ne!(identity(mine, Some(&key)), identity(mine, None));
    }

    #[test]
    fn what_was_written_again_is_another_input() {
        let (old, new) = (file("a", 1, "x", 7), file("a", 1, "x", 8));
        assert_ne!(identity(std::slice::from_ref(&old), None), identity(std::slice::from_ref(&new), None));
        assert_ne!(identity(&[old.clone(), old.clone()], None), identity(std::slice::from_ref(&old), None));
        assert_eq!(identity(&[old.clone(), new.clone()], None), identity(&[new, old], None), "in whatever order");
    }
}
