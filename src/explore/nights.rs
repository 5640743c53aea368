//! Trials of the settings of a series: nights are simulated, published into memory and looked at. Nothing is written.
//!
//! 1. Rows are drawn from the source: everybody who is ever there in the simulation.
//! 2. [`Churn`] decides who is there on which night. Who comes is a row that was not there before; nobody comes back, and nobody
//!    changes.
//! 3. Every setting publishes the same nights, by the run that a series is published by, into stores in memory.
//! 4. What readers miss is measured over the later half of the nights, when a series has got going: what published values
//!    lose, and everything that is not published, or not as it is any more, as lost.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use datafusion::arrow::array::{BooleanArray, RecordBatch};
use datafusion::arrow::compute::{concat_batches, filter_record_batch};
use datafusion::logical_expr::Expr;
use datafusion::parquet::arrow::ArrowWriter;
use object_store::memory::InMemory;
use object_store::path::Path as StorePath;
use object_store::{ObjectStore, ObjectStoreExt};
use serde::Serialize;
use throng_core::series::churn::Churn;

use super::row_hash::row_hash;
use super::trial::Trials;
use crate::engine::session::SessionOptions;
use crate::error::{Error, Result};
use crate::policy::{Job, Series, SeriesMode, Sink, Source};
use crate::release::{Manifest, Outcome, Run, RunOptions};
use crate::storage::{StoreOptions, Stores};

/// Where a simulation publishes: a store in memory that is known by this name to its runs alone.
const STORE: &str = "s3://simulation";

/// What is simulated.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Simulation {
    /// Nights, of which the later half is measured.
    pub(crate) nights: u64,
    /// Share of the subjects that leaves every night while as many come.
    pub(crate) churn: f64,
    /// Most rows that are drawn from the source.
    pub(crate) sample: u64,
    pub(crate) seed: u64,
}

/// Keys of `[series]` that may be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct SeriesSetting {
    pub(crate) reserve: f64,
    pub(crate) max_loss: f64,
    pub(crate) max_wait: u32,
    pub(crate) retire_at: f64,
    pub(crate) dissolve: bool,
}

impl SeriesSetting {
    /// Those of a job.
    pub(crate) fn of(series: &Series) -> Self {
        let Series { reserve, max_loss, max_wait, retire_at, dissolve, .. } = *series;
        Self { reserve, max_loss, max_wait, retire_at, dissolve }
    }

    /// Settings that differ from this one in one key, key by key; the last two keys only matter where rows leave.
    pub(crate) fn variations(mode: SeriesMode) -> Vec<fn(Self) -> Vec<Self>> {
        let mut keys: Vec<fn(Self) -> Vec<Self>> = vec![
            |one| [1.0, 1.5, 2.0, 3.0].map(|reserve| Self { reserve, ..one }).to_vec(),
            |one| [0.2, 0.35, 0.6, 1.0].map(|max_loss| Self { max_loss, ..one }).to_vec(),
            |one| [2, 7, 14].map(|max_wait| Self { max_wait, ..one }).to_vec(),
        ];
        if mode == SeriesMode::Snapshot {
            keys.insert(1, |one| [0.3, 0.5, 0.7].map(|retire_at| Self { retire_at, ..one }).to_vec());
            keys.insert(2, |one| [false, true].map(|dissolve| Self { dissolve, ..one }).to_vec());
        }
        keys
    }

    fn apply_to(self, series: &mut Series) {
        let Self { reserve, max_loss, max_wait, retire_at, dissolve } = self;
        *series = Series { reserve, max_loss, max_wait, retire_at, dissolve, ..series.clone() };
    }
}

