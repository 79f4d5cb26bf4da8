"""What `airloom emulate` takes besides a bearer and a command."""

from pathlib import Path

import pytest

import airloom as al
from tests.cli.shell import airloom
from tests.conftest import needs, needs_laboratory

pytestmark = pytest.mark.emulate


@pytest.fixture(autouse=True)
def _possible_here() -> None:
    needs("curl")
    needs_laboratory()


def test_a_preset_of_another_tool_by_its_own_name_and_by_the_servers_name() -> None:
    done = airloom(
        "emulate", "wpt/cable", "--out", "result", "--", "curl", "-sf", "-o", "/dev/null", "http://origin/9kB"
    )
    assert done.code == 0, done.err
    assert al.Run("result").manifest["scenario"]["links"]["link"]["rate"]["downlink"] == "5Mbit/s"


def test_a_bound_that_nobody_keeps_is_exit_code_4_whatever_the_command_says() -> None:
    fetch = ["sh", "-c", "curl -sf -o /dev/null http://origin/9kB; exit 7"]
    assert airloom("emulate", "wireline", "--strict", "30s", "--", *fetch).code == 7
    strict = airloom("emulate", "wireline", "--strict", "0.001ns", "--", *fetch)
    assert strict.code == 4
    assert "lateness p99 was" in strict.err
    assert airloom("emulate", "wireline", "--strict", "soon", "--", *fetch).code == 2


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
