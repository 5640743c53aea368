//! A job that keeps two executors at work for some seconds, bit by bit.

use crate::support::{Desk, throng};

/// Rows of its table.
pub const ROWS: usize = 40_000;

/// Small cells and many tasks.
pub const SMALL: [&str; 4] = ["--cell-rows", "1000", "--partitions", "12"];

/// The stages of pass 2: rows are shuffled by cell; then they are sorted, grouped and written.
pub const SHUFFLE: usize = 1;
/// The second one.
pub const GROUP: usize = 2;
/// Stage of pass 2 that writes.
pub const WRITE: usize = 3;

const JOB: &str = "privacy.k = 5
method.auto.effort = \"thorough\"
defaults.role = \"identifier\"
[columns]
age.role = \"quasi\"
sex.role = \"quasi\"
arrival.role = \"quasi\"
postcode = { role = \"quasi\", hierarchy.mask = \"right\" }
diagnosis.role = \"sensitive\"
household_size.role = \"kept\"
";

/// A folder with the job and its table.
pub fn desk() -> Desk {
    let desk = Desk::new();
    let rows = ROWS.to_string();
    throng(&["generate", &desk.name("in.parquet"), "--rows", &rows, "--files", "12", "--quiet"]).ok();
    desk.job(JOB);
    desk
}
