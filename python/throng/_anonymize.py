"""Tables in, anonymised tables out, over the Arrow C stream interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from throng import _html, _native
from throng._limits import StrPath, make_limits
from throng._policy import Columns, Policy, Role, Rule
from throng._results import Measures, parse

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


class ArrowStreamExportable(Protocol):
    """A table or stream of pyarrow, pandas, polars, DuckDB, datafusion or another library."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class Anonymized:
    """Anonymised rows: a stream that can be read as often as you like, by whatever reads Arrow.

    Rows are grouped when they are read, within the memory limit, and never held as a whole: ``to_arrow`` and its siblings do
    so, a ``pyarrow.RecordBatchReader`` or DuckDB do not. Every reading gives the same rows, in no particular order.
    """

    __slots__ = ("_rows",)
    _rows: _native.AnonymizedRows

    def __init__(self, rows: _native.AnonymizedRows) -> None:
        self._rows = rows

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the rows as a stream of Arrow batches."""
        return self._rows.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """Export the columns."""
        return self._rows.__arrow_c_schema__()

    def to_arrow(self) -> pyarrow.Table:
        """Read all rows into a table of pyarrow."""
        import pyarrow

        return pyarrow.table(self._rows.collect())

    def to_pandas(self) -> pandas.DataFrame:
        """Read all rows into a frame of pandas. A published range becomes a dict with ``min`` and ``max``."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """Read all rows into a frame of polars."""
        import polars

        return polars.DataFrame(self._rows.collect())

    def to_reader(self) -> pyarrow.RecordBatchReader:
        """Return a reader of pyarrow, which takes one batch at a time."""
        import pyarrow

        return pyarrow.RecordBatchReader.from_stream(self)

    @property
    def measures(self) -> Measures:
        """What anonymising has cost. Reads the rows once if nobody has read them to their end yet."""
        return Measures(**parse(self._rows.measure()))

    def explain(self) -> str:
        """Return the plan that groups the rows."""
        return self._rows.explain()

    def __repr__(self) -> str:
        return f"<throng.Anonymized {self.measures}>" if self._rows.is_finished else "<throng.Anonymized, not read yet>"

    def _repr_html_(self) -> str:
        rows = self._rows.collect()
        shown = _first_rows(rows)
        return self.measures._repr_html_() + shown


def _first_rows(rows: _native.Batches) -> str:
    """The first published rows as a table, where pyarrow is there to read them."""
    try:
        import pyarrow
    except ImportError:
        return ""
    table = pyarrow.table(rows).slice(0, 8)
    cells = [[_show(cell) for cell in row.values()] for row in table.to_pylist()]
    return _html.table(table.column_names, cells)


def _show(value: object) -> object:
    """A published value in a notebook: ranges as people write them."""
    if isinstance(value, dict) and set(value) == {"min", "max"}:
        least, most = value["min"], value["max"]
        return str(least) if least == most else f"{least} to {most}"
    if isinstance(value, list):
        return "{" + ", ".join(map(str, value)) + "}"
    return value


def anonymize(
    data: ArrowStreamExportable,
    policy: Policy | StrPath | None = None,
    *,
    k: int | None = None,
    quasi: Columns = (),
    sensitive: Columns = (),
    identifiers: Columns = (),
    kept: Columns = (),
    others: Role | None = None,
    l_diversity: float | Rule | None = None,
    t_closeness: float | Rule | None = None,
    max_suppression: float | None = None,
    method: str | Mapping[str, Any] | None = None,
    seed: int | None = None,
    key_env: str | None = None,
    memory_limit: int | str | None = None,
    spill_dir: StrPath | None = None,
    spill_limit: int | str | None = None,
    partitions: int | None = None,
) -> Anonymized:
    """Anonymise a table.

    The table is surveyed at once, and its rows are grouped when the result is read. Tables in memory are shared, not copied;
    what can be read only once (a reader, a query) is written to the spill folder first. The result is what the operator
    publishes; for files that are verified before anybody sees them, use :func:`throng.run`.

    Args:
        data: Anything with ``__arrow_c_stream__``.
        policy: A :class:`Policy`, or the path of a policy file. Otherwise the other arguments make one: see :class:`Policy`.
        memory_limit: Bytes, or a size such as ``"4GB"``; beyond it, rows spill to disk.
        spill_dir: Folder for spill files, which hold raw data. Defaults to the system's temporary folder.
        spill_limit: Limit of disk space for spill files.
        partitions: Number of concurrent partitions, which does not affect the rows. Defaults to one per core.

    >>> import pyarrow as pa
    >>> import throng
    >>> people = pa.table({"age": [20 + i % 40 for i in range(200)], "ward": [i % 7 for i in range(200)]})
    >>> released = throng.anonymize(people, k=5, quasi=["age"], sensitive=["ward"])
    >>> released.to_arrow().num_rows, released.measures.suppressed
    (200, 0)
    """
    keywords: dict[str, Any] = {
        "quasi": quasi, "sensitive": sensitive, "identifiers": identifiers, "kept": kept, "others": others,
        "l_diversity": l_diversity, "t_closeness": t_closeness, "max_suppression": max_suppression, "method": method,
        "seed": seed, "key_env": key_env,
    }  # fmt: skip
    if policy is None:
        if k is None:
            raise TypeError("anonymize needs a policy, or k and the roles of the columns")
        policy = Policy(k, **keywords)
    else:
        given = [name for name, value in {"k": k, **keywords}.items() if value not in (None, ())]
        if given:
            raise TypeError(f"anonymize takes a policy or {', '.join(given)}, not both")
        if not isinstance(policy, Policy):
            policy = Policy.from_toml(policy)
    limits = make_limits(memory_limit, spill_dir, spill_limit, partitions)
    return Anonymized(_native.anonymize(data, policy._handle, limits))