/// What a setting does.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct SeriesTrial {
    #[serde(flatten)]
    pub(crate) setting: SeriesSetting,
    /// Mean loss of a published value.
    pub(crate) loss: f64,
    /// Rows that wait, by rows that should be published; those below likewise.
    pub(crate) waiting: f64,
    /// Published rows that are gone or have changed.
    pub(crate) stale: f64,
    pub(crate) withheld: f64,
    pub(crate) suppressed: f64,
    /// Share of the information that readers miss: what published values lose, and all of the rows above.
    pub(crate) missed: f64,
    /// Seconds of a night.
    pub(crate) seconds: f64,
}

/// Nights of a job, of which settings are tried.
pub(crate) struct SeriesTrials {
    job: Job,
    base: PathBuf,
    session: SessionOptions,
    /// The source of every night as a Parquet file; of a series that appends, what the night adds to it.
    nights: Vec<Bytes>,
    /// Rows that were drawn.
    pub(crate) rows: u64,
    pub(crate) churn: Churn,
}

impl SeriesTrials {
    /// Draws rows from the source and makes nights of them.
    pub(crate) async fn open(
        trials: &Trials,
        base: &Path,
        session: &SessionOptions,
        simulation: Simulation,
    ) -> Result<Self> {
        let Some(series) = &trials.job.series else {
            return Err(Error::job("series: is missing, so there are no nights to simulate; see `throng schema`"));
        };
        let rows = trials.sample_rows(simulation.sample, simulation.seed).await?;
        // Whoever comes later is drawn as whoever is there at first, in whatever order the source lies.
        let columns: Vec<Expr> = rows.schema().columns().into_iter().map(Expr::Column).collect();
        let rows = rows.sort(vec![row_hash(columns, simulation.seed.wrapping_add(1)).sort(true, false)])?;
        let schema = Arc::new(rows.schema().as_arrow().clone());
        let rows = concat_batches(&schema, &rows.collect().await?)?;
        let drawn = rows.num_rows() as u64;
        let churn = Churn::within(simulation.seed, drawn, simulation.churn, simulation.nights);
        let k = u64::from(trials.job.privacy.k);
        let nobody_comes = simulation.churn > 0.0 && churn.newcomers() == 0;
        if churn.subjects() < 2 * k || nobody_comes {
            return Err(Error::input(format!(
                "{drawn} rows are too few to simulate {} nights at a churn of {}: {} people would be there on the first one, \
                 {} come on each other one, and k is {k}; take a larger --sample, fewer --nights or another --churn",
                simulation.nights,
                simulation.churn,
                churn.subjects(),
                churn.newcomers()
            )));
        }
        let is_read = |subject: u64, night: u64| match series.mode {
            SeriesMode::Snapshot => churn.is_there(subject, night),
            SeriesMode::Append => churn.arrival(subject) == night,
        };
        let night = |night: u64| {
            let here: BooleanArray = (0..drawn).map(|subject| Some(is_read(subject, night))).collect();
            parquet_bytes(&filter_record_batch(&rows, &here)?)
        };
        let nights = (0..simulation.nights).map(night).collect::<Result<Vec<_>>>()?;
        Ok(Self {
            job: trials.job.clone(),
            base: base.to_owned(),
            session: session.clone(),
            nights,
            rows: drawn,
            churn,
        })
    }

    /// Publishes all nights under a setting.
    pub(crate) async fn run(&self, setting: SeriesSetting) -> Result<SeriesTrial> {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let stores = Stores::default().with(STORE, Arc::clone(&store))?;
        let job = self.job_of(setting);
        let appends = job.series.as_ref().is_some_and(|series| series.mode == SeriesMode::Append);
        let mut tally = Tally::default();
        for (number, bytes) in self.nights.iter().enumerate() {
            let file =
                if appends { format!("source/night-{number:05}.parquet") } else { "source/night.parquet".into() };
            store.put(&StorePath::from(file), bytes.clone().into()).await?;
            let options = RunOptions::default()
                .with_session(self.session.clone())
                .with_run_id(format!("night-{number:05}"))
                .with_stores(stores.clone());
            let started = Instant::now();
            let run = Run::new(job.clone(), &self.base, options)?;
            let Outcome::Released(manifest, _) = run.execute(&|_, _, _| ()).await? else {
                return Err(Error::internal("a simulated night has been published before"));
            };
            if number >= self.nights.len() / 2 {
                tally.add_night(&manifest, started.elapsed().as_secs_f64());
            }
        }
        Ok(tally.to_trial(setting))
    }

