//! The promise of a series, recounted before a release is committed: all subjects that were ever published, grouped by their
//! history, meet k and every rule in each group, on the values that were published of them.
//!
//! What is read is what would stand after the commit: the ledger of before and the staged one, and the files that only one of
//! the two releases lists. How cohorts were made and retired is not asked. Files that both list hold the same bytes, so what was
//! checked of them holds on:
//!
//! 1. Both ledgers are read side by side, in the order of subjects. Whoever has a history keeps one. A row whose history, cohort
//!    and content are as they were has not *moved*.
//! 2. Nobody who has not moved shares a history with somebody who has, before or after. So the groups of those who have not
//!    moved are what they were.
//! 3. Every history of those who have moved holds k subjects, and follows from the one before and the cohort it goes on in, and
//!    from nothing else: two subjects who differ in either have different ones, and who does not differ has the same.
//! 4. The rows that the ledger says have come or gone, cohort by cohort, are those that files say have come or gone.
//! 5. Histories of those who have moved meet every rule: on the values that this release publishes of their members, and on
//!    those that the release before has published of them.

use std::cmp::Ordering;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeBinaryArray, FixedSizeBinaryBuilder, Int64Array, RecordBatch,
};
use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::prelude::{DataFrame, SessionContext};
use futures::TryStreamExt;

use super::histories::{HISTORY, check_rules, check_sides, of_series, query_number};
use crate::binding::BoundPolicy;
use crate::error::{Error, Result};
use crate::verify::{Finding, PlanExecutor, class_sizes, small_classes};

/// Rows that are written at once.
const ROWS: usize = 8192;

/// Most rows that a join holds in memory here.
const MAX_HELD: u64 = 250_000;

/// Bytes of a digest.
const DIGEST_BYTES: i32 = 16;

/// A row that has moved: its history before and after, and the cohort and content that it was and is published in.
const COLUMNS: [&str; 6] = ["was", "became", "left_cohort", "left_content", "cohort", "content"];

/// The columns of rows that have moved.
pub(crate) fn changes_schema() -> SchemaRef {
    let digest = |name| Field::new(name, DataType::FixedSizeBinary(DIGEST_BYTES), true);
    Arc::new(Schema::new(COLUMNS.map(digest).to_vec()))
}

/// What two ledgers say beside the rows that have moved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Compared {
    /// Rows that have moved.
    moved: u64,
    /// Rows with a history that have not.
    unmoved: u64,
    /// Rows with a history that only the ledger of before knows.
    lost: u64,
    /// Rows that are published without a cohort, or in one without being published.
    muddled: u64,
}

/// What a series says of its subjects, before a release and after it.
pub(crate) struct Changes {
    pub(crate) compared: Compared,
    /// Rows that have moved.
    pub(crate) moves: DataFrame,
    /// The staged ledger.
    pub(crate) after: DataFrame,
    /// Rows of files that only the release before lists: `__throng_cohort`, `__throng_content`, then columns that rules guard.
    pub(crate) removed: DataFrame,
    /// The same of files that only the release lists that is to be committed.
    pub(crate) written: DataFrame,
}

