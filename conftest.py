"""What holds for tests and for the examples in docstrings."""

from __future__ import annotations

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


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling:
    """Workers of pytest-xdist take whole files; what runs laboratories is one worker's: the clock is watched."""
    from xdist.scheduler import LoadScopeScheduling

    laboratories = ("tests/emulate/", "tests/page_load/", "tests/validate/")

    class ByFile(LoadScopeScheduling):  # type: ignore[misc]  # it comes without types
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return "laboratories" if file.startswith(laboratories) else file

    return ByFile(config, log)
