"""A study's page: its table and its figure, of all rows made in one way."""

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from deepwell.store.locks import claimed
from deepwell.store.tensor_file import write_atomically
from deepwell.studies.options import REPORTED, Options
from deepwell.studies.rows import Row, Store


class Page(NamedTuple):
    """Paragraphs of Markdown, the title first, and a figure."""

    paragraphs: Sequence[str]
    figure: Any


Draw = Callable[[Sequence[Row]], Page | None]
"""The page that shows these rows, or None if there is nothing to show yet."""


def publish(store: Store, options: Options, draw: Draw) -> None:
    """Write the page of the rows there are: whole files, and the newest rows even if several processes end at once;
    splits for choosing settings are left out."""
    if options.splits and not set(options.splits) & set(REPORTED):
        why = f"splits from {len(REPORTED)} on are for tuning: rows only, table and figure are of the others"
        options.tell(f"{store.study}: {why}")
    with claimed(store.hidden / "page.lock", wait=True):
        rows = [row for row in options.made_so(store.rows()) if row.get("split", 0) in REPORTED]
        page = draw(rows) if rows else None
        if page is None:
            return
        stem = options.stem(store.study)
        title, *rest = page.paragraphs
        text = "\n".join([title, *options.remarks(), *rest])
        write_atomically(stem.with_name(f"{stem.name}.md"), text.encode())
        save(page.figure, stem)


def save(figure: Any, stem: Path) -> None:
    """As PNG and SVG, the same bytes for the same rows."""
    import matplotlib

    for kind, options in (("png", {"dpi": 150, "metadata": {"Software": None}}), ("svg", {"metadata": {"Date": None}})):
        drawn = io.BytesIO()
        with matplotlib.rc_context({"svg.hashsalt": "deepwell"}):
            figure.savefig(drawn, format=kind, **options)
        write_atomically(stem.with_name(f"{stem.name}.{kind}"), drawn.getvalue())
