"""What `airloom emulate` takes besides a bearer and a command."""

import json
from pathlib import Path

import pytest

import airloom as al
from tests.cli.shell import airloom

pytestmark = [pytest.mark.emulate, pytest.mark.usefixtures("curl", "laboratory")]


TALK = """\
import signal, socket, sys
served = socket.create_server(("", 80))
print("first", flush=True)
print("second", "0" * 8184, sep="\\n", file=sys.stderr, flush=True)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(print("no end", end="")))
signal.pause()
"""
SERVICE = f"""\
title = "A service that talks"
path = ["mobile", "wire", "origin"]
[hosts]
mobile = {{ real = true }}
origin = {{ real = true, command = ["python3", "-P", "-c", {json.dumps(TALK)}] }}
[links]
wire = "wireline"
"""


def test_a_preset_of_another_tool_by_its_own_name_and_by_the_servers_name() -> None:
    done = airloom(
        "emulate", "wpt/cable", "--out", "result", "--", "curl", "-sf", "-o", "/dev/null", "http://origin/9kB"
    )
    assert done.code == 0, done.err
    assert al.Run("result").manifest["scenario"]["links"]["link"]["rate"]["downlink"] == "5Mbit/s"


def test_what_programs_write_by_qlogdir_is_kept_with_the_run_unless_the_caller_said_where(tmp_path: Path) -> None:
    write = ["sh", "-c", "echo event > $QLOGDIR/id_client.sqlog"]
    done = airloom("emulate", "wireline", "--out", "kept", "--", *write, QLOGDIR="")
    assert done.code == 0, done.err
    assert (al.Run("kept").folder / "qlog" / "id_client.sqlog").read_text() == "event\n"
    mine = tmp_path / "mine"
    mine.mkdir()
    done = airloom("emulate", "wireline", "--out", "said", "--", *write, QLOGDIR=str(mine))
    assert done.code == 0, done.err
    assert (mine / "id_client.sqlog").exists()
    assert not Path("said/qlog").exists()


def test_the_bound_decides_what_is_valid_and_a_run_that_is_not_ends_with_4_whatever_the_command_says() -> None:
    fetch = ["sh", "-c", "curl -sf -o /dev/null http://origin/9kB; exit 7"]
    for bound, code, is_valid in (("30s", 7, True), ("1ns", 4, False)):
        done = airloom("emulate", "wireline", "--strict", bound, "--json", "--", *fetch)
        assert done.code == code, done.err
        said = json.loads(done.out)
        # One verdict, wherever it stands.
        assert (said["valid"], said["summary"]["valid"], said["verdict"] != "invalid") == (is_valid,) * 3
        assert ("--strict 1ns: not valid: " in done.err) != is_valid
        assert al.Run(said["folder"]).manifest["scenario"]["run"]["lateness_limit"] == bound


def test_counts_are_whole_numbers_and_valid_is_true_or_false() -> None:
    done = airloom(
        "emulate", "wireline", "--json", "--out", "result", "--", "curl", "-sf", "-o", "/dev/null", "http://origin/9kB"
    )
    for summary in (
        json.loads(done.out)["summary"],
        al.Run("result").summary,
        json.loads(Path("result/summary.json").read_text()),
    ):
        assert type(summary["valid"]) is bool
        assert [type(summary[key]) for key in ("connections", "packets", "link.downlink.bytes")] == [int] * 3
        assert type(summary["simulated_s"]) is float
    with al.lab("wireline", enter=False) as link:
        pass
    assert type(link.summary["valid"]) is bool
    assert type(link.summary["packets"]) is int


def test_what_a_service_prints_has_its_hosts_name_in_front() -> None:
    Path("two.toml").write_text(SERVICE)
    done = airloom("emulate", "two.toml", "--", "sh", "-c", "echo mine; echo too >&2; sleep 0.3")
    assert done.code == 0, done.err
    assert done.out == "mine\n"
    lines = done.err.splitlines()
    # The command's own lines are as they are; a last line without an end gets one.
    assert {"too", "origin: first", "origin: second", "origin: no end", "origin: " + "0" * 8184} <= set(lines)
    assert not any("mine" in line for line in lines)


def test_a_meter_writes_to_stderr_only_and_a_capture_is_made_meanwhile() -> None:
    shell = "echo output; for n in 1 2 3; do curl -sf -o /dev/null http://origin/9kB; sleep 0.5; done"
    options = ["--watch", "--record", "pcapng", "--out", "result"]
    done = airloom("emulate", "umts-dch/384-64", *options, "--", "sh", "-c", shell)
    assert done.code == 0, done.err
    assert done.out == "output\n"
    assert "umts-dch 384/64 kbit/s: down " in done.err
    assert (al.Run("result").folder / "trace.pcapng").stat().st_size > 27_000


def test_a_trace_file_is_a_link_and_its_numbers_stay_with_the_run() -> None:
    Path("down").write_text("".join(f"{n * 10}\n" for n in range(1, 101)))
    options = ["--set", "down=down", "--set", "delay=20ms", "--out", "result"]
    command = ["curl", "-s", "-o", "/dev/null", "-w", "%{size_download} %{time_total}", "http://origin/30kB"]
    done = airloom("emulate", "trace", *options, "--", *command)
    assert done.code == 0, done.err
    size, seconds = done.out.split()
    # 21 full packets, one in 10 ms, after two round trips of 40 ms.
    assert (size, float(seconds) > 0.25) == ("30000", True)
    assert len(al.Run("result").manifest["scenario"]["links"]["link"]["down"]) == 100
