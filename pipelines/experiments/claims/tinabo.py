"""Tinabo, "A modified anonymisation algorithm towards reducing information loss" (2013)."""

from figures import ks, one, saved, signed_rank

from . import best, claims, figure, impossible, share, table, verdict

STEPS = list(range(2, 15))
MEASURES = [("NCP", "ncp"), ("DP", "dm"), ("KL", "kl"), ("joint KL", "joint_kl")]
NAMES = {
    "none": ("tinabo-adult-none", "kl-redinfo"),
    "sort": ("tinabo-adult-sort", "kl-redinfo"),
    "systematic": ("tinabo-adult-systematic", "kl-redinfo"),
    "all three": ("tinabo-adult", "kl-redinfo"),
    "growth": ("tinabo-adult-growth", "kl-redinfo"),
    "nearest": ("tinabo-adult-nearest", "kl-redinfo"),
    "g-anatomy": ("tinabo-adult", "g-anatomy"),
    "l-mondrian": ("tinabo-adult", "l-mondrian"),
    "mondrian": ("tinabo-adult", "mondrian"),
    "auto": ("tinabo-adult", "auto"),
}
# The same names on PatInfo.
PATIENTS = {
    f"PatInfo: {variant}": (name.replace("adult", "patinfo"), method)
    for variant, (name, method) in NAMES.items()
    if variant in ("none", "sort", "systematic", "all three", "g-anatomy", "l-mondrian", "mondrian")
}
NAMES |= PATIENTS


def series(variant: str, score: str) -> list:
    name, method = NAMES[variant]
    return [getattr(one(name, method, k), score) for k in STEPS]


def by_k(score: str, variants: list, digits: int) -> str:
    columns = [series(variant, score) for variant in variants]
    return table(["k = l", *variants], [[str(k), *best([column[at] for column in columns], digits)] for at, k in enumerate(STEPS)])


def compared(ours: str, theirs: str) -> str:
    parts = []
    for name, score in MEASURES:
        mine, other = series(ours, score), series(theirs, score)
        p = signed_rank(mine, other)
        lower = sum(a < b for a, b in zip(mine, other))
        parts.append(f"{name} {100 * saved(mine, other):+.0f} %, {lower} of 13" + (f", p = {p:.4f}" if p is not None else ""))
    return "saved: " + "; ".join(parts)


def lower(ours: str, theirs: str, score: str) -> bool:
    return all(a < b for a, b in zip(series(ours, score), series(theirs, score)))


def significant(ours: str, theirs: str, score: str) -> bool:
    mine, other = series(ours, score), series(theirs, score)
    p = signed_rank(mine, other)
    return p is not None and p < 0.05 and saved(mine, other) > 0


def claim(text: str, ours: str, theirs: str, setup: str, experiment: str = "tinabo-adult") -> list:
    by = [name for name, score in MEASURES[:3] if significant(ours, theirs, score)]
    missing = [name for name, _ in MEASURES[:3] if name not in by]
    said = verdict(not missing) + (f" by {', '.join(by)}; not by {', '.join(missing)}" if by and missing else "")
    return [text, setup, compared(ours, theirs), said, experiment]


def lower_but_little(text: str, ours: str, theirs: str, setup: str, experiment: str = "tinabo-adult") -> list:
    """A claim that something is lower on average, but not significantly."""
    less = [name for name, score in MEASURES[:3] if saved(series(ours, score), series(theirs, score)) > 0]
    clear = [name for name, score in MEASURES[:3] if significant(ours, theirs, score)]
    said = verdict(len(less) == 3) if len(less) in (0, 3) else verdict(False) + f": lower by {', '.join(less)} only"
    return [text, setup, compared(ours, theirs), said + (f"; here it is significant by {', '.join(clear)}" if clear else ""), experiment]


