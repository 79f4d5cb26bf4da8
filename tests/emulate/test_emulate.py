import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import airloom as al
from tests.cli.shell import airloom, inside
from tests.conftest import needs

pytestmark = [pytest.mark.emulate, pytest.mark.usefixtures("curl", "laboratory")]


def test_curl_fetches_through_a_bearer_from_the_simulated_server() -> None:
    done = airloom(
        *("emulate", "wireline", "--set", "delay=25ms", "--set", "rate=2Mbit/s", "--out", "result", "--"),
        *(
            "curl",
            "-s",
            "-o",
            "/dev/null",
            "-w",
            "%{size_download} %{http_code} %{time_total}",
            "http://10.77.0.1/50kB",
        ),
    )
    assert done.code == 0, done.err
    size, status, seconds = done.out.split()
    assert (size, status) == ("50000", "200")
    # Two round trips of 50 ms, and 50 kB at 2 Mbit/s: no packet leaves the model before its time.
    assert float(seconds) >= 0.3
    run = al.Run("result")
    assert run.manifest["clock"] == "real"
    assert run.manifest["exit_code"] == 0
    assert run.summary["lost"] == 0


def test_the_scenario_is_the_same_in_both_clocks(wire: Path) -> None:
    simulated = al.load(wire).run()
    needs("ping")
    wire.write_text(wire.read_text().replace('mobile = { app = "ping" }', 'mobile = { app = "ping", real = true }'))
    done = airloom("emulate", wire, "--out", "result", "--", "ping", "-c", "5", "-i", "0.2", "10.77.0.1")
    assert done.code == 0, done.err
    shortest = float(done.out.rsplit("= ", 1)[1].split("/")[0])
    # Not earlier than the model says; how much later depends on the machine.
    assert shortest >= simulated.summary["rtt_min_s"] * 1000 - 0.01


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["sh", "-c", "exit 7"], 7),
        (["no-such-program"], 127),
        (["/etc/passwd"], 126),
        (["sh", "-c", "kill -9 $$"], 137),
    ],
)
def test_the_exit_code_of_the_command_is_passed_on(command: list[str], code: int) -> None:
    assert airloom("emulate", "wireline", "--", *command).code == code


def test_the_command_is_waited_for_however_long_the_run_says_that_it_lasts(wire: Path) -> None:
    wire.write_text(wire.read_text().replace('mobile = { app = "ping" }', "mobile = { real = true }"))
    done = airloom("emulate", wire, "--set", "run.limit=100ms", "--out", "result", "--", "sh", "-c", "sleep 1; exit 7")
    assert done.code == 7, done.err
    manifest = al.Run("result").manifest
    assert (manifest["outcome"], manifest["exit_code"]) == ("complete", 7)


def test_applications_that_are_not_done_within_the_limit_are_an_error(wire: Path, tmp_path: Path) -> None:
    scenario = al.load(wire, {"run.limit": "100ms"}, real=["origin"])
    with pytest.raises(al.RunError, match=r"not done within run\.limit = 100ms"):
        scenario.emulate(out=tmp_path / "result")
    assert not (tmp_path / "result").exists()


def test_json_is_one_document_and_the_command_prints_elsewhere() -> None:
    done = airloom("emulate", "wireline", "--json", "--", "echo", "hello")
    answer = json.loads(done.out)
    assert answer["exit_code"] == 0
    assert Path(answer["folder"], "run.json").exists()
    assert "hello" in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing-like-it"], "valid bearers: "),
        (["wireline", "--set", "rate=fast"], "--set rate=fast"),
        (["wireline", "--real", "mobile"], "is real already"),
        (["{wire}", "--real", "mobil"], "mobile"),
        (["{wire}"], "no host is real"),
    ],
)
def test_wrong_use_is_one_line_and_writes_nothing(arguments: list[str], said: str, wire: Path, tmp_path: Path) -> None:
    done = inside("emulate", *(a.format(wire=wire) for a in arguments), "--", "true")
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert said in done.err
    assert list(tmp_path.iterdir()) == [wire]


def test_an_interrupted_emulation_leaves_nothing_behind(tmp_path: Path) -> None:
    namespaces = sorted(os.listdir("/proc/self/ns"))
    marker = tmp_path / "running"
    command = [sys.executable, "-m", "airloom", "emulate", "wireline", "--"]
    command += ["sh", "-c", f"touch {marker}; exec sleep 1000"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        while not marker.exists():
            assert process.poll() is None
            time.sleep(0.01)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == "airloom: interrupted, nothing was written\n"
    assert children
    assert not [pid for pid in children if Path("/proc", pid).exists()]
    assert sorted(os.listdir("/proc/self/ns")) == namespaces
    assert list(tmp_path.iterdir()) == [marker]
