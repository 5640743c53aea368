"""`throng.anonymize`: the same rows from every library, and as from the command."""

from __future__ import annotations

import decimal
import os
import subprocess
import sys
import textwrap

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import CENSUS, command, rows_of
from datafusion import SessionContext

import throng


@pytest.fixture(scope="module")
def of_command(tmp_path_factory, policy):
    """The rows that the command publishes under the same key."""
    folder = tmp_path_factory.mktemp("command")
    job = policy.to_job(CENSUS, folder / "out")
    (folder / "job.toml").write_text(job.to_toml())
    done = command("run", str(folder / "job.toml"), "--quiet")
    assert done.returncode == 0, done.stderr
    rows = rows_of(pq.read_table(folder / "out" / "data"))
    assert len(rows) > 2900
    return rows


def as_datafusion(census):
    return SessionContext().from_arrow(census)


INPUTS = {
    "pyarrow": lambda census: census,
    "pyarrow reader": lambda census: census.to_reader(max_chunksize=700),
    "pandas": lambda census: census.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda census: pl.from_arrow(census),
    "duckdb": lambda census: duckdb.sql("SELECT * FROM census"),
    "datafusion": as_datafusion,
}


@pytest.mark.parametrize("library", INPUTS)
def test_rows_are_those_of_the_command(library, census, policy, of_command):
    assert rows_of(throng.anonymize(INPUTS[library](census), policy).to_arrow()) == of_command


def test_every_reading_gives_the_same_rows(census, policy):
    released = throng.anonymize(census.to_reader(), policy)
    rows = rows_of(released.to_arrow())
    assert rows_of(released.to_reader().read_all()) == rows
    assert rows_of(duckdb.sql("SELECT * FROM released").to_arrow_table()) == rows
    assert len(released.to_polars()) == len(released.to_pandas()) == len(rows)


def test_partitions_and_limits_change_nothing(census, policy, of_command):
    for limits in ({"partitions": 1}, {"partitions": 5}, {"memory_limit": "300MB", "partitions": 2}):
        assert rows_of(throng.anonymize(census, policy, **limits).to_arrow()) == of_command, limits


def test_groups_meet_k_and_measures_say_what_it_cost(small):
    released = throng.anonymize(small, k=10, identifiers="name", quasi=["age"], sensitive=["ward"], l_diversity=3)
    table = released.to_arrow()
    assert table.column_names == ["age", "ward"]
    sizes = table.flatten().group_by(["age.min", "age.max"]).aggregate([([], "count_all")])["count_all"].to_pylist()
    assert min(sizes) >= 10 and sum(sizes) == 300
    measures = released.measures
    assert (measures.rows, measures.suppressed, measures.k) == (300, 0, 10)
    assert 0 < measures.gcp < 0.5 and measures.groups == len(sizes)
    assert "GCP" in released._repr_html_() and "to" in released._repr_html_()


def test_measures_read_the_rows_if_nobody_has(small):
    released = throng.anonymize(small, k=10, identifiers="name", quasi="age", kept="ward")
    assert "not read yet" in repr(released)
    assert released.measures.rows == 300
    assert "rows=300" in repr(released)


def test_nested_and_dictionary_types():
    rows = 200
    table = pa.table(
        {
            "sex": pa.array(["f", "m", "x", "f"] * 50).dictionary_encode(),
            "age": pa.array([decimal.Decimal(20 + i % 60) for i in range(rows)], pa.decimal128(5, 1)),
            "day": pa.array([i * 86_400_000 for i in range(rows)], pa.timestamp("ms", "UTC")),
            "visits": [[i, i + 1] for i in range(rows)],
            "home": [{"street": f"s{i}", "nr": i} for i in range(rows)],
            "tag": pa.array([f"t{i % 5}" for i in range(rows)]).dictionary_encode(),
            "note": pa.array([f"a text longer than twelve bytes {i}" for i in range(rows)], pa.string_view()),
        }
    )
    for data in (table, table.to_reader(max_chunksize=30), table.slice(0, 200)):
        kept = ["visits", "home", "tag", "note"]
        released = throng.anonymize(data, k=4, quasi=["sex", "age", "day"], kept=kept).to_arrow()
        assert released.num_rows == rows
        for name in kept:
            assert rows_of(released.select([name])) == rows_of(table.select([name])), name
        ages = released.column("age").to_pylist()
        assert all(age["min"] <= age["max"] for age in ages)


def test_a_slice_of_a_table_is_what_is_published(small):
    released = throng.anonymize(small.slice(100, 50), k=5, identifiers="name", quasi="age", kept="ward")
    assert sorted(released.to_arrow()["ward"].to_pylist()) == sorted(small["ward"].to_pylist()[100:150])


def test_notes_of_pandas_are_not_passed_on(small):
    frame = small.to_pandas().set_index("name")
    released = throng.anonymize(frame, k=5, identifiers="name", quasi="age", kept="ward").to_arrow()
    assert released.schema.metadata in (None, {})


# A table of two million rows is read from a generator, so that nobody holds it: the process stays far below its size.
BOUNDED = """
import resource, sys
import pyarrow as pa, numpy as np
import throng
ROWS, BATCH = int(sys.argv[1]), 50_000
schema = pa.schema({"age": pa.int32(), "zip": pa.int32(), "income": pa.float64(), "note": pa.string()})
def batches():
    draw = np.random.default_rng(1)
    for _ in range(ROWS // BATCH):
        note = pa.array(["n" * 60] * BATCH)
        yield pa.record_batch([pa.array(draw.integers(18, 90, BATCH, dtype=np.int32)),
                               pa.array(draw.integers(10_000, 99_999, BATCH, dtype=np.int32)),
                               pa.array(draw.normal(30_000, 9_000, BATCH)), note], schema=schema)
reader = pa.RecordBatchReader.from_batches(schema, batches())
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
released = throng.anonymize(reader, k=10, quasi=["age", "zip"], kept=["income", "note"], method="mondrian",
                            memory_limit=sys.argv[2], partitions=2)
rows = sum(batch.num_rows for batch in released.to_reader())
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(rows, (after - before) // 1024, (before // 1024))
"""


def test_memory_is_bounded_by_the_limit():
    rows = int(os.environ.get("THRONG_TEST_ROWS", "600000"))
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(BOUNDED), str(rows), "120MB"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    read, grown, before = map(int, done.stdout.split())
    print(f"{read} rows, grown by {grown} MB from {before} MB")
    assert read == rows
    assert grown < 420, f"grown by {grown} MB"
