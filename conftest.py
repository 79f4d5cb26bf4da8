"""What holds for tests and for the examples in docstrings."""

from pathlib import Path

import pytest

# The `study.py` of a study is data of that study, loaded by its place: several have the same module name.
collect_ignore_glob = ["python/airloom/studies/*/*"]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has an empty current folder and no settings from the person who runs it."""
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR", "SUDO_UID", "SUDO_GID"):
        monkeypatch.delenv(name, raising=False)
