"""A page opened in headless Chromium in frames of several widths: its console, its requests, its pictures."""

import html
import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((path for path in map(shutil.which, NAMES) if path), None)
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--enable-logging=stderr", "--virtual-time-budget=10000", "--dump-dom",
]  # fmt: skip

LOOK = """<script>
const problems = [];
addEventListener('error', e => problems.push(String(e.message || e.target.src || e.target.href)), true);
addEventListener('load', () => {
  const figures = [...document.querySelectorAll('figure')].map(figure => {
    const svg = figure.querySelector('svg'), box = svg.getBoundingClientRect();
    const shapes = [...svg.querySelectorAll('path, use, rect')].filter(s => s.getBoundingClientRect().width > 0);
    return {name: figure.getAttribute('aria-label'), left: box.left, right: box.right, height: box.height,
            shapes: shapes.length, visible: svg.checkVisibility({checkOpacity: true})};
  });
  const fetched = performance.getEntriesByType('resource').map(entry => entry.name);
  const dark = matchMedia('(prefers-color-scheme: dark)').matches, page = document.documentElement.scrollWidth;
  parent.postMessage({width: innerWidth, page, dark, figures, problems, fetched}, '*');
});
</script>"""
GATHER = (
    "<script>const found = []; onmessage = e => {found.push(e.data); document.title = JSON.stringify(found);}</script>"
)


def look(path, widths, dark=False):
    """What a copy of the page sees of itself in frames so wide (windows of Chromium are 500 wide at least)."""
    with tempfile.TemporaryDirectory() as folder:
        frames = "".join(f"<iframe src='page.html' style='border:0;width:{w}px;height:900px'></iframe>" for w in widths)
        Path(folder, "frames.html").write_text(f"<!doctype html><title></title>{GATHER}{frames}")
        Path(folder, "page.html").write_text(path.read_text().replace("<head>", f"<head>{LOOK}", 1))
        scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
        options = [f"--user-data-dir={folder}/profile", "--window-size=1400,2000", scheme]
        command = [str(CHROMIUM), *FLAGS, *options, f"file://{folder}/frames.html"]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    title = re.search(r"<title>(.*?)</title>", ran.stdout, re.S)
    assert title, ran.stderr[-2000:]
    found = json.loads(html.unescape(title.group(1)))
    assert sorted(one["width"] for one in found) == sorted(widths)
    return found, [line for line in ran.stderr.splitlines() if "CONSOLE" in line]


def faults(found, console):
    """What is wrong with a page, in words; empty if nothing is."""
    said = [f"console: {line}" for line in console]
    for one in found:
        said += [f"error: {text}" for text in one["problems"]] + [f"fetched: {name}" for name in one["fetched"]]
        if one["page"] > one["width"]:
            said.append(f"the page is {one['page']} wide in a window of {one['width']}")
        for figure in one["figures"]:
            inside = figure["left"] >= 0 and figure["right"] <= one["width"]
            if not (figure["visible"] and inside and figure["height"] > 50 and figure["shapes"] > 5):
                said.append(f"not seen at {one['width']}: {figure['name']}")
    return said
