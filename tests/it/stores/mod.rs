//! Releases on real stores: one suite for all of them, faults at every call, races, uploads that end badly, and a week
//! of nightly runs in small.

mod conformance;
mod faults;
pub mod faulty;
mod nightly;
mod place;
mod reached;
pub mod s3;
#[cfg(feature = "test-servers")]
mod servers;
mod uploads;

#[cfg(all(feature = "test-servers", feature = "delta"))]
pub use servers::python;
