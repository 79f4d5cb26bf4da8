"""The navigation of the site: the headings and links of docs/README.md, and the pages that only the site has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from posixpath import normpath

#: A title, and a page or what is below it.
Entry = tuple[str, "str | list[Entry]"]

OVERVIEW: list[Entry] = [
    ("airloom", "README.md"),
    ("What there is", "docs/overview.md"),
    ("All documents", "docs/README.md"),
]


def navigation(text: str, made: list[Entry]) -> list[Entry]:
    """Tabs with sections and pages; `made` are the pages that the part called Reference has besides.

    >>> navigation("## Guides\\n### Links\\n- [Real](guides/real.md): ones\\n", [])[1:]
    [('Guides', [('Links', [('Real', 'docs/guides/real.md')])])]
    """
    tabs: list[Entry] = [("Overview", OVERVIEW)]
    section: list[Entry] = []
    tab: list[Entry] = []
    for line in text.splitlines():
        if heading := re.fullmatch(r"(##+) (.+)", line):
            section = list(made) if heading[2] == "Reference" else []
            (tabs if heading[1] == "##" else tab).append((heading[2], section))
            if heading[1] == "##":
                tab = section
        elif link := re.match(r"- \[(.+?)\]\((.+?)\)", line):
            section.append((link[1].replace("`", ""), normpath(f"docs/{link[2]}").replace(".ipynb", ".md")))
    return tabs


def pages(entries: list[Entry]) -> Iterator[str]:
    """All pages of a navigation."""
    for _, target in entries:
        if isinstance(target, str):
            yield target
        else:
            yield from pages(target)


def toml(entries: list[Entry]) -> str:
    """As the generator reads it."""
    each = (f"{{ {json.dumps(name)} = {json.dumps(at) if isinstance(at, str) else toml(at)} }}" for name, at in entries)
    return f"[{', '.join(each)}]"
