"""Loukides, "Data utility and privacy protection in data publishing" (2008)."""

from figures import ks, mean, one, read

from . import claims, figure, impossible, share, table, verdict, verdict_by

TOC = ["toc", "mondrian", "k-members", "k-members-p"]


def trade_off(method: str, k: int) -> float:
    trial = one("loukides-toc", method, k)
    return (trial.um + trial.mpm) / 2


def toc_table() -> str:
    def cell(method, k):
        trial = one("loukides-toc", method, k)
        return f"{trial.um:.3f} / {trial.mpm:.3f} ({trade_off(method, k):.3f})"

    strict = lambda k: one("loukides-toc-strict", "mondrian", k)
    rows = [
        [str(k), *[cell(method, k) for method in TOC], f"{strict(k).um:.3f} / {strict(k).mpm:.3f} ({(strict(k).um + strict(k).mpm) / 2:.3f})"]
        for k in ks("loukides-toc")
    ]
    return table(["k", "`toc`", "relaxed `mondrian`", "`k-members`", "`k-members-p`", "strict `mondrian`"], rows)


DELTAS = ["0.0", "0.1", "0.2", "0.3", "0.35", "0.4", "0.5"]


def delta_table() -> str:
    rows = []
    for delta in DELTAS:
        cells = []
        for way in ("increment", "resulting", "suppress"):
            trial = one(f"loukides-toc-delta-{delta}-{way}")
            placed = [trial.placed_by_method or 0, trial.placed_as_left_over or 0, trial.placed_by_repair or 0]
            um = figure(trial.um) if trial.classes else "-"
            cells += [um, " + ".join(f"{n:.0f}" for n in placed)]
            if way == "suppress":
                cells.append(f"{trial.suppressed:.0f}" if trial.classes else "all")
        rows.append([delta, *cells])
    header = ["delta", "`increment`: UM", "rows placed", "`resulting`: UM", "rows placed", "`suppress`: UM", "rows placed", "suppressed"]
    return table(header, rows)


GRID = ["0.28", "0.31", "0.34", "0.37", "0.40", "0.43", "0.46", "0.49", "0.52", "0.55"]
ROUNDS, ROWS = [1, 2, 3, 4, 5], [174, 302, 754, 1508, 3016]


def quality(name: str) -> float:
    trial = one(name)
    return trial.um + trial.mpm


def optimum():
    tried = [f"loukides-rql-delta-{delta}" for delta in GRID]
    tried += [f"loukides-rql-rounds-{n}" for n in ROUNDS] + [f"loukides-rql-rows-{n}" for n in ROWS]
    return one(min(tried, key=quality))


def rql(name: str) -> float:
    least = optimum().um + optimum().mpm
    return (quality(name) - least) / least


def rql_tables() -> str:
    by_rows = table(["rows of the sample", *map(str, ROWS)], [["RQL", *[figure(rql(f"loukides-rql-rows-{n}")) for n in ROWS]]])
    by_rounds = table(["rounds", *map(str, ROUNDS)], [["RQL", *[figure(rql(f"loukides-rql-rounds-{n}")) for n in ROUNDS]]])
    return by_rows + "\n\n" + by_rounds


