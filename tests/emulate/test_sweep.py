"""A sweep in real time: every run alone on its core."""

import itertools
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import airloom as al
from airloom.cli import call

pytestmark = [pytest.mark.emulate, pytest.mark.usefixtures("curl", "laboratory")]

FETCH = """\
path = ["mobile", "wire", "origin"]
hosts = { mobile = { real = true }, origin = { app = "http-server" } }
links.wire = { bearer = "wireline", rate = "2Mbit/s", delay = "10ms" }
"""


def test_emulated_runs_never_share_a_core(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("real.toml").write_text(FETCH)
    log = shlex.quote(str(tmp_path / "log"))
    command = (
        f"b=$(date +%s%N); curl -so /dev/null http://10.77.0.1/20kB; c=$?; "
        f"echo $(grep Cpus_allowed_list /proc/self/status | cut -f2) $b $(date +%s%N) >> {log}; exit $c"
    )
    words = ["sweep", "real.toml", "--emulate", "--vary", "links.wire.delay=10ms,40ms", "--seeds", "1..3", "--out", "s"]
    begin = time.time_ns()
    code = call([*words, "--", "sh", "-c", command])
    said = capsys.readouterr()
    results = al.SweepResults("s")
    runs = results.all_runs
    assert runs.height == 6, said.err
    # On a busy machine a run may be too late to be believed; then that is what is said, and the exit code says it too.
    errors = [error for error in runs["error"] if error is not None]
    assert all(error.startswith("not valid: ") for error in errors)
    assert code == (4 if errors else 0)
    assert runs["simulated_s"].null_count() == 0
    for folder in (results.folder / "runs").iterdir():
        assert al.Run(folder).manifest["clock"] == "real"

    spans: dict[str, list[tuple[int, int]]] = {}
    for line in (tmp_path / "log").read_text().splitlines():
        core, start, end = line.split()
        assert core.isdecimal(), "one core, and no list of them"
        spans.setdefault(core, []).append((int(start), int(end)))
    assert sum(map(len, spans.values())) == 6
    for of_core in spans.values():
        of_core.sort()
        assert all(first[1] <= second[0] for first, second in itertools.pairwise(of_core))
        assert of_core[0][0] >= begin


def test_more_workers_than_cores_are_refused_for_emulated_runs() -> None:
    Path("real.toml").write_text(FETCH)
    with pytest.raises(al.AirloomError, match="emulated runs never share a core"):
        al.load("real.toml").sweep(seeds=[1], real_time=True, command=["true"]).run(workers=10_000)


def test_a_command_that_is_not_there_fails_every_run_and_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    Path("real.toml").write_text(FETCH)
    words = ["sweep", "real.toml", "--emulate", "--vary", "links.wire.delay=10ms,40ms", "--seeds", "1", "--out", "s"]
    assert call([*words, "--", "/nonexistent"]) == 4
    said = capsys.readouterr()
    assert "2 of 2 runs failed" in said.err
    assert "cannot run `/nonexistent`" in said.err
    assert "Traceback" not in said.err


def test_a_command_may_write_what_is_no_text() -> None:
    Path("real.toml").write_text(FETCH)
    words = ["sweep", "real.toml", "--emulate", "--seeds", "1", "--out", "s", "--", "sh", "-c", r"printf '\377'"]
    assert call(words) in (0, 4)
    (error,) = al.SweepResults("s").all_runs["error"]
    assert error is None or error.startswith("not valid: ")


def test_a_signal_ends_the_emulations_that_are_under_way() -> None:
    Path("real.toml").write_text(FETCH)
    words = ["sweep", "real.toml", "--emulate", "--seeds", "1..40", "--out", "s"]
    command = ["sh", "-c", f"touch {Path('begun').resolve()}; sleep 1000"]
    process = subprocess.Popen([sys.executable, "-m", "airloom", *words, "--", *command], stderr=subprocess.PIPE)
    until = time.monotonic() + 60
    while not Path("begun").exists():
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 143
    assert "0 of 40 runs are kept, the same command goes on with them" in said.decode()
    assert not list(Path("s/runs").iterdir())
    assert not list(Path("s/parts").iterdir())
