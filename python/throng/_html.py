"""Results as HTML for notebooks: plain tables, without scripts or anything from the network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_CELL = "text-align:left;padding:2px 12px 2px 0;vertical-align:top"


def number(value: object) -> str:
    """Return a number as people read it; nothing for ``None``."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return str(value)


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table with a header."""
    head = "".join(f'<th style="{_CELL}">{escape(name)}</th>' for name in header)
    body = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{escape(number(cell))}</td>' for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def facts(pairs: Iterable[tuple[str, object]]) -> str:
    """Return names and values below each other; those without a value are left out."""
    rows = "".join(
        f'<tr><th scope="row" style="{_CELL}">{escape(name)}</th><td style="{_CELL}">{escape(number(value))}</td></tr>'
        for name, value in pairs
        if value not in (None, "", [], {})
    )
    return f"<table><tbody>{rows}</tbody></table>"


def section(title: str, *parts: str) -> str:
    """Return parts below a title."""
    return f"<div><p><strong>{escape(title)}</strong></p>{''.join(parts)}</div>"


def page(html: str, height: int) -> str:
    """Return a whole page inside a frame that may run nothing and load nothing."""
    return (
        f'<iframe sandbox srcdoc="{escape(html, quote=True)}" '
        f'style="width:100%;height:{height}px;border:1px solid #8884" title="Throng report"></iframe>'
    )