def toc_claims() -> str:
    steps = [k for k in ks("loukides-toc") if k >= 5]
    winner = {k: min(TOC, key=lambda method: trade_off(method, k)) for k in steps}
    um = lambda method, k: one("loukides-toc", method, k).um
    mpm = lambda method, k: one("loukides-toc", method, k).mpm
    query = lambda name, method, k: one(name, method, k).query_error
    weights = read("loukides-toc-weights")
    rises = all(a.um >= b.um for a, b in zip(weights, weights[1:])) and all(a.mpm <= b.mpm for a, b in zip(weights, weights[1:]))
    ends = weights[0].um > weights[-1].um and weights[0].mpm < weights[-1].mpm
    zero = {k: float((one(f"loukides-toc-one-{k}")).share) for k in (2, 5)}
    adult = "Adult, 6 QIDs, ranges and sets / the same rows; occupation numbers are ours, relaxed Mondrian as theirs, rows of equal values in random order"
    pairs = lambda method: ", ".join(f"{um('toc', k):.3f} / {um(method, k):.3f}" for k in (5, 10, 25))
    small = [k for k in steps if k <= 10]
    return claims([
        ["MRG (`toc`) is clearly best on w_u UM + w_p MPM for all k (4.4, figure 4.3)", adult,
         "; ".join(f"k = {k}: `{winner[k]}` {trade_off(winner[k], k):.3f}, `toc` {trade_off('toc', k):.3f}" for k in steps),
         verdict_by({k: winner[k] == "toc" for k in steps}), "loukides-toc"],
        ["its UM is well better than Mondrian's (4.5.1)", adult, "`toc` / relaxed Mondrian at 5, 10, 25: " + pairs("mondrian"),
         verdict_by({k: um("toc", k) < um("mondrian", k) for k in steps}), "loukides-toc"],
        ["its UM is close to that of K-Members (4.5.1; read as: at most a tenth more)", adult, "`toc` / `k-members`: " + pairs("k-members"),
         verdict_by({k: um("toc", k) <= 1.1 * um("k-members", k) for k in steps}), "loukides-toc"],
        ["Mondrian and K-Members \"offer little protection, particularly when k is small\"; `toc` is significantly better (4.5.1)", adult,
         "MPM at k = 5: " + ", ".join(f"`{m}` {mpm(m, 5):.3f}" for m in TOC),
         verdict_by({k: mpm("toc", k) < min(mpm("mondrian", k), mpm("k-members", k)) for k in small}), "loukides-toc"],
        ["and \"comparable to K-Members-p for all levels of k\" (4.5.1; read as: no worse by a tenth)", adult,
         "; ".join(f"k = {k}: {mpm('toc', k):.3f} / {mpm('k-members-p', k):.3f}" for k in steps),
         verdict_by({k: mpm("toc", k) <= 1.1 * mpm("k-members-p", k) for k in steps}), "loukides-toc"],
        ["K-Members-p is far worse in utility (4.5.1; read as: more than any other at every k)", adult,
         "UM: " + ", ".join(f"{um('k-members-p', k):.3f}" for k in steps),
         verdict_by({k: um("k-members-p", k) > max(um(m, k) for m in TOC[:3]) for k in steps}), "loukides-toc"],
        ["raising w_u lowers UM and raises MPM (4.4, figures 4.5 to 4.8)", adult + "; delta and s are found anew for every weight",
         "UM, MPM: " + "; ".join(f"{t.um:.3f}, {t.mpm:.3f}" for t in weights),
         verdict(rises) + ("" if rises or not ends else "; from end to end it holds"), "loukides-toc"],
        ["all MRG configurations answer type-1 queries better than both for k up to 15 (4.5.2)",
         "10,000 queries of age, gender and income by normalised error / 200 random queries of three columns, mean relative error",
         "; ".join(f"k = {k}: " + ", ".join(f"`{m}` {query('loukides-toc', m, k):.2f}" for m in TOC[:3]) for k in (5, 10)),
         verdict_by({k: query("loukides-toc", "toc", k) < min(query("loukides-toc", m, k) for m in TOC[1:3]) for k in (5, 10)}),
         "loukides-toc"],
        ["and type-2 queries for every k (4.5.2)", "five named columns / five random ones, selectivity 0.005",
         "; ".join(f"k = {k}: " + ", ".join(f"`{m}` {query('loukides-toc-queries-5', m, k):.2f}" for m in TOC[:3]) for k in (5, 10, 25)),
         verdict_by({k: query("loukides-toc-queries-5", "toc", k) < min(query("loukides-toc-queries-5", m, k) for m in TOC[1:3]) for k in (5, 10, 25)}),
         "loukides-toc"],
        ["of Mondrian's groups 57 % have a zero range of occupation at k = 2, 21 % at k = 5 (3.1.2, figure 3.3)",
         "occupations coded by likeness, codes not printed / our codes; published classes, so groups that publish the same are one",
         ", ".join(f"k = {k}: {share(zero[k], 1)}" for k in zero),
         verdict(abs(zero[2] - 0.57) < 0.1 and abs(zero[5] - 0.21) < 0.1), "loukides-toc"],
        ["delta found in a 2.5 % sample in three rounds has RQL 0.043 (4.2)", "optimum over all deltas / over a grid of ten and all found",
         f"{rql('loukides-rql-rounds-3'):.3f}", verdict(rql("loukides-rql-rounds-3") <= 0.0435), "loukides-toc"],
        ["six rounds find the optimum, three nearly (table 4.6; read as: RQL never rises with rounds and ends below 0.01)",
         "100,000 normal rows / Adult, up to five rounds", ", ".join(figure(rql(f"loukides-rql-rounds-{n}")) for n in ROUNDS),
         verdict(rql("loukides-rql-rounds-5") < 0.01), "loukides-toc"],
        ["MRG is 8 % slower than Mondrian, six times faster than K-Members without pre-partitioning (4.3)", "Java, 2008 / Rust", "-",
         impossible("all our methods work in subspaces, and times are of other machines and languages"), "loukides-toc"],
    ])