/// Checks what a release changes. The tables of the session are nobody else's.
pub(crate) async fn check_changes(
    plans: &dyn PlanExecutor,
    context: &SessionContext,
    changes: Changes,
    bound_policy: &Arc<BoundPolicy>,
) -> Result<Vec<Finding>> {
    let Changes { compared, moves, after, removed, written } = changes;
    for (name, rows) in
        [("audit_moves", moves), ("audit_after", after), ("audit_removed", removed), ("audit_written", written)]
    {
        context.register_table(name, rows.into_view())?;
    }
    let mut findings = Vec::new();
    findings.extend(Finding::if_any("series", compared.lost, |count| {
        format!("{count} subjects that were published before are not in the ledger any more")
    }));
    findings.extend(Finding::if_any("series", compared.muddled, |count| {
        format!("{count} rows of the ledger are in a class and not published, or the other way round")
    }));
    findings.extend(check_unmoved(context, &compared).await?);
    let became = format!("SELECT became AS \"{HISTORY}\" FROM audit_moves WHERE became IS NOT NULL");
    let sizes = class_sizes(plans, &context.sql(&became).await?, &[HISTORY.to_owned()]).await?;
    findings.extend(small_classes(&sizes, bound_policy.policy.privacy.k, "subjects with one history").map(of_series));
    findings.extend(check_names(context).await?);
    let sides = "SELECT cohort, content, 1 AS side FROM audit_moves WHERE cohort IS NOT NULL UNION ALL \
                 SELECT left_cohort AS cohort, left_content AS content, -1 AS side FROM audit_moves WHERE left_cohort IS NOT \
                 NULL UNION ALL SELECT \"__throng_cohort\" AS cohort, \"__throng_content\" AS content, -1 AS side FROM \
                 audit_written UNION ALL SELECT \"__throng_cohort\" AS cohort, \"__throng_content\" AS content, 1 AS side \
                 FROM audit_removed";
    findings.extend(check_sides(context, sides).await?);
    for (cohort, content, table) in
        [("cohort", "content", "audit_written"), ("left_cohort", "left_content", "audit_removed")]
    {
        // Rows of one cohort and content hold the same values, so one of them stands for all.
        let subjects =
            format!("SELECT became, {cohort} AS c, {content} AS v FROM audit_moves WHERE {cohort} IS NOT NULL");
        let values = format!(
            "SELECT m.became AS \"{HISTORY}\", s.* FROM ({subjects}) m JOIN (SELECT DISTINCT * FROM {table}) s ON \
             s.\"__throng_cohort\" = m.c AND s.\"__throng_content\" = m.v"
        );
        let values = context.sql(&values).await?;
        let expected = query_number(context, &format!("SELECT COUNT(*) FROM ({subjects})")).await?;
        let found = values.clone().count().await? as u64;
        findings.extend(Finding::if_any("series", expected.abs_diff(found), |rows| {
            format!("{rows} rows that the ledger knows of are not published as it says")
        }));
        findings.extend(check_rules(plans, values, bound_policy).await?);
    }
    Ok(findings)
}

/// Checks that nobody who has not moved shares a history with somebody who has.
async fn check_unmoved(context: &SessionContext, compared: &Compared) -> Result<Option<Finding>> {
    if compared.unmoved == 0 || compared.moved == 0 {
        return Ok(None);
    }
    let mut state = context.state();
    state.config_mut().options_mut().optimizer.prefer_hash_join = compared.moved <= MAX_HELD;
    let context = SessionContext::new_with_state(state);
    let theirs = "SELECT was AS theirs FROM audit_moves UNION SELECT became AS theirs FROM audit_moves";
    let shared = format!("SELECT COUNT(*) FROM ({theirs}) t RIGHT SEMI JOIN audit_after a ON a.history = t.theirs");
    let moved = "SELECT COUNT(*) FROM audit_moves WHERE became IS NOT NULL";
    let off = query_number(&context, &shared).await?.abs_diff(query_number(&context, moved).await?);
    Ok(Finding::if_any("series", off, |count| {
        format!("{count} subjects stay in a history that others have left or come into")
    }))
}

/// Checks that histories say what has happened.
async fn check_names(context: &SessionContext) -> Result<Option<Finding>> {
    let moves = "SELECT DISTINCT became, was, cohort FROM audit_moves WHERE became IS NOT NULL";
    let all = query_number(context, &format!("SELECT COUNT(*) FROM ({moves})")).await?;
    let by_name =
        query_number(context, &format!("SELECT COUNT(*) FROM (SELECT DISTINCT became FROM ({moves}))")).await?;
    let by_move =
        query_number(context, &format!("SELECT COUNT(*) FROM (SELECT DISTINCT was, cohort FROM ({moves}))")).await?;
    let off = all.abs_diff(by_name) + all.abs_diff(by_move);
    Ok(Finding::if_any("series", off, |count| format!("{count} histories of the ledger do not say what has happened")))
}

/// Reads two ledgers in the order of their subjects, and gives the rows that have moved to a function.
pub(crate) async fn compare_ledgers(
    before: SendableRecordBatchStream,
    after: SendableRecordBatchStream,
    mut write: impl FnMut(&RecordBatch) -> Result<()>,
) -> Result<Compared> {
    let (mut before, mut after) = (Reader::new(before), Reader::new(after));
    let (mut compared, mut moves) = (Compared::default(), Moves::default());
    loop {
        let (was_there, is_there) = (before.advance().await?, after.advance().await?);
        let order = match (was_there, is_there) {
            (false, false) => break,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (true, true) => before.subject().cmp(after.subject()),
        };
        let was = if order == Ordering::Greater { Entry::default() } else { before.take_entry() };
        let became = if order == Ordering::Less { Entry::default() } else { after.take_entry() };
        compared.muddled += u64::from(became.is_muddled);
        if order == Ordering::Less {
            compared.lost += u64::from(was.history.is_some());
        } else if was.is_as(&became) {
            compared.unmoved += u64::from(became.history.is_some());
        } else {
            compared.moved += 1;
            moves.push(&was, &became)?;
        }
        if moves.rows == ROWS {
            write(&moves.finish()?)?;
        }
    }
    if moves.rows > 0 {
        write(&moves.finish()?)?;
    }
    Ok(compared)
}

