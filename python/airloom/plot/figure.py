"""How every figure looks, and how it becomes a file that is the same each time."""

from __future__ import annotations

import textwrap
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from airloom.errors import UsageError

#: Colours that differ for colour-blind eyes too (Okabe and Ito), by what they stand for.
DATA = "#0072b2"
RESENT = "#d55e00"
ACK = "#009e73"
LOST = "#000000"
FAINT = "#999999"

#: Lines that differ in colour, mark and dashes, so that a print without colours tells them apart.
LINES: list[dict[str, Any]] = [
    {"color": colour, "marker": marker, "linestyle": dashes, "markersize": 4.0, "linewidth": 1.3}
    for colour, marker, dashes in (
        ("#0072b2", "o", "-"),
        ("#d55e00", "s", "--"),
        ("#009e73", "^", "-."),
        ("#cc79a7", "D", ":"),
        ("#e69f00", "v", "-"),
        ("#56b4e9", "P", "--"),
        ("#000000", "X", "-."),
    )
]

#: Letters of a legend in an inch of a figure, what stands left of the plot taken off.
_LETTERS_PER_INCH = 13.3

#: Letters of narrow figures, in points; and what is narrow.
_PRINTED, _NARROW_MM = 7.0, 130.0

#: What files tell of themselves: nothing that is another each time.
_TOLD: dict[str, dict[str, str | None]] = {
    "svg": {"Date": None, "Creator": "airloom"},
    "pdf": {"CreationDate": None, "Creator": "airloom", "Producer": None},
    "png": {"Software": None},
}

#: A line of what stays as it was until it changes.
STEPS: dict[str, Any] = {"drawstyle": "steps-post", "linewidth": 1.0}

_STYLE: dict[str, Any] = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "grid.color": "#e0e0e0",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "pdf.fonttype": 42,
    "savefig.dpi": 150,
    "svg.fonttype": "path",
    "svg.hashsalt": "airloom",
}


class Drawing(Figure):
    """A figure that a notebook shows by itself, without pyplot and its global state."""

    def _repr_png_(self) -> bytes:
        return octets(self, "png")


def style(width_mm: float | None = None) -> Any:
    """A context in which figures are made and saved, whatever the person's own settings.

    Letters of figures that are `width_mm` wide are those of captions in print.
    """
    defaults: Any = matplotlib.rcParamsDefault
    size = {} if width_mm is None else {"font.size": _PRINTED if width_mm < _NARROW_MM else _STYLE["font.size"]}
    settings: Any = {**defaults, **_STYLE, **size, "backend": matplotlib.rcParams["backend"]}
    return matplotlib.rc_context(settings)


def inches(width_mm: float) -> float:
    """Raises `UsageError` for a width that no picture has."""
    if not 40 <= width_mm <= 2000:
        raise UsageError(f"a picture is 40 to 2000 mm wide, not {width_mm:g}")
    return width_mm / 25.4


def drawing(width_mm: float | None, width: float = 5.0, height: float = 3.4) -> Drawing:
    """An empty figure of so many inches; `width_mm` is its width in print, with the same shape."""
    across = width if width_mm is None else inches(width_mm)
    return Drawing(figsize=(across, height * across / width), layout="constrained")


def look(number: int) -> dict[str, Any]:
    """The look of a line by its number: those beyond the last one of `LINES` have the colours with other marks."""
    turn = number // len(LINES)
    marker, dashes = (LINES[(number + turn) % len(LINES)][key] for key in ("marker", "linestyle"))
    return {**LINES[number % len(LINES)], "marker": marker, "linestyle": dashes}


def heading(axes: Axes, title: str, key: str = "") -> None:
    """The title of a plot, and below it, above the plot and over no mark, what the marks mean; `key` is what they tell.

    A figure of one plot grows with it.
    """
    handles, labels = axes.get_legend_handles_labels()
    figure = axes.get_figure(root=True)
    assert figure
    if not handles:
        axes.set_title(title, loc="left")
        return
    # A mark and the space around it are as wide as seven letters.
    widths = [len(label) + 7 for label in labels]
    size = matplotlib.rcParams["font.size"]
    room = _LETTERS_PER_INCH * figure.get_figwidth() * _STYLE["font.size"] / size
    # What stands left of a narrow plot takes more of it.
    room *= 1.0 if size == _STYLE["font.size"] else 0.8
    # Columns are as wide as the widest of theirs: what fits into one row does not need to be of one width.
    columns = len(labels) if sum(widths) <= room else max(1, int(room / max(widths)))
    rows = -(-len(labels) // columns)
    axes.set_title(title, loc="left", pad=6 + 15 * size / _STYLE["font.size"] * (rows + bool(key)))
    legend = axes.legend(
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=columns,
        title=key or None,
        alignment="left",
        borderaxespad=0.15,
        borderpad=0.1,
        columnspacing=1.2,
        handlelength=1.4,
    )
    # A long key would make the plot narrower.
    legend.set_in_layout(False)
    if len(figure.axes) == 1:
        figure.set_figheight(figure.get_figheight() + 0.2 * (rows - 1 + bool(key)))


def wrapped(text: str, along: float) -> str:
    """A title of an axis that is `along` inches long, in lines that fit as long as its words allow."""
    letters = int(13 * along * _STYLE["font.size"] / matplotlib.rcParams["font.size"])
    return "\n".join(line for part in text.splitlines() for line in textwrap.wrap(part, letters))


def octets(figure: Figure, kind: str, dpi: int = 110) -> bytes:
    """A figure as `svg`, `pdf`, or `png` for a screen; the same figure gives the same octets."""
    written = BytesIO()
    with style():
        figure.savefig(written, format=kind, dpi=dpi if kind == "png" else None, metadata=_TOLD[kind])
    return written.getvalue()


def save_svg(figure: Figure, path: Path) -> None:
    """Writes a figure as SVG."""
    path.write_bytes(octets(figure, "svg"))


def save_pdf(figure: Figure, path: Path) -> None:
    """Writes a figure as PDF."""
    path.write_bytes(octets(figure, "pdf"))


def save_as(figure: Figure, path: Path) -> None:
    """Writes a figure in the form that its name ends in: `.svg`, `.pdf` or `.png`. Raises `UsageError` for others."""
    kind = path.suffix.removeprefix(".")
    if kind not in _TOLD:
        raise UsageError(f"{path}: its name has to end in .{', .'.join(_TOLD)}")
    try:
        path.write_bytes(octets(figure, kind))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None


def save(figure: Figure, path: Path | str) -> tuple[Path, Path]:
    """Writes a figure twice, as `path` with the endings `.svg` and `.pdf`."""
    svg, pdf = Path(path).with_suffix(".svg"), Path(path).with_suffix(".pdf")
    save_svg(figure, svg)
    save_pdf(figure, pdf)
    return svg, pdf
