"""Nothing is imported from the current folder, locks are the user's own, and hostile JSON ends in one line."""

import os
import re
import stat
import subprocess
from pathlib import Path

import pytest

import airloom
from airloom import interpreter, json_file, runtime_folder
from airloom.errors import RunError, UsageError
from tests.cli.shell import airloom as command

PACKAGE = Path(airloom.__file__).parent

#: Who may name the interpreter: what makes commands, and what is asked to be Python.
MAY = {"interpreter.py", "reexec.py"}


def test_a_module_in_the_current_folder_is_not_run(tmp_path: Path) -> None:
    for name in ("airloom.py", "json.py", "numpy.py"):
        (tmp_path / name).write_text("raise SystemExit('code from the current folder')\n")
    for words in (
        interpreter.airloom("--version"),
        interpreter.python("-c", "import json, numpy"),
        interpreter.python("-m", "airloom.page_load.browser"),
    ):
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, input="", check=False)
        assert "current folder" not in done.stderr + done.stdout


def test_every_command_that_starts_the_interpreter_is_made_in_one_place() -> None:
    bare = re.compile(r"""sys\.executable|["']-m["'],\s*["']airloom["']""")
    found = {str(f.relative_to(PACKAGE)) for f in PACKAGE.rglob("*.py") if bare.search(f.read_text(encoding="utf-8"))}
    assert {name for name in found if name not in MAY} == set()


def test_locks_are_in_a_folder_of_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    place = runtime_folder.runtime_folder()
    assert place == tmp_path / "airloom"
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    os.close(runtime_folder.open_lock("core-0.lock"))
    assert stat.S_IMODE((place / "core-0.lock").stat().st_mode) == 0o600


def test_a_link_in_the_place_of_a_lock_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (runtime_folder.runtime_folder() / "core-0.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="Too many levels"):
        runtime_folder.open_lock("core-0.lock")
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_that_others_may_write_to_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared, other = tmp_path / "shared", tmp_path / "other"
    (shared / "airloom").mkdir(parents=True)
    (shared / "airloom").chmod(0o777)
    other.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(shared))
    monkeypatch.setenv("XDG_CACHE_HOME", str(other))
    monkeypatch.setattr(os, "geteuid", lambda: os.stat(tmp_path).st_uid)
    monkeypatch.setattr(runtime_folder, "_candidates", lambda: [shared / "airloom", other / "airloom"])
    assert runtime_folder.runtime_folder() == other / "airloom"
    # A link to a folder is none.
    (tmp_path / "link").symlink_to(other)
    monkeypatch.setattr(runtime_folder, "_candidates", lambda: [shared / "airloom", tmp_path / "link"])
    with pytest.raises(RunError, match="no folder of your own"):
        runtime_folder.runtime_folder()


@pytest.mark.parametrize(
    ("octets", "says"),
    [
        (b"[" * 100_000, "nested too deep"),
        (b"1e400.5", "cannot be read: Extra data"),
        (b"\xff", "cannot be read: 'utf-8' codec"),
        (b"9" * 5_000, "cannot be read: Exceeds the limit"),
        (b"", "cannot be read: Expecting value"),
    ],
)
def test_hostile_json_is_one_line(octets: bytes, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run.json").write_bytes(octets)
    with pytest.raises(UsageError, match=re.escape(says)):
        json_file.read_json(tmp_path / "run.json")
    for verb in ("report", "energy"):
        done = command(verb, tmp_path)
        assert done.code == 2
        assert len(done.err.splitlines()) == 1


def test_a_summary_that_is_none_is_one_line() -> None:
    assert command("run", "umts-page", "--out", "ok").code == 0
    for octets in (b"1e400.5", b"[" * 100_000, b"[]"):
        Path("ok/summary.json").write_bytes(octets)
        for words in (["report", "ok"], ["energy", "ok"]):
            done = command(*words)
            assert (done.code, len(done.err.splitlines())) == (2, 1), done.err


def test_what_does_not_end_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_file, "MOST", 1 << 20)
    with pytest.raises(UsageError, match="larger than 1 MiB"):
        json_file.read_json("/dev/zero")
