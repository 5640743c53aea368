"""Policies: what each column is, what every published class must satisfy, and how rows are grouped."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from throng import _native
from throng._jobs import Job
from throng._limits import StrPath

Role = Literal["identifier", "quasi", "sensitive", "kept"]
Columns = str | Iterable[str] | Mapping[str, Mapping[str, Any]]
Rule = Mapping[str, Any] | Iterable[Mapping[str, Any]]


def _with_role(columns: Columns, role: Role) -> dict[str, dict[str, Any]]:
    """Return columns in the form of a job file."""
    if isinstance(columns, str):
        columns = [columns]
    options = columns if isinstance(columns, Mapping) else dict.fromkeys(columns, {})
    return {name: {"role": role, **options[name]} for name in options}


def _drop_none(value: Any) -> Any:
    """Return the value without keys that are ``None``: TOML has none."""
    if isinstance(value, Mapping):
        return {key: _drop_none(item) for key, item in value.items() if item is not None}
    if isinstance(value, (list, tuple)):
        return [_drop_none(item) for item in value]
    return value


def to_json(tables: Mapping[str, Any]) -> str:
    """Return tables of a job file for the extension."""
    return json.dumps(_drop_none(tables), default=os.fspath)


class Policy:
    """What each column is, what every published class must satisfy, and how rows are grouped.

    Every column of the input needs a role, by name or through ``others``: a forgotten column is an error, because forgetting one
    is how data leaks.

    Args:
        k: Every combination of published quasi-identifiers occurs at least this often.
        quasi: Columns that could name a person together with others; they are generalised. A list of names, or a dict from names to
            options as in the job file: ``{"age": {"hierarchy": {"widths": [5, 10]}}, "zip": {"hierarchy": {"mask": "right"}}}``.
        sensitive: Columns that must not be linked to a person; published unchanged, guarded by the rules.
        identifiers: Columns that name a person by themselves; dropped unless their options say otherwise.
        kept: Columns that are published unchanged.
        others: The role of every column that is not named.
        l_diversity: A rule, or a number: at least so many distinct values of every sensitive column in each class.
        t_closeness: A rule, or a number: at most so far from the distribution of the table, for every sensitive column.
        rules: Further rules by their keys in ``[privacy]`` of a job file, such as ``{"alpha-k": {...}}``.
        max_suppression: The largest share of rows that may be left out.
        max_loss: The largest mean loss of any class.
        person: The column that tells people apart, if a person may have several rows: k then counts people.
        nulls: How rows with a null in a quasi-identifier are handled.
        method: The name of a grouping method, or the ``[method]`` table of a job file.
        seed: Fixes all random choices, for tests and experiments: whoever knows it can re-enact the run.
        key_env: The environment variable that holds the key of repeatable runs.
        measures: The ``[measures]`` table of a job file.
        base: The folder to which hierarchy files are relative.

    Raises:
        JobError: With everything that is wrong with the policy at once.

    >>> from throng import Policy
    >>> policy = Policy(k=5, quasi=["age", "zip"], sensitive=["illness"], l_diversity=3)
    >>> policy.k, policy.roles["zip"], policy.rules
    (5, 'quasi', ['3-diversity of illness (distinct)'])
    """

    __slots__ = ("_handle",)
    _handle: _native.Policy

    def __init__(
        self,
        k: int,
        *,
        quasi: Columns = (),
        sensitive: Columns = (),
        identifiers: Columns = (),
        kept: Columns = (),
        others: Role | None = None,
        l_diversity: float | Rule | None = None,
        t_closeness: float | Rule | None = None,
        rules: Mapping[str, Rule] | None = None,
        max_suppression: float | None = None,
        max_loss: float | None = None,
        person: str | None = None,
        nulls: str | None = None,
        method: str | Mapping[str, Any] | None = None,
        seed: int | None = None,
        key_env: str | None = None,
        measures: Mapping[str, Any] | None = None,
        base: StrPath = ".",
    ) -> None:
        columns: dict[str, dict[str, Any]] = {}
        by_role: dict[Role, Columns] = {"quasi": quasi, "sensitive": sensitive, "identifier": identifiers, "kept": kept}
        for role, named in by_role.items():
            for name, options in _with_role(named, role).items():
                if name in columns:
                    raise ValueError(f"column `{name}` has two roles: {columns[name]['role']} and {role}")
                columns[name] = options
        guarded = [name for name, column in columns.items() if column["role"] == "sensitive"]
        privacy: dict[str, Any] = {"k": k, "max-suppression": max_suppression, "max-loss": max_loss, "person": person}
        for key, rule, parameter in (("l-diversity", l_diversity, "l"), ("t-closeness", t_closeness, "t")):
            if isinstance(rule, (int, float)):
                privacy[key] = [{"column": name, parameter: rule} for name in guarded]
            else:
                privacy[key] = rule if rule is None or isinstance(rule, Mapping) else list(rule)
        privacy.update(rules or {})
        table: dict[str, Any] = {"name": method} if isinstance(method, str) else dict(method or {})
        if seed is not None:
            table["seed"] = seed
        if key_env is not None:
            table["key-env"] = key_env
        tables = {
            "privacy": privacy,
            "defaults": {"role": others, "nulls": nulls} if others or nulls else None,
            "columns": columns,
            "method": table or None,
            "measures": measures,
        }
        self._handle = _native.Policy.parse_json(to_json(tables), os.fspath(base))

    @classmethod
    def _of(cls, native: _native.Policy) -> Policy:
        policy = cls.__new__(cls)
        policy._handle = native
        return policy

    @classmethod
    def from_toml(cls, source: StrPath, *, base: StrPath | None = None) -> Policy:
        """Read a policy or job file, or parse its text if that has more than one line; source and sink are ignored.

        >>> from throng import Policy
        >>> Policy.from_toml('''
        ... privacy.k = 10
        ... columns.age.role = "quasi"
        ... ''').k
        10
        """
        text = os.fspath(source)
        if "\n" in text:
            return cls._of(_native.Policy.parse(text, os.fspath(base or ".")))
        return cls._of(_native.Policy.open(text))

    @classmethod
    def from_dict(cls, tables: Mapping[str, Any], *, base: StrPath = ".") -> Policy:
        """Return the policy of a dict with the tables of a job file.

        >>> from throng import Policy
        >>> Policy.from_dict({"privacy": {"k": 10}, "columns": {"age": {"role": "quasi"}}}).k
        10
        """
        return cls._of(_native.Policy.parse_json(to_json(tables), os.fspath(base)))

    @property
    def k(self) -> int:
        """The smallest class that may be published."""
        return self._handle.k

    @property
    def rules(self) -> list[str]:
        """Rules about sensitive columns in words."""
        return self._handle.rules

    @property
    def roles(self) -> dict[str, Role]:
        """Roles of the columns that the policy names."""
        return self._handle.roles

    @property
    def hash(self) -> str:
        """Identity of the policy: changes with any rule, column, method parameter, line of a hierarchy or key."""
        return self._handle.hash

    def to_job(self, source: StrPath, sink: StrPath) -> Job:
        """Return a job that publishes a source under this policy: both are a path or the URL of an object store."""
        return Job._of(self._handle.to_job(os.fspath(source), os.fspath(sink)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Policy) and self.hash == other.hash

    def __hash__(self) -> int:
        return hash(self.hash)

    def __repr__(self) -> str:
        rules = "".join(f", {rule}" for rule in self.rules)
        return f"<throng.Policy k={self.k}{rules}, {len(self.roles)} columns>"
