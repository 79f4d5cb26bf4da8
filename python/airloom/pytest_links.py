"""What the fixture `airloom` gives to a test, and what is kept of its links."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

from airloom._core import DriveError
from airloom.emulation import told
from airloom.errors import AirloomError, LabError, RunError, Unsupported
from airloom.links import Link, link
from airloom.pytest_plugin import BEGAN_ANEW, names_of
from airloom.serving import Server

#: What is recorded of links whose results are kept.
_RECORDS = ("packets", "pcapng")
#: Of a test's name, in the name of a folder: file systems take 255 octets.
_LONGEST_NAME = 150
#: The id of a test of which no other one's becomes the same name of a folder.
_PLAIN_ID = re.compile(r"[\w./]+(::\w+)+(\[[\w./]+\])?", re.ASCII)
_CANNOT = 3


class TestLink:
    """The link of a test: each `with` block makes it anew, with the same seed.

    `link.summary` has the figures once the block is left, and `airloom.summary` those of the last one.
    """

    __test__ = False

    def __init__(
        self, name: str, seed: int, overrides: dict[str, Any], *, required: bool = False, folder: Path | None = None
    ) -> None:
        """Use the fixture."""
        #: The bearer, preset or scenario.
        self.name = name
        self.seed = seed
        self.overrides = overrides
        self._required = required
        self._folder = folder
        self._served: list[tuple[Any, int | None, float]] = []
        self._stack: ExitStack | None = None
        #: All links so far.
        self._made: list[Link] = []
        #: Has any part of the test failed?
        self.failed = False

    def __enter__(self) -> Link:
        """Makes the link and enters it; skips the test where this machine has none."""
        if self._stack is not None:
            raise RunError("this test is behind its link already: one `with airloom` after the other")
        made = self._new()
        with ExitStack() as stack:
            self._enter(stack, made)
            self._made.append(made)
            if made._folder is not None:
                stack.enter_context(told(made._folder, keys=True))
            for app, port, timeout_s in self._served:
                made.serve(app, port, timeout_s=timeout_s)
            self._stack = stack.pop_all()
        return made

    def _enter(self, stack: ExitStack, made: Link) -> None:
        try:
            stack.enter_context(made)
            return
        except LabError as error:
            why = os.environ.get(BEGAN_ANEW) or str(error)
        except Unsupported as error:
            why = str(error)
        except DriveError as error:
            if error.exit_code != _CANNOT:
                raise
            why = str(error)
        if self._required:
            pytest.fail(f"--airloom-required: {why}", pytrace=False)
        pytest.skip(why)

    def __exit__(self, *why: Any) -> None:
        stack, self._stack = self._stack, None
        if stack is not None:
            stack.__exit__(*why)

    def _new(self) -> Link:
        if self._folder is None:
            return link(self.name, seed=self.seed, overrides=self.overrides)
        number = len(self._made) + 1
        place = self._folder if number == 1 else self._folder.with_name(f"{self._folder.name}-{number}")
        made = link(self.name, seed=self.seed, overrides=self.overrides, record=_RECORDS, out=place, force=True)
        made._keeps_failures = True
        return made

    def serve(self, app: Any, port: int | None = None, *, timeout_s: float = 10.0) -> Server | None:
        """As `Link.serve`; in front of a block, the same in each that follows."""
        if self._stack is not None:
            return self._made[-1].serve(app, port, timeout_s=timeout_s)
        self._served.append((app, port, timeout_s))
        return None

    @property
    def summary(self) -> dict[str, float]:
        """The figures of the last block that was left."""
        return self._made[-1].summary if self._made else {}

    @property
    def kept(self) -> list[Path]:
        """Folders with results of blocks that were left."""
        return [made.results.folder for made in self._made if made.results is not None]

    def __repr__(self) -> str:
        return f"<link {self.name}, seed {self.seed}>"


_LINK = pytest.StashKey[TestLink]()


def of_test(request: pytest.FixtureRequest, name: str | None) -> TestLink:
    """The link of the test that asks."""
    config, node = request.config, request.node
    marks = list(node.iter_markers("airloom"))
    said: dict[str, Any] = {}
    for mark in reversed(marks):
        said |= mark.kwargs
    seed = said.pop("seed", None)
    if seed is None:
        seed = config.getoption("airloom_seed")
    folder = None
    if config.getoption("airloom_keep") != "none":
        place = config.invocation_params.dir / config.getoption("airloom_results")
        folder = place / _folder_name(node.nodeid)
    # A test of unittest cannot run several times: it has the first link.
    asked = TestLink(
        name or names_of(marks, config)[0],
        1 if seed is None else seed,
        said,
        required=config.getoption("airloom_required"),
        folder=folder,
    )
    node.stash[_LINK] = asked
    node.user_properties += [("airloom_link", asked.name), ("airloom_seed", asked.seed)]
    return asked


def _folder_name(nodeid: str) -> str:
    """A name for the results of a test that no other test has: with a hash where its id has more in it than names.

    >>> _folder_name("tests/test_it.py::test_it[wpt/3g]")
    'tests-test_it.py-test_it-wpt-3g'
    >>> _folder_name("tests/test_it.py::test_it[<]")
    'tests-test_it.py-test_it-497c5f36'
    """
    name = re.sub(r"[^\w.-]+", "-", nodeid, flags=re.ASCII).strip("-.")
    if _PLAIN_ID.fullmatch(nodeid) and len(name) <= _LONGEST_NAME:
        return name
    return f"{name[:_LONGEST_NAME]}-{hashlib.sha256(nodeid.encode(errors='replace')).hexdigest()[:8]}"


def around(item: pytest.Item) -> AbstractContextManager[object]:
    """The link, for a test that neither takes the fixture nor has a fixture that does."""
    asked, info = item.stash.get(_LINK, None), getattr(item, "_fixtureinfo", None)
    if asked is None or info is None:
        return nullcontext()
    definitions = [each for several in info.name2fixturedefs.values() for each in several]
    taken = "airloom" in info.argnames or any("airloom" in each.argnames for each in definitions)
    return nullcontext() if taken else asked


def finish(item: pytest.Item, report: pytest.TestReport) -> None:
    """Names what is kept of a failure, and takes away what is not to be."""
    asked = item.stash.get(_LINK, None)
    if asked is None:
        return
    asked.failed = asked.failed or report.failed
    if report.when == "call" and report.failed:
        for made in asked._made:
            report.sections.append((f"airloom: {asked.name}, seed {asked.seed}", _said(made)))
    if report.when == "teardown" and item.config.getoption("airloom_keep") == "failed" and not asked.failed:
        for folder in asked.kept:
            shutil.rmtree(folder, ignore_errors=True)
            # Another worker may have results in it, or have taken it away.
            with suppress(OSError):
                folder.parent.rmdir()


def _said(made: Link) -> str:
    """What is known of a link whose test has failed."""
    lines = []
    if not made.summary.get("valid", 1):
        lines.append("its times are not valid: this machine was too busy for them")
    results = made.results
    if results is None:
        return "\n".join([*lines, "nothing was kept; --airloom-keep=failed keeps capture, tables and report"])
    from airloom.report import build

    try:
        build(results.folder)
    except (AirloomError, OSError) as error:
        lines.append(f"no report: {error}")
    lines += [f"results in {results.folder}"]
    lines += sorted(f"  {file.name}" for file in results.folder.iterdir())
    return "\n".join(lines)
