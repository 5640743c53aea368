"""All methods side by side on Adult, without and with rules."""

from figures import ks, methods, one, read

from . import best, figure, share, table


def whole() -> str:
    trials = [trial for trial in read("adult") if trial.k == 10 and trial.gcp is not None]
    trials.sort(key=lambda trial: trial.gcp)
    columns = [("GCP", "gcp", 4), ("UM", "um", 4), ("MPM", "mpm", 4), ("DM", "dm", 0), ("CM", "cm", 4), ("WGP", "wgp", 2)]
    rows = []
    for trial in trials:
        cells = [f"{getattr(trial, name):,.0f}" if digits == 0 else figure(getattr(trial, name), digits) for _, name, digits in columns]
        repaired = (trial.placed_by_repair or 0) / max(1, trial.rows - trial.suppressed)
        rows.append([f"`{trial.method}`", *cells, f"{trial.suppressed:.0f}", share(repaired)])
    return table(["method", *[name for name, _, _ in columns], "suppressed", "placed by repair"], rows)


def by_k() -> str:
    steps = ks("adult")
    columns = {k: best([one("adult", method, k).gcp for method in methods("adult")], 4) for k in steps}
    rows = [[f"`{method}`", *[columns[k][at] for k in steps]] for at, method in enumerate(methods("adult"))]
    return table(["method", *[f"k = {k}" for k in steps]], rows)


def under_rule(name: str) -> str:
    rows = []
    for k in ks(name):
        trials = sorted((t for t in read(name) if t.k == k and t.gcp is not None), key=lambda t: (t.suppressed, t.gcp))
        rows += [
            [str(k), f"`{t.method}`", figure(t.gcp, 4), figure(t.wgu, 2), figure(t.wgp, 2), f"{t.suppressed:.0f}",
             share((t.placed_by_repair or 0) / max(1, t.rows - t.suppressed))]
            for t in trials
        ]
    return table(["k", "method", "GCP", "WGU", "WGP", "suppressed", "placed by repair"], rows)


def wins(name: str) -> str:
    """Whether `auto` suppresses no more than any other and loses least."""
    lines = []
    for k in ks(name):
        trials = [t for t in read(name) if t.k == k and t.gcp is not None]
        auto = next(t for t in trials if t.method == "auto")
        others = [t for t in trials if t.method != "auto"]
        fewest = auto.suppressed <= min(t.suppressed for t in others)
        fair = [t for t in others if t.suppressed <= auto.suppressed]
        least = all(auto.gcp <= t.gcp for t in fair)
        second = min((t.gcp, t.method) for t in others)
        lines.append(
            f"k = {k}: it suppresses {auto.suppressed:.0f} rows, {'no' if fewest else 'and so'} more than "
            f"{'any' if fewest else 'another'}, and {'loses least' if least else 'does not lose least'} "
            f"(GCP {auto.gcp:.4f}, the next `{second[1]}` {second[0]:.4f})"
        )
    return "`auto`: " + "; ".join(lines) + "."


def section() -> str:
    return f"""## All methods on Adult

30,162 rows, eight quasi-identifiers, k = 10; the salary class is sensitive, and the label of CM. WGP is the range diversity of the
worst group, with every value its own range: 1 where all rows of some group have one salary class, which k alone does not forbid.
*Placed by repair* is the share of published rows whose group is not the method's work: it left them over, or a rule failed.
`samarati` may suppress 1 % of the rows, `datafly` up to k. `toc` finds its parameters in a sample. Command: `run adult`.

{whole()}

`anatomy` publishes quasi-identifiers exactly and so loses nothing by these measures; `mpalm` and `spalm` need a public table
([membership.md](membership.md)). `pair-enum` and `k-assemble` preserve occupation -> workclass, which nearly holds. `upc` is
bounded by U = P = 1, and fills its subspaces.

Mean loss of a published value (GCP) by k:

{by_k()}

## All methods under the same rules

What a method loses says little unless the others keep the same promise. Here all group under the same rules, and what they leave
in violation is repaired. Command: `run adult-upc`.

U = 0.7 and P = 0.5 on Adult (occupation sensitive, its ranges the three groups of its hierarchy), the promise of `upc`:

{under_rule("adult-upc")}

{wins("adult-upc")}

(0.3, k)-anonymity of occupation:

{under_rule("adult-alpha-k")}

{wins("adult-alpha-k")}

0.3-closeness of occupation:

{under_rule("adult-t-closeness")}

{wins("adult-t-closeness")}"""
