"""Runs the notebooks of the documents and keeps what their cells show: `python tools/notebook.py FILE.ipynb`.

Cells are plain Python, so no Jupyter is needed: each is executed in one namespace, and its last expression is shown as
Jupyter would show it, as text and as a picture. With `--check` nothing is written; a text that differs is an error.
"""

import ast
import base64
import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any


def show(value: object) -> dict[str, Any]:
    """What Jupyter shows of a value, as text and, if it has one, as a picture."""
    data: dict[str, Any] = {"text/plain": repr(value).splitlines(keepends=True)}
    if hasattr(value, "_repr_png_"):
        data = {"image/png": base64.b64encode(value._repr_png_()).decode(), "text/plain": ["a figure"]}
    return data


def execute(source: str, names: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """Executes a cell; what it prints and shows."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    outputs: list[dict[str, Any]] = []
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, f"cell {number}", "exec"), names)
        value = None
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)
    if text := printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)})
    if value is not None:
        shown = {"data": show(value), "execution_count": number, "metadata": {}, "output_type": "execute_result"}
        outputs.append(shown)
    return outputs


def run(notebook: dict[str, Any]) -> None:
    """Executes all cells in an empty folder and puts what they show into them."""
    names: dict[str, Any] = {"__name__": "__main__"}
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            number = 0
            for cell in notebook["cells"]:
                if cell["cell_type"] == "code":
                    number += 1
                    cell["outputs"] = execute("".join(cell["source"]), names, number)
                    cell["execution_count"] = number
        finally:
            os.chdir(before)


def texts(notebook: dict[str, Any]) -> list[str]:
    """The texts that the cells show. Pictures are not compared: fonts differ between versions of matplotlib."""
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", [])]
    return ["".join(output.get("text", output.get("data", {}).get("text/plain", []))) for output in outputs]


def main() -> int:
    check = "--check" in sys.argv
    stale = 0
    for path in (Path(word) for word in sys.argv[1:] if word != "--check"):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        before = texts(notebook)
        run(notebook)
        if not check:
            path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        elif texts(notebook) != before:
            print(f"{path} is stale: python tools/notebook.py {path}", file=sys.stderr)
            stale += 1
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
