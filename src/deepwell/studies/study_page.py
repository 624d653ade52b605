"""A study's page, a table and a figure of all rows made under one set of conditions, and its files."""

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from deepwell.store.locks import claimed
from deepwell.store.tensor_file import write_atomically
from deepwell.studies.options import REPORTED_SPLITS, StudyOptions
from deepwell.studies.row_store import Row, RowStore


class StudyPage(NamedTuple):
    """Paragraphs of Markdown, the title first, and a matplotlib figure."""

    paragraphs: Sequence[str]
    figure: Any


def write_page(store: RowStore, options: StudyOptions, draw: Callable[[Sequence[Row]], StudyPage | None]) -> None:
    """Draw the matching rows of the reported splits and replace the files of the page, if there is something to draw.

    The lock makes the files show the newest rows even if several processes end at once.
    """
    if options.splits and not set(options.splits) & set(REPORTED_SPLITS):
        first = len(REPORTED_SPLITS)
        options.tell(f"{store.study}: splits from {first} on are for tuning: they have rows, but no table and figure")
    with claimed(store.work_folder / "page.lock", wait=True):
        rows = [row for row in options.matching(store.rows()) if row.get("split", 0) in REPORTED_SPLITS]
        page = draw(rows) if rows else None
        if page is None:
            return
        path = options.page_path(store.study)
        title, *rest = page.paragraphs
        text = "\n".join([title, *options.page_remarks(), *rest])
        write_atomically(path.with_name(f"{path.name}.md"), text.encode())
        save_figure(page.figure, path)


def save_figure(figure: Any, path: Path) -> None:
    """Write ``path`` as PNG and SVG; the same rows give the same bytes."""
    import matplotlib

    for kind, options in (("png", {"dpi": 150, "metadata": {"Software": None}}), ("svg", {"metadata": {"Date": None}})):
        image = io.BytesIO()
        with matplotlib.rc_context({"svg.hashsalt": "deepwell"}):
            figure.savefig(image, format=kind, **options)
        write_atomically(path.with_name(f"{path.name}.{kind}"), image.getvalue())