def section() -> str:
    setup = "Adult, 30,162 rows, k = l = 2 to 14, occupation sensitive / the same; hierarchies of our own, age in steps of 5, 10, 20"
    same = all(a == b for _, s in MEASURES for a, b in zip(series("none", s), series("g-anatomy", s)))
    ncp = series("all three", "ncp")
    pair = [saved(ncp, series(alone, "ncp")) for alone in ("systematic", "sort")]
    one_level = [one("tinabo-adult-one-level", "kl-redinfo", k).ncp for k in (2, 6, 10)]
    cells = [one("tinabo-adult", "kl-redinfo", k).ncp for k in (2, 6, 10)]
    step = ncp[5] - ncp[4], max(b - a for at, (a, b) in enumerate(zip(ncp, ncp[1:])) if at != 4)
    sizes = [(n, one(f"tinabo-adult-rows-{n}", "kl-redinfo", 6)) for n in (5000, 10000, 20000)]
    sizes.append((30162, one("tinabo-adult", "kl-redinfo", 6)))
    steady = lambda numbers: max(numbers) <= 1.1 * min(numbers)
    made = "PatInfo, simulated records of a hospital / made as table 5.1 describes them: random values without any relation, 14 diseases, seven QIDs"
    on_patients = lambda text, ours, theirs: claim(text, f"PatInfo: {ours}", f"PatInfo: {theirs}", made, "tinabo-patinfo")
    patients = [
        on_patients("PatInfo, kl-redInfo against l-mondrian: DP 39 %, NCP 24 %, KL 55 % lower, significant (6.4)", "all three", "l-mondrian"),
        on_patients("PatInfo, against g-anatomy: DP 25 %, NCP 10 %, KL 43 % lower, significant (6.4)", "all three", "g-anatomy"),
        on_patients("PatInfo, systematic incorporation alone: DP 16 %, NCP 8 %, KL 19 % lower, significant (6.2.1)", "systematic", "none"),
        lower_but_little("PatInfo, sorting alone: DP 5 %, NCP 6 %, KL 3 % lower, not significant (6.2.3)", "PatInfo: sort", "PatInfo: none", made, "tinabo-patinfo"),
        on_patients("PatInfo, all three against none: DP 23 %, NCP 10 %, KL 40 % lower, significant (6.3)", "all three", "none"),
    ]
    rows = [
        claim("kl-redInfo against l-mondrian: DP 43 %, NCP 39 %, KL 50 % lower on average, significant (6.4, table 6.15)", "all three", "l-mondrian", setup),
        claim("kl-redInfo against g-anatomy: DP 35 %, NCP 28 %, KL 46 % lower, significant (6.4)", "all three", "g-anatomy", setup),
        ["kl-redInfo without its modifications is 7 to 10 % better than g-anatomy (6.1)", setup, "equal in NCP, DP, KL and joint KL" if same else compared("none", "g-anatomy"),
         verdict(not same and lower("none", "g-anatomy", "ncp")) + (": without them it is g-anatomy" if same else ""), "tinabo-adult"],
        claim("without its modifications it beats l-mondrian by 20 % of DP, 21 % of NCP, 16 % of KL, significant (6.1)", "none", "l-mondrian", setup),
        claim("systematic incorporation (M1) alone: DP 17 %, NCP 18 %, KL 24 % lower, significant (6.2.1)", "systematic", "none", setup),
        lower_but_little("sorting (M3) alone: DP 5 %, NCP 4 %, KL 8 % lower, not significant (6.2.3)", "sort", "none", setup),
        ["buckets generalised cell by cell (M2) lose 10 % less NCP than \"generalisation only\" (6.2.2)", setup + "; theirs is not defined, ours is one level for every column",
         "NCP by row at 2, 6, 10: " + ", ".join(f"{a:.3f} against {b:.3f}" for a, b in zip(cells, one_level)),
         verdict(all(a < b for a, b in zip(cells, one_level))), "tinabo-adult"],
        claim("all three against none: DP 34 %, NCP 31 %, KL 40 % lower, significant (6.3)", "all three", "none", setup),
        ["pairs of modifications are better than single ones (6.2.3; read as: NCP is lower on average)", setup,
         f"M1 + M3, which is *all three* here because M2 alone is not defined, saves {100 * pair[0]:.0f} % of NCP against M1 and "
         f"{100 * pair[1]:.0f} % against M3", verdict(min(pair) > 0), "tinabo-adult"],
        ["losses rise with k and l, with a step above 6 (6.5.2; read as: the rise from 6 to 7 is the largest)", setup,
         f"NCP rises by {step[0]:.3f} from 6 to 7, by {step[1]:.3f} at most elsewhere",
         verdict(all(a <= b for a, b in zip(ncp, ncp[1:])) and step[0] > step[1]), "tinabo-adult"],
        ["NCP and DP grow linearly with the rows, KL hardly changes (6.5.1, k = l = 6; read as: NCP by row and KL within a tenth)", setup + "; samples",
         "; ".join(f"{rows} rows: NCP by row {t.ncp:.3f}, KL {t.kl:.3f}" for rows, t in sizes),
         verdict(steady([t.ncp for _, t in sizes]) and steady([t.kl for _, t in sizes])), "tinabo-adult"],
        *patients,
        ["tables 6.1 to 6.14 and C.1 to H.3 as printed", "-", "DP below what the counts of occupations allow; NCP above the number of rows",
         impossible("no grouping has these figures (tests `tinabo_printed_...` in `core/src/measure/printed.rs`)"), "tinabo-adult"],
    ]
    changes = table(["k = l", "all three", "`ties = place`", "`penalty = others`", "`order = country, race`"], [
        [str(k), *[figure(one(name, method, k).ncp, 4) for name, method in (
            ("tinabo-adult", "kl-redinfo"), ("tinabo-adult-place", "kl-redinfo"), ("tinabo-adult-others", "kl-redinfo"),
            ("tinabo-adult-order", "kl-redinfo"))]]
        for k in (2, 4, 6, 8, 10, 12, 14)])
    return f"""## Tinabo: k = l = 2 to 14 on Adult, occupation sensitive

What exists of the thesis, and where: [tinabo.md](tinabo.md). NCP by row as the thesis defines it: leaves below the published node over
all leaves, 0 for a leaf, mean over seven columns. *none* is kl-redInfo without sorting and with left-overs in turn, *sort* and
*systematic* have one modification each; *growth* puts a left-over row where the loss grows least, *nearest* fills buckets with near
rows; both are ours. l-mondrian goes by the nodes of the hierarchies throughout (`nodes = true`); by default it cuts ages at
medians. `mondrian` and `auto` group under the same rules.

{by_k("ncp", ["none", "sort", "systematic", "all three", "growth", "nearest", "g-anatomy", "l-mondrian", "mondrian", "auto"], 4)}

Discernibility (DP) by published class:

{by_k("dm", ["none", "all three", "growth", "nearest", "g-anatomy", "l-mondrian", "auto"], 0)}

KL divergence of all quasi-identifiers together, in nats:

{by_k("joint_kl", ["none", "all three", "growth", "nearest", "g-anatomy", "l-mondrian", "auto"], 3)}

NCP by row on PatInfo:

{by_k("ncp", [*PATIENTS], 4)}

What the readings that the thesis leaves open do to NCP on Adult:

{changes}

Claims; *saved* is the mean of 1 - ours / theirs over the thirteen values, then at how many ours is lower, and Wilcoxon's exact
two-sided p. A claim of a significant difference is confirmed where p < 0.05 in its direction for NCP, DP and KL.

{claims(rows)}"""
