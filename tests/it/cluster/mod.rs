//! The same job on a cluster: a scheduler and executors as processes of their own on loopback.

mod busy;
mod failures;
mod fleet;
mod nights;
mod roles;
mod same_rows;
mod stages;
mod verifying;
