"""Throng in sessions of datafusion-python 55: ``SELECT * FROM anonymize('people', 'policy')``.

>>> import pyarrow as pa
>>> from datafusion import SessionContext
>>> import throng
>>> from throng.datafusion import AnonymizeExtension
>>> extension = AnonymizeExtension({"fives": throng.Policy(k=5, quasi=["age"], sensitive=["ward"])})
>>> ctx = SessionContext().with_extensions(extension)
>>> extension.register_function(ctx)
>>> _ = ctx.from_arrow(pa.table({"age": list(range(20, 80)), "ward": [i % 7 for i in range(60)]}), name="people")
>>> ctx.sql("SELECT count(*) AS n FROM anonymize('people', 'fives') WHERE ward < 7").to_pydict()
{'n': [60]}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from throng import _native
from throng._limits import StrPath, make_limits
from throng._policy import Policy

if TYPE_CHECKING:
    from datafusion import SessionContext, SessionExtensionComponents, TableFunction


class AnonymizeExtension:
    """The bundle that ``SessionContext.with_extensions`` takes, and the table function ``anonymize``.

    A policy has one key as long as the bundle lives: asking twice for the same rows under the same policy gives the same groups.
    Filters, limits and projections of a query stay above the anonymised table: they would change the groups.

    The bundle contributes a codec, by which anonymised tables get through planners of other extensions, and no planner of its
    own: an anonymised table needs none, and a foreign planner would make every other query of the session cross the interface.

    Args:
        policies: Policies by the names that queries use.
        memory_limit: Bytes, or a size such as ``"4GB"``, for grouping; the session's own limit counts the rest of a query.
    """

    def __init__(
        self,
        policies: Mapping[str, Policy] | None = None,
        *,
        memory_limit: int | str | None = None,
        spill_dir: StrPath | None = None,
        spill_limit: int | str | None = None,
        partitions: int | None = None,
    ) -> None:
        limits = make_limits(memory_limit, spill_dir, spill_limit, partitions)
        known = {name: policy._handle for name, policy in (policies or {}).items()}
        self._tables = _native.AnonymizeTables(known, limits)

    def add_policy(self, name: str, policy: Policy) -> None:
        """Add a policy, or replace the one that has the name."""
        self._tables.add_policy(name, policy._handle)

    def function(self) -> TableFunction:
        """Return the table function ``anonymize``."""
        from datafusion import udtf

        return udtf(self._tables, "anonymize")

    def register_function(self, ctx: SessionContext) -> None:
        """Register the table function with a session: a bundle must not do so by itself."""
        ctx.register_udtf(self.function())

    def __datafusion_session_components__(self, ctx: SessionContext) -> SessionExtensionComponents:
        """Return the components of the bundle, for ``SessionContext.with_extensions``."""
        from datafusion import SessionExtensionComponents

        return SessionExtensionComponents(logical_extension_codecs=(self._tables.codec(),))
