"""Reads the newest release of a sink as the README says, with pyarrow and with DuckDB: readers.py SINK

Prints the ids of the rows that each of them sees as JSON."""

import json
import sys

import duckdb
import pyarrow.dataset as ds

sink = sys.argv[1]
with open(f"{sink}/_latest") as pointer:
    data = json.load(pointer)["data"]

rows = ds.dataset(f"{sink}/{data}").to_table()
assert {"age", "town", "ill"} <= set(rows.column_names), rows.column_names

connection = duckdb.connect()
connection.execute(f"SET VARIABLE data = (SELECT data FROM read_json('{sink}/_latest'))")
query = f"SELECT id FROM read_parquet('{sink}/' || getvariable('data') || '/*.parquet', hive_partitioning = false)"
print(json.dumps({
    "pyarrow": sorted(rows["id"].to_pylist()),
    "duckdb": sorted(row[0] for row in connection.execute(query).fetchall()),
}))
