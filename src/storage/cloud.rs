//! Opens S3, Google Cloud Storage and Azure by their usual credential chains, with the retries and timeouts the job asks
//! for.
//!
//! Requests that are throttled, end in a server error or lose their connection are retried after a pause that
//! doubles each time, with jitter, until the limits of retries or time are reached.

use std::sync::Arc;

#[cfg(feature = "aws")]
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey as S3Key};
#[cfg(any(feature = "aws", feature = "azure", feature = "gcp"))]
use object_store::{ClientConfigKey, RetryConfig};
use object_store::{ObjectStore, ObjectStoreScheme};
use url::Url;

#[cfg(feature = "aws")]
use super::aws_profile::Profile;
use super::stores::Service;
use crate::error::{Error, Result};
use crate::storage::StoreOptions;
#[cfg(any(feature = "aws", feature = "azure", feature = "gcp"))]
use crate::storage::Timeout;

type Opened = (Arc<dyn ObjectStore>, Service);

/// Opens the store of a URL.
pub(crate) fn open_store(scheme: &ObjectStoreScheme, url: &Url, options: &StoreOptions) -> Result<Opened> {
    match scheme {
        #[cfg(feature = "aws")]
        ObjectStoreScheme::AmazonS3 => open_s3(url, options),
        #[cfg(feature = "gcp")]
        ObjectStoreScheme::GoogleCloudStorage => open_google(url, options),
        #[cfg(feature = "azure")]
        ObjectStoreScheme::MicrosoftAzure => open_azure(url, options),
        other => {
            let _ = (url, options);
            Err(Error::job(format!("this build of Throng does not support {other:?}")))
        }
    }
}

/// Settings of the HTTP client that the options set.
#[cfg(any(feature = "aws", feature = "azure", feature = "gcp"))]
fn client_settings(options: &StoreOptions) -> impl Iterator<Item = (ClientConfigKey, String)> {
    [
        (ClientConfigKey::Timeout, options.request_timeout.map(|time| time.to_string())),
        (ClientConfigKey::ConnectTimeout, options.connect_timeout.map(|time| time.to_string())),
        (ClientConfigKey::AllowHttp, options.allow_http.map(|allowed| allowed.to_string())),
    ]
    .into_iter()
    .filter_map(|(key, value)| Some((key, value?)))
}

#[cfg(any(feature = "aws", feature = "azure", feature = "gcp"))]
fn retry_config(options: &StoreOptions) -> RetryConfig {
    let mut retry = RetryConfig::default();
    if let Some(retries) = options.retries {
        retry.max_retries = retries as usize;
    }
    if let Some(Timeout(time)) = options.retry_timeout {
        retry.retry_timeout = time;
    }
    retry
}

/// An error of a builder is about settings, not about the store.
#[cfg(any(feature = "aws", feature = "azure", feature = "gcp"))]
fn settings_error(error: object_store::Error) -> Error {
    Error::job(error.to_string())
}

/// The words for a store, from what its builder has settled on.
#[cfg(any(feature = "aws", feature = "azure", feature = "gcp"))]
fn describe_service(
    kind: &str,
    endpoint: String,
    retry: &RetryConfig,
    value: impl Fn(ClientConfigKey) -> Option<String>,
) -> Service {
    let time = |key: ClientConfigKey| value(key).unwrap_or_else(|| "none".into());
    Service {
        kind: kind.to_owned(),
        settings: vec![
            ("endpoint", endpoint),
            ("retries", format!("{} within {}", retry.max_retries, Timeout(retry.retry_timeout))),
            ("request timeout", time(ClientConfigKey::Timeout)),
            ("connect timeout", time(ClientConfigKey::ConnectTimeout)),
        ],
    }
}

