//! People who come, change and go, a job that publishes them night after night, and what readers see, read without Throng.

use std::collections::BTreeMap;
use std::path::Path as LocalPath;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int32Array, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Int32Type, Int64Type};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt};
use tempfile::TempDir;
use throng::releases::{Location, StoreOptions, Stores, releases};
use throng::{Job, Manifest, Outcome, Result, Run, RunOptions, SessionOptions};

/// Somebody of a night.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Person {
    pub id: i64,
    pub age: i32,
    pub town: u8,
    pub ill: u8,
}

/// A published row. The number of the person is published, so that a test knows whose row it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    pub id: i64,
    /// The release in which the row was first published.
    pub born: u64,
    pub age: (i32, i32),
    pub town: String,
    pub ill: String,
}

impl Row {
    /// Asserts that what is published of somebody is true.
    pub fn assert_true(&self, source: &Person) {
        let towns = self.town.trim_matches(['{', '}']);
        let town = format!("town-{}", source.town);
        assert!(self.town == "*" || towns.split(", ").any(|name| name == town), "{self:?} {source:?}");
        assert!(self.age.0 <= source.age && source.age <= self.age.1, "{self:?} {source:?}");
        assert_eq!(self.ill, format!("ill-{}", source.ill));
    }

    /// The class that a reader sees it in.
    pub fn class(&self) -> Class<'_> {
        (self.born, self.age, &self.town)
    }
}

/// A class as a reader sees it: the release in which it was first published, and its quasi-identifiers.
type Class<'a> = (u64, (i32, i32), &'a str);

/// What the releases of the tests must meet.
pub const K: usize = 3;
pub const L: usize = 2;

/// The rest of a job; classes are small so that tables may be.
pub const RULES: &str = "privacy = { k = 3, l-diversity = { column = \"ill\", l = 2 } }\n[columns]\nid.role = \"kept\"\n\
                         age.role = \"quasi\"\ntown.role = \"quasi\"\nill.role = \"sensitive\"\n[method]\nseed = 7\n";

/// A store with a source, a sink and a ledger.
pub struct World {
    pub store: Arc<dyn ObjectStore>,
    folder: Arc<TempDir>,
    /// Keys of `[series]` beside those that every series has.
    pub series: String,
    /// The line that says what subjects are told apart by.
    pub subject: String,
    /// Releases are independent of each other, and no series.
    pub is_independent: bool,
    pub rules: String,
    pub partitions: usize,
    /// Whether the sink is a Delta table.
    pub delta: bool,
}

impl World {
    pub fn new(series: &str) -> Self {
        Self::on(Arc::new(InMemory::new()), series)
    }

