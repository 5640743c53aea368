"""Sun, Wang and Li, "Priority driven k-anonymisation for privacy protection" (2008)."""

from figures import ks, one

from . import best, claims, impossible, table, verdict_by

METHODS = ["density", "density-cm", "mondrian", "auto"]


def scores(name: str, score: str, digits: int) -> str:
    rows = [[str(k), *best([getattr(one(name, m, k), score) for m in METHODS], digits)] for k in ks(name)]
    return table(["k", "`density` (DBCA)", "`density-cm` (DBCA:CM)", "strict `mondrian` (MPA)", "`auto`"], rows)


def section() -> str:
    steps = ks("sun-dbca")
    distortion = lambda m, k: one("sun-dbca", m, k).weighted_distortion
    priority = lambda m, k: one("sun-priorities", m, k).weighted_distortion
    cm = lambda m, k: one("sun-dbca", m, k).cm
    whole = [one("sun-dbca-whole", "density", k) for k in ks("sun-dbca-whole")]
    parts = [one("sun-dbca", "density", k) for k in ks("sun-dbca-whole")]
    setup = "Adult, 45,222 rows / its training set, 30,162; hierarchies of the same heights; priorities of the figures not printed"
    less = lambda f: ", ".join(f"{100 * (1 - f('density', k) / f('mondrian', k)):.0f} %" for k in steps)
    rows = [
        ["DBCA distorts less than Mondrian at every k (figure 2), all priorities 1", setup, f"less by {less(distortion)} at k = {', '.join(map(str, steps))}",
         verdict_by({k: distortion("density", k) < distortion("mondrian", k) for k in steps}), "sun-dbca"],
        ["the same with priorities by rank (section 3.2, definition 6)", setup + " / ranks of ours: " + "age first, sex last", f"less by {less(priority)}",
         verdict_by({k: priority("density", k) < priority("mondrian", k) for k in steps}), "sun-priorities"],
        ["\"DBCA:CM results in the least distortion for all k values\" (section 4)", setup,
         "; ".join(f"k = {k}: {distortion('density-cm', k):,.0f} against {distortion('density', k):,.0f}" for k in steps),
         verdict_by({k: distortion("density-cm", k) <= distortion("density", k) for k in steps}) + ": a penalty on other labels costs distance", "sun-dbca"],
        ["DBCA is \"very close\" to DBCA:CM (section 4; read as: within a tenth)", setup,
         ", ".join(f"{100 * (distortion('density-cm', k) / distortion('density', k) - 1):.1f} %" for k in steps) + " more",
         verdict_by({k: distortion("density-cm", k) <= 1.1 * distortion("density", k) for k in steps}), "sun-dbca"],
        ["CM: DBCA:CM below DBCA below Mondrian for every k (figure 3)", setup + "; from the same runs as the distortion",
         "; ".join(f"k = {k}: {cm('density-cm', k):.3f}, {cm('density', k):.3f}, {cm('mondrian', k):.3f}" for k in steps),
         verdict_by({k: cm("density-cm", k) < cm("density", k) < cm("mondrian", k) for k in steps}), "sun-dbca"],
        ["DBCA takes longer than Mondrian (figure 4)", "whole table / subspaces", "-", impossible("ours works in subspaces, so its times are not DBCA's"), "sun-dbca"],
    ]
    compare = table(["k", "in subspaces", "whole table"], [[str(a.k), f"{a.weighted_distortion:,.0f}", f"{b.weighted_distortion:,.0f}"] for a, b in zip(parts, whole)])
    return f"""## Sun, Wang and Li: density against Mondrian

What exists of the paper, and where: [sun.md](sun.md). Adult with a hierarchy on every column. Distortion by definition 6, the sum over
rows and columns of priority times the share of the way up the hierarchy, in steps of uniform weight; all priorities 1:

{scores("sun-dbca", "weighted_distortion", 0)}

With priorities by rank from 1 (age) down to 0.01 (sex), which every method groups by:

{scores("sun-priorities", "weighted_distortion", 0)}

CM, all priorities 1:

{scores("sun-dbca", "cm", 4)}

DBCA compares every row with every other. Here it does so in subspaces of 512 rows and more; on the table as a whole (`s = 65536`) its
distortion is:

{compare}

{claims(rows)}"""
