"""The frame of a report: one HTML document with styles, scripts and data inside."""

from __future__ import annotations

import base64
import html
import json
import math
import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from airloom import digest
from airloom.scenario import as_toml, shipped
from airloom.sweep.axes import seeds, seeds_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Section(NamedTuple):
    """A part of a report: its anchor, its heading, and what is in it."""

    anchor: str
    title: str
    body: str


def escaped(value: object) -> str:
    """Text as it may stand in HTML, in attributes too."""
    return html.escape(str(value), quote=True)


def number(value: object) -> str:
    """A cell: numbers with the digits that count, times and names as they are."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if not math.isfinite(value):
            return "–"
        return digest.number(value)
    if isinstance(value, int):
        return f"{value:,}".replace(",", " ")
    return str(value)


def embedded(octets: bytes, kind: str) -> str:
    """An address that is the picture itself; `kind` is that of its media type, such as `png`."""
    return f"data:image/{kind};base64,{base64.b64encode(octets).decode()}"


def picture(figure: Figure, kind: str, alt: str) -> str:
    """A figure inside the document, as `svg` or `png`."""
    from airloom.plot.figure import octets

    source = embedded(octets(figure, kind), "svg+xml" if kind == "svg" else kind)
    return f'<img class="picture" alt="{escaped(alt)}" src="{source}">'


class Marked(NamedTuple):
    """A cell whose text is marked up as something: a class of the style sheet."""

    text: str
    kind: str


def table(
    caption: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    is_whole: bool = False,
    label: str = "",
) -> str:
    """A table with a caption, if it is not empty; numbers stand to the right. The first column heads its row.

    Long ones have a scroll bar of their own, unless `is_whole`. `label` names it for those who hear it, in place of the
    caption.
    """
    head = "".join(f'<th scope="col">{escaped(c)}</th>' for c in columns)
    body = "".join(f"<tr>{_row(row)}</tr>" for row in rows)
    kind = "wide whole" if is_whole else "wide"
    said = f"<caption>{escaped(caption)}</caption>" if caption else ""
    return (
        f'<div class="{kind}" tabindex="0" role="region" aria-label="{escaped(label or caption)}">'
        f"<table>{said}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _row(row: Sequence[object]) -> str:
    cells = []
    for place, value in enumerate(row):
        tag, scope = ("th", ' scope="row"') if place == 0 else ("td", "")
        if isinstance(value, Marked):
            cells.append(f'<{tag}{scope}><span class="{escaped(value.kind)}">{escaped(value.text)}</span></{tag}>')
            continue
        kind = ' class="n"' if isinstance(value, int | float) and not isinstance(value, bool) else ""
        cells.append(f"<{tag}{scope}{kind}>{escaped(number(value))}</{tag}>")
    return "".join(cells)


def facts(pairs: Iterable[tuple[str, object]], kind: str = "") -> str:
    """A list of names and values; `kind` is a class of the style sheet."""
    return (
        f'<dl class="{kind}">'
        + "".join(f"<div><dt>{escaped(k)}</dt><dd>{escaped(v)}</dd></div>" for k, v in pairs)
        + "</dl>"
    )


def command_line(manifest: Mapping[str, Any]) -> str:
    """A command that makes this again and can be pasted into a shell: the one that made it, if that was airloom's."""
    words: list[str] = list(manifest["command"])
    program = os.path.basename(words[0]) if words else ""
    if program in ("__main__.py", "airloom"):
        return shlex.join(["airloom", *words[1:]])
    # Python made it. A command says the same where every value can stand in one.
    is_sweep = "axes" in manifest
    of_sweep = ("sweep", "--seeds", seeds_text(seeds(manifest["seeds"]))) if is_sweep else None
    verb, *which = of_sweep or ("run", "--seed", str(manifest["seed"]))
    varied = [_plain_axis(axis) for axis in manifest.get("axes", [])]
    if manifest["clock"] == "virtual" and None not in varied:
        scenario = manifest["name"] if manifest["name"] in shipped() else manifest["file"]
        settings = [
            word for key, value in manifest["overrides"].items() for word in ("--set", f"{key}={as_toml(value)}")
        ]
        vary = [word for axis in varied for word in ("--vary", str(axis))]
        return shlex.join(["airloom", verb, scenario, *which, *settings, *vary])
    return shlex.join(["python", *words] if program.endswith(".py") else words)


