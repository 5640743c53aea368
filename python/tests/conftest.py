"""What the tests share: the census of the repository, and a policy whose rows can be made again."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import throng

ROOT = Path(__file__).parents[2]
CENSUS = ROOT / "pipelines" / "data" / "census.parquet"
KEY = hashlib.sha256(b"a key for tests alone").hexdigest()

os.environ["THRONG_TEST_KEY"] = KEY


def rows_of(data) -> list[str]:
    """The rows of a table as texts in one order, so that two tables can be compared whatever their types are called."""
    table = data if isinstance(data, pa.Table) else pa.table(data)
    return sorted(repr(list(row.values())) for row in table.to_pylist())


def command(*arguments: str, **options) -> subprocess.CompletedProcess:
    """Run the command of the wheel."""
    program = Path(sys.executable).with_name("throng")
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False, **options)


@pytest.fixture(scope="session")
def census() -> pa.Table:
    """3,000 made-up people."""
    return pq.read_table(CENSUS)


@pytest.fixture(scope="session")
def policy_tables() -> dict:
    """The policy of `pipelines/census.toml`, with a key that the environment holds."""
    hierarchies = ROOT / "pipelines" / "hierarchies"

    def level_file(name):
        return {"role": "quasi", "hierarchy": str(hierarchies / f"{name}.csv")}

    return {
        "privacy": {"k": 10, "l-diversity": {"column": "diagnosis", "l": 3}, "max-suppression": 0.01},
        "columns": {
            **{name: {"role": "identifier"} for name in ("person_id", "name", "updated_at")},
            "age": {"role": "quasi", "priority": 2},
            "sex": {"role": "quasi"},
            **{name: level_file(name) for name in ("region", "education", "occupation", "marital_status")},
            "postcode": {"role": "quasi", "hierarchy": {"mask": "right"}},
            "arrival": {"role": "quasi", "hierarchy": {"calendar": ["month", "quarter", "year", "decade"]}},
            **{name: {"role": "sensitive"} for name in ("diagnosis", "income")},
            **{name: {"role": "kept"} for name in ("household_size", "tags")},
        },
        "method": {"key-env": "THRONG_TEST_KEY"},
    }


@pytest.fixture(scope="session")
def policy(policy_tables) -> throng.Policy:
    """The policy itself."""
    return throng.Policy.from_dict(policy_tables)


@pytest.fixture
def small() -> pa.Table:
    """300 people of three columns."""
    ages = [20 + i * 7 % 50 for i in range(300)]
    return pa.table({"name": [f"p{i}" for i in range(300)], "age": ages, "ward": [i % 7 for i in range(300)]})
