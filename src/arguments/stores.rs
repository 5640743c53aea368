//! Flags for object stores: how long to be patient with them. Addresses and credentials come from the variables of
//! each cloud.

use clap::Args;

use crate::error::Result;
use crate::policy::Job;
use crate::storage::{Location, StoreOptions, Stores, Timeout};

/// Patience with object stores.
#[derive(Debug, Args)]
pub(crate) struct StoreArguments {
    /// How often a request to an object store is tried again; 10 when absent
    #[arg(long, env = "THRONG_STORE_RETRIES", value_name = "N", help_heading = "Object stores")]
    store_retries: Option<u32>,
    /// How long a request is tried again, for example 3m, which is the default
    #[arg(long, env = "THRONG_STORE_RETRY_TIMEOUT", value_name = "TIME", help_heading = "Object stores")]
    store_retry_timeout: Option<Timeout>,
    /// How long one request may take, for example 30s, which is the default
    #[arg(long, env = "THRONG_STORE_REQUEST_TIMEOUT", value_name = "TIME", help_heading = "Object stores")]
    store_request_timeout: Option<Timeout>,
    /// How long a connection may take to come about, for example 5s, which is the default
    #[arg(long, env = "THRONG_STORE_CONNECT_TIMEOUT", value_name = "TIME", help_heading = "Object stores")]
    store_connect_timeout: Option<Timeout>,
}

impl StoreArguments {
    fn options(&self) -> StoreOptions {
        StoreOptions {
            retries: self.store_retries,
            retry_timeout: self.store_retry_timeout,
            request_timeout: self.store_request_timeout,
            connect_timeout: self.store_connect_timeout,
            ..StoreOptions::default()
        }
    }

    /// Lays the flags over the options of a job.
    pub(crate) fn lay_over(&self, job: &mut Job) {
        let options = self.options();
        job.source.options = job.source.options.overridden_by(&options);
        job.sink.options = job.sink.options.overridden_by(&options);
    }

    /// Opens a sink that is named without a job.
    pub(crate) fn open(&self, sink: &std::path::Path) -> Result<Location> {
        Stores::default().open(std::path::Path::new("."), &sink.to_string_lossy(), &self.options())
    }
}