type Digest = [u8; DIGEST_BYTES as usize];

/// What a ledger says of a subject.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    history: Option<Digest>,
    /// The cohort that it is published in, and its content there.
    shown: Option<(Digest, Digest)>,
    is_muddled: bool,
}

impl Entry {
    fn is_as(&self, other: &Self) -> bool {
        (self.history, self.shown) == (other.history, other.shown)
    }
}

/// A ledger in the order of its subjects.
struct Reader {
    stream: SendableRecordBatchStream,
    batch: Option<Columns>,
    /// The row that is next; none has been taken from it.
    row: usize,
    is_over: bool,
}

/// The columns of a batch.
struct Columns {
    subjects: FixedSizeBinaryArray,
    cohorts: FixedSizeBinaryArray,
    histories: FixedSizeBinaryArray,
    contents: FixedSizeBinaryArray,
    states: Int64Array,
}

impl Columns {
    fn new(batch: &RecordBatch) -> Result<Self> {
        let unreadable = |name: &str| Error::conflict(format!("the ledger of the series lacks its column `{name}`"));
        let column = |name: &str| batch.column_by_name(name).ok_or_else(|| unreadable(name));
        let digests = |name: &str| {
            let column = column(name)?.as_fixed_size_binary_opt();
            column.cloned().ok_or_else(|| unreadable(name))
        };
        let states = column("state")?.as_primitive_opt::<Int64Type>();
        let states = states.cloned().ok_or_else(|| unreadable("state"))?;
        let (subjects, cohorts) = (digests("subject")?, digests("cohort")?);
        let in_order = (1..subjects.len()).all(|row| subjects.value(row - 1) < subjects.value(row));
        if !in_order {
            return Err(Error::conflict("the ledger of the series is not in the order of its subjects"));
        }
        Ok(Self { subjects, cohorts, histories: digests("history")?, contents: digests("content")?, states })
    }
}

impl Reader {
    fn new(stream: SendableRecordBatchStream) -> Self {
        Self { stream, batch: None, row: 0, is_over: false }
    }

    /// Reads on where the last row was taken; false at the end.
    async fn advance(&mut self) -> Result<bool> {
        while self.batch.as_ref().is_none_or(|batch| self.row == batch.subjects.len()) {
            let next = if self.is_over { None } else { self.stream.try_next().await? };
            let Some(next) = next else {
                self.is_over = true;
                return Ok(false);
            };
            let next = Columns::new(&next)?;
            let last = self.batch.as_ref().filter(|batch| !batch.subjects.is_empty());
            let last = last.map(|batch| batch.subjects.value(batch.subjects.len() - 1));
            if !next.subjects.is_empty() && last.is_some_and(|last| last >= next.subjects.value(0)) {
                return Err(Error::conflict("the ledger of the series is not in the order of its subjects"));
            }
            if next.subjects.is_empty() {
                continue;
            }
            (self.batch, self.row) = (Some(next), 0);
        }
        Ok(true)
    }

    fn subject(&self) -> &[u8] {
        self.batch.as_ref().map_or(&[], |batch| batch.subjects.value(self.row))
    }

    fn take_entry(&mut self) -> Entry {
        let Some(batch) = &self.batch else { return Entry::default() };
        let row = self.row;
        self.row += 1;
        let digest = |column: &FixedSizeBinaryArray| -> Option<Digest> {
            column.is_valid(row).then(|| column.value(row).try_into().ok()).flatten()
        };
        let is_published = batch.states.is_valid(row) && matches!(batch.states.value(row), 1 | 2);
        let (cohort, content) = (digest(&batch.cohorts), digest(&batch.contents));
        Entry {
            history: digest(&batch.histories),
            shown: cohort.zip(content).filter(|_| is_published),
            is_muddled: is_published != cohort.is_some() || is_published && content.is_none(),
        }
    }
}

/// Rows that have moved and are not written yet.
struct Moves {
    columns: [FixedSizeBinaryBuilder; 6],
    rows: usize,
}

