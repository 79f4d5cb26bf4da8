"""Completion of names in the shell: what could stand where the cursor is.

Nothing here raises or prints: a shell would show it in the middle of the line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from airloom.cli.common import SET_HELP
from airloom.errors import AirloomError


def scenarios(incomplete: str) -> list[str]:
    """Names of shipped scenarios and of those of studies, for the shell; by author where nothing else begins so."""
    from airloom.scenario import of_studies, shipped, study_of

    found = [name for name in (*shipped(), *of_studies()) if name.startswith(incomplete)]
    if not found and (study := study_of(incomplete)) is not None:
        author = incomplete.partition("/")[0]
        found = [f"{author}/{name.partition('/')[2]}" for name in of_studies(study)]
    elif not found and "/" not in incomplete:
        from airloom.study.folder import authors

        found = [f"{author}/" for author in authors()]
    return [name for name in found if name.startswith(incomplete)]


#: Where the words of the line are, behind the name of the program.
WORDS = "airloom.words"


def links(incomplete: str) -> list[str]:
    """Bearers and presets."""
    from airloom import reference

    return _beginning([*reference.names("bearers"), *reference.names("presets")], incomplete)


def what_to_emulate(incomplete: str) -> list[str]:
    """Scenarios, bearers and presets."""
    return [*scenarios(incomplete), *links(incomplete)]


def keys(ctx: typer.Context, incomplete: str) -> list[str]:
    """Keys of the scenario that is named on the line already, or of the bearer or preset."""
    # The words as they were typed: an option without its value keeps the parser from arguments.
    for word in ctx.meta.get(WORDS, ()):
        with suppress(AirloomError, ValueError, OSError):
            return _beginning(_keys_of(word), incomplete)
    return []


def ways(incomplete: str) -> list[str]:
    """What `airloom load` can have in its gateway."""
    from airloom.page_load.ways import WAYS

    return _beginning(WAYS, incomplete)


def http_versions(incomplete: str) -> list[str]:
    """The versions of HTTP that `airloom load` can ask for."""
    from airloom.page_load.http import VERSIONS

    return _beginning(VERSIONS, incomplete)


def keys_of_load(ctx: typer.Context, incomplete: str) -> list[str]:
    """Keys of the radio link of `airloom load`: that of the first bearer or preset on the line."""
    for word in (*ctx.meta.get(WORDS, ()), "umts-dch"):
        if word in links(word):
            return _beginning([f"links.radio.{key}" for key in _keys_of(word)], incomplete)
    return []


def _keys_of(name: str) -> list[str]:
    from airloom.emulation import find
    from airloom.presets import presets
    from airloom.reference import keys, names

    bearer = presets()[name].bearer if name in presets() else name
    if bearer in names("bearers"):
        return [key.name for key in keys("bearers", bearer)]
    return list(_leaves(find(name).understood, ""))


def _leaves(value: Any, path: str) -> Iterator[str]:
    """The dotted keys of a scenario as understood."""
    inside: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        inside = value.items()
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        inside = enumerate(value)
    yield from [key for name, one in inside for key in _leaves(one, f"{path}.{name}" if path else str(name))] or [path]


def kinds(incomplete: str) -> list[str]:
    """What `airloom list` lists."""
    from airloom import reference

    return _beginning(reference.KINDS, incomplete)


def entries(ctx: typer.Context, incomplete: str) -> list[str]:
    """The names of the kind that is on the line already."""
    from airloom import reference

    with suppress(AirloomError):
        return _beginning(reference.names(str(ctx.params.get("kind"))), incomplete)
    return []


def studies(incomplete: str) -> list[str]:
    """Studies, by name and by author."""
    from airloom.study.folder import authors, names

    return _beginning(names(), incomplete) or _beginning(authors(), incomplete)


#: What `airloom validate` compares.
COMPARISONS = (
    *("linux-tcp", "linux-lab", "both-clocks", "wap-both-clocks", "h3-both-clocks", "pages", "http-shapes"),
    "interop-sim",
)


def comparisons(incomplete: str) -> list[str]:
    """What `airloom validate` compares."""
    return _beginning(COMPARISONS, incomplete)


def _results(*manifests: str) -> Callable[[str], list[str]]:
    def found(incomplete: str) -> list[str]:
        places = {str(path.parent) for name in manifests for path in Path("runs").glob(f"*/{name}")}
        return _beginning(sorted(places, reverse=True), incomplete)

    return found


#: Result folders under `runs/`, the latest first: of runs, and of runs and sweeps.
runs = _results("run.json")
results = _results("run.json", "sweep.json")


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


#: `--set` of the verbs that have a scenario.
Settings = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=V", help=SET_HELP, autocompletion=keys)]
LinkSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=V",
        help="Set a key of the scenario, or of the bearer. May be repeated.",
        autocompletion=keys,
    ),
]