    /// The job with nights as its source, published into memory.
    fn job_of(&self, setting: SeriesSetting) -> Job {
        let mut job = self.job.clone();
        job.source = Source::at_url(&format!("{STORE}/source/"));
        job.sink =
            Sink { url: format!("{STORE}/sink/"), options: StoreOptions::default(), format: None, releases: None };
        if let Some(series) = &mut job.series {
            setting.apply_to(series);
            series.state = format!("{STORE}/state/");
            series.options = StoreOptions::default();
            series.horizon = None;
        }
        job
    }
}

fn parquet_bytes(rows: &RecordBatch) -> Result<Bytes> {
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, rows.schema(), None)?;
    writer.write(rows)?;
    writer.close()?;
    Ok(bytes.into())
}

/// Rows of several nights by what became of them.
#[derive(Debug, Default)]
struct Tally {
    published: u64,
    lost: f64,
    waiting: u64,
    stale: u64,
    withheld: u64,
    suppressed: u64,
    seconds: f64,
    nights: u64,
}

impl Tally {
    fn add_night(&mut self, manifest: &Manifest, seconds: f64) {
        let counts = manifest.series.as_ref().map(|series| series.counts).unwrap_or_default();
        self.published += manifest.rows;
        self.lost += manifest.scores.gcp.unwrap_or(0.0) * manifest.rows as f64;
        self.waiting += counts.waiting;
        self.stale += counts.stale();
        self.withheld += counts.withheld;
        self.suppressed += counts.suppressed;
        self.seconds += seconds;
        self.nights += 1;
    }

    fn to_trial(&self, setting: SeriesSetting) -> SeriesTrial {
        // Rows that are published as the source has them, and rows that should be.
        let current = self.published.saturating_sub(self.stale);
        let missing = self.waiting + self.withheld + self.suppressed;
        let all = (self.published + missing).max(1) as f64;
        let share = |rows: u64| rows as f64 / all;
        let loss = self.lost / self.published.max(1) as f64;
        SeriesTrial {
            setting,
            loss,
            waiting: share(self.waiting),
            stale: share(self.stale),
            withheld: share(self.withheld),
            suppressed: share(self.suppressed),
            missed: loss * share(current) + share(self.stale) + share(missing),
            seconds: self.seconds / self.nights.max(1) as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_not_published_as_it_is_counts_as_missed() {
        let series: Series = toml::from_str("state = \"s\"").unwrap();
        let setting = SeriesSetting::of(&series);
        let tally = Tally {
            published: 80,
            lost: 8.0,
            waiting: 10,
            stale: 20,
            withheld: 6,
            suppressed: 4,
            seconds: 6.0,
            nights: 3,
        };
        let trial = tally.to_trial(setting);
        assert_eq!((trial.loss, trial.stale, trial.waiting, trial.seconds), (0.1, 0.2, 0.1, 2.0));
        assert!((trial.missed - (0.6 * 0.1 + 0.2 + 0.2)).abs() < 1e-12, "{trial:?}");
    }

    #[test]
    fn settings_vary_in_one_key_each() {
        let series: Series = toml::from_str("state = \"s\"").unwrap();
        let setting = SeriesSetting::of(&series);
        assert_eq!(SeriesSetting::variations(SeriesMode::Append).len(), 3);
        for vary in SeriesSetting::variations(SeriesMode::Snapshot) {
            assert!(vary(setting).contains(&setting), "the default is among {:?}", vary(setting));
        }
    }
}