impl Default for Moves {
    fn default() -> Self {
        Self { columns: std::array::from_fn(|_| FixedSizeBinaryBuilder::new(DIGEST_BYTES)), rows: 0 }
    }
}

impl Moves {
    fn push(&mut self, was: &Entry, became: &Entry) -> Result<()> {
        let (left, joined) = (was.shown, became.shown);
        let values = [
            was.history,
            became.history,
            left.map(|shown| shown.0),
            left.map(|shown| shown.1),
            joined.map(|shown| shown.0),
            joined.map(|shown| shown.1),
        ];
        for (column, value) in self.columns.iter_mut().zip(values) {
            match value {
                Some(value) => column.append_value(value)?,
                None => column.append_null(),
            }
        }
        self.rows += 1;
        Ok(())
    }

    fn finish(&mut self) -> Result<RecordBatch> {
        self.rows = 0;
        let columns = self.columns.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef);
        Ok(RecordBatch::try_new(changes_schema(), columns.collect())?)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use datafusion::arrow::array::StringArray;
    use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
    use futures::stream;

    use super::*;
    use crate::policy::Policy;
    use crate::verify::InProcess;

    /// Subject, cohort, history, content and state; 0 is null.
    type Row = (u8, u8, u8, u8, i64);

    fn digests(bytes: i32, values: impl Iterator<Item = u8>) -> ArrayRef {
        let mut built = FixedSizeBinaryBuilder::new(bytes);
        for value in values {
            match value {
                0 => built.append_null(),
                value => built.append_value(vec![value; bytes as usize]).unwrap(),
            }
        }
        Arc::new(built.finish())
    }

