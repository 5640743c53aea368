"""The claims of the works, one file each: what is printed where, how our set-up differs, and what decides the verdict."""

CONFIRMED, CONTRADICTED = "**confirmed**", "**contradicted**"


def verdict(holds: bool) -> str:
    return CONFIRMED if holds else CONTRADICTED


def verdict_by(holds: dict, name: str = "k") -> str:
    """The verdict on a claim about several settings: where they differ, each is named."""
    kept, broken = ([str(at) for at, held in holds.items() if held is wanted] for wanted in (True, False))
    if kept and broken:
        return f"{CONTRADICTED} at {name} = {', '.join(broken)}; {CONFIRMED} at {', '.join(kept)}"
    return verdict(not broken)


def impossible(why: str) -> str:
    return f"**cannot be reproduced**: {why}"


def table(header: list, rows: list) -> str:
    """A table; numbers come as text."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def claims(rows: list) -> str:
    """Claims as (claim and place, set-up, figures, verdict, experiment)."""
    header = ["claim, as printed", "set-up: the work's / ours", "figures", "verdict", "command"]
    return table(header, [[*row[:4], f"`run {row[4]}`"] for row in rows])


def figure(number, digits: int = 3) -> str:
    return "-" if number is None else f"{number:.{digits}f}"


def share(number, digits: int = 0) -> str:
    return "-" if number is None else f"{100 * number:.{digits}f} %"


def best(numbers: list, digits: int) -> list:
    """Numbers as text, the least in bold."""
    known = [round(number, digits) for number in numbers if number is not None]
    return [
        f"**{figure(n, digits)}**" if n is not None and round(n, digits) == min(known) else figure(n, digits)
        for n in numbers
    ]