#[cfg(feature = "aws")]
fn open_s3(url: &Url, options: &StoreOptions) -> Result<Opened> {
    let (mut builder, credentials) = s3_credentials(AmazonS3Builder::from_env().with_url(url.as_str()))?;
    if let Some(region) = &options.region {
        builder = builder.with_region(region);
    }
    if let Some(path_style) = options.path_style {
        builder = builder.with_virtual_hosted_style_request(!path_style);
    }
    let bucket = url.host_str().unwrap_or_default();
    let value = |builder: &AmazonS3Builder, key: S3Key| builder.get_config_value(&key);
    let in_host = is_on(value(&builder, S3Key::VirtualHostedStyleRequest));
    let endpoint = options.endpoint.clone();
    let endpoint = endpoint.or_else(|| value(&builder, S3Key::S3Endpoint)).or_else(|| value(&builder, S3Key::Endpoint));
    let endpoint = endpoint.map(|endpoint| if in_host { name_in_host(&endpoint, bucket) } else { endpoint });
    if let Some(endpoint) = &endpoint {
        builder = builder.with_config(S3Key::S3Endpoint, endpoint);
    }
    for (key, value) in client_settings(options) {
        builder = builder.with_config(S3Key::Client(key), value);
    }
    let retry = retry_config(options);
    builder = builder.with_retry(retry.clone());
    let region = value(&builder, S3Key::Region).unwrap_or_else(|| "us-east-1".into());
    let shown = endpoint.unwrap_or_else(|| match in_host {
        true => format!("https://{bucket}.s3.{region}.amazonaws.com"),
        false => format!("https://s3.{region}.amazonaws.com"),
    });
    let mut service = describe_service("S3", shown, &retry, |key| value(&builder, S3Key::Client(key)));
    service.settings.insert(1, ("bucket in", if in_host { "host name" } else { "path" }.into()));
    service.settings.insert(1, ("region", region));
    service.settings.push(("credentials from", credentials));
    Ok((Arc::new(builder.build().map_err(settings_error)?), service))
}

/// Puts the profile where it belongs in the chain of credentials, which the builder knows otherwise: behind keys and
/// web identity of the environment, before container and instance metadata. Says which link holds.
#[cfg(feature = "aws")]
fn s3_credentials(mut builder: AmazonS3Builder) -> Result<(AmazonS3Builder, String)> {
    let has = |builder: &AmazonS3Builder, key: S3Key| builder.get_config_value(&key).is_some();
    if is_on(builder.get_config_value(&S3Key::SkipSignature)) {
        return Ok((builder, "nobody".into()));
    }
    if has(&builder, S3Key::AccessKeyId) {
        return Ok((builder, "environment".into()));
    }
    if has(&builder, S3Key::WebIdentityTokenFile) && has(&builder, S3Key::RoleArn) {
        return Ok((builder, "web identity".into()));
    }
    let profile = Profile::find_profile(|key| std::env::var(key).ok())?.unwrap_or_default();
    let container = [S3Key::ContainerCredentialsRelativeUri, S3Key::ContainerCredentialsFullUri];
    let from = if profile.get("aws_access_key_id").is_some() {
        format!("profile `{}`", profile.name())
    } else if profile.get("web_identity_token_file").is_some() {
        format!("web identity of profile `{}`", profile.name())
    } else if container.into_iter().any(|key| has(&builder, key)) {
        "container".into()
    } else {
        "instance metadata".into()
    };
    for (key, name) in [
        (S3Key::AccessKeyId, "aws_access_key_id"),
        (S3Key::SecretAccessKey, "aws_secret_access_key"),
        (S3Key::Token, "aws_session_token"),
        (S3Key::RoleArn, "role_arn"),
        (S3Key::RoleSessionName, "role_session_name"),
        (S3Key::WebIdentityTokenFile, "web_identity_token_file"),
        (S3Key::Region, "region"),
        (S3Key::Endpoint, "endpoint_url"),
    ] {
        if let Some(value) = profile.get(name)
            && !has(&builder, key)
        {
            builder = builder.with_config(key, value);
        }
    }
    Ok((builder, from))
}

