//! Policies.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyo3::prelude::*;
use throng::internals::OpenedJob;
use throng::{Error, ErrorKind};

use crate::errors::to_exception;
use crate::jobs::Job;

/// A checked policy.
#[pyclass(frozen, module = "throng._native")]
pub(crate) struct Policy {
    pub(crate) policy: Arc<throng::Policy>,
    base: PathBuf,
}

#[pymethods]
impl Policy {
    /// Parses the tables of a job file; source, sink and version may be missing.
    #[staticmethod]
    fn parse(py: Python<'_>, text: &str, base: PathBuf) -> PyResult<Self> {
        let policy = py.detach(|| {
            let table = text
                .parse::<toml::Table>()
                .map_err(|error| Error::new(ErrorKind::Job, format!("the policy is not TOML: {}", error.message())))?;
            throng::Policy::from_table(table, &base)
        });
        Ok(Self { policy: Arc::new(policy.map_err(to_exception)?), base })
    }

    /// Parses the same from JSON.
    #[staticmethod]
    fn parse_json(py: Python<'_>, text: &str, base: PathBuf) -> PyResult<Self> {
        let policy = py.detach(|| throng::Policy::from_table(table_of_json(text)?, &base));
        Ok(Self { policy: Arc::new(policy.map_err(to_exception)?), base })
    }

    /// Opens a job file or a policy file.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let policy = py.detach(|| throng::Policy::open(&path)).map_err(to_exception)?;
        let base = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned();
        Ok(Self { policy: Arc::new(policy), base })
    }

    #[getter]
    fn k(&self) -> u32 {
        self.policy.k()
    }

    #[getter]
    fn rules(&self) -> Vec<String> {
        self.policy.rules()
    }

    #[getter]
    fn hash(&self) -> &str {
        self.policy.hash()
    }

    /// Roles by column.
    #[getter]
    fn roles(&self) -> BTreeMap<String, String> {
        let role =
            |column: &throng::Column| serde_json::to_value(column).ok()?.get("role")?.as_str().map(str::to_owned);
        self.policy.columns().iter().filter_map(|(name, column)| Some((name.clone(), role(column)?))).collect()
    }

    fn to_job(&self, source: &str, sink: String) -> Job {
        Job { opened: OpenedJob::new(self.policy.to_job(source, sink), &self.base) }
    }
}

/// The text of a JSON object as the tables of a job file.
pub(crate) fn table_of_json(text: &str) -> throng::Result<toml::Table> {
    let wrong = |why: String| Error::new(ErrorKind::Job, format!("this is not a policy: {why}"));
    let value: serde_json::Value = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
    match toml::Value::try_from(value).map_err(|error| wrong(error.to_string()))? {
        toml::Value::Table(table) => Ok(table),
        _ => Err(wrong("a dict is expected".into())),
    }
}
