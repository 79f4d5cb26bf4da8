"""The plug-in of pytest: `airloom` puts a test behind a modelled link.

Every pytest in whose environment airloom is installed imports this, so it names nothing but what costs nothing. What
tests with links need is in `airloom.pytest_links`, and imported with the first of them.

The marks say which links; a test runs once on each. A process that is not root has to be in a user namespace of its
own to enter a link, which it can become before it has a second thread only: if a test file asks for a link, pytest is
started anew at the very beginning (`--airloom-reexec`).
"""

from __future__ import annotations

import fnmatch
import glob
import inspect
import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from airloom.pytest_links import TestLink

#: A test or a fixture that asks for a link.
_ASKS = re.compile(
    rb"mark\s*\.\s*airloom\b"
    rb"|def\s[^(\n]*\((?:(?!\)\s*(?:->|:))[\s\S])*?(?<=[\s(,])airloom\s*[,):]"
    rb"|usefixtures\([^)]*[\"']airloom[\"']"
)
#: Set where it was tried: nobody begins anew for ever. Empty, or why it was refused.
BEGAN_ANEW = "AIRLOOM_PYTESTBEGAN_ANEW"
#: The link of a test that names none, and of which the command line says nothing.
_USUAL = "wpt/3g"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options."""
    group = parser.getgroup("airloom", "tests behind modelled links")
    group.addoption(
        "--airloom-link",
        action="append",
        metavar="NAME",
        help=f"A bearer, preset or scenario for tests that name none; may be repeated. Default: {_USUAL}.",
    )
    group.addoption("--airloom-seed", type=int, metavar="N", help="The seed of tests that say none. Default: 1.")
    group.addoption(
        "--airloom-keep",
        choices=("none", "failed", "all"),
        default="none",
        help="Keep the results of links (capture, packets, HAR, qlog, report) of failed tests, or of all.",
    )
    group.addoption(
        "--airloom-results",
        metavar="DIR",
        default="airloom-results",
        help="Where they are kept. Default: %(default)s.",
    )
    group.addoption(
        "--airloom-required",
        action="store_true",
        help="Tests with links fail where this machine has none, instead of being skipped.",
    )
    group.addoption(
        "--airloom-reexec",
        choices=("auto", "always", "never"),
        default="auto",
        help="Start pytest anew in a user namespace, whose only network is loopback and the links: without root that "
        "is what entering a link takes. auto: if a test file asks for a link.",
    )


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Iterator[None]:
    """Becomes a process that may enter links, before anything is captured, opened or started."""
    said = early_config.known_args_namespace
    named = "airloom" in (said.plugins or ())
    nested = {"PYTEST_CURRENT_TEST", "PYTEST_XDIST_WORKER", BEGAN_ANEW} & os.environ.keys()
    if said.airloom_reexec != "never" and not nested and not said.help and not said.version:
        from airloom import _core

        if not _core.rights()[1] and (named or said.airloom_reexec == "always" or _any_asks(early_config)):
            _begin_anew()
    return (yield)


def _begin_anew() -> None:
    from airloom import _core
    from airloom.errors import AirloomError
    from airloom.reexec import become

    os.environ[BEGAN_ANEW] = ""
    try:
        become(sys.orig_argv[1:])
    except (_core.DriveError, AirloomError) as error:
        # Tests are skipped with this reason, in workers of pytest-xdist too.
        os.environ[BEGAN_ANEW] = str(error)


def _any_asks(config: pytest.Config) -> bool:
    """Does a test file ask for a link? What pytest would not look into is not looked into."""
    ignored = config.getini("norecursedirs")
    for place in _places(config):
        above = [folder / "conftest.py" for folder in place.parents if folder.is_relative_to(config.rootpath)]
        if any(map(_asks, [place, *above])):
            return True
        for folder, inside, files in os.walk(place):
            inside[:] = [n for n in inside if not any(fnmatch.fnmatch(n, each) for each in ignored) and n != "venv"]
            if any(_asks(Path(folder, file)) for file in files if file.endswith(".py")):
                return True
    return False


def _places(config: pytest.Config) -> list[Path]:
    """Files and folders in which pytest looks for tests; `testpaths` counts where pytest is called in its root."""
    here = config.invocation_params.dir
    words = [str(word).split("::")[0] for word in config.known_args_namespace.file_or_dir]
    if not words and here == config.rootpath:
        words = [each for path in config.getini("testpaths") for each in glob.glob(path, root_dir=here, recursive=True)]
    return [Path(os.path.abspath(here / word)) for word in words or ["."]]


def _asks(file: Path) -> bool:
    try:
        return _ASKS.search(file.read_bytes()) is not None
    except OSError:
        return False


def pytest_configure(config: pytest.Config) -> None:
    """The mark."""
    config.addinivalue_line(
        "markers",
        "airloom(*links, seed=None, **overrides): run the test once behind each link (bearer, preset or scenario); "
        "overrides are keys of the link. Without the fixture `airloom` all of the test is behind it.",
    )


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem(collector: pytest.Module | pytest.Class, obj: object) -> Iterator[None]:
    """A test that has only the mark uses the fixture."""
    uses = pytest.mark.usefixtures("airloom")
    function = getattr(obj, "__func__", obj)
    if inspect.isfunction(function) and any(mark.name == "airloom" for mark in getattr(function, "pytestmark", ())):
        uses(function)
    # Not in its functions: other classes and modules without the mark may have the same ones.
    if collector.get_closest_marker("airloom") and uses.mark not in collector.iter_markers("usefixtures"):
        collector.add_marker(uses)
    return (yield)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test for each link."""
    if "airloom" in metafunc.fixturenames:
        marks = metafunc.definition.iter_markers("airloom")
        names = names_of(marks, metafunc.config)
        metafunc.parametrize("airloom", names, ids=[str(name) for name in names], indirect=True)


def names_of(marks: Iterable[pytest.Mark], config: pytest.Config) -> list[str]:
    """The links of a test with these marks, the nearest one first."""
    named = next((list(mark.args) for mark in marks if mark.args), None)
    return named or config.getoption("airloom_link") or [_USUAL]


@pytest.fixture
def airloom(request: pytest.FixtureRequest) -> TestLink:
    """The test's link: `with airloom as link:` puts this thread, and the programs it starts, behind it."""
    from airloom.pytest_links import of_test

    return of_test(request, getattr(request, "param", None))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """All of a test that does not take the fixture is behind its link."""
    if "airloom.pytest_links" not in sys.modules:
        return (yield)
    from airloom.pytest_links import around

    with around(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Says in a failure where its results are."""
    report: Any = yield
    if "airloom.pytest_links" in sys.modules:
        from airloom.pytest_links import finish

        finish(item, report)
    return report  # type: ignore[no-any-return]