def upc_table() -> str:
    rows = []
    for k in ks("loukides-upc"):
        trials = [one("loukides-upc", "upc", k)]
        trials += [one("loukides-upc-free", m, k) for m in ("toc", "mondrian", "k-members", "k-members-p")]
        trials += [one(name, "incognito", k) for name in ("loukides-upc-incognito-l", "loukides-upc-incognito-t")]
        trials += [one("loukides-upc", "auto", k)]
        cell = lambda t: f"{figure(t.um, 2)}, {figure(t.wgu, 2)}, {figure(t.wgp, 2)}, {share(t.unprotected)}, {t.suppressed:.0f}"
        rows.append([str(k), *[cell(trial) for trial in trials]])
    header = ["k", "`upc`", "`toc`", "`mondrian`", "`k-members`", "`k-members-p`", "`incognito`, (2,2)-diversity",
              "`incognito`, 0.9-closeness", "`auto` under U and P"]
    return table(header, rows)


def upc_claims() -> str:
    steps = ks("loukides-upc")
    upc = {k: one("loukides-upc", "upc", k) for k in steps}
    free = lambda m, k: one("loukides-upc-free", m, k)
    l_diverse = {k: one("loukides-upc-incognito-l", "incognito", k) for k in steps}
    close = {k: one("loukides-upc-incognito-t", "incognito", k) for k in steps}
    adult = {k: one("adult-upc", "upc", k) for k in ks("adult-upc")}
    census = "IPUMS, 100,000 rows / generated census of 3,000 rows, the same five QIDs, income in five ranges"
    listed = lambda trials, name, digits=2: ", ".join(figure(getattr(t, name), digits) for t in trials.values())
    suppress = [one("loukides-upc-suppress", "toc", k) for k in (2, 5)]
    flat = [adult[k].um for k in adult]
    fair = lambda m, k: one("adult-upc", m, k)
    return claims([
        ["UPC keeps WGU at most U and WGP at most P at every k (6.3, figures 6.16 and 6.30)", census + "; Adult too",
         f"census WGU {listed(upc, 'wgu')}, WGP {listed(upc, 'wgp')}; Adult WGU {listed(adult, 'wgu')}, WGP {listed(adult, 'wgp')}",
         verdict(all(t.wgu <= 0.7 + 1e-4 and t.wgp <= 0.5 + 1e-4 for t in [*upc.values(), *adult.values()])), "loukides-upc"],
        ["\"our method did not suppress any tuples\" (6.2, at k = 2 and 5)", census,
         ", ".join(f"k = {k}: {t.suppressed:.0f}" for k, t in upc.items()) + "; Adult " + ", ".join(f"{t.suppressed:.0f}" for t in adult.values()),
         verdict(upc[2].suppressed == upc[5].suppressed == 0), "loukides-upc"],
        ["TOC suppresses a large fraction, and what it releases misses P (6.2)", census + "; delta from a sample, left-overs suppressed",
         "; ".join(f"k = {t.k}: {t.suppressed:.0f} suppressed, WGP {figure(t.wgp, 2)}, {share(t.unprotected, 1)} of the rest unprotected" for t in suppress),
         verdict(all(t.suppressed > 0.1 * t.rows and t.wgp and t.wgp > 0.5 for t in suppress)), "loukides-upc"],
        ["K-Members-p leaves 83 % of the tuples unprotected at k = 2, 65 % at k = 10 (6.4)", "50,000 normal rows, two SAs, P = 0.7 / census, P = 0.5",
         ", ".join(f"k = {k}: {share(free('k-members-p', k).unprotected)}" for k in steps),
         verdict(free("k-members-p", 2).unprotected > 0.65 and free("k-members-p", 10).unprotected > 0.5), "loukides-upc"],
        ["K-Members-p never satisfies P (6.4)", "as above", f"WGP {', '.join(figure(free('k-members-p', k).wgp, 2) for k in steps)}",
         verdict(all(free("k-members-p", k).wgp > 0.5 for k in steps)), "loukides-upc"],
        ["with recursive (2,2)-diversity Incognito leaves every tuple with rd above 0.85 (6.3)", census + "; ages in steps of 5, 10, 20, 40 years",
         f"mean rd of a row {listed(l_diverse, 'rd_of_a_row')}, worst {listed(l_diverse, 'wgp')}",
         verdict_by({k: t.rd_of_a_row > 0.85 for k, t in l_diverse.items()}), "loukides-upc"],
        ["t-closeness (t = 0.9) protects about as well as UPC, at the worst utility (6.3)", census,
         f"WGP {listed(close, 'wgp')}; UM {listed(close, 'um')}, UPC's {listed(upc, 'um')}",
         verdict_by({k: close[k].wgp <= upc[k].wgp + 0.05 and close[k].um > upc[k].um for k in steps}), "loukides-upc"],
        ["UPC's UM is better than that of Incognito (6.3)", census,
         f"UPC {listed(upc, 'um')}; Incognito with (2,2)-diversity {listed(l_diverse, 'um')}, with 0.9-closeness {listed(close, 'um')}",
         verdict_by({k: upc[k].um < min(l_diverse[k].um, close[k].um) for k in steps}), "loukides-upc"],
        ["UPC is comparable with K-Members in UM (6.4; read as: at most a quarter more), K-Members without the bounds, as the thesis ran it",
         "U := WGU of K-Members, P = 0.7, normal data / Adult, U = 0.7, P = 0.5",
         "; ".join(f"k = {k}: {adult[k].um:.3f} / {one('adult-upc-free', 'k-members', k).um:.3f}" for k in adult),
         verdict_by({k: adult[k].um <= 1.25 * one("adult-upc-free", "k-members", k).um for k in adult}), "adult-upc"],
        ["(not claimed, but what the comparison is read for) UPC loses least of all that keep U and P", "- / Adult, all under U = 0.7, P = 0.5",
         "UM at k = 5: " + ", ".join(f"`{m}` {fair(m, 5).um:.3f}" for m in ("upc", "auto", "mondrian", "k-members")),
         verdict(all(fair("upc", k).um <= min(fair(m, k).um for m in ("auto", "mondrian", "k-members")) for k in adult))
         + ": the price is UPC's, not that of P", "adult-upc"],
        ["UPC's UM is flat in k from 2 to 25 (6.5, table 6.5)", "normal data / Adult, k = 5, 10, 25", ", ".join(figure(um) for um in flat),
         verdict(max(flat) - min(flat) < 0.1 * max(flat)), "adult-upc"],
    ])


