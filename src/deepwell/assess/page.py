"""A self-contained web page from a template, with pictures as inline SVG."""

import io
import re
from typing import Any, NamedTuple


class Picture(NamedTuple):
    """An SVG element, and what it shows, for people who cannot see it."""

    description: str
    svg: Any


def render(template: str, **contents: Any) -> str:
    """A template of ``assess/templates`` filled in; text is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("deepwell.assess"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["number"] = lambda value: f"{value:.4g}" if isinstance(value, float) else value
    environment.globals["repr"] = repr
    return environment.get_template(template).render(contents).lstrip()


def picture(figure: Any, name: str, description: str) -> Picture:
    """A matplotlib figure; ``name`` keeps its inner references apart from those of other pictures."""
    import matplotlib
    from markupsafe import Markup

    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    svg = re.sub(r'\b(id="|href="#|url\(#)', rf"\g<1>{name}-", svg)
    return Picture(description, Markup(svg))
