//! What happens to identifiers: dropped, replaced by a keyed pseudonym, or replaced by one text for all rows.
//!
//! The key of a pseudonym is never in the job: it comes from an environment variable or a file. What the policy knows
//! of it is its fingerprint, so that another key is another policy.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::model::{Column, Job, Role};
use crate::error::{Error, Problem, Result, io_reason};
use crate::secret::{Encoding, Key};
use crate::storage::bounded::read_at_most;

/// Maximum size of a key file in bytes.
const MAX_KEY_BYTES: u64 = 64 << 10;

/// What happens to an identifier: `"drop"`, `{ pseudonym = { key-env = "NAME" } }` or `{ constant = "text" }`.
///
/// ```
/// use throng::Column;
/// use throng::columns::IdentifierAction;
///
/// let dropped = Column::identifier();
/// let constant = Column::identifier().with_treat(IdentifierAction::Constant("a person".into()));
/// assert_ne!(dropped, constant);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IdentifierAction {
    /// Not published.
    #[default]
    Drop,
    /// Replaced by a keyed hash: equal values have equal pseudonyms, and only the key links them to values.
    Pseudonym(Pseudonym),
    /// Replaced by this text in every row.
    Constant(String),
}

/// A keyed pseudonym: HMAC-SHA-256 of the value under a key of the column.
///
/// ```
/// use throng::Column;
/// use throng::columns::{Encoding, IdentifierAction, Pseudonym};
///
/// // The key is never a part of the policy: it is read from the environment when the policy is built.
/// let key = Pseudonym { key_env: Some("PATIENTS_KEY".into()), key_file: None, encoding: Encoding::default() };
/// let patient = Column::identifier().with_treat(IdentifierAction::Pseudonym(key));
/// # drop(patient);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Pseudonym {
    /// Environment variable that holds the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_env: Option<String>,
    /// File that holds the key; a line break at its end is not part of it. A relative path starts at the job file's
    /// folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_file: Option<String>,
    /// How the 32 bytes of a pseudonym are written.
    #[serde(default)]
    pub encoding: Encoding,
}

impl Column {
    /// What happens to this column if it is an identifier.
    pub(crate) fn identifier_action(&self) -> Option<&IdentifierAction> {
        (self.role == Role::Identifier).then(|| self.treat.as_ref().unwrap_or(&IdentifierAction::Drop))
    }

    /// The pseudonym that replaces this column, if one does.
    fn pseudonym(&self) -> Option<&Pseudonym> {
        match self.identifier_action()? {
            IdentifierAction::Pseudonym(pseudonym) => Some(pseudonym),
            _ => None,
        }
    }
}

impl Pseudonym {
    /// Reads the key; errors do not quote its content.
    fn read_key(&self, base: &Path) -> Result<Key, String> {
        let (secret, name) = read_named_secret(self.key_env.as_deref(), self.key_file.as_deref(), base)?;
        Key::new(&secret).map_err(|error| format!("{name} {error}"))
    }
}

/// Reads a secret that a key is made of; what is wrong with it is said without its content.
pub(super) fn read_secret(
    key_env: Option<&str>,
    key_file: Option<&str>,
    base: &Path,
) -> Result<Zeroizing<Vec<u8>>, String> {
    let (secret, name) = read_named_secret(key_env, key_file, base)?;
    Key::new(&secret).map_err(|error| format!("{name} {error}"))?;
    Ok(secret)
}

