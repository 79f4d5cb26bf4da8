"""Numbers in coloured cells, and the line between those on which a statement holds and those on which it does not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from airloom.study import Numbers


def cells(
    axes: Axes,
    shown: Numbers,
    texts: Sequence[Sequence[str]],
    limit: float,
    rows: Sequence[str],
    columns: Sequence[str],
) -> None:
    """Cells coloured by `shown`, fully at `limit` and beyond, with a text in each; the first row is the lowest."""
    axes.imshow(np.clip(shown, -limit, limit), cmap="PuOr", vmin=-limit, vmax=limit, aspect="auto", origin="lower")
    for i in range(len(rows)):
        for j in range(len(columns)):
            colour = "white" if abs(shown[i, j]) > 0.6 * limit else "black"
            axes.text(j, i, texts[i][j], ha="center", va="center", fontsize=6.5, color=colour)
    axes.grid(visible=False)
    axes.set_xticks(range(len(columns)), columns, fontsize=7)
    axes.set_yticks(range(len(rows)), rows, fontsize=7)


def edge(axes: Axes, inside: NDArray[np.bool_]) -> None:
    """A line along the sides of cells between those inside and the others: it crosses no number."""
    rows, columns = inside.shape
    for i in range(rows):
        for j in range(columns):
            if j + 1 < columns and inside[i, j] != inside[i, j + 1]:
                axes.plot([j + 0.5, j + 0.5], [i - 0.5, i + 0.5], color="black", linewidth=1.8)
            if i + 1 < rows and inside[i, j] != inside[i + 1, j]:
                axes.plot([j - 0.5, j + 0.5], [i + 0.5, i + 0.5], color="black", linewidth=1.8)