/// Whether a switch is on, in all the ways that the object store crate reads one.
#[cfg(feature = "aws")]
fn is_on(value: Option<String>) -> bool {
    value.is_some_and(|value| ["1", "true", "on", "yes", "y"].contains(&value.to_ascii_lowercase().as_str()))
}

/// The address with the bucket in front of its host, unless it is there already.
#[cfg(feature = "aws")]
fn name_in_host(endpoint: &str, bucket: &str) -> String {
    match endpoint.split_once("://") {
        Some((scheme, host)) if !host.starts_with(&format!("{bucket}.")) => format!("{scheme}://{bucket}.{host}"),
        _ => endpoint.to_owned(),
    }
}

#[cfg(feature = "gcp")]
fn open_google(url: &Url, options: &StoreOptions) -> Result<Opened> {
    use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey as Key};

    let mut builder = GoogleCloudStorageBuilder::from_env().with_url(url.as_str());
    if let Some(endpoint) = &options.endpoint {
        builder = builder.with_config(Key::BaseUrl, endpoint);
    }
    for (key, value) in client_settings(options) {
        builder = builder.with_config(Key::Client(key), value);
    }
    let retry = retry_config(options);
    let endpoint = builder.get_config_value(&Key::BaseUrl);
    let endpoint = endpoint.unwrap_or_else(|| "https://storage.googleapis.com".into());
    let service =
        describe_service("Google Cloud Storage", endpoint, &retry, |key| builder.get_config_value(&Key::Client(key)));
    Ok((Arc::new(builder.with_retry(retry).build().map_err(settings_error)?), service))
}

#[cfg(feature = "azure")]
fn open_azure(url: &Url, options: &StoreOptions) -> Result<Opened> {
    use object_store::azure::{AzureConfigKey as Key, MicrosoftAzureBuilder};

    let mut builder = MicrosoftAzureBuilder::from_env().with_url(url.as_str());
    if let Some(endpoint) = &options.endpoint {
        builder = builder.with_endpoint(endpoint.clone());
    }
    for (key, value) in client_settings(options) {
        builder = builder.with_config(Key::Client(key), value);
    }
    let retry = retry_config(options);
    let in_url = url.host_str().and_then(|host| host.split_once('.')).map(|(account, _)| account.to_owned());
    let account = in_url.or_else(|| builder.get_config_value(&Key::AccountName)).unwrap_or_default();
    let endpoint = builder.get_config_value(&Key::Endpoint);
    let endpoint = endpoint.unwrap_or_else(|| format!("https://{account}.blob.core.windows.net"));
    let service =
        describe_service("Azure Blob Storage", endpoint, &retry, |key| builder.get_config_value(&Key::Client(key)));
    Ok((Arc::new(builder.with_retry(retry).build().map_err(settings_error)?), service))
}

#[cfg(all(test, feature = "aws"))]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_service_tells_how_it_is_reached() {
        let options = StoreOptions {
            endpoint: Some("http://minio:9000".into()),
            region: Some("eu-west-1".into()),
            allow_http: Some(true),
            retries: Some(4),
            request_timeout: Some(Timeout(Duration::from_secs(9))),
            ..StoreOptions::default()
        };
        let url = Url::parse("s3://lake/raw/").unwrap();
        let described = |options: &StoreOptions| {
            let (_, service) = open_store(&ObjectStoreScheme::AmazonS3, &url, options).unwrap();
            service.to_string()
        };
        let text = described(&options);
        let begin = "S3, endpoint http://minio:9000, region eu-west-1, bucket in path, retries 4 within 3m, \
                     request timeout 9s, connect timeout 5s, credentials from ";
        assert!(text.starts_with(begin), "{text}");
        let text = described(&StoreOptions { path_style: Some(false), ..options });
        assert!(text.contains("endpoint http://lake.minio:9000, region eu-west-1, bucket in host name"), "{text}");
    }
}
