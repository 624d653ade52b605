"""One self-contained web page: text, tables and pictures inline, nothing fetched, legible in light, dark and print."""

import html
import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

STYLE = """
:root { color-scheme: light dark; --ink: #1a1a1a; --paper: #ffffff; --line: #d0d0d0; --soft: #f4f6f8;
  --accent: #0072B2; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8e8e8; --paper: #16181b; --line: #3a3f45; --soft: #1f2328; --accent: #56B4E9; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 1.5rem 1rem 4rem; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, sans-serif; }
h1 { font-size: 1.7rem; margin: 0 0 .3rem; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; border-bottom: 1px solid var(--line); padding-bottom: .2rem; }
p { margin: .5rem 0; max-width: 46rem; }
.verdict { border-left: .3rem solid var(--accent); background: var(--soft); padding: .6rem .9rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .92rem; }
th, td { padding: .25rem .8rem .25rem 0; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { white-space: normal; vertical-align: bottom; }
th:first-child, td:first-child { text-align: left; }
@media (max-width: 30rem) {
  table { font-size: .85rem; }
  th, td { padding-right: .5rem; }
  td:first-child { white-space: normal; }
}
.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 1rem;
  margin: 1rem 0; }
figure { margin: 0; background: #ffffff; border: 1px solid var(--line); border-radius: .4rem; padding: .4rem; }
figure:only-child { max-width: 36rem; }
figure svg { display: block; width: 100%; height: auto; }
@media screen and (prefers-color-scheme: dark) {
  figure { background: none; }
  figure svg { filter: invert(.91) hue-rotate(180deg); }
}
pre { background: var(--soft); padding: .8rem; overflow-x: auto; font-size: .88rem; }
@media print { body { max-width: none; } figure, table { break-inside: avoid; } }
"""


def page(title: str, sections: Sequence[tuple[str, str]]) -> str:
    """A document of headed sections, whose bodies are already HTML."""
    body = "".join(f"<section><h2>{html.escape(head)}</h2>{content}</section>" for head, content in sections)
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<link rel='icon' href='data:,'><title>{html.escape(title)}</title><style>{STYLE}</style></head>"
        f"<body><h1>{html.escape(title)}</h1>{body}</body></html>"
    )


def paragraph(text: str, verdict: bool = False) -> str:
    """Plain text as a paragraph; a verdict is set apart."""
    return f"<p{' class=verdict' if verdict else ''}>{html.escape(text)}</p>"


def code(text: str) -> str:
    """Code to copy."""
    return f"<pre><code>{html.escape(text)}</code></pre>"


def table(rows: Mapping[str, Mapping[str, Any]], first: str = "") -> str:
    """A table with a row a key; numbers in four digits."""
    columns = list(next(iter(rows.values())))
    head = "".join(f"<th>{html.escape(name.replace('_', ' '))}</th>" for name in (first, *columns))
    body = "".join(
        f"<tr><td>{html.escape(str(name))}</td>" + "".join(f"<td>{_cell(row[c])}</td>" for c in columns) + "</tr>"
        for name, row in rows.items()
    )
    return f"<div class='wide'><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def panels(*pictures: str) -> str:
    """Pictures side by side where there is room, else one below the other."""
    return f"<div class='panels'>{''.join(pictures)}</div>"


def picture(figure: Any, name: str, description: str) -> str:
    """A matplotlib figure as inline SVG; ``name`` keeps its inner references apart from those of other pictures."""
    import matplotlib

    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    drawn = buffer.getvalue()
    drawn = drawn[drawn.index("<svg") :]
    drawn = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", drawn, count=1)
    drawn = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", drawn, count=1)
    drawn = re.sub(r"<metadata>.*?</metadata>", "", drawn, flags=re.S)
    drawn = re.sub(r'\b(id="|href="#|url\(#)', rf"\g<1>{name}-", drawn)
    label = html.escape(description, quote=True)
    return f"<figure role='img' aria-label='{label}'>{drawn}</figure>"


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else html.escape(str(value))