    pub fn on(store: Arc<dyn ObjectStore>, series: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("key"), "0123456789abcdef0123456789abcdef").unwrap();
        let (series, rules) = (series.to_owned(), RULES.to_owned());
        let subject = "subject = [\"id\"]".to_owned();
        Self {
            store,
            folder: Arc::new(folder),
            series,
            subject,
            is_independent: false,
            rules,
            partitions: 1,
            delta: false,
        }
    }

    /// The same world with a Delta table as sink, or without.
    pub fn in_table(self, delta: bool) -> Self {
        Self { delta, ..self }
    }

    /// One in which rows have no identity, so that every file is read once.
    pub fn of_files(series: &str) -> Self {
        let mut world = Self::new(&format!("mode = \"append\"\n{series}"));
        world.subject.clear();
        world
    }

    /// The same world through another store.
    pub fn through(&self, store: Arc<dyn ObjectStore>) -> Self {
        Self {
            store,
            folder: Arc::clone(&self.folder),
            series: self.series.clone(),
            subject: self.subject.clone(),
            is_independent: self.is_independent,
            rules: self.rules.clone(),
            partitions: self.partitions,
            delta: self.delta,
        }
    }

    /// Exchanges the key of the ledger.
    pub fn change_key(&self) {
        std::fs::write(self.folder.path().join("key"), "fedcba9876543210fedcba9876543210").unwrap();
    }

    fn stores(&self) -> Stores {
        Stores::default().with("s3://lake", Arc::clone(&self.store)).unwrap()
    }

    pub fn open(&self, url: &str) -> Location {
        self.stores().open(LocalPath::new("."), url, &StoreOptions::default()).unwrap()
    }

    pub fn sink(&self) -> Location {
        self.open("s3://lake/out")
    }

    /// Writes the source.
    pub async fn dawn(&self, people: &[Person]) {
        self.write(table(people)).await;
    }

    /// Writes a file of the source.
    pub async fn add_file(&self, name: &str, people: &[Person]) {
        self.write_file(name, table(people)).await;
    }

    pub async fn write(&self, rows: RecordBatch) {
        self.write_file("a.parquet", rows).await;
    }

    async fn write_file(&self, name: &str, rows: RecordBatch) {
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, rows.schema(), None).unwrap();
        writer.write(&rows).unwrap();
        writer.close().unwrap();
        self.store.put(&self.open("s3://lake/in").at(name), bytes.into()).await.unwrap();
    }

    pub fn job(&self) -> String {
        let Self { rules, subject, series, .. } = self;
        let format = if self.delta { "\nsink.format = \"delta\"" } else { "" };
        let job = format!("version = 1\nsource.url = \"s3://lake/in/\"\nsink.url = \"s3://lake/out\"{format}");
        if self.is_independent {
            return format!("{job}\nsink.releases = \"independent\"\n{rules}");
        }
        format!(
            "{job}\n{rules}\n[series]\n{subject}\nstate = \"s3://lake/private/ledger\"\nkey-file = \"key\"\n{series}\n"
        )
    }

    pub fn prepare(&self, id: &str) -> Result<Run> {
        let job = Job::parse(&self.job(), LocalPath::new("job.toml")).unwrap();
        let options = RunOptions::default()
            .with_session(SessionOptions::default().with_partitions(self.partitions))
            .with_run_id(id)
            .with_stores(self.stores());
        Run::new(job, self.folder.path(), options)
    }

    /// Runs the job on the source as it is.
    pub async fn run(&self, id: &str) -> Result<Outcome> {
        let run = self.prepare(id)?;
        // A run is large, and the stack of a test is not.
        Box::pin(run.execute(&|_, _, _| {})).await
    }

    /// Publishes a night.
    pub async fn night(&self, id: &str, people: &[Person]) -> Manifest {
        self.dawn(people).await;
        released(self.run(id).await)
    }

    /// All releases, oldest first.
    pub async fn releases(&self) -> Vec<Manifest> {
        let mut found = releases(&self.sink()).await.unwrap();
        found.sort_by_key(|manifest| manifest.series.as_ref().map(|series| series.number));
        found
    }

    /// The rows of a release.
    pub async fn rows(&self, manifest: &Manifest) -> Vec<Row> {
        let mut rows = Vec::new();
        for file in &manifest.files {
            let bytes = self.store.get(&self.sink().at(&file.path)).await.unwrap().bytes().await.unwrap();
            let born = manifest.series.as_ref().map_or(0, |series| series.born[&file.path]);
            for batch in ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap().build().unwrap() {
                rows.extend(read(&batch.unwrap(), born));
            }
        }
        rows.sort();
        rows
    }
}

fn read(batch: &RecordBatch, born: u64) -> Vec<Row> {
    let column = |name: &str| batch.column_by_name(name).unwrap();
    let text = |name: &str, row: usize| match column(name).data_type() {
        DataType::Utf8View => column(name).as_string_view().value(row).to_owned(),
        _ => column(name).as_string::<i32>().value(row).to_owned(),
    };
    let age = column("age").as_struct();
    let end = |at: usize, row: usize| age.column(at).as_primitive::<Int32Type>().value(row);
    let row = |row: usize| Row {
        id: column("id").as_primitive::<Int64Type>().value(row),
        born,
        age: (end(0, row), end(1, row)),
        town: text("town", row),
        ill: text("ill", row),
    };
    (0..batch.num_rows()).map(row).collect()
}

