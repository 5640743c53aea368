//! The registry of policies that SQL can name. The host fills it; a query reaches no file that the host has not allowed.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use datafusion::common::plan_datafusion_err;
use datafusion::error::Result as DataFusionResult;
use datafusion::prelude::SessionContext;

use crate::error::{Error, Result, io_reason};
use crate::policy::Policy;
use crate::secret::RunKey;

/// The policies of a session by name, the folders in which queries may name policy files, and the keys of its queries.
///
/// A policy has one key as long as the session lasts: asking twice for the same rows under the same policy gives
/// the same groups. With a key per query, the groups of many answers could be intersected until k means nothing.
///
/// [`register`](crate::register) gives a session an empty one, [`register_policy`] adds to it. No folder is allowed
/// unless the host says so: whoever may write a query could otherwise make the host open any file of its machine.
///
/// ```
/// use throng::planning::PolicyRegistry;
/// use throng::{Column, Policy};
///
/// let registry = PolicyRegistry::default();
/// registry.insert("fives", Policy::builder(5).column("age", Column::quasi()).build()?);
/// assert_eq!(registry.get("fives").map(|policy| policy.k()), Some(5));
/// # Ok::<(), throng::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct PolicyRegistry {
    policies: RwLock<BTreeMap<String, Arc<Policy>>>,
    folders: RwLock<Vec<PathBuf>>,
    /// By the identity of the policy, so that a policy under two names has one key.
    keys: Mutex<BTreeMap<String, RunKey>>,
}

impl PolicyRegistry {
    /// Returns the registry of a session prepared by [`register`](crate::register).
    pub fn of_session(context: &SessionContext) -> DataFusionResult<Arc<Self>> {
        let known = context.state_ref().read().config().get_extension::<Self>();
        known
            .ok_or_else(|| plan_datafusion_err!("anonymize is not registered with this session: call `register` first"))
    }

    /// Registers a policy under a name. A policy that has the name already is replaced and returned.
    pub fn insert(&self, name: impl Into<String>, policy: Policy) -> Option<Arc<Policy>> {
        self.policies.write().unwrap_or_else(PoisonError::into_inner).insert(name.into(), Arc::new(policy))
    }

    /// Returns the policy registered under a name.
    pub fn get(&self, name: &str) -> Option<Arc<Policy>> {
        self.policies.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// The key of all queries of the session under a policy: the one that the policy fixes, or one from the operating
    /// system.
    pub(crate) fn session_key(&self, policy: &Policy) -> Result<RunKey> {
        if policy.fixes_key() {
            return policy.new_run_key();
        }
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = keys.get(policy.hash()) {
            return Ok(key.clone());
        }
        let key = policy.new_run_key()?;
        keys.insert(policy.hash().to_owned(), key.clone());
        Ok(key)
    }

    /// Allows queries to name policy files in a folder and below it. Relative paths start there.
    pub fn allow_files_below(&self, folder: &Path) -> Result<()> {
        let canonical = folder.canonicalize();
        let canonical = canonical
            .map_err(|error| Error::input(format!("{} cannot be opened: {}", folder.display(), io_reason(&error))))?;
        // A query may write the folder as it was given, too.
        let given = std::path::absolute(folder)?;
        self.folders.write().unwrap_or_else(PoisonError::into_inner).extend([canonical, given]);
        Ok(())
    }

    /// The policy that a query names, or the policy file where one is allowed.
    pub(crate) fn resolve(&self, name: &str) -> Result<Arc<Policy>> {
        if let Some(policy) = self.get(name) {
            return Ok(policy);
        }
        let folders = self.folders.read().unwrap_or_else(PoisonError::into_inner);
        if folders.is_empty() {
            return Err(Error::job(format!(
                "no policy is registered as `{name}`; policies are registered by the program that runs the query \
                 (register_policy), and policy files are opened only from folders that it allows"
            )));
        }
        let climbs = Path::new(name).components().any(|part| part == Component::ParentDir);
        let candidates: Vec<PathBuf> = folders
            .iter()
            .filter(|_| !climbs)
            .map(|folder| folder.join(name))
            .filter(|path| folders.iter().any(|folder| path.starts_with(folder)))
            .collect();
        if candidates.is_empty() {
            return Err(outside(name));
        }
        match candidates.iter().find_map(|path| path.canonicalize().ok()) {
            // A link may lead elsewhere.
            Some(found) if !folders.iter().any(|folder| found.starts_with(folder)) => Err(outside(name)),
            Some(found) => Policy::open(&found).map(Arc::new),
            None => Err(Error::job(format!("{name} cannot be read: no such file or directory"))),
        }
    }
}

fn outside(name: &str) -> Error {
    Error::job(format!("`{name}` is neither a registered policy nor in a folder whose policy files may be opened"))
}

/// Registers a policy with the SQL of a session: `SELECT * FROM anonymize((SELECT ...), '<name>')`.
///
/// ```
/// use datafusion::prelude::SessionContext;
/// use throng::{Column, Policy, register, register_policy};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let context = SessionContext::new();
/// register(&context)?;
/// context.sql("CREATE TABLE people AS SELECT value AS age FROM generate_series(20, 79)").await?.collect().await?;
/// register_policy(&context, "fives", Policy::builder(5).column("age", Column::quasi()).build()?)?;
/// assert_eq!(context.sql("SELECT * FROM anonymize('people', 'fives')").await?.count().await?, 60);
/// # Ok(())
/// # }
/// ```
pub fn register_policy(context: &SessionContext, name: &str, policy: Policy) -> DataFusionResult<()> {
    PolicyRegistry::of_session(context)?.insert(name, policy);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = "privacy.k = 5\ncolumns.age.role = \"quasi\"\n";

    #[test]
    fn files_are_opened_only_below_allowed_folders() {
        let folder = tempfile::tempdir().unwrap();
        let (inside, secret) = (folder.path().join("policies"), folder.path().join("secret.toml"));
        std::fs::create_dir(&inside).unwrap();
        std::fs::write(inside.join("a.toml"), POLICY).unwrap();
        std::fs::write(&secret, POLICY).unwrap();
        let registry = PolicyRegistry::default();
        let a = inside.join("a.toml").display().to_string();
        for name in ["a.toml", &a] {
            let refused = registry.resolve(name).unwrap_err().to_string();
            assert!(refused.starts_with("no policy is registered as"), "{refused}");
        }
        registry.allow_files_below(&inside).unwrap();
        assert!(registry.resolve("a.toml").is_ok() && registry.resolve(&a).is_ok());
        assert!(registry.resolve("b.toml").unwrap_err().to_string().contains("cannot be read"));
        let secret = secret.display().to_string();
        #[cfg(unix)]
        std::os::unix::fs::symlink(&secret, inside.join("link.toml")).unwrap();
        let link = if cfg!(unix) { "link.toml" } else { "../secret.toml" };
        // Whether there is such a file is not revealed either.
        for name in [&secret, "../secret.toml", "../nothing.toml", "/nothing.toml", link] {
            let refused = registry.resolve(name).unwrap_err().to_string();
            assert!(refused.contains("is neither a registered policy nor"), "{refused}");
        }
    }
}
