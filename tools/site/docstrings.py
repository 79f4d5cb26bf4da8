"""For the site: what griffe does not take from the package's sources by itself."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import griffe

#: An example: from the first prompt to the end of what it prints.
_EXAMPLE = re.compile(r"(?:^>>> .*\n?(?:^(?!\s*$).*\n?)*)+", re.MULTILINE)


class Docstrings(griffe.Extension):
    """Examples become code; an attribute is explained by the comment with `#:` in front of it."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called with each object that was read."""
        if obj.is_attribute and obj.docstring is None and (about := _comment(obj)):
            obj.docstring = griffe.Docstring(about, parent=obj)
        if obj.docstring is not None and ">>> " in obj.docstring.value:
            obj.docstring.value = _EXAMPLE.sub(_fenced, obj.docstring.value)


def _comment(attribute: griffe.Object) -> str:
    path = attribute.filepath
    # That of a package without an `__init__.py` is a list.
    if attribute.lineno is None or isinstance(path, list) or path.suffix not in (".py", ".pyi"):
        return ""
    found: list[str] = []
    for line in reversed(_lines(path)[: attribute.lineno - 1]):
        if not line.strip().startswith("#:"):
            break
        found.insert(0, line.strip()[2:].strip())
    return "\n".join(found)


@cache
def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def _fenced(example: re.Match[str]) -> str:
    return f"```pycon\n{example[0].rstrip()}\n```\n"
