"""One night: run a job and make its release the content of an Iceberg table.

    python nightly.py JOB TABLE RUN_ID [CATALOG]
"""

from __future__ import annotations

import sys

from pyiceberg.catalog import load_catalog

import throng
from throng import iceberg


def main(job: str, table: str, run_id: str, catalog: str = "default") -> int:
    """Return the exit code, which is that of the command for the same failure."""
    try:
        release, published = iceberg.run(job, load_catalog(catalog), table, run_id=run_id)
    except throng.Error as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    done = " (done before)" if published.done_before else ""
    print(f"{release.rows} rows are snapshot {published.snapshot_id} of {table}{done}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
