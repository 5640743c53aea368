//! How the object store of a source or sink is reached: its address, retries and timeouts. Nothing here
//! is secret; credentials come from the environment.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::Problem;

/// How an object store is reached. Local files need none of this. Credentials come from the environment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct StoreOptions {
    /// Address of the service, for a store that is not the cloud's own: `"https://minio.example:9000"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Region of the bucket (S3). Defaults to that of the environment or the profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Whether the bucket is named in the path (the default) or in the host name of the address (S3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_style: Option<bool>,
    /// Whether an address may begin with `http://`: what is read and written is then not encrypted on its way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_http: Option<bool>,
    /// How often a request is retried after throttling, a server error or a lost connection. Defaults to 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// How long a failed request is retried. Defaults to `"3m"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_timeout: Option<Timeout>,
    /// Timeout of a single request. Defaults to `"30s"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_timeout: Option<Timeout>,
    /// Timeout of opening a connection. Defaults to `"5s"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_timeout: Option<Timeout>,
}

impl StoreOptions {
    /// These options, with those of `other` where they are set.
    pub(crate) fn overridden_by(&self, other: &Self) -> Self {
        Self {
            endpoint: other.endpoint.clone().or_else(|| self.endpoint.clone()),
            region: other.region.clone().or_else(|| self.region.clone()),
            path_style: other.path_style.or(self.path_style),
            allow_http: other.allow_http.or(self.allow_http),
            retries: other.retries.or(self.retries),
            retry_timeout: other.retry_timeout.or(self.retry_timeout),
            request_timeout: other.request_timeout.or(self.request_timeout),
            connect_timeout: other.connect_timeout.or(self.connect_timeout),
        }
    }

    /// Whether both lead to the same service.
    pub(crate) fn same_service(&self, other: &Self) -> bool {
        (&self.endpoint, &self.region) == (&other.endpoint, &other.region)
    }

    /// What is wrong with the options of `part`, which is `source` or `sink`.
    pub(crate) fn check_options(&self, part: &str) -> Option<Problem> {
        let key = format!("{part}.options.endpoint");
        let endpoint = self.endpoint.as_ref()?;
        let Some(url) = url::Url::parse(endpoint).ok().filter(|url| url.has_host()) else {
            return Some(Problem::error(key, "is not an address").help("for example \"https://minio.example:9000\""));
        };
        if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
            let problem = Problem::error(key, "holds a credential");
            return Some(problem.help("credentials come from the environment, never from the job file"));
        }
        match url.scheme() {
            "https" => None,
            "http" if self.allow_http == Some(true) => None,
            "http" => Some(
                Problem::error(key, "is not encrypted")
                    .help(format!("use https://, or set {part}.options.allow-http = true")),
            ),
            _ => Some(Problem::error(key, "must begin with https:// or http://")),
        }
    }
}

/// A time to wait: `"30s"`, `"3m"`, `"1m 30s"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeout(pub Duration);

impl FromStr for Timeout {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.parse::<jiff::SignedDuration>().ok().and_then(|span| Duration::try_from(span).ok());
        parsed.filter(|time| !time.is_zero()).map(Self).ok_or_else(|| "must be a time such as \"30s\" or \"3m\"".into())
    }
}

impl fmt::Display for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::SignedDuration::try_from(self.0) {
            Ok(span) => write!(f, "{span:#}"),
            Err(_) => write!(f, "{}s", self.0.as_secs()),
        }
    }
}

impl Serialize for Timeout {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timeout {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Timeout {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Timeout".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "examples": ["30s", "3m"] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_written() {
        for (text, seconds) in [("30s", 30), ("3m", 180), ("3 minutes", 180), ("1m 30s", 90), ("PT5S", 5)] {
            let time: Timeout = text.parse().unwrap();
            assert_eq!(time.0, Duration::from_secs(seconds), "{text}");
            assert_eq!(time.to_string().parse(), Ok(time));
        }
        assert_eq!(Timeout(Duration::from_millis(1500)).to_string(), "1s 500ms");
        for bad in ["", "30", "0s", "-5s", "soon"] {
            assert!(bad.parse::<Timeout>().is_err(), "{bad}");
        }
    }

    #[test]
    fn an_endpoint_is_an_address_without_credentials() {
        let with = |endpoint: &str, http: bool| StoreOptions {
            endpoint: Some(endpoint.into()),
            allow_http: Some(http),
            ..StoreOptions::default()
        };
        for good in [with("https://minio:9000", false), with("http://minio:9000", true), StoreOptions::default()] {
            assert!(good.check_options("sink").is_none(), "{good:?}");
        }
        for (bad, words) in [
            (with("minio:9000", true), "is not an address"),
            (with("http://minio", false), "sink.options.allow-http"),
            (with("https://me:pass@minio", false), "holds a credential"),
            (with("https://minio/?sig=abc", false), "holds a credential"),
            (with("ftp://minio", true), "must begin with"),
        ] {
            let problem = bad.check_options("sink").unwrap().to_string();
            assert!(problem.contains(words) && !problem.contains("pass@") && !problem.contains("abc"), "{problem}");
        }
    }
}
