"""`tools/peers test` installs what tests ask for."""

import ast
import re

from tests.documents import ROOT
from tests.emulate.test_runners import RUNNERS, SLOW

#: Of every Debian, or what all this is built with.
BASE = {"bash", "cargo", "python3", "sh", "unshare"}
#: What packages bring beside the command that they are known by.
ALSO = {"bearerbox": {"wapbox"}, "kannel-extras": {"fakewap"}, "tshark": {"editcap"}}


def installed(group: str) -> set[str]:
    """The commands that a group brings."""
    text = (ROOT / "tools" / "peers").read_text()
    (block,) = re.findall(rf"^ +{group}\)(.*?);;", text, re.MULTILINE | re.DOTALL)
    entries = " ".join(re.findall(r"wanted\+=\(([^)]*)\)", block)).split()
    commands = {entry.rpartition(":")[2] for entry in entries}
    return commands.union(*(ALSO.get(command, set()) for command in commands))


def needed() -> set[str]:
    """What tests and documents say that they need."""
    names: set[str] = set()
    for file in sorted((ROOT / "tests").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "needs":
                names |= {str(word.value) for word in node.args if isinstance(word, ast.Constant)}
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        names |= set(re.findall(r"<!-- needs: (.*) -->", page.read_text(encoding="utf-8")))
    return names


def test_a_peer_that_tests_ask_for_is_installed() -> None:
    programs = {name: command[0] for name, (command, _) in RUNNERS.items()}
    runners = {program for name, program in programs.items() if name not in SLOW}
    there = BASE | installed("test")
    assert (needed() | runners) - there == set()
    assert {*SLOW, *(programs[name] for name in SLOW)} - there - installed("runners") == set()