def policies() -> str:
    names = ["p1", "p2", "p3", "p4", "p5"]
    cell = lambda p, k: "{}, {}, {}".format(*(figure(getattr(one(f"loukides-policies-{p}", "upc", k), n), d) for n, d in (("um", 3), ("wgp", 2), ("query_error", 2))))
    rows = [[str(k), *[cell(p, k) for p in names]] for k in ks("loukides-policies-p1")]
    return table(["k", *[p.upper() for p in names]], rows)


def policy_claims() -> str:
    names = ["p1", "p2", "p3", "p4", "p5"]
    at = lambda p, k: one(f"loukides-policies-{p}", "upc", k)
    steps = ks("loukides-policies-p1")
    ums = [at(p, k).um for p in names for k in steps]
    setup = "50,000 normal rows with hierarchies / the same made up, without hierarchies; s fixed at 50"
    return claims([
        ["no policy suppresses anything (6.5)", setup, f"{sum(at(p, k).suppressed for p in names for k in steps):.0f} rows in all 25 runs",
         verdict(all(at(p, k).suppressed == 0 for p in names for k in steps)), "loukides-policies"],
        ["UM hardly moves with the policy (table 6.5; read as: by a tenth)", setup, f"{min(ums):.3f} to {max(ums):.3f}",
         verdict(max(ums) <= 1.1 * min(ums)), "loukides-policies"],
        ["UM is flat in k from 2 to 25, and higher at 50 (table 6.5)", setup, ", ".join(figure(at("p1", k).um) for k in steps) + " (P1)",
         verdict(max(at("p1", k).um for k in steps if k <= 25) < 1.1 * min(at("p1", k).um for k in steps) and at("p1", 50).um > 1.2 * at("p1", 25).um),
         "loukides-policies"],
        ["P5 has 10 times the mean and 85 times the largest query error of P4 (tables 6.3 and 6.4)", "queries ask for a QID and a sensitive value / QIDs only",
         f"mean error at k = 5: P4 {at('p4', 5).query_error:.2f}, P5 {at('p5', 5).query_error:.2f}",
         impossible("our COUNT queries have no predicate on a sensitive value, which is where policies differ"), "loukides-policies"],
    ])


