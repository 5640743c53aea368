"""Iceberg: nightly releases as one table, read at every moment."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import rows_of
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException

import throng
from throng import iceberg


@pytest.fixture
def catalog(tmp_path):
    """A catalog in SQLite."""
    warehouse = tmp_path / "warehouse"
    warehouse.mkdir()
    made = SqlCatalog("nightly", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{warehouse}")
    made.create_namespace("published")
    return made


@pytest.fixture
def nights(tmp_path, census, policy_tables):
    """A job for each of three nights: the same people but for a few, in a sink of independent releases."""

    def job_of(night: int) -> throng.Job:
        folder = tmp_path / f"night-{night}"
        if not folder.exists():
            folder.mkdir()
            pq.write_table(census.slice(night * 100, 2000), folder / "people.parquet")
        sink = {"url": str(tmp_path / "sink"), "releases": "independent"}
        return throng.Job.from_dict({"source": {"url": str(folder)}, "sink": sink, **policy_tables})

    return job_of


def read_by_duckdb(catalog) -> list[str]:
    """The rows that DuckDB gets from the table."""
    connection = catalog.load_table("published.census").scan().to_duckdb("census")
    return rows_of(connection.sql("SELECT * FROM census").to_arrow_table())


def rows_of_files(release) -> list[str]:
    return rows_of(pa.concat_tables(pq.read_table(f"{release.sink}/{file}") for file in release.files))


def test_three_nights_a_rerun_and_a_failing_commit(catalog, nights, monkeypatch):
    released, snapshots = [], []
    for night in range(3):
        release, published = iceberg.run(nights(night), catalog, "published.census", run_id=f"night-{night}")
        assert not published.done_before
        released.append(release)
        snapshots.append(published.snapshot_id)
        # Nobody sees anything but the newest release, and all of it.
        assert read_by_duckdb(catalog) == rows_of_files(release)

    table = catalog.load_table("published.census")
    count = len(table.snapshots())
    for night in range(3):
        _, again = iceberg.run(nights(night), catalog, "published.census", run_id=f"night-{night}")
        assert again.done_before and again.snapshot_id == snapshots[night]
    assert len(catalog.load_table("published.census").snapshots()) == count
    assert read_by_duckdb(catalog) == rows_of_files(released[2])

    with monkeypatch.context() as failing:
        def refuse(*_):
            raise CommitFailedException("somebody else was first")

        failing.setattr(SqlCatalog, "commit_table", refuse)
        with pytest.raises(throng.RetryError) as raised:
            iceberg.run(nights(3), catalog, "published.census", run_id="night-3")
        assert raised.value.retryable
    assert read_by_duckdb(catalog) == rows_of_files(released[2])

    release, published = iceberg.run(nights(3), catalog, "published.census", run_id="night-3")
    assert release.done_before and not published.done_before
    assert read_by_duckdb(catalog) == rows_of_files(release)

    summary = catalog.load_table("published.census").current_snapshot().summary
    assert (summary[iceberg.RUN], summary["throng.k"]) == ("night-3", "10")
    # Earlier releases can still be read at their snapshots.
    first = catalog.load_table("published.census").scan(snapshot_id=snapshots[0]).to_arrow()
    assert rows_of(first) == rows_of_files(released[0])


def test_a_commit_that_was_overtaken_is_tried_again(catalog, nights, monkeypatch):
    iceberg.run(nights(0), catalog, "published.census", run_id="night-0")
    commit, calls = SqlCatalog.commit_table, []

    def overtaken(self, *arguments):
        calls.append(arguments)
        if len(calls) == 1:
            raise CommitFailedException("somebody else was first")
        return commit(self, *arguments)

    monkeypatch.setattr(SqlCatalog, "commit_table", overtaken)
    release, published = iceberg.run(nights(1), catalog, "published.census", run_id="night-1")
    assert len(calls) == 2 and not published.done_before
    assert read_by_duckdb(catalog) == rows_of_files(release)


def test_another_release_of_a_run_is_a_conflict(catalog, nights, tmp_path, policy_tables):
    iceberg.run(nights(0), catalog, "published.census", run_id="monday")
    nights(1)
    other = throng.Job.from_dict(
        {"source": {"url": str(tmp_path / "night-1")}, "sink": {"url": str(tmp_path / "other")}, **policy_tables}
    )
    with pytest.raises(throng.ConflictError, match="monday"):
        iceberg.run(other, catalog, "published.census", run_id="monday")
    fewer = throng.Policy(k=10, quasi=["age"], others="identifier")
    job = fewer.to_job(tmp_path / "night-1", tmp_path / "fewer")
    with pytest.raises(throng.ConflictError, match="does not fit"):
        iceberg.run(job, catalog, "published.census", run_id="tuesday")


def test_a_source_at_a_snapshot(catalog, census, tmp_path, policy_tables):
    people = census.drop_columns(["household_size"])
    table = catalog.create_table("published.people", schema=people.schema)
    table.append(people.cast(table.schema().as_arrow()).slice(0, 1000))
    first = table.current_snapshot().snapshot_id
    table.append(people.cast(table.schema().as_arrow()).slice(1000))
    tables = {**policy_tables, "columns": {**policy_tables["columns"]}}
    del tables["columns"]["household_size"]
    for snapshot, rows in ((first, 1000), (None, 3000)):
        source = iceberg.source_of(catalog.load_table("published.people"), snapshot)
        job = throng.Job.from_dict({"source": source, "sink": {"url": str(tmp_path / f"out-{rows}")}, **tables})
        release = throng.run(job)
        assert release.rows + release.suppressed == rows
    [(counted,)] = duckdb.sql(f"SELECT count(*) FROM '{tmp_path}/out-3000/data/*/*.parquet'").fetchall()
    assert counted == release.rows