/// A secret without the line break at its end, and where it comes from.
fn read_named_secret(
    key_env: Option<&str>,
    key_file: Option<&str>,
    base: &Path,
) -> Result<(Zeroizing<Vec<u8>>, String), String> {
    let (mut bytes, name) = match (key_env, key_file) {
        (Some(_), Some(_)) => return Err("has both `key-env` and `key-file`; give only one of them".into()),
        (None, None) => return Err("needs `key-env` or `key-file` to locate the key".into()),
        (Some(variable), None) => match std::env::var_os(variable) {
            Some(value) => {
                (Zeroizing::new(value.into_encoded_bytes()), format!("the environment variable `{variable}`"))
            }
            None => return Err(format!("the environment variable `{variable}` is not set")),
        },
        (None, Some(path)) => {
            let bytes = File::open(base.join(path)).and_then(|file| read_at_most(file, MAX_KEY_BYTES, "key file"));
            let bytes =
                bytes.map_err(|error| format!("the key file `{path}` cannot be read: {}", io_reason(&error)))?;
            (Zeroizing::new(bytes), format!("the file `{path}`"))
        }
    };
    let end = bytes.strip_suffix(b"\n").map_or(bytes.len(), |line| line.strip_suffix(b"\r").unwrap_or(line).len());
    bytes.truncate(end);
    Ok((bytes, name))
}

/// The keys of a job's pseudonyms, by column.
pub(crate) fn read_keys(job: &Job, base: &Path) -> Result<BTreeMap<String, Key>> {
    let mut keys = BTreeMap::new();
    for (name, column) in &job.columns {
        if let Some(pseudonym) = column.pseudonym() {
            let key = pseudonym.read_key(base);
            let key = key.map_err(|message| Error::job(format!("columns.{name}.treat.pseudonym: {message}")))?;
            keys.insert(name.clone(), key);
        }
    }
    Ok(keys)
}

/// Checks the action of every identifier, and that there is a key for each pseudonym.
pub(crate) fn check_identifiers(job: &Job, base: &Path, problems: &mut Vec<Problem>) {
    for (name, column) in &job.columns {
        let Some(pseudonym) = column.pseudonym() else { continue };
        let key = format!("columns.{name}.treat.pseudonym");
        match pseudonym.read_key(base) {
            Err(message) => problems.push(
                Problem::error(key, message)
                    .help("create a key with `openssl rand -hex 32`, and keep it with your other secrets"),
            ),
            Ok(_) => problems.push(
                Problem::warning(
                    key,
                    "pseudonyms of one key are the same in every release: rows of two releases can be joined on them",
                )
                .help("together they reveal more than each alone; use a new key for every release, or drop the column"),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(treat: &str) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("short"), "0123456789abcde\n").unwrap();
        std::fs::write(folder.path().join("long"), "0123456789abcdef\r\n").unwrap();
        let text = format!(
            "version = 1\nsource.url = \"s3://a/in\"\nsink.url = \"s3://a/out\"\nprivacy.k = 5\n[columns]\n\
             age.role = \"quasi\"\nname = {{ role = \"identifier\", treat = {treat} }}\n"
        );
        let job = Job::parse(&text, Path::new("job.toml")).unwrap();
        let mut problems = Vec::new();
        check_identifiers(&job, folder.path(), &mut problems);
        problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_key_is_somewhere_else_and_long_enough() {
        assert!(problems("\"drop\"").is_empty());
        assert!(problems("{ constant = \"x\" }").is_empty());
        for (treat, expected) in [
            ("{ pseudonym = {} }", "needs `key-env` or `key-file`"),
            ("{ pseudonym = { key-env = \"A\", key-file = \"b\" } }", "has both"),
            ("{ pseudonym = { key-env = \"NO_SUCH_VARIABLE\" } }", "`NO_SUCH_VARIABLE` is not set"),
            ("{ pseudonym = { key-file = \"none\" } }", "the key file `none` cannot be read"),
            ("{ pseudonym = { key-file = \"/dev/zero\" } }", "it holds more than 65536 bytes, so it is not a key file"),
            (
                "{ pseudonym = { key-file = \"short\" } }",
                "the file `short` holds 15 bytes; a key must have at least 16",
            ),
        ] {
            let found = problems(treat);
            assert!(found.len() == 1 && found[0].contains(expected), "{treat}: {found:?}");
            assert!(!found[0].contains("0123"), "the key is revealed: {found:?}");
        }
        let warned = problems("{ pseudonym = { key-file = \"long\" } }");
        assert!(warned.len() == 1 && warned[0].starts_with("warning: "), "{warned:?}");
    }
}