def section() -> str:
    return f"""## Loukides: utility and protection

What exists of the thesis, and where: [loukides.md](loukides.md).

### Chapters 3 and 4: TOC on Adult

Six quasi-identifiers, marital status and occupation sensitive, weights one half each. UM / MPM, and their mean in brackets:

{toc_table()}

What delta does at k = 5, s = 20, by the way left-over rows are handled. *Rows placed*: by the method, by its handling of left-over
rows, by repair. Where no cluster forms, Algorithm 1 as printed (`suppress`) publishes nothing, and otherwise what is published is
the work of the repair, not of TOC:

{delta_table()}

Relative quality loss (RQL) of delta as a sample finds it, three rounds, and by rounds on a 2.5 % sample; k = 5, s = 20. UM and MPM
count groups, not rows, and their sum is least where few clusters form and take in what is left over: at the optimum
{share((optimum().placed_as_left_over or 0) / optimum().rows)} of the rows are left-over rows, and GCP is {optimum().gcp:.3f}, against
{one("loukides-rql-delta-0.55").gcp:.3f} at delta = 0.55.

{rql_tables()}

{toc_claims()}

### Chapter 6: UPC

U = 0.7, P = 0.5, income in five sensitive ranges, 3,000 rows. UM, loss (WGU) and range diversity (WGP) of the worst group, rows in
groups above P, suppressed rows. Only the first and the last column group under U and P:

{upc_table()}

{upc_claims()}

### 6.5: what a policy costs

50,000 rows, five quasi-identifiers and a sensitive column, all normal and cut to 0 to 19; U = P = 0.5, subspaces of 50 rows and more.
UM, WGP and the mean relative error of 200 COUNT queries over a fifth of one quasi-identifier:

{policies()}

{policy_claims()}"""
