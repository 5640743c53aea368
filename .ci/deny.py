#!/usr/bin/env python3
"""Checks what the build is made of, without the network: licences, sources, and one version each of the crates whose
types must fit together.

It does what `cargo deny check licenses bans sources` would, which takes a build of its own of two hundred crates.
Advisories need a database that changes daily: run `cargo deny check advisories` or `cargo audit` where there is one.
"""

import json
import re
import subprocess
import sys

# Permissive licences, and MPL-2.0, which asks for nothing of those who do not change the crate's own files.
ALLOWED = {
    "0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "ISC",
    "MIT", "MIT-0", "MPL-2.0", "Unicode-3.0", "Unlicense", "Zlib", "bzip2-1.0.6",
}  # fmt: skip

# Two versions of one of these in a build do not fit together: their types differ.
SINGLE = ("arrow", "arrow-array", "arrow-schema", "parquet", "datafusion", "datafusion-common", "object_store")

SOURCES = {"registry+https://github.com/rust-lang/crates.io-index"}


def is_allowed(expression, allowed):
    """Whether an SPDX expression can be met by allowed licences alone."""
    # An old way to write OR.
    tokens = re.findall(r"\(|\)|[^\s()]+", expression.replace("/", " OR "))
    at = 0

    def either():
        nonlocal at
        met = both()
        while at < len(tokens) and tokens[at] == "OR":
            at += 1
            met = both() or met
        return met

    def both():
        nonlocal at
        met = one()
        while at < len(tokens) and tokens[at] == "AND":
            at += 1
            met = one() and met
        return met

    def one():
        nonlocal at
        token = tokens[at]
        at += 1
        if token == "(":
            met = either()
            if tokens[at] != ")":
                raise ValueError(expression)
            at += 1
            return met
        if at < len(tokens) and tokens[at] == "WITH":
            token = " ".join(tokens[at - 1 : at + 2])
            at += 2
        return token in allowed

    met = either()
    if at != len(tokens):
        raise ValueError(expression)
    return met


def problems(metadata, allowed=ALLOWED, single=SINGLE, sources=SOURCES):
    """What is wrong with the packages of a build."""
    found = []
    versions = {}
    for package in metadata["packages"]:
        name = f"{package['name']} {package['version']}"
        versions.setdefault(package["name"], set()).add(package["version"])
        licence = package["license"]
        if licence is None:
            found.append(f"{name}: names no licence")
        else:
            try:
                if not is_allowed(licence, allowed):
                    found.append(f"{name}: the licence `{licence}` is not among those allowed")
            except (ValueError, IndexError):
                found.append(f"{name}: the licence `{licence}` cannot be understood")
        # Members of the workspace have no source.
        if package["source"] is not None and package["source"] not in sources:
            found.append(f"{name}: comes from {package['source']}")
    for crate in single:
        if len(versions.get(crate, ())) != 1:
            found.append(f"{crate}: exactly one version must be built, and there are: {sorted(versions.get(crate, ()))}")
    return found


def self_test():
    """A check that cannot fail is none."""
    assert is_allowed("MIT/Apache-2.0", {"MIT"}) and is_allowed("(GPL-3.0 OR MIT) AND ISC", {"MIT", "ISC"})
    assert not is_allowed("MIT AND GPL-3.0", {"MIT"}) and not is_allowed("Apache-2.0 WITH LLVM-exception", {"Apache-2.0"})
    crate = {"name": "a", "version": "1", "license": "GPL-3.0", "source": "git+https://example.org/a"}
    bad = {"packages": [crate, dict(crate, version="2", license=None), dict(crate, version="3", license="MIT AND (")]}
    assert len(problems(bad, single=("a", "b"))) == 8, problems(bad, single=("a", "b"))


def main():
    self_test()
    host = re.search(r"^host: (.+)$", subprocess.check_output(["rustc", "-vV"], text=True), re.M).group(1)
    command = ["cargo", "metadata", "--locked", "--all-features", "--filter-platform", host, "--format-version", "1"]
    metadata = json.loads(subprocess.check_output(command))
    found = problems(metadata)
    for problem in found:
        print(problem, file=sys.stderr)
    if found:
        sys.exit(1)
    print(f"    {len(metadata['packages'])} crates: licences, sources and versions are as they should be")


if __name__ == "__main__":
    main()
