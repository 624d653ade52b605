"""``docs/walk.md``: every line of code it shows stands where it says."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROW = re.compile(r"^\| .+ \| \[`(?P<file>[\w/]+\.py):(?P<line>\d+)`\]\((?P<link>[^)]+)\) \| `(?P<code>.+)` \|$", re.M)


def test_every_line_of_the_walk_is_where_it_says():
    rows = list(ROW.finditer((ROOT / "docs" / "walk.md").read_text()))
    assert len(rows) >= 20
    for row in rows:
        lines = (ROOT / "src" / "deepwell" / row["file"]).read_text().split("\n")
        places = [number for number, line in enumerate(lines, 1) if line.strip() == row["code"].replace("\\|", "|")]
        assert places == [int(row["line"])], f"{row['code']} is in {row['file']} at {places}"
        assert row["link"] == f"../src/deepwell/{row['file']}#L{row['line']}"