def _plain_axis(axis: Mapping[str, Any]) -> str | None:
    """`KEY=A,B,C`, if the levels of an axis are plain values of its key."""
    values = []
    for level in axis["levels"]:
        value = level["set"].get(axis["key"])
        if len(level["set"]) != 1 or value is None or (isinstance(value, str) and set(value) & set(",[]{}\"'")):
            return None
        if str(value) != str(level["label"]):
            return None
        values.append(as_toml(value))
    return f"{axis['key']}={','.join(values)}"


def packed(values: NDArray[Any]) -> dict[str, str]:
    """A column for the script: little-endian octets in base64; whole numbers from 0 in as few octets as they need."""
    if values.dtype.kind != "f":
        largest = int(values.max()) if len(values) else 0
        for name, code, limit in (("u1", "<u1", 2**8), ("u2", "<u2", 2**16), ("u4", "<u4", 2**32)):
            if largest < limit and (len(values) == 0 or int(values.min()) >= 0):
                return {"type": name, "base64": base64.b64encode(values.astype(code).tobytes()).decode()}
    return {"type": "f8", "base64": base64.b64encode(values.astype("<f8").tobytes()).decode()}


def floats(values: Any) -> dict[str, str]:
    """A column of floating point numbers for the script."""
    return packed(np.asarray(values, dtype=np.float64))


def _asset(name: str) -> str:
    return (resources.files("airloom") / "report" / name).read_text(encoding="utf-8")


def document(title: str, intro: str, sections: Sequence[Section], data: Mapping[str, Any]) -> str:
    """The whole document. `data` is what the script draws."""
    menu = "".join(f'<li><a href="#{s.anchor}">{escaped(s.title)}</a></li>' for s in sections)
    body = "".join(
        f'<section id="{s.anchor}" aria-labelledby="{s.anchor}-h"><h2 id="{s.anchor}-h">{escaped(s.title)}</h2>'
        f"{s.body}</section>"
        for s in sections
    )
    # `</script` would end the element, wherever it stands, and behind `<!--<script` the true end would be none.
    numbers = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    licence = _asset("vendor/uplot/LICENSE").replace("*/", "")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        # The document asks for nothing outside itself, and the browser is told to see to it.
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
        "script-src 'unsafe-inline'; img-src data:\">\n"
        f"<title>{escaped(title)}</title>\n"
        f"<style>{_asset('vendor/uplot/uPlot.min.css')}\n{_asset('assets/report.css')}</style>\n</head>\n<body>\n"
        f'<a class="skip" href="#main">Skip to the results</a>\n<header>{intro}</header>\n'
        f'<nav aria-label="Sections"><ul>{menu}</ul></nav>\n<main id="main" tabindex="-1">{body}</main>\n'
        '<div id="said" class="unseen" role="status" aria-live="polite"></div>\n'
        "<noscript><p>The plots need JavaScript; tables and numbers are here without it.</p></noscript>\n"
        f'<script type="application/json" id="data">{numbers}</script>\n'
        f"<script>/*! uPlot 1.6.32\n{licence}*/\n{_asset('vendor/uplot/uPlot.iife.min.js')}</script>\n"
        f"<script>{_asset('assets/report.js')}</script>\n</body>\n</html>\n"
    )


def beside(folder: Path, name: str, target: Path) -> str:
    """The address of a file of the folder as seen from the report."""
    from urllib.parse import quote

    return quote(os.path.relpath(folder / name, target.parent))


def links(folder: Path, names: Iterable[tuple[str, str]], target: Path) -> str:
    """Links to the files that are there, each with what it is."""
    there = [(name, what) for name, what in names if (folder / name).is_file()]
    items = "".join(
        f'<li><a href="{escaped(beside(folder, name, target))}">{escaped(name)}</a> '
        f"({size((folder / name).stat().st_size)}): {escaped(what)}</li>"
        for name, what in there
    )
    return f"<ul>{items}</ul>"


def size(octets: int) -> str:
    """Octets for reading.

    >>> size(20_500)
    '20.5 kB'
    """
    value = float(octets)
    for unit in ("B", "kB", "MB"):
        if value < 1000 or unit == "MB":
            break
        value /= 1000
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
