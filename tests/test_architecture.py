"""The architecture page shows the way: what it names is there, and nothing of the tree is missing in its maps."""

import itertools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "explanation" / "architecture.md").read_text()
PACKAGE = ROOT / "python" / "airloom"

#: Of the table "looking for X? it is in Y": what is looked for, where it is, and how it is called there.
ROWS = re.findall(r"^\| ([^|`]+|[^|]*`[^`]+`) \| `([\w/.]+)` \| `([^`]+)` \|$", PAGE, re.MULTILINE)


def test_the_table_is_read_whole() -> None:
    section = PAGE.split("## Looking for X? It is in Y\n")[1].split("\n## ")[0]
    assert len(ROWS) == section.count("\n|") - 2 >= 30


@pytest.mark.parametrize(("wanted", "place", "called"), ROWS, ids=[row[1] for row in ROWS])
def test_what_is_looked_for_is_where_the_table_says(wanted: str, place: str, called: str) -> None:
    path = ROOT / place
    files = sorted(path.rglob("*.rs")) if place.endswith("/") else [path]
    assert any(called in file.read_text(encoding="utf-8") for file in files), f"{wanted}: {called} is not in {place}"


def test_the_maps_have_every_folder() -> None:
    crates, package = (set(re.findall(r"\b([\w-]+)/", part)) for part in maps())
    assert {path.name for path in (ROOT / "crates").iterdir() if path.is_dir()} <= crates
    assert {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"} <= package


def test_the_map_of_python_has_every_file() -> None:
    _, package = maps()
    files = {path.name for path in PACKAGE.glob("*.py") if not path.name.startswith("__")}
    assert not files - set(re.findall(r"\b\w+\.py\b", package))


def test_the_map_of_python_names_nothing_that_is_not_there() -> None:
    _, package = maps()
    for name in re.findall(r"\b[\w-]+(?:/|\.(?:pyi?|toml)\b)", package):
        assert (PACKAGE / name).exists() or (PACKAGE / "cli" / name).exists(), name


HEADS = sorted(path for name in ("lib.rs", "main.rs") for path in (ROOT / "crates").glob(f"*/src/{name}"))


@pytest.mark.parametrize("path", HEADS, ids=[path.parent.parent.name for path in HEADS])
def test_each_crate_begins_with_what_is_in_it_and_what_is_not(path: Path) -> None:
    """Its first paragraph, and one of what is done elsewhere ("Not here:") or by nobody ("Left out:")."""
    lines = path.read_text(encoding="utf-8").splitlines()
    head = [line[4:] for line in itertools.takewhile(lambda line: line.startswith("//!"), lines)]
    first, *others = "\n".join(head).split("\n\n")
    assert re.match(r"\w", first)
    absent = [part for part in others if part.startswith(("Not here: ", "Left out: "))]
    assert absent
    crates = {path.parent.parent.name for path in HEADS}
    elsewhere = [name for part in absent if part[0] == "N" for name in re.findall(r"\(((?:`[a-z-]+`(?:, )?)+)\)", part)]
    assert {name for names in elsewhere for name in re.findall(r"[a-z-]+", names)} <= crates


def maps() -> tuple[str, str]:
    """The maps of the crates and of the package: the first two blocks."""
    blocks = re.findall(r"(?:^    \S.*\n)+", PAGE, re.MULTILINE)
    return blocks[0], blocks[1]
