"""What holds for tests and for the examples in docstrings."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler import Scheduling

# The `study.py` of a study is data of that study, loaded by its place: several have the same module name.
collect_ignore_glob = ["python/airloom/studies/*/*"]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has an empty current folder and no settings from the person who runs it."""
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR", "SUDO_UID", "SUDO_GID"):
        monkeypatch.delenv(name, raising=False)


#: What holds real time against virtual time: one worker's, one after the other.
CLOCKS = ("tests/validate/", "tests/page_load/")

#: What takes longest, in this order: a worker that began with it last would be alone at the end.
LONGEST = [
    "tests/study/test_study.py",
    *CLOCKS,
    "tests/emulate/test_interop_cases.py",
    "tests/emulate/test_pytest_plugin.py",
    "tests/emulate/test_outside.py",
    "tests/emulate/test_kills.py",
    "tests/emulate/test_own_site.py",
    "tests/cli/test_long_commands.py",
    "tests/wap/test_kannel.py",
    "tests/study/test_umts_proxies.py",
    "tests/emulate/test_rights.py",
    "tests/emulate/test_interop.py",
    "tests/test_docs.py",
    "tests/emulate/",
    "tests/sweep/test_killed.py",
    "tests/cli/test_manners.py",
    "tests/wwp/test_transfer.py",
    "tests/proxies/",
]

#: By how much what has no clock to watch stands back, beside other workers (nice).
BACK = 5
_OURS = os.getpriority(os.PRIO_PROCESS, 0)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Workers of pytest-xdist begin with what takes longest."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: next((n for n, f in enumerate(LONGEST) if item.nodeid.startswith(f)), len(LONGEST)))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Beside other workers laboratories go first: they mostly wait, and are late where they cannot go on at once."""
    if hasattr(item.config, "workerinput"):
        is_in_front = item.get_closest_marker("emulate") or item.nodeid.startswith(CLOCKS)
        # Who may not come forward, a container's root perhaps, does not go back: it would stay there.
        with contextlib.suppress(PermissionError):
            os.setpriority(os.PRIO_PROCESS, 0, _OURS - 1)
            os.setpriority(os.PRIO_PROCESS, 0, _OURS + (0 if is_in_front else BACK))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling:
    """Workers of pytest-xdist take whole files, in the order above."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):  # type: ignore[misc]  # it comes without types
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return "clocks" if file.startswith(CLOCKS) else file

    config.option.loadscopereorder = False  # by the number of tests, that is
    return ByFile(config, log)