fn table(people: &[Person]) -> RecordBatch {
    let all = || people.iter();
    let columns: [(&str, ArrayRef); 4] = [
        ("id", Arc::new(Int64Array::from_iter_values(all().map(|person| person.id)))),
        ("age", Arc::new(Int32Array::from_iter_values(all().map(|person| person.age)))),
        ("town", Arc::new(StringArray::from_iter_values(all().map(|person| format!("town-{}", person.town))))),
        ("ill", Arc::new(StringArray::from_iter_values(all().map(|person| format!("ill-{}", person.ill))))),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

/// The manifest of a run that has made a release.
pub fn released(outcome: Result<Outcome>) -> Manifest {
    match outcome.unwrap() {
        Outcome::Released(manifest, _) => *manifest,
        Outcome::AlreadyDone(manifest) => panic!("{} was done before", manifest.run),
    }
}

/// People of whom every town and illness has some, numbered from `first`.
pub fn people(first: i64, count: i64) -> Vec<Person> {
    let person =
        |id: i64| Person { id, age: 20 + (id * 7 % 50) as i32, town: (id * 5 % 4) as u8, ill: (id * 3 % 5) as u8 };
    (first..first + count).map(person).collect()
}

/// Asserts the promise of a series by brute force, from published rows and who was there: `nights` are the sources of all
/// releases, oldest first.
pub async fn recount(world: &World, nights: &[Vec<Person>]) {
    let releases = world.releases().await;
    assert_eq!(releases.len(), nights.len(), "one release for every night");
    #[cfg(feature = "delta")]
    if world.delta {
        super::lake::recount_log(world, &releases).await;
    }
    recount_kept(world, nights).await;
}

/// The same to a reader who has kept no more than the releases that are still there.
pub async fn recount_kept(world: &World, nights: &[Vec<Person>]) {
    let releases = world.releases().await;
    let shown = shown(world, &releases).await;
    check_histories(&shown);
    for (at, manifest) in releases.iter().enumerate() {
        let number = manifest.series.as_ref().unwrap().number as usize;
        check_night(manifest, &shown[at], &nights[number - 1], &nights[..number]);
        if at > 0 {
            check_difference(&shown[at - 1], &shown[at]);
        }
    }
}

/// Who is published in every release.
pub async fn shown(world: &World, releases: &[Manifest]) -> Vec<BTreeMap<i64, Row>> {
    let mut shown: Vec<BTreeMap<i64, Row>> = Vec::new();
    for manifest in releases {
        let rows = world.rows(manifest).await;
        let by_id: BTreeMap<i64, Row> = rows.iter().map(|row| (row.id, row.clone())).collect();
        assert_eq!(by_id.len(), rows.len(), "somebody is published twice");
        shown.push(by_id);
    }
    shown
}

/// Groups everybody who was ever published by their history.
pub fn check_histories(shown: &[BTreeMap<i64, Row>]) {
    let mut everybody: Vec<i64> = shown.iter().flat_map(|rows| rows.keys().copied()).collect();
    everybody.sort_unstable();
    everybody.dedup();
    let mut groups: BTreeMap<Vec<Option<Class<'_>>>, Vec<i64>> = BTreeMap::new();
    for id in everybody {
        groups.entry(shown.iter().map(|rows| rows.get(&id).map(Row::class)).collect()).or_default().push(id);
    }
    for (history, ids) in &groups {
        assert!(ids.len() >= K, "{} have the history {history:?}", ids.len());
        for rows in shown.iter().filter(|rows| rows.contains_key(&ids[0])) {
            let mut ills: Vec<&str> = ids.iter().map(|id| rows[id].ill.as_str()).collect();
            ills.sort_unstable();
            ills.dedup();
            assert!(ills.len() >= L, "{ills:?} of the history {history:?}");
        }
    }
}

/// Rows that come and rows that go between two releases, class by class.
pub fn check_difference(before: &BTreeMap<i64, Row>, after: &BTreeMap<i64, Row>) {
    for (old, new) in [(before, after), (after, before)] {
        let mut moved: BTreeMap<((i32, i32), &str), Vec<&str>> = BTreeMap::new();
        for (id, row) in new.iter().filter(|(id, row)| old.get(id) != Some(row)) {
            assert_eq!(*id, row.id);
            moved.entry((row.age, &row.town)).or_default().push(&row.ill);
        }
        for (class, mut ills) in moved {
            assert!(ills.len() >= K, "{} rows of {class:?} differ", ills.len());
            ills.sort_unstable();
            ills.dedup();
            assert!(ills.len() >= L, "the rows of {class:?} that differ have {ills:?}");
        }
    }
}

/// Nobody is lost, and whatever is published was true when it was first published.
fn check_night(manifest: &Manifest, shown: &BTreeMap<i64, Row>, people: &[Person], so_far: &[Vec<Person>]) {
    let series = manifest.series.as_ref().unwrap();
    let counts = series.counts;
    assert_eq!((manifest.rows, manifest.rows_read), (shown.len() as u64, people.len() as u64), "{counts:?}");
    let here = |id: &i64| people.iter().any(|person| person.id == *id);
    assert_eq!(counts.gone, shown.keys().filter(|id| !here(id)).count() as u64);
    let out = people.iter().filter(|person| !shown.contains_key(&person.id)).count() as u64;
    assert_eq!(counts.waiting + counts.suppressed + counts.withheld, out, "{counts:?}");
    let (mut changed, mut new) = (0, 0);
    for row in shown.values() {
        let born = &so_far[row.born as usize - 1];
        let source = born.iter().find(|person| person.id == row.id).expect("who is published was there");
        row.assert_true(source);
        new += u64::from(row.born == series.number);
        changed += u64::from(people.iter().any(|person| person.id == row.id && person != source));
    }
    assert_eq!((counts.new + counts.returned, counts.changed), (new, changed), "{counts:?}");
}
