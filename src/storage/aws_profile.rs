//! Profiles of the AWS command line: `~/.aws/credentials` and `~/.aws/config`. The object store crate knows every other
//! link of the usual chain (environment, web identity, container, instance metadata), but not these files.
//!
//! Keys that are written in the files, and roles that are taken on by a web identity, are supported. Single sign-on,
//! `credential_process` and roles by another profile are not: they are refused with the command that exports them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::error::{Error, Result};

/// What a profile says, by key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Profile {
    name: String,
    values: BTreeMap<String, String>,
}

/// Keys of ways to credentials that take another program or service.
const UNSUPPORTED: [&str; 5] =
    ["sso_session", "sso_start_url", "credential_process", "source_profile", "credential_source"];

impl Profile {
    /// The profile that the environment chooses: `AWS_PROFILE`, else `default` if there is one.
    pub(crate) fn find_profile(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>> {
        let chosen = variable("AWS_PROFILE").filter(|name| !name.is_empty());
        let name = chosen.as_deref().unwrap_or("default");
        let home = variable("HOME").map(|home| PathBuf::from(home).join(".aws"));
        let text = |file: &str, key: &str| {
            let path = variable(key).map(PathBuf::from).or_else(|| Some(home.as_ref()?.join(file)))?;
            std::fs::read_to_string(path).ok()
        };
        let config = text("config", "AWS_CONFIG_FILE").unwrap_or_default();
        let credentials = text("credentials", "AWS_SHARED_CREDENTIALS_FILE").unwrap_or_default();
        let found = Self::from_files(name, &config, &credentials);
        match (&found, chosen) {
            (None, Some(name)) => Err(Error::job(format!(
                "AWS_PROFILE is `{name}`, which is in neither the credentials nor the config file of AWS"
            ))),
            (Some(profile), _) => profile.ensure_supported().map(|()| found),
            (None, None) => Ok(None),
        }
    }

    /// A profile of the two files; what the credentials file says goes first.
    fn from_files(name: &str, config: &str, credentials: &str) -> Option<Self> {
        let headed = if name == "default" { name.to_owned() } else { format!("profile {name}") };
        let in_config = ini_section(config, &headed);
        let in_credentials = ini_section(credentials, name);
        if in_config.is_none() && in_credentials.is_none() {
            return None;
        }
        let mut values = in_config.unwrap_or_default();
        values.extend(in_credentials.unwrap_or_default());
        Some(Self { name: name.to_owned(), values })
    }

    /// A value of the profile.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(String::as_str)
    }

    /// Name of the profile.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn ensure_supported(&self) -> Result<()> {
        let has_keys = self.get("aws_access_key_id").is_some() || self.get("web_identity_token_file").is_some();
        match UNSUPPORTED.iter().find(|key| self.get(key).is_some()) {
            Some(key) if !has_keys => Err(Error::job(format!(
                "AWS profile `{0}` takes its credentials from `{key}`, which is not supported; export them first: \
                 eval \"$(aws configure export-credentials --profile {0} --format env)\"",
                self.name
            ))),
            _ => Ok(()),
        }
    }
}

/// The keys of one section of an INI file; `None` if there is no such section. Indented lines are nested settings of
/// the key above, which nobody here asks for.
fn ini_section(text: &str, name: &str) -> Option<BTreeMap<String, String>> {
    let mut found: Option<BTreeMap<String, String>> = None;
    let mut inside = false;
    for line in text.lines().filter(|line| !line.starts_with([' ', '\t'])) {
        let line = line.trim_end();
        if let Some(header) = line.strip_prefix('[').and_then(|line| line.split(']').next()) {
            inside = header.split_whitespace().eq(name.split_whitespace());
            if inside {
                found.get_or_insert_default();
            }
        } else if inside
            && !line.starts_with(['#', ';'])
            && let (Some(values), Some((key, value))) = (&mut found, line.split_once('='))
        {
            let value = value.split(" #").next().unwrap_or_default();
            values.insert(key.trim().to_lowercase(), value.trim().to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "[default]\nregion = eu-west-1\n\n[profile night]\nregion=eu-north-1 # cold\ns3 =\n  \
                          addressing_style = path\n[profile login]\nsso_session = corp\n";
    const CREDENTIALS: &str = "; keys\n[default]\naws_access_key_id = AKIA1\naws_secret_access_key = abc=/+\n[night]\n\
                               aws_access_key_id=AKIA2\naws_secret_access_key=def\naws_session_token=ghi\n";

    #[test]
    fn both_files_are_read() {
        let default = Profile::from_files("default", CONFIG, CREDENTIALS).unwrap();
        assert_eq!(default.get("region"), Some("eu-west-1"));
        assert_eq!(default.get("aws_secret_access_key"), Some("abc=/+"));
        let night = Profile::from_files("night", CONFIG, CREDENTIALS).unwrap();
        assert_eq!(night.get("region"), Some("eu-north-1"));
        assert_eq!(night.get("aws_session_token"), Some("ghi"));
        assert_eq!(night.get("addressing_style"), None);
        assert_eq!(Profile::from_files("none", CONFIG, CREDENTIALS), None);
    }

    fn find(chosen: Option<&str>) -> Result<Option<Profile>> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(".aws")).unwrap();
        std::fs::write(folder.path().join(".aws/config"), CONFIG).unwrap();
        std::fs::write(folder.path().join(".aws/credentials"), CREDENTIALS).unwrap();
        Profile::find_profile(|key| match key {
            "HOME" => Some(folder.path().to_str().unwrap().to_owned()),
            "AWS_PROFILE" => chosen.map(str::to_owned),
            _ => None,
        })
    }

    #[test]
    fn the_environment_chooses() {
        assert_eq!(find(None).unwrap().unwrap().get("aws_access_key_id"), Some("AKIA1"));
        assert_eq!(find(Some("night")).unwrap().unwrap().get("aws_access_key_id"), Some("AKIA2"));
        assert_eq!(Profile::find_profile(|_| None).unwrap(), None);
        let missing = find(Some("other")).unwrap_err().to_string();
        assert!(missing.contains("AWS_PROFILE is `other`"), "{missing}");
        let login = find(Some("login")).unwrap_err().to_string();
        assert!(login.contains("`sso_session`") && login.contains("export-credentials --profile login"), "{login}");
    }
}
