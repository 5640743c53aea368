"""Releases as Iceberg tables, and Iceberg tables as sources, through pyiceberg 0.12 or newer.

A release is a set of immutable, verified Parquet files. Publishing it to a table adds these files and takes out the rows of the
release before, in one commit of the catalog: readers see the old release or the new one. The snapshot carries the run, so a
rerun finds it and does nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from throng import _jobs
from throng._errors import ConflictError, InputError, RetryError
from throng._results import Release

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

RUN = "throng.run"
"""The snapshot property that names the run of a release."""

MANIFEST = "throng.manifest-sha256"
"""The snapshot property with the digest of the release's manifest."""

_ATTEMPTS = 4


@dataclass(frozen=True)
class PublishedSnapshot:
    """A release in an Iceberg table."""

    run: str
    table: str
    snapshot_id: int
    done_before: bool
    """Whether the table held the release before this call."""


def manifest_digest(release: Release) -> str:
    """Return the digest that identifies a release in snapshot properties."""
    return hashlib.sha256(json.dumps(release.raw, sort_keys=True).encode()).hexdigest()


def run(job: _jobs.JobLike, catalog: Catalog, table: str, **options: Any) -> tuple[Release, PublishedSnapshot]:
    """Run a job and publish its release to a table; both steps are left out if they were done before.

    Args:
        job: The job. Its sink keeps the files, which the table refers to.
        catalog: A catalog of pyiceberg, configured as pyiceberg is.
        table: The table as ``namespace.name``. It is made if it does not exist.
        options: Those of :func:`throng.run`.
    """
    release = _jobs.run(job, **options)
    return release, publish(release, catalog, table)


def publish(release: Release, catalog: Catalog, table: str) -> PublishedSnapshot:
    """Make a release the content of a table, in one commit.

    Raises:
        ConflictError: If the table holds another release of the same run, or has other columns.
        RetryError: If other writers kept committing first.
    """
    from pyiceberg.exceptions import CommitFailedException

    files = [_file_location(release.sink, file) for file in release.files]
    target = _open_table(catalog, table, files)
    properties = {
        RUN: release.run,
        MANIFEST: manifest_digest(release),
        "throng.policy": release.raw["policy"],
        "throng.version": release.raw["version"],
        "throng.k": str(release.k),
    }
    for _ in range(_ATTEMPTS):
        found = _find_release(target, release.run, properties[MANIFEST])
        if found is not None:
            return PublishedSnapshot(release.run, table, found, done_before=True)
        try:
            _replace_rows(target, files, properties)
        except CommitFailedException:
            target.refresh()
        except ValueError as error:
            raise ConflictError(f"the release does not fit the table `{table}`: {error}") from error
        else:
            snapshot = target.current_snapshot()
            assert snapshot is not None
            return PublishedSnapshot(release.run, table, snapshot.snapshot_id, done_before=False)
    raise RetryError(f"other writers have committed to the table `{table}` {_ATTEMPTS} times in between; try again")


def source_of(table: Table, snapshot_id: int | None = None) -> dict[str, Any]:
    """Return the ``[source]`` of a job that reads a table at a snapshot, the current one unless another is named.

    >>> from throng import Job
    >>> def job_of(table, policy, sink):
    ...     return Job.from_dict({"source": source_of(table), "sink": {"url": sink}, **policy})
    """
    scan = table.scan(snapshot_id=snapshot_id)
    tasks = list(scan.plan_files())
    if any(task.delete_files for task in tasks):
        raise InputError("the snapshot has delete files, which hide rows of its data files; rewrite them first")
    if not tasks:
        raise InputError("the snapshot has no rows")
    columns = ", ".join('"' + field.name.replace('"', '""') + '"' for field in scan.projection().fields)
    names = [f"part_{number}" for number in range(len(tasks))]
    queries = " UNION ALL ".join(f"SELECT {columns} FROM {name}" for name in names)
    paths = [task.file.file_path.removeprefix("file://") for task in tasks]
    return {"sql": queries, "tables": {name: {"url": path} for name, path in zip(names, paths, strict=True)}}


def _file_location(sink: str, file: str) -> str:
    """Return where a released file lies."""
    if "://" in sink:
        return f"{sink.rstrip('/')}/{file}"
    return os.path.abspath(os.path.join(sink, file))


def _open_table(catalog: Catalog, name: str, files: list[str]) -> Table:
    """Load a table, or make it with the columns of a released file."""
    from pyiceberg.exceptions import NoSuchTableError, TableAlreadyExistsError

    try:
        return catalog.load_table(name)
    except NoSuchTableError:
        schema = _read_schema(catalog, files[0])
    try:
        return catalog.create_table(name, schema=schema)
    except TableAlreadyExistsError:
        return catalog.load_table(name)


def _read_schema(catalog: Catalog, file: str) -> Any:
    """Return the columns of a Parquet file as pyarrow has them."""
    import pyarrow.parquet
    from pyiceberg.io import load_file_io

    with load_file_io(catalog.properties, file).new_input(file).open() as opened:
        return pyarrow.parquet.read_schema(opened)


def _find_release(table: Table, run: str, digest: str) -> int | None:
    """Return the snapshot that published a run, if there is one."""
    for snapshot in table.snapshots():
        summary = snapshot.summary
        if summary is None or summary[RUN] != run:
            continue
        if summary[MANIFEST] != digest:
            raise ConflictError(f"the table holds another release of run `{run}`; choose another run_id")
        return int(snapshot.snapshot_id)
    return None


def _replace_rows(table: Table, files: list[str], properties: dict[str, str]) -> None:
    """Commit one transaction after which a table has the rows of these files alone."""
    from pyiceberg.expressions import AlwaysTrue

    with table.transaction() as transaction:
        if table.current_snapshot() is not None:
            transaction.delete(AlwaysTrue())
        transaction.add_files(files, snapshot_properties=properties)
