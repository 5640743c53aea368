"""Scores of the experiments, and the arithmetic that the page needs of them."""

import csv
import itertools
from pathlib import Path

FOLDER = Path(__file__).parent / "figures"

# Times and memory differ from run to run.
PASSING = {"seconds", "memory"}


def take(out: Path) -> None:
    """Copies the scores of the experiments, without times, from the folder that `run` leaves them in."""
    FOLDER.mkdir(exist_ok=True)
    for path in sorted(out.glob("*.csv")):
        with path.open(newline="") as source:
            rows = list(csv.reader(source))
        kept = [at for at, name in enumerate(rows[0]) if name not in PASSING]
        with (FOLDER / path.name).open("w", newline="") as target:
            csv.writer(target, lineterminator="\n").writerows([row[at] for at in kept] for row in rows)


class Trial:
    """A row of a table of scores. Scores that were not measured are None."""

    def __init__(self, row: dict):
        self.row = row
        self.method, self.k = row.get("method", ""), int(row["k"])
        self.refused = row.get("refused", "")

    def __getattr__(self, name: str):
        if name not in self.row:
            raise AttributeError(name)
        text = self.row[name]
        return float(text) if text != "" else None

    @property
    def ncp(self):
        """NCP of Tinabo's thesis over the rows: leaves over all leaves, 0 for a leaf, mean over the columns."""
        return self.iloss / self.rows if self.iloss is not None else self.gcp


def read(name: str) -> list:
    with (FOLDER / f"{name}.csv").open(newline="") as source:
        return [Trial(row) for row in csv.DictReader(source)]


def one(name: str, method: str | None = None, k: int | None = None) -> Trial:
    """The only trial of a table by a method at some k."""
    found = [
        trial for trial in read(name) if (method is None or trial.method == method) and (k is None or trial.k == k)
    ]
    if len(found) != 1:
        raise LookupError(f"{name}: {len(found)} trials by {method} at k = {k}")
    return found[0]


def ks(name: str) -> list:
    return sorted({trial.k for trial in read(name)})


def methods(name: str) -> list:
    return list(dict.fromkeys(trial.method for trial in read(name)))


def mean(numbers) -> float:
    numbers = list(numbers)
    return sum(numbers) / len(numbers)


def saved(ours: list, theirs: list) -> float:
    """By how much ours are smaller on average, as a share of theirs."""
    return mean(1 - mine / other for mine, other in zip(ours, theirs) if other and mine is not None)


def signed_rank(ours: list, theirs: list) -> float | None:
    """Two-sided exact p of Wilcoxon's signed-rank test; None if no pair differs."""
    pairs = [(a, b) for a, b in zip(ours, theirs) if a is not None and b is not None]
    differences = sorted((a - b for a, b in pairs if a != b), key=abs)
    if not differences:
        return None
    ranks, at = [], 0
    for _, run in itertools.groupby(differences, key=abs):
        size = len(list(run))
        ranks += [at + (size + 1) / 2] * size
        at += size
    plus = sum(rank for rank, difference in zip(ranks, differences) if difference > 0)
    least = min(plus, sum(ranks) - plus)
    doubled = [round(2 * rank) for rank in ranks]
    ways = {0: 1}
    for rank in doubled:
        more = dict(ways)
        for total, count in ways.items():
            more[total + rank] = more.get(total + rank, 0) + count
        ways = more
    tail = sum(count for total, count in ways.items() if total <= round(2 * least))
    return min(1.0, 2 * tail / 2 ** len(doubled))
