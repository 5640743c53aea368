//! Object stores: where sources and sinks can be, and how they are reached.
//!
//! Source and sink may be `s3://bucket/prefix/`, `gs://bucket/prefix/`, `az://container/prefix/`,
//! `abfss://container@account.dfs.core.windows.net/prefix/`, `file:///path/` or a plain path.
//!
//! # Credentials
//!
//! Credentials come from where each cloud's own tools take them, never from the job file:
//!
//! | store | credentials, first match |
//! |---|---|
//! | S3 | `AWS_ACCESS_KEY_ID` and related variables, web identity (`AWS_WEB_IDENTITY_TOKEN_FILE`), the profile `AWS_PROFILE` or `default`, container, instance metadata |
//! | Google Cloud Storage | `GOOGLE_SERVICE_ACCOUNT`, `GOOGLE_APPLICATION_CREDENTIALS`, the file of `gcloud`, instance metadata |
//! | Azure | `AZURE_STORAGE_ACCOUNT_KEY`, a SAS or bearer token, workload identity, `AZURE_CLIENT_SECRET`, managed identity |
//!
//! A profile may hold keys, or a role with a web identity. Profiles that use single sign-on, `credential_process` or another
//! profile are rejected with the command that exports them (`aws configure export-credentials`).
//!
//! # Options
//!
//! ```toml
//! [sink.options]                      # [source.options] takes the same keys; all have defaults
//! endpoint = "https://minio.example"  # a store that is not the cloud's own; also AWS_ENDPOINT_URL
//! region = "eu-west-1"
//! path-style = true                   # the bucket in the path, not in the host name
//! allow-http = false
//! retries = 10                        # after throttling, server errors and lost connections; with backoff and jitter
//! retry-timeout = "3m"
//! request-timeout = "30s"
//! connect-timeout = "5s"
//! ```
//!
//! `--store-retries`, `--store-retry-timeout`, `--store-request-timeout` and `--store-connect-timeout` (or
//! `THRONG_STORE_RETRIES` and so on) take precedence over the job file. `throng plan` shows what is in force, without secrets.
//! A run that fails or is stopped aborts its uploads; for one that is killed, give the bucket a lifecycle rule that removes
//! incomplete uploads after a day.
//!
//! An embedding program passes its own stores: see `RunOptions::stores`.
//!
//! The builders of `object_store` make stores with whatever credentials the program has:
//!
//! ```
//! use std::sync::Arc;
//!
//! use object_store::local::LocalFileSystem;
//! use throng::RunOptions;
//! use throng::releases::Stores;
//!
//! let stores = Stores::default().with("s3://lake", Arc::new(LocalFileSystem::new()))?;
//! let options = RunOptions::default().with_stores(stores);
//! # drop(options);
//! # Ok::<(), throng::Error>(())
//! ```
