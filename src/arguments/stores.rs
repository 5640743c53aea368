//! Flags for object stores: retries and timeouts. Addresses and credentials come from the variables of
//! each cloud.

use clap::Args;

use crate::error::Result;
use crate::policy::Job;
use crate::storage::{Location, StoreOptions, Stores, Timeout};

/// Retries and timeouts of object stores.
#[derive(Debug, Args)]
pub(crate) struct StoreArguments {
    /// How often a failed request to an object store is retried. Defaults to 10
    #[arg(long, env = "THRONG_STORE_RETRIES", value_name = "N", help_heading = "Object stores")]
    store_retries: Option<u32>,
    /// How long a failed request is retried, for example 5m. Defaults to 3m
    #[arg(long, env = "THRONG_STORE_RETRY_TIMEOUT", value_name = "TIME", help_heading = "Object stores")]
    store_retry_timeout: Option<Timeout>,
    /// Timeout of a single request, for example 1m. Defaults to 30s
    #[arg(long, env = "THRONG_STORE_REQUEST_TIMEOUT", value_name = "TIME", help_heading = "Object stores")]
    store_request_timeout: Option<Timeout>,
    /// Timeout of opening a connection, for example 10s. Defaults to 5s
    #[arg(long, env = "THRONG_STORE_CONNECT_TIMEOUT", value_name = "TIME", help_heading = "Object stores")]
    store_connect_timeout: Option<Timeout>,
}

impl StoreArguments {
    fn store_options(&self) -> StoreOptions {
        StoreOptions {
            retries: self.store_retries,
            retry_timeout: self.store_retry_timeout,
            request_timeout: self.store_request_timeout,
            connect_timeout: self.store_connect_timeout,
            ..StoreOptions::default()
        }
    }

    /// Applies the flags over the options of a job.
    pub(crate) fn lay_over(&self, job: &mut Job) {
        let options = self.store_options();
        job.source.options = job.source.options.overridden_by(&options);
        job.sink.options = job.sink.options.overridden_by(&options);
    }

    /// Opens a sink that is given without a job.
    pub(crate) fn open_sink(&self, sink: &std::path::Path) -> Result<Location> {
        Stores::default().open(std::path::Path::new("."), &sink.to_string_lossy(), &self.store_options())
    }
}
