"""Files that name each other: each circle has a reason, at the head of one of them with how many they are."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

CRATES = sorted(path.parent for path in (Path(__file__).parent.parent / "crates").glob("*/src"))

#: A file's place among the modules of its crate.
Module = tuple[str, ...]

#: In the head of one file of a circle, and in those of the others.
REASON = re.compile(r"^//! A circle of (\d+) files: \S", re.MULTILINE)
ELSEWHERE = re.compile(r"^//! A circle, of which `([\w/.]+)` says why\.$", re.MULTILINE)


@pytest.mark.parametrize("crate", CRATES, ids=[crate.name for crate in CRATES])
def test_files_that_name_each_other_say_why(crate: Path) -> None:
    texts = {module_of(path, crate): path.read_text(encoding="utf-8") for path in sorted((crate / "src").rglob("*.rs"))}
    texts = {module: text for module, text in texts.items() if not any("test" in part for part in module)}
    circles = list(circles_of(graph(texts)))
    for circle in circles:
        said = [int(number) for module in circle for number in REASON.findall(texts[module])]
        names = ", ".join("/".join(module) for module in sorted(circle))
        assert len(circle) in said, f"{len(circle)} files name each other without a reason: {names}"
        for module in circle:
            told = [place_of(crate, module, name) for name in ELSEWHERE.findall(texts[module])]
            says = [other for other in (module, *told) if other in circle and REASON.search(texts[other])]
            assert len(says) == 1, f"{'/'.join(module)} does not say where the reason stands"
    heads = sum(len(ELSEWHERE.findall(text)) for text in texts.values())
    assert heads == sum(map(len, circles)) - len(circles), "a file says that it is in a circle, and is in none any more"
    reasons = sum(len(REASON.findall(text)) for text in texts.values())
    assert reasons == len(circles), "a reason stands for a circle that is none any more"


def test_a_circle_is_found_through_what_is_exported_again() -> None:
    texts = {
        (): "pub mod a;\nmod b;\npub use b::inner::{self, Second};\n",
        ("a",): "use crate::Second;\n",
        ("b",): "pub mod inner;\n",
        ("b", "inner"): "//! Named by [`Second`](super::Second).\nuse crate::a::{First, Other as Renamed};\n",
        ("c",): (
            "use super::a::First;\npub(in crate::d) const C: u8 = 0;\n#[cfg(test)]\nmod tests {\n    use super::*;\n}\n"
        ),
        ("d",): "use crate::c::C;\n",
    }
    assert list(circles_of(graph(texts))) == [{("a",), ("b", "inner")}]


def place_of(crate: Path, module: Module, name: str) -> Module:
    """The module in a file that is named from the folder of another one, or from that of the crate."""
    sources = crate / "src"
    folder = sources.joinpath(*module)
    near = (folder if folder.is_dir() and (folder / "mod.rs").exists() else folder.parent) / name
    return module_of(near if near.exists() else sources / name, crate)


def module_of(path: Path, crate: Path) -> Module:
    parts = path.relative_to(crate / "src").with_suffix("").parts
    return parts[:-1] if parts[-1] in ("lib", "main", "mod") else parts


def graph(texts: dict[Module, str]) -> dict[Module, set[Module]]:
    """Which modules each one names, comments and tests left out; what is exported again is followed."""
    used: dict[Module, list[Module]] = {module: [] for module in texts}
    again: dict[Module, dict[str, Module]] = {module: {} for module in texts}
    for module, text in texts.items():
        code = re.split(r"#\[cfg\((?:test|all\(test)[^\n]*\n(?:#\[[^\n]*\n)*mod ", re.sub("//[^\n]*", "", text))[0]
        # Who may see something is no use of it.
        named = re.sub(r"\buse\s[^;]+;|\bpub\(in [\w:]+\)", "", code)
        paths = re.findall(r"\b(?:crate|super)::[\w:]+", named)
        for exported, tree in re.findall(r"^\s*(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);", code, re.MULTILINE):
            for path in leaves(re.sub(r"\s+", "", re.sub(r"\s+as\s+\w+", "", tree))):
                if full := absolute(path.split("::"), module, texts):
                    if exported:
                        again[module][full[-1]] = full
                    else:
                        used[module].append(full)
        used[module] += [full for path in paths if (full := absolute(path.split("::"), module, texts))]

    def resolve(full: Module, steps: int = 8) -> Module | None:
        for length in range(len(full), -1, -1):
            if (module := full[:length]) in texts:
                target = again[module].get(full[length]) if full[length:] and steps else None
                return resolve(target + full[length + 1 :], steps - 1) if target else module
        return None

    found = {module: {resolve(full) for full in paths} for module, paths in used.items()}
    return {module: {other for other in others if other is not None} - {module} for module, others in found.items()}


def leaves(tree: str) -> Iterator[str]:
    """The paths of a tree of `use`: of `a::{b, c::{d}}` they are `a::b` and `a::c::d`."""
    before, brace, rest = tree.partition("{")
    if not brace:
        yield tree.removesuffix("::self")
        return
    depth = start = 0
    inner = rest[: rest.rindex("}")] + ","
    for place, character in enumerate(inner):
        depth += (character == "{") - (character == "}")
        if character == "," and not depth:
            if branch := inner[start:place]:
                yield from leaves(before + branch)
            start = place + 1


def absolute(path: list[str], module: Module, texts: dict[Module, str]) -> Module | None:
    """A path as it is from the crate on; none if it leads into another crate."""
    if path[0] in ("crate", "self"):
        return (module if path[0] == "self" else ()) + tuple(path[1:])
    up = next((n for n, part in enumerate(path) if part != "super"), len(path))
    if up:
        return module[: len(module) - up] + tuple(path[up:])
    return module + tuple(path) if (*module, path[0]) in texts else None


def circles_of(named: dict[Module, set[Module]]) -> Iterator[set[Module]]:
    """The largest sets of modules of which each leads to each other one."""
    reach = {module: reachable(module, named) for module in named}
    seen: set[Module] = set()
    for module in named:
        circle = {other for other in reach[module] if module in reach[other]}
        if circle and module not in seen:
            seen |= circle
            yield circle


def reachable(module: Module, named: dict[Module, set[Module]]) -> set[Module]:
    found: set[Module] = set()
    left = list(named[module])
    while left:
        if (other := left.pop()) not in found:
            found.add(other)
            left += named[other]
    return found
