"""The runner of packetdrill's scripts."""

import os
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.documents import ROOT


@pytest.fixture(scope="module")
def runner() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "conformance" / "packetdrill"))


def test_it_clears_away_own_files_alone(runner: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "code_folder").mkdir()
    (tmp_path / "code_link").symlink_to(tmp_path)
    for name in ("code_8a3", "sysctl_restore_17.sh", "others"):
        (tmp_path / name).touch()
    assert {path.name for path in runner["left_behind"](tmp_path)} == {"code_8a3", "sysctl_restore_17.sh"}


def test_a_reason_for_what_passes_is_stale(runner: dict[str, Any]) -> None:
    names = {Path(name): name for name in ("md5/one", "md5/two", "cubic/one", "cubic/two")}
    reasons = dict.fromkeys(("md5", "cubic/one", "cubic", "splice"), "because")

    def stale(*red: str, whole: bool = True) -> list[str]:
        ours = {path: "why" if name in red else "" for path, name in names.items()}
        found: list[str] = runner["stale"](reasons, names, ours, whole)
        return found

    assert stale("md5/one", "cubic/two") == ["cubic/one"]
    assert stale("md5/two", "cubic/one") == []
    assert stale("cubic/one") == ["md5"]
    assert stale("cubic/one", whole=False) == []


def test_no_script_is_no_success(runner: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drill = SimpleNamespace(nets=tmp_path, scripts=lambda _: [])
    monkeypatch.setitem(runner["main"].__globals__, "Drill", lambda *_: drill)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    for words, says in ([], "no scripts"), (["--only", "cubci"], "no script has 'cubci' in its path"):
        monkeypatch.setattr(sys, "argv", ["packetdrill", str(tmp_path), "--ours", *words])
        with pytest.raises(SystemExit, match=says):
            runner["main"]()
