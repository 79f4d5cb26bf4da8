"""Pages of the site that are made: notebooks, and the references that only the site has."""

from __future__ import annotations

import importlib
import json
import re
from base64 import b64decode
from pathlib import Path
from typing import Any

from tools.site.navigation import Entry

ROOT = Path(__file__).resolve().parent.parent.parent

#: The parts of the Python package that people use: what each exports is explained, or all of it where it does not say.
PYTHON = ("airloom", "analysis", "plot", "measures", "page_sets", "study", "wap")

#: Where the pages that are made stand in the part called Reference.
MADE: list[Entry] = [
    ("Command line", "reference/commands.md"),
    ("Python", [("airloom" if p == "airloom" else f"airloom.{p}", f"reference/python/{p}.md") for p in PYTHON]),
    ("Rust", "reference/rust.md"),
]


def notebook(path: Path) -> str:
    """A notebook as a page: text, code, and what the cells show."""
    parts = []
    for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            data: dict[str, Any] = output.get("data", {})
            if "image/png" in data:
                picture = path.with_name(f"{path.stem}-{number}.png")
                picture.write_bytes(b64decode(data["image/png"]))
                parts.append(f"![{''.join(data['text/plain'])}]({picture.name})")
            else:
                text = "".join(output.get("text", data.get("text/plain", [])))
                parts.append(f"```text\n{text.rstrip()}\n```")
    return "\n\n".join([*parts, f"This page is a notebook: [{path.name}]({path.name}).\n"])


def generated(rust: Path) -> dict[str, str]:
    """The reference pages that only the site has, by their path below `reference`; `rust` is what rustdoc has made."""
    pages = {f"python/{name}.md": python(name) for name in PYTHON}
    pages["commands.md"] = commands()
    pages["rust.md"] = (
        "# Rust\n\nThe documentation of the crates, made by rustdoc: protocols, links and the world that they are in.\n"
        "A protocol's page says what of its standard is there, and what is left out.\n\n"
        + "".join(f'- <a href="../rust/{name}/index.html">{name}</a>: {about}\n' for name, about in crates(rust))
    )
    return pages


def crates(rust: Path) -> list[tuple[str, str]]:
    """The crates that are documented, and the first sentence about each."""
    found = []
    for path in sorted((ROOT / "crates").glob("*/src/lib.rs")):
        first = re.match(r"//! (.*?)(?:\n(?!//! \S)|\Z)", path.read_text(encoding="utf-8"), re.DOTALL)
        name = f"airloom_{path.parent.parent.name.replace('-', '_')}"
        if (rust / name / "index.html").is_file():
            about = first[1].replace("\n//! ", " ") if first else ""
            # Links of rustdoc's own kind are names here.
            found.append((name, re.sub(r"\[(`[^`]+`)\](?:\([^)]*\))?", r"\1", about)))
    return found


def python(name: str) -> str:
    """The page of a part of the package: what it exports, or all of it where it does not say."""
    place = "airloom" if name == "airloom" else f"airloom.{name}"
    module = importlib.import_module(place)
    about = re.sub(r"(?m)^>>> (?:.+\n?)+", lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", module.__doc__ or "")
    names = getattr(module, "__all__", None)
    if names is None:
        options = "    options:\n      show_root_heading: false\n      show_root_toc_entry: false\n"
        return f"# {place}\n\n::: {place}\n{options}"
    named = [each for each in names if not each.startswith("__") and callable(getattr(module, each))]
    named.sort(key=lambda each: _rank(getattr(module, each)))
    return "\n\n".join([f"# {place}", about, *(f"::: {place}.{each}" for each in named)]) + "\n"


def _rank(thing: object) -> int:
    """Functions come first, exceptions last."""
    return isinstance(thing, type) + (isinstance(thing, type) and issubclass(thing, Exception))


def commands() -> str:
    """The page of the command line, from the commands themselves."""
    import typer.main

    from airloom.cli import app

    lines = [
        "# Command line",
        "",
        "Options of `airloom` itself stand before or behind the command: `airloom run umts-page --quiet`.",
        "`airloom COMMAND --help` prints the same in a terminal.",
        "",
    ]
    _command(typer.main.get_command(app), "airloom", lines)
    return "\n".join(lines)


def _command(command: Any, path: str, lines: list[str]) -> None:
    import typer

    context = typer.Context(command, info_name=path)
    about = (command.help or "").strip()
    lines += [f"## {path}", "", about, "", f"    {' '.join([path, *command.collect_usage_pieces(context)])}", ""]
    rows = [each.get_help_record(context) for each in command.params if not each.hidden]
    if rows := [row for row in rows if row]:
        lines += ["| | meaning |", "|---|---|"]
        lines += [f"| `{_cell(name)}` | {_cell(meaning).replace('<', '&lt;')} |" for name, meaning in rows]
        lines.append("")
    for name, each in getattr(command, "commands", {}).items():
        if not each.hidden:
            _command(each, f"{path} {name}", lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
