#!/usr/bin/env python3
"""What pycanon says of the newest release of a sink, as JSON: an oracle for `throng verify --json`.

    tests/oracle/figures.py SINK COLUMN...

COLUMN are the sensitive columns. Needs Python 3.10 or newer with `venv`; pycanon and pyarrow are installed once, from
PyPI, into a virtual environment in the user's cache folder.

pycanon 1.3.6 takes the counts of recursive (c, l)-diversity in ascending order, so its r_1 is the rarest value. The
definition (Machanavajjhala et al.) begins with the commonest, and so does Throng. Here pycanon is given the counts the
other way round; everything else is as it comes.
"""

import fcntl
import json
import os
import pathlib
import subprocess
import sys

PACKAGES = ["pycanon==1.3.6", "pyarrow==21.0.0"]


def environment() -> pathlib.Path:
    """The Python of the virtual environment, made when it is not there."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    home = cache / "throng-oracle" / "-".join(package.replace("==", "-") for package in PACKAGES)
    home.mkdir(parents=True, exist_ok=True)
    python, done = home / "venv" / "bin" / "python", home / "done"
    with open(home / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", home / "venv"], check=True, stdout=sys.stderr)
            install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES]
            subprocess.run(install, check=True, stdout=sys.stderr)
            done.touch()
    return python


def released(sink: pathlib.Path):
    """The rows of the newest release, and the columns that make up a class."""
    import pyarrow.parquet as parquet
    import pandas

    latest = json.loads((sink / "_latest").read_text())
    manifest = json.loads((sink / latest["manifest"]).read_text())
    files = [parquet.ParquetFile(sink / file["path"]).read().to_pandas() for file in manifest["files"]]
    rows = pandas.concat(files, ignore_index=True)
    for column in manifest["class_columns"]:
        rows[column] = rows[column].map(str)
    return rows, manifest["class_columns"]


class Descending:
    """numpy, but for the order of `sort`."""

    def __init__(self, numpy):
        self.numpy = numpy

    def __getattr__(self, name):
        return getattr(self.numpy, name)

    def sort(self, values):
        return self.numpy.sort(values)[::-1]


def figures(sink: pathlib.Path, sensitive: list[str]) -> dict:
    from pycanon import anonymity
    from pycanon.anonymity import _l_diversity

    rows, quasi = released(sink)
    _l_diversity.np = Descending(_l_diversity.np)
    found = {"rows": len(rows), "k": int(anonymity.k_anonymity(rows, quasi)), "attained": {}}
    for column in sensitive:
        c, of_l = anonymity.recursive_c_l_diversity(rows, quasi, [column])
        found["attained"][column] = {
            "l": int(anonymity.l_diversity(rows, quasi, [column])),
            "entropy_l": int(anonymity.entropy_l_diversity(rows, quasi, [column])),
            "c": None if c != c else int(c),
            "l_of_c": int(of_l),
            "alpha": float(anonymity.alpha_k_anonymity(rows, quasi, [column])[0]),
            "t": float(anonymity.t_closeness(rows, quasi, [column])),
            "beta": float(anonymity.basic_beta_likeness(rows, quasi, [column])),
            "beta_enhanced": float(anonymity.enhanced_beta_likeness(rows, quasi, [column])),
            "delta": float(anonymity.delta_disclosure(rows, quasi, [column])),
        }
    return found


def main() -> None:
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    if os.environ.get("THRONG_ORACLE_INSIDE") != "1":
        python = environment()
        os.execve(python, [python, *sys.argv], {**os.environ, "THRONG_ORACLE_INSIDE": "1"})
    json.dump(figures(pathlib.Path(sys.argv[1]), sys.argv[2:]), sys.stdout)


if __name__ == "__main__":
    main()
