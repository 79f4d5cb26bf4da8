"""The shell commands in the documents.

A block is a fenced one that says `sh` or `console`, or an indented one that begins with a command; of the latter the
lines up to the first empty one, since what is printed may follow. The blocks of a page run one after the other in one
folder. Comments of HTML in front of a block, a line each, say what else there is to know of it:

    <!-- not run: REASON -->          a test cannot: it needs another machine, a person, a quarter of an hour
    <!-- before: COMMANDS -->         run first, so that there is what the block speaks of
    <!-- needs: PROGRAM -->           of somebody else; the test is skipped where it is missing
    <!-- laboratory -->               real programs behind a link: by itself in a folder of its own (tests/emulate)
    <!-- slow -->                     likewise by itself, nightly

In front of another indented block, what the commands before it print, however wide; three dots stand for other lines:

    <!-- printed -->
"""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs" / "tutorial").glob("*.md")),
    *sorted((ROOT / "docs" / "guides").glob("*.md")),
]

_COMMAND = re.compile(r" {4}(airloom|make|pip|pytest|python|tshark|wireshark|dask|curl|sudo|LUA=|\. )")
_MARK = re.compile(r"<!-- ([a-z ]+?)(?:: (.*))? -->")


class Block(NamedTuple):
    """A block of commands."""

    page: Path
    line: int
    commands: str
    #: What the comments in front of it say; `before` and `needs` may be there several times.
    marks: list[tuple[str, str]]
    #: Lines that it prints.
    printed: tuple[str, ...] = ()

    def says(self, mark: str) -> list[str]:
        """What each comment of that kind says."""
        return [text for name, text in self.marks if name == mark]

    @property
    def runs_with_its_page(self) -> bool:
        """Is it one of the blocks that run one after the other?"""
        return not any(self.says(mark) for mark in ("not run", "laboratory", "slow"))

    @property
    def name(self) -> str:
        """Where it is."""
        return f"{self.page.stem}-{self.line}"


def blocks(page: Path) -> list[Block]:
    """The blocks of a page."""
    found: list[Block] = []
    marks: list[tuple[str, str]] = []
    lines = enumerate(page.read_text(encoding="utf-8").splitlines(), start=1)
    for number, line in lines:
        if mark := _MARK.fullmatch(line):
            marks.append((mark[1], mark[2] or "yes"))
            continue
        if line.startswith("```"):
            inside = list(itertools.takewhile(lambda each: each[1] != "```", lines))
            if line in ("```sh", "```console"):
                found.append(Block(page, number + 1, "\n".join(text for _, text in inside), marks))
        elif line and ("printed", "yes") in marks:
            more = itertools.takewhile(lambda each: each[1].startswith("    "), lines)
            found[-1] = found[-1]._replace(printed=(line, *(text for _, text in more)))
        elif _COMMAND.match(line):
            more = itertools.takewhile(lambda each: each[1].startswith("    "), lines)
            commands = "\n".join(text[4:] for text in (line, *(text for _, text in more)))
            found.append(Block(page, number, commands, marks))
        if line:
            marks = []
    return found


ALL = [block for page in PAGES for block in blocks(page)]


def _words(line: str) -> tuple[str, ...]:
    """A line without its spaces: columns are as wide as what else is in them."""
    return tuple(line.split())


def run(block: Block, folder: Path, timeout: int = 300) -> None:
    """Runs a block in a shell for which `airloom` is that of the test; what fails in it fails the test."""
    programs = folder.parent / f"{folder.name}-bin"
    programs.mkdir(exist_ok=True)
    for name, words in {"airloom": "-m airloom", "python": "", "pytest": "-m pytest -p no:cacheprovider"}.items():
        script = programs / name
        script.write_text(f'#!/bin/sh\nexec {sys.executable} {words} "$@"\n')
        script.chmod(0o755)
    # The shell stays there for its last command, too, which may ask which shell it is in.
    commands = "\n".join(["set -e -o pipefail", *block.says("before"), block.commands, "true"])
    done = subprocess.run(
        ["bash", "-c", commands],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}:/usr/sbin:/sbin"},
    )
    where = f"{block.page.relative_to(ROOT)}:{block.line}"
    assert done.returncode == 0, f"{where}\n{block.commands}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    printed = {_words(line) for line in done.stdout.splitlines()} | {("...",)}
    missing = [line for line in block.printed if _words(line) not in printed]
    assert not missing, "\n".join([where, block.commands, "does not print", *missing, "but", done.stdout[:2000]])
