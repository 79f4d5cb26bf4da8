"""The notebooks of the documents run from the first cell to the last, and show what they have stored."""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "docs").rglob("*.ipynb"))


def kinds(notebook: dict[str, Any]) -> list[list[tuple[str, list[str]]]]:
    """What each cell shows, without the numbers: those move when the model does, until they are made again."""
    cells = [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return [[(output["output_type"], sorted(output.get("data", {}))) for output in outputs] for outputs in cells]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_a_notebook_runs_and_shows_what_it_has_stored(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    stored = kinds(notebook)
    assert all(stored), "each cell shows something"
    runpy.run_path(str(ROOT / "tools" / "notebook.py"))["run"](notebook)
    assert kinds(notebook) == stored
