"""Whole jobs, from a source to a verified release, and what is done around them."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from throng import _native
from throng import _results as results
from throng._limits import StrPath, make_limits


class Job:
    """A job: source, sink and policy.

    Args:
        path: A job file.
        settings: Keys to override, as ``throng run --set`` does: ``{"privacy.k": 20}``.

    >>> from throng import Policy
    >>> job = Policy(k=5, quasi=["age"]).to_job("people/", "published/")
    >>> job.sink
    'published/'
    """

    __slots__ = ("_handle",)
    _handle: _native.Job

    def __init__(self, path: StrPath, settings: Mapping[str, Any] | None = None) -> None:
        texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in (settings or {}).items()}
        self._handle = _native.Job.read(os.fspath(path), texts)

    @classmethod
    def _of(cls, native: _native.Job) -> Job:
        job = cls.__new__(cls)
        job._handle = native
        return job

    @classmethod
    def from_dict(cls, tables: Mapping[str, Any], *, base: StrPath = ".") -> Job:
        """Return the job of a dict with the tables of a job file; paths are relative to ``base``."""
        from throng._policy import to_json

        return cls._of(_native.Job.parse_json(to_json({"version": 1, **tables}), os.fspath(base)))

    @property
    def sink(self) -> str:
        """Where releases go, as the job names it."""
        return self._handle.sink

    def to_toml(self) -> str:
        """Return the text of the job file."""
        return self._handle.to_toml()

    def __repr__(self) -> str:
        return f"<throng.Job to {self.sink!r}>"


JobLike = Job | str | os.PathLike[str]


def _open(job: JobLike) -> _native.Job:
    return (job if isinstance(job, Job) else Job(job))._handle


def _sink_of(release: JobLike) -> str | None:
    """Return the sink if a release is named by it rather than by its job."""
    if isinstance(release, Job) or os.fspath(release).endswith(".toml"):
        return None
    return os.fspath(release)


def check(job: JobLike) -> results.Check:
    """List everything that is wrong with a job and the columns of its source; reads no data.

    >>> import throng
    >>> found = throng.check(throng.Policy(k=5, quasi=["age"]).to_job("no/such/folder", "published/"))
    >>> bool(found)
    False
    """
    return results.Check._of(results.parse(_open(job).check()))


def run(
    job: JobLike,
    *,
    run_id: str | None = None,
    on_progress: Callable[[results.Progress], object] | None = None,
    cell_rows: int | None = None,
    memory_limit: int | str | None = None,
    spill_dir: StrPath | None = None,
    spill_limit: int | str | None = None,
    partitions: int | None = None,
) -> results.Release:
    """Anonymise a dataset and publish the verified result in one atomic step.

    Nothing is published before it has been read back and verified. A run that has been released is not repeated. Ctrl-C, and
    whatever ``on_progress`` raises, end the run without a release, but for a commit that has begun.

    Args:
        job: A :class:`Job` or the path of a job file.
        run_id: Identity of the run, for example its date. Defaults to a hash of policy, input and version.
        on_progress: Called with a :class:`Progress` at the start of every phase and ten times a second.
        cell_rows: Rows per cell; smaller cells need less memory at some cost in quality.
        memory_limit: Bytes, or a size such as ``"4GB"``; beyond it, the run spills to disk.
        spill_dir: Folder for spill files, which hold raw data. Defaults to the system's temporary folder.
        spill_limit: Limit of disk space for spill files.
        partitions: Number of concurrent partitions, which does not affect the release. Defaults to one per core.
    """
    native = _open(job)

    def report(phase: str, rows: int, total: int | None) -> None:
        if on_progress is not None:
            on_progress(results.Progress(phase, rows, total))

    limits = make_limits(memory_limit, spill_dir, spill_limit, partitions)
    text = native.run(limits, run_id, cell_rows, report if on_progress is not None else None)
    release = results.Release._of(results.parse(text), native.sink)
    if native.seed_warning and not release.done_before:
        warnings.warn(native.seed_warning, stacklevel=2)
    return release


def profile(
    data: Any,
    *,
    write: StrPath | None = None,
    force: bool = False,
    memory_limit: int | str | None = None,
    spill_dir: StrPath | None = None,
    spill_limit: int | str | None = None,
    partitions: int | None = None,
) -> results.Profile:
    """Profile a dataset: a guess of the role of every column, and how exposed people are as it stands.

    Args:
        data: The path or URL of Parquet files, or anything with ``__arrow_c_stream__``.
        write: A job file to draft, with hierarchies in a folder beside it, which hold values of the data. For files only.
        force: Overwrite the job file and its hierarchies.

    >>> import pyarrow as pa
    >>> import throng
    >>> table = pa.table({"name": [f"p{i}" for i in range(100)], "age": [20 + i % 40 for i in range(100)]})
    >>> throng.profile(table).rows
    100
    """
    limits = make_limits(memory_limit, spill_dir, spill_limit, partitions)
    if isinstance(data, (str, os.PathLike)):
        draft = None if write is None else os.fspath(write)
        return results.Profile._of(results.parse(_native.profile_files(os.fspath(data), limits, draft, force)))
    if write is not None:
        raise ValueError("write drafts a job for files: pass the path of the data instead of the data")
    return results.Profile._of(results.parse(_native.profile_rows(data, limits)))


def verify(
    release: JobLike,
    *,
    run_id: str | None = None,
    memory_limit: int | str | None = None,
    spill_dir: StrPath | None = None,
    spill_limit: int | str | None = None,
    partitions: int | None = None,
) -> results.Verification:
    """Check a release against its policy and source, given its job, or what can be checked without them, given its sink."""
    limits = make_limits(memory_limit, spill_dir, spill_limit, partitions)
    sink = _sink_of(release)
    if sink is not None:
        return results.Verification._of(results.parse(_native.verify_sink(sink, limits, run_id)))
    return results.Verification._of(results.parse(_open(release).verify(limits, run_id)))


def attack(
    job: JobLike,
    *,
    public: StrPath | None = None,
    population: int | None = None,
    run_id: str | None = None,
    memory_limit: int | str | None = None,
    spill_dir: StrPath | None = None,
    spill_limit: int | str | None = None,
    partitions: int | None = None,
) -> results.Attack:
    """Attack a release: how many people can be found in it and with what certainty; never who.

    Args:
        job: The job that made the release.
        public: A public table of people: Parquet with the quasi-identifiers of the source.
        population: People in the whole population, to estimate how many are unique in it.
        run_id: The release. Defaults to the newest.
    """
    limits = make_limits(memory_limit, spill_dir, spill_limit, partitions)
    table = None if public is None else os.fspath(public)
    return results.Attack._of(results.parse(_open(job).attack(limits, run_id, table, population)))


def sweep(
    job: JobLike,
    *,
    k: Iterable[int] = (2, 5, 10, 25, 50),
    method: Iterable[str] = (),
    sample: int | None = None,
    memory_limit: int | str | None = None,
    spill_dir: StrPath | None = None,
    spill_limit: int | str | None = None,
    partitions: int | None = None,
) -> results.Sweep:
    """Try a job under several k and methods, and compare what they lose; publishes nothing.

    Args:
        job: The job.
        k: Smallest classes to try.
        method: Methods to try. Defaults to that of the job.
        sample: Try on about this many rows. Defaults to all of them.
    """
    limits = make_limits(memory_limit, spill_dir, spill_limit, partitions)
    methods = [method] if isinstance(method, str) else list(method)
    return results.Sweep._of(results.parse(_open(job).sweep(limits, list(k), methods, sample)))


def bound(
    job: JobLike,
    *,
    k: Iterable[int] = (),
    rounds: int | None = None,
    sample: int | None = None,
    memory_limit: int | str | None = None,
    spill_dir: StrPath | None = None,
    spill_limit: int | str | None = None,
    partitions: int | None = None,
) -> results.Bounds:
    """Prove how little any release of the source can lose, and how near the job comes to it.

    It depends on every row of the source, so it is for the owner of the data.

    Args:
        job: The job.
        k: Values of k. Defaults to that of the job.
        rounds: Rounds of search: more of them raise the bound.
        sample: Prove it for about this many rows, chosen at random.
    """
    limits = make_limits(memory_limit, spill_dir, spill_limit, partitions)
    return results.Bounds._of(results.parse(_open(job).bound(limits, list(k), rounds, sample)))


def report(
    release: JobLike,
    *,
    run_id: str | None = None,
    sweep: results.Sweep | None = None,
    bounds: results.Bounds | None = None,
    memory_limit: int | str | None = None,
    spill_dir: StrPath | None = None,
    spill_limit: int | str | None = None,
    partitions: int | None = None,
) -> results.Report:
    """Make the page about a release: verdict, columns, classes, risk, provenance.

    Given the job, the release is also compared with its source row by row.

    Args:
        release: The job that made the release, or its sink.
        run_id: The release. Defaults to the newest.
        sweep: Trials to show as a curve.
        bounds: Bounds to show beside the loss: such a page is for the owner of the data.
    """
    limits = make_limits(memory_limit, spill_dir, spill_limit, partitions)
    trials = None if sweep is None else json.dumps(sweep.raw)
    proven = None if bounds is None else json.dumps(bounds.raw)
    sink = _sink_of(release)
    if sink is not None:
        text = _native.report_sink(sink, limits, run_id, trials, proven)
    else:
        text = _open(release).report(limits, run_id, trials, proven)
    return results.Report._of(results.parse(text))


def releases(sink: StrPath) -> list[dict[str, Any]]:
    """List the manifests of the releases of a sink, oldest first."""
    found: list[dict[str, Any]] = results.parse(_native.list_releases(os.fspath(sink)))
    return found
