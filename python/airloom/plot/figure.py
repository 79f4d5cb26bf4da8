"""How every figure looks, and how it becomes a file that is the same each time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

#: Colours that differ for colour-blind eyes too (Okabe and Ito), by what they stand for.
DATA = "#0072b2"
RESENT = "#d55e00"
ACK = "#009e73"
LOST = "#000000"
FAINT = "#999999"

_STYLE: dict[str, Any] = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "grid.color": "#e0e0e0",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "airloom",
}


def style() -> Any:
    """A context in which figures are made and saved, whatever the person's own settings."""
    defaults: Any = matplotlib.rcParamsDefault
    settings: Any = {**defaults, **_STYLE, "backend": matplotlib.rcParams["backend"]}
    return matplotlib.rc_context(settings)


def save_svg(figure: Figure, path: Path) -> None:
    """Writes a figure as SVG; the same figure gives the same octets."""
    with style():
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": "airloom"})
