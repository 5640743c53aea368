//! Skewed people: rows whose values are far from evenly spread, in one way each.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Date32Array, Int32Array, RecordBatch, StringArray};
use datafusion::parquet::arrow::ArrowWriter;

/// In which way rows are skewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skew {
    /// Post codes follow Zipf's law, ages lean towards the young, dates towards the past.
    Zipf,
    /// Seven in ten live in one town.
    Town,
    /// Half of the rows are copies of a thousand, the most frequent of which is one row in fifteen.
    Copies,
    /// Three in ten rows are the same: no cut divides them.
    Same,
}

/// The job on such rows, after version, source and sink.
pub const JOB: &str = "
privacy.k = 5
[columns]
age.role = \"quasi\"
town.role = \"quasi\"
postcode = { role = \"quasi\", hierarchy.mask = \"right\" }
arrival = { role = \"quasi\", hierarchy.calendar = [\"month\", \"year\", \"decade\"] }
illness.role = \"sensitive\"
";

/// Towns, post codes, illnesses, and rows that have copies.
const TOWNS: usize = 60;
const POSTCODES: usize = 2000;
const ILLNESSES: usize = 12;
const COPIED: usize = 1000;

/// A number from 0 with a probability that falls as one over it.
struct Zipf {
    sums: Vec<f64>,
}

impl Zipf {
    fn new(values: usize) -> Self {
        let sums = (1..=values).scan(0.0, |sum, value| {
            *sum += 1.0 / value as f64;
            Some(*sum)
        });
        Self { sums: sums.collect() }
    }

    fn draw(&self, rng: &mut fastrand::Rng) -> usize {
        let at = rng.f64() * self.sums.last().copied().unwrap_or(0.0);
        self.sums.partition_point(|sum| *sum < at).min(self.sums.len() - 1)
    }
}

#[derive(Clone, Copy)]
struct Person {
    age: i32,
    town: usize,
    postcode: usize,
    arrival: i32,
    illness: usize,
}

/// Writes so many rows as one Parquet file; the same for the same seed.
pub fn write(skew: Skew, rows: usize, seed: u64, path: &Path) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let (postcodes, copies) = (Zipf::new(POSTCODES), Zipf::new(COPIED));
    let person = |rng: &mut fastrand::Rng| Person {
        age: (rng.f64() * rng.f64() * 95.0) as i32,
        town: if skew == Skew::Town && rng.f64() < 0.7 { 17 } else { rng.usize(0..TOWNS) },
        // Frequent post codes lie apart.
        postcode: if skew == Skew::Zipf { postcodes.draw(rng) * 7919 % POSTCODES } else { rng.usize(0..POSTCODES) },
        arrival: (rng.f64().powi(3) * 20_000.0) as i32,
        illness: rng.usize(0..ILLNESSES),
    };
    let copied: Vec<Person> = (0..COPIED).map(|_| person(&mut rng)).collect();
    let mut writer: Option<ArrowWriter<File>> = None;
    let mut left = rows;
    while left > 0 {
        let people: Vec<Person> = (0..left.min(1 << 16))
            .map(|_| match skew {
                Skew::Copies if rng.bool() => copied[copies.draw(&mut rng)],
                Skew::Same if rng.f64() < 0.3 => copied[0],
                _ => person(&mut rng),
            })
            .collect();
        left -= people.len();
        let text = |value: &dyn Fn(&Person) -> String| -> ArrayRef {
            Arc::new(people.iter().map(|person| Some(value(person))).collect::<StringArray>())
        };
        let columns: [(&str, ArrayRef); 5] = [
            ("age", Arc::new(people.iter().map(|person| Some(person.age)).collect::<Int32Array>())),
            ("town", text(&|person| format!("town {:02}", person.town))),
            ("postcode", text(&|person| format!("{:05}", person.postcode * 37))),
            ("arrival", Arc::new(people.iter().map(|person| Some(person.arrival)).collect::<Date32Array>())),
            ("illness", text(&|person| format!("illness {}", person.illness))),
        ];
        let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
        let writer = writer.get_or_insert_with(|| {
            ArrowWriter::try_new(File::create(path).expect("a file"), batch.schema(), None).expect("a writer")
        });
        writer.write(&batch).expect("a batch");
    }
    writer.expect("some rows").close().expect("a Parquet file");
}