    fn ledger(rows: &[Row]) -> RecordBatch {
        let columns: [(&str, ArrayRef); 5] = [
            ("subject", digests(32, rows.iter().map(|row| row.0))),
            ("cohort", digests(16, rows.iter().map(|row| row.1))),
            ("history", digests(16, rows.iter().map(|row| row.2))),
            ("content", digests(16, rows.iter().map(|row| row.3))),
            ("state", Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.4)))),
        ];
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap()
    }

    /// The rows in batches of two.
    fn read(rows: &[Row]) -> SendableRecordBatchStream {
        let batches: Vec<_> = rows.chunks(2).map(|rows| Ok(ledger(rows))).collect();
        Box::pin(RecordBatchStreamAdapter::new(ledger(&[]).schema(), stream::iter(batches)))
    }

    /// Published rows: cohort and content, which is the illness too.
    fn shown(rows: &[(u8, u8)]) -> RecordBatch {
        let ills = StringArray::from_iter_values(rows.iter().map(|row| format!("ill-{}", row.1)));
        let columns: [(&str, ArrayRef); 3] = [
            ("__throng_cohort", digests(16, rows.iter().map(|row| row.0))),
            ("__throng_content", digests(16, rows.iter().map(|row| row.1))),
            ("ill", Arc::new(ills)),
        ];
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap()
    }

    async fn compare(before: &[Row], after: &[Row]) -> Result<(Compared, Vec<RecordBatch>)> {
        let mut moves = vec![RecordBatch::new_empty(changes_schema())];
        let compared = compare_ledgers(read(before), read(after), |rows| {
            moves.push(rows.clone());
            Ok(())
        })
        .await?;
        Ok((compared, moves))
    }

    /// What is found of a night between two ledgers that removes and writes some rows; k = 2 and two illnesses are asked.
    async fn findings(before: &[Row], after: &[Row], removed: &[(u8, u8)], written: &[(u8, u8)]) -> Vec<String> {
        let policy = "[privacy]\nk = 2\nl-diversity = { column = \"ill\", l = 2 }\n[columns]\nage.role = \"quasi\"\n\
                      ill.role = \"sensitive\"\n";
        let policy = Policy::from_table(toml::from_str(policy).unwrap(), Path::new(".")).unwrap();
        let fields = vec![Field::new("age", DataType::Int32, true), Field::new("ill", DataType::Utf8, true)];
        let bound_policy = Arc::new(BoundPolicy::new(Arc::new(policy), Arc::new(Schema::new(fields))).unwrap());
        let context = SessionContext::new();
        let (compared, moves) = compare(before, after).await.unwrap();
        let changes = Changes {
            compared,
            moves: context.read_batches(moves).unwrap(),
            after: context.read_batch(ledger(after)).unwrap(),
            removed: context.read_batch(shown(removed)).unwrap(),
            written: context.read_batch(shown(written)).unwrap(),
        };
        let found = check_changes(&InProcess, &context, changes, &bound_policy).await.unwrap();
        found.into_iter().map(|finding| finding.message).collect()
    }

    const MONDAY: [Row; 4] = [(1, 11, 11, 1, 1), (3, 11, 11, 2, 1), (5, 11, 11, 1, 2), (7, 11, 11, 2, 1)];

    #[tokio::test]
    async fn a_night_that_keeps_the_promise_has_no_findings() {
        let nothing: [&str; 0] = [];
        let rows = [(11, 1), (11, 2), (11, 1), (11, 2)];
        assert_eq!(findings(&[], &MONDAY, &[], &rows).await, nothing);
        assert_eq!(findings(&MONDAY, &MONDAY, &[], &[]).await, nothing);
        // Two come, and one waits.
        let mut tuesday = MONDAY.to_vec();
        tuesday.extend([(8, 12, 12, 1, 1), (9, 0, 0, 0, 4), (10, 12, 12, 2, 1)]);
        assert_eq!(findings(&MONDAY, &tuesday, &[], &[(12, 1), (12, 2)]).await, nothing);
        // The class is split.
        let split = [(1, 13, 21, 1, 1), (3, 13, 21, 2, 1), (5, 0, 22, 1, 3), (7, 0, 22, 2, 3)];
        assert_eq!(findings(&MONDAY, &split, &rows, &[(13, 1), (13, 2)]).await, nothing);
    }

    #[tokio::test]
    async fn whatever_breaks_the_promise_is_found() {
        let rows = [(11, 1), (11, 2), (11, 1), (11, 2)];
        let expect = |found: Vec<String>, words: &str| {
            assert!(found.iter().any(|message| message.contains(words)), "{words}: {found:?}");
        };
        let with = |row: Row| [&MONDAY[..], &[row]].concat();
        expect(findings(&MONDAY, &with((8, 11, 11, 1, 1)), &[], &[(11, 1)]).await, "come into");
        expect(findings(&MONDAY, &with((8, 12, 12, 1, 1)), &[], &[(12, 1)]).await, "subjects with one history");
        let pair = [&MONDAY[..], &[(8, 12, 12, 1, 1), (9, 12, 12, 1, 1)]].concat();
        expect(findings(&MONDAY, &pair, &[], &[(12, 1), (12, 1)]).await, "one history do not meet it");
        expect(findings(&MONDAY, &pair, &[], &[(12, 1)]).await, "same class of the other");
        expect(findings(&MONDAY, &MONDAY[..3], &rows, &rows[..3]).await, "not in the ledger any more");
        expect(findings(&MONDAY, &with((8, 12, 0, 1, 4)), &[], &[]).await, "not published, or the other way");
        // Two leave, the others keep their history: they were four before.
        let halved = [(1, 11, 11, 1, 1), (3, 11, 11, 2, 1), (5, 0, 22, 1, 3), (7, 0, 22, 2, 3)];
        expect(findings(&MONDAY, &halved, &rows, &rows[..2]).await, "others have left");
        // Two ways to one history.
        let muddled = [(1, 12, 21, 1, 1), (3, 12, 21, 2, 1), (5, 13, 21, 1, 1), (7, 13, 21, 2, 1)];
        expect(
            findings(&MONDAY, &muddled, &rows, &[(12, 1), (12, 2), (13, 1), (13, 2)]).await,
            "do not say what has happened",
        );
        // Those who leave are alike.
        let alike = [(1, 0, 22, 1, 3), (3, 13, 21, 2, 1), (5, 0, 22, 1, 3), (7, 13, 21, 1, 1)];
        expect(findings(&MONDAY, &alike, &rows, &[(13, 1), (13, 2)]).await, "one history do not meet it");
    }

    #[tokio::test]
    async fn a_ledger_out_of_order_is_refused() {
        for rows in [[MONDAY[1], MONDAY[0], MONDAY[2], MONDAY[3]], [MONDAY[0], MONDAY[2], MONDAY[1], MONDAY[3]]] {
            let error = compare(&MONDAY, &rows).await.unwrap_err();
            assert!(error.message().contains("order of its subjects"), "{error}");
        }
        let error = compare(&MONDAY, &[MONDAY[0], MONDAY[0]]).await.unwrap_err();
        assert!(error.message().contains("order of its subjects"), "nobody is in it twice: {error}");
    }
}
