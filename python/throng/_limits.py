"""Limits of a call, checked once."""

from __future__ import annotations

import os
from typing import TypedDict

StrPath = str | os.PathLike[str]


class Limits(TypedDict):
    """Memory, spill and partitions, as the extension takes them."""

    memory_limit: int | str | None
    spill_dir: str | None
    spill_limit: int | str | None
    partitions: int | None


def make_limits(
    memory_limit: int | str | None,
    spill_dir: StrPath | None,
    spill_limit: int | str | None,
    partitions: int | None,
) -> Limits:
    """Return the limits of a call."""
    if partitions is not None and partitions < 1:
        raise ValueError("partitions must be at least 1")
    folder = None if spill_dir is None else os.fspath(spill_dir)
    return Limits(memory_limit=memory_limit, spill_dir=folder, spill_limit=spill_limit, partitions=partitions)
