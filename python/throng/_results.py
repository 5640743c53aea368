"""What calls return: frozen dataclasses, each with a table for notebooks and the full figures as ``raw``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from throng import _html
from throng._errors import JobError, PrivacyError

Raw = dict[str, Any]


@dataclass(frozen=True)
class Progress:
    """What a run is doing: passed to ``on_progress``."""

    phase: str
    """``plan``, ``survey``, ``group``, ``verify`` or ``commit``."""
    rows: int
    """Rows of the phase that are done."""
    total: int | None
    """Rows of the phase, if they are known."""

    @property
    def share(self) -> float | None:
        """The share of the phase that is done, if it is known."""
        return None if not self.total else min(1.0, self.rows / self.total)


@dataclass(frozen=True)
class Problem:
    """Something that is wrong with a job."""

    severity: str
    """``error`` or ``remark``."""
    key: str
    """The key of the job file, such as ``privacy.k``."""
    message: str
    help: str | None = None

    def __str__(self) -> str:
        help_line = f"; {self.help}" if self.help else ""
        return f"{self.severity}: {self.key}: {self.message}{help_line}"


@dataclass(frozen=True)
class Check:
    """The result of :func:`throng.check`."""

    fine: bool
    """Whether the job can run: remarks do not stop it."""
    problems: tuple[Problem, ...]
    raw: Raw = field(repr=False, compare=False)

    @classmethod
    def _of(cls, raw: Raw) -> Check:
        return cls(raw["fine"], tuple(Problem(**problem) for problem in raw["problems"]), raw)

    def __bool__(self) -> bool:
        return self.fine

    def raise_if_wrong(self) -> None:
        """Raise :class:`throng.JobError` with all errors, if there are any."""
        errors = [str(problem) for problem in self.problems if problem.severity == "error"]
        if errors:
            raise JobError("\n".join(errors))

    def _repr_html_(self) -> str:
        rows = [(problem.severity, problem.key, problem.message, problem.help) for problem in self.problems]
        title = "The job is fine" if self.fine else "The job cannot run"
        return _html.section(title, _html.table(["", "key", "problem", "help"], rows) if rows else "")


@dataclass(frozen=True)
class Finding:
    """Something that does not hold of a release."""

    rule: str
    count: int
    message: str


@dataclass(frozen=True)
class Release:
    """A verified release, described by its manifest."""

    run: str
    """Identity of the run."""
    sink: str
    """Where it lies."""
    done_before: bool
    """Whether the release was there before this run."""
    k: int
    """The k of the policy."""
    rows: int
    """Published rows."""
    suppressed: int | None
    """Rows that were left out; ``None`` where their number is a secret."""
    classes: int
    """Published classes."""
    smallest_class: int
    """Rows of the smallest class."""
    scores: dict[str, Any]
    """Loss, protection and risk; see the manifest."""
    files: tuple[str, ...]
    """Published files below the sink."""
    raw: Raw = field(repr=False, compare=False)
    """The whole manifest."""

    @classmethod
    def _of(cls, raw: Raw, sink: str) -> Release:
        manifest = raw["manifest"]
        counted = manifest["verification"]["classes"]
        return cls(
            run=manifest["run"],
            sink=sink,
            done_before=raw["done_before"],
            k=manifest["k"],
            rows=manifest["rows"],
            suppressed=manifest.get("suppressed"),
            classes=counted["count"] if "count" in counted else sum(counted["by_size"].values()),
            smallest_class=counted["smallest"],
            scores={name: score for name, score in manifest["scores"].items() if score is not None},
            files=tuple(file["path"] for file in manifest["files"]),
            raw=manifest,
        )

    @property
    def gcp(self) -> float | None:
        """Global certainty penalty: the mean loss of a published value, from 0 to 1."""
        return self.scores.get("gcp")

    def _repr_html_(self) -> str:
        done = " (released before)" if self.done_before else ""
        facts = [
            ("rows published", self.rows),
            ("rows suppressed", self.suppressed),
            ("classes", self.classes),
            ("smallest class", f"{self.smallest_class} rows (k = {self.k})"),
            ("mean loss (GCP)", self.gcp),
            ("highest risk", self.scores.get("risk_max")),
            ("warnings", "; ".join(self.raw.get("warnings", []))),
            ("sink", self.sink),
        ]
        losses = sorted(self.scores.get("by_column", {}).items(), key=lambda item: -item[1])
        by_column = _html.table(["column", "mean loss"], losses) if losses else ""
        return _html.section(f"Release {self.run}{done}", _html.facts(facts), by_column)


@dataclass(frozen=True)
class Measures:
    """What anonymising a table has cost."""

    k: int
    rows: int
    """Rows that were published."""
    suppressed: int | None
    """Rows that were left out; ``None`` where their number is a secret."""
    groups: int
    """Groups that were formed."""
    scores: dict[str, Any]
    """Losses and disclosures, from 0 (best) to 1; see the manifest."""

    @property
    def gcp(self) -> float | None:
        """Global certainty penalty: the mean loss of a published value, from 0 to 1."""
        return self.scores.get("gcp")

    def _repr_html_(self) -> str:
        facts = [
            ("rows published", self.rows),
            ("rows suppressed", self.suppressed),
            ("groups", f"{self.groups:,} of at least {self.k} rows"),
            ("mean loss (GCP)", self.gcp),
        ]
        losses = sorted(self.scores.get("by_column", {}).items(), key=lambda item: -item[1])
        by_column = _html.table(["column", "mean loss"], losses) if losses else ""
        return _html.section("Anonymised", _html.facts(facts), by_column)


@dataclass(frozen=True)
class ColumnProfile:
    """What a column looks like."""

    name: str
    type: str
    nulls: int
    distinct: int | None
    uniqueness: float | None
    role: str
    """A guess; when in doubt, the more protective one."""
    reason: str


@dataclass(frozen=True)
class Profile:
    """A dataset as it stands."""

    rows: int
    columns: tuple[ColumnProfile, ...]
    quasi: tuple[str, ...]
    """The guessed quasi-identifiers."""
    unique: float
    """Share of the rows that are alone with their values in them."""
    raw: Raw = field(repr=False, compare=False)

    @classmethod
    def _of(cls, raw: Raw) -> Profile:
        names = ("name", "type", "nulls", "distinct", "uniqueness", "role", "reason")
        columns = tuple(ColumnProfile(**{name: column.get(name) for name in names}) for column in raw["columns"])
        return cls(raw["rows"], columns, tuple(raw["exposure"]["quasi"]), raw["exposure"]["unique"], raw)

    def roles(self) -> dict[str, list[str]]:
        """Return the guessed roles as keywords of :class:`throng.Policy`. Read them before you publish."""
        keywords = {"quasi": "quasi", "sensitive": "sensitive", "identifier": "identifiers", "kept": "kept"}
        found: dict[str, list[str]] = {keyword: [] for keyword in keywords.values()}
        for column in self.columns:
            found[keywords[column.role]].append(column.name)
        return found

    def _repr_html_(self) -> str:
        rows = [
            (column.name, column.type, column.nulls, column.distinct, column.uniqueness, column.role, column.reason)
            for column in self.columns
        ]
        header = ["column", "type", "nulls", "distinct", "uniqueness", "guess", "because"]
        exposed = f"{self.unique:.1%} of {self.rows:,} rows are unique in {', '.join(self.quasi)}"
        return _html.section(exposed if self.quasi else f"{self.rows:,} rows", _html.table(header, rows))


@dataclass(frozen=True)
class Verification:
    """The result of :func:`throng.verify`."""

    run: str
    holds: bool
    """Whether every rule holds of the published files."""
    rows: int
    classes: int
    smallest_class: int
    rules: tuple[str, ...]
    """What was checked."""
    against_source: bool
    """Whether the rows were compared with those of the source."""
    findings: tuple[Finding, ...]
    raw: Raw = field(repr=False, compare=False)

    @classmethod
    def _of(cls, raw: Raw) -> Verification:
        findings = tuple(Finding(**finding) for finding in raw["findings"])
        return cls(
            raw["run"], raw["holds"], raw["rows"], raw["classes"], raw["k"], tuple(raw["rules"]), raw["against_source"],
            findings, raw,
        )  # fmt: skip

    def __bool__(self) -> bool:
        return self.holds

    def raise_if_broken(self) -> None:
        """Raise :class:`throng.PrivacyError` with everything that does not hold."""
        if self.findings:
            raise PrivacyError("\n".join(finding.message for finding in self.findings))

    def _repr_html_(self) -> str:
        facts = [
            ("rows", self.rows),
            ("classes", self.classes),
            ("smallest class", self.smallest_class),
            ("checked", ", ".join(self.rules)),
            ("compared with the source", self.against_source),
        ]
        rows = [(finding.rule, finding.count, finding.message) for finding in self.findings]
        title = f"Release {self.run} {'holds' if self.holds else 'does not hold'}"
        return _html.section(title, _html.facts(facts), _html.table(["rule", "count", ""], rows) if rows else "")


@dataclass(frozen=True)
class Attack:
    """What an adversary can learn from a release; never about whom."""

    run: str
    rows: int
    classes: int
    prosecutor_risk: float
    """Chance to pick the right row of the most exposed person, who is known to be in."""
    journalist_risk: float | None
    """The same if membership is not known: with a public table."""
    marketer_risk: float | None
    """Share of correct links to the public table."""
    reidentified: float | None
    """Share of the members who are known to be in, to whoever holds the public table."""
    sensitive: dict[str, Any]
    """How surely sensitive values are known from the class alone, by column."""
    raw: Raw = field(repr=False, compare=False)

    @classmethod
    def _of(cls, raw: Raw) -> Attack:
        linkage, membership = raw["linkage"], raw.get("membership")
        return cls(
            run=raw["run"],
            rows=raw["rows"],
            classes=raw["classes"],
            prosecutor_risk=linkage["prosecutor"],
            journalist_risk=linkage.get("journalist"),
            marketer_risk=linkage.get("marketer"),
            reidentified=membership["reidentified"] if membership else None,
            sensitive=raw.get("sensitive", {}),
            raw=raw,
        )

    def _repr_html_(self) -> str:
        facts = [
            ("prosecutor risk", self.prosecutor_risk),
            ("journalist risk", self.journalist_risk),
            ("marketer risk", self.marketer_risk),
            ("members known to be in", None if self.reidentified is None else f"{self.reidentified:.2%}"),
        ]
        return _html.section(f"Attack on release {self.run}: {self.rows:,} rows", _html.facts(facts))


@dataclass(frozen=True)
class Trial:
    """What one setting would lose."""

    k: int
    method: str
    rows: int
    suppressed: int
    classes: int
    gcp: float | None
    """Mean loss; ``None`` if the rules cannot be met."""
    seconds: float
    refused: str | None
    raw: Raw = field(repr=False, compare=False)


@dataclass(frozen=True)
class Sweep:
    """Settings that were tried without publishing anything."""

    trials: tuple[Trial, ...]
    raw: list[Raw] = field(repr=False, compare=False)

    @classmethod
    def _of(cls, raw: list[Raw]) -> Sweep:
        trials = []
        for trial in raw:
            scores = trial.get("scores") or {}
            names = ("k", "method", "rows", "suppressed", "classes", "seconds")
            figures = {name: trial[name] for name in names}
            trials.append(Trial(**figures, gcp=scores.get("gcp"), refused=trial.get("refused"), raw=trial))
        return cls(tuple(trials), raw)

    def __iter__(self) -> Iterator[Trial]:
        return iter(self.trials)

    def __len__(self) -> int:
        return len(self.trials)

    def _repr_html_(self) -> str:
        rows = [
            (trial.method, trial.k, trial.gcp, trial.suppressed, trial.seconds, trial.refused) for trial in self.trials
        ]
        header = ["method", "k", "mean loss (GCP)", "suppressed", "seconds", "refused"]
        return _html.section(f"{len(rows)} trials", _html.table(header, rows))


@dataclass(frozen=True)
class Bound:
    """A loss that no release can go below, beside what the job loses on the same rows."""

    rows: int
    k: int
    gcp: float
    """No release of these rows in classes of k loses less."""
    method: str
    lost: float | None
    """What the job loses; ``None`` if its rules cannot be met."""
    times: float | None
    """How many times the bound that is."""


@dataclass(frozen=True)
class Bounds:
    """Bounds for one or more k."""

    bounds: tuple[Bound, ...]
    raw: list[Raw] = field(repr=False, compare=False)

    @classmethod
    def _of(cls, raw: list[Raw]) -> Bounds:
        return cls(tuple(Bound(**bound) for bound in raw), raw)

    def __iter__(self) -> Iterator[Bound]:
        return iter(self.bounds)

    def __len__(self) -> int:
        return len(self.bounds)

    def _repr_html_(self) -> str:
        rows = [(bound.rows, bound.k, bound.gcp, bound.method, bound.lost, bound.times) for bound in self.bounds]
        return _html.section(
            "Lower bounds", _html.table(["rows", "k", "no release loses less than", "method", "loses", "times"], rows)
        )


@dataclass(frozen=True)
class Report:
    """A release as one page, for those who sign it and those who use it."""

    run: str
    holds: bool
    """Whether the release holds everything it promises."""
    compared: bool
    """Whether it was compared with its source row by row."""
    findings: tuple[Finding, ...]
    html: str = field(repr=False)
    """The page: it needs no network and runs no script."""

    @classmethod
    def _of(cls, raw: Raw) -> Report:
        findings = tuple(Finding(**finding) for finding in raw["findings"])
        return cls(raw["run"], raw["holds"], raw["compared"], findings, raw["html"])

    def save(self, path: str | Path) -> Path:
        """Write the page to a file and return its path."""
        path = Path(path)
        path.write_text(self.html, encoding="utf-8")
        return path

    def _repr_html_(self) -> str:
        return _html.page(self.html, 720)


def parse(text: str) -> Any:
    """Return what the extension has written."""
    return json.loads(text)
