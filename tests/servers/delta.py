"""Reads every version of a Delta table with deltalake: delta.py TABLE

Prints the ids of the rows of each version, oldest first, as JSON."""

import json
import sys

from deltalake import DeltaTable, QueryBuilder


def ids(version):
    table = DeltaTable(sys.argv[1], version=version)
    rows = QueryBuilder().register("t", table).execute("SELECT id FROM t ORDER BY id").read_all()
    return rows.column("id").to_pylist()


print(json.dumps([ids(version) for version in range(DeltaTable(sys.argv[1]).version() + 1)]))
