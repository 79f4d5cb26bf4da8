"""What a laboratory makes of a busy machine, and of programs that behave badly."""

import signal
import time
from pathlib import Path

import pytest

import airloom as al
from airloom.emulation import emulate, find
from tests.conftest import needs
from tests.emulate.conftest import ALL_CLOSED
from tests.emulate.rights import ourselves

pytestmark = [pytest.mark.emulate, pytest.mark.usefixtures("laboratory")]

#: Frames that no stack would send: no IP, headers that lie about lengths, cut ones, and noise; then a good datagram.
MALFORMED = """
import random, socket
rng = random.Random(7)
raw = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM)
v4, v6 = ("link", 0x0800), ("link", 0x86DD)
head = bytes.fromhex("450000541234400040010000") + bytes([10, 77, 0, 2, 10, 77, 0, 1])
for n in range(2000):
    octets = bytearray(head + bytes(64))
    for _ in range(rng.randrange(1, 6)):
        octets[rng.randrange(20)] = rng.randrange(256)
    raw.sendto(bytes(octets[: rng.randrange(1, len(octets))]), rng.choice((v4, v6)))
    raw.sendto(rng.randbytes(rng.randrange(1, 1500)), ("link", rng.randrange(0x600, 0x10000)))
"""


def test_a_machine_that_was_busy_gives_an_invalid_run_and_says_so(tmp_path: Path) -> None:
    needs("ping")
    user = ourselves(tmp_path)
    words = ["-m", "airloom", "emulate", "wireline", "--set", "delay=5ms", "--strict", "2ms", "--out", "result", "--"]
    words += ["ping", "-n", "-q", "-c", "100", "-i", "0.01", "origin"]
    with user.popen(words) as process:
        # What a busy machine does to the engine, for certain: it does not run for a while, again and again.
        while process.poll() is None:
            process.send_signal(signal.SIGSTOP)
            time.sleep(0.1)
            process.send_signal(signal.SIGCONT)
            time.sleep(0.05)
        _, err = process.communicate(timeout=60)
    run = al.Run(tmp_path / "result")
    assert run.verdict == "invalid"
    assert run.summary["valid"] == 0
    assert any("late" in reason for reason in run.verdict_reasons)
    assert run.summary["lateness_p99_us"] > 2000
    assert "NOT valid" in err
    assert (process.returncode, "--strict 2ms: not valid: " in err) == (4, True)


def test_malformed_frames_are_counted_and_good_ones_still_get_through() -> None:
    with al.lab("wireline", enter=False, overrides={"delay": "1ms"}) as link:
        done = link.run(["python3", "-c", MALFORMED], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert link.run("ping -n -c 5 origin", capture_output=True).returncode == 0
    assert link.summary["port.malformed"] > 100
    assert link.summary["packets"] > 0


def test_daemons_do_not_hold_a_command_up_and_end_with_the_laboratory(tmp_path: Path) -> None:
    mark = 8_910_000 + time.time_ns() % 10_000
    user = ourselves(tmp_path)
    fork = f"for n in $(seq 200); do setsid sh -c 'trap \"\" TERM HUP INT; sleep {mark}' & done; echo forked; exit 3"
    words: list[str | Path] = ["-m", "airloom", "emulate", "wireline", "--", "sh", "-c", f"({fork}) </dev/null"]
    done = user.python(*words)
    assert (done.returncode, done.stdout) == (3, "forked\n"), done.stderr
    # They had the pipes of stdout: that these are at their end says that all of them are gone.
    lines = (p for p in Path("/proc").glob("[0-9]*/cmdline"))
    assert not [p for p in lines if str(mark) in _text(p)]


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode(errors="replace")
    except OSError:
        return ""


def test_two_real_hosts_have_their_flow_in_the_table(tmp_path: Path) -> None:
    needs("curl")
    (tmp_path / "file").write_bytes(bytes(300_000))
    scenario = tmp_path / "two.toml"
    serve = f'["python3", "-m", "http.server", "80", "--directory", "{tmp_path}"]'
    scenario.write_text(
        'title = "two"\npath = ["mobile", "wire", "origin"]\n'
        f"[hosts]\nmobile = {{ real = true }}\norigin = {{ real = true, command = {serve} }}\n"
        '[links]\nwire = { bearer = "wireline", delay = "10ms", loss = 0.02 }\n'
    )
    run, code = al.load(scenario).emulate(
        ["sh", "-c", f"curl -4sS -o /dev/null http://origin/file; {ALL_CLOSED}"], seed=3
    )
    assert code == 0
    row = next(row for row in run.flows.to_dicts() if row["proto"] == "tcp" and row["dst"].endswith(":80"))
    assert row["end"] == "finished"
    # The body and its header; the request.
    assert 300_000 < row["app_bytes_down"] < 301_000
    assert 50 < row["app_bytes_up"] < 500
    assert row["wire_bytes_down"] > row["app_bytes_down"]
    assert 0 <= row["open_ns"] < row["established_ns"] < row["first_byte_ns"] < row["close_ns"]
    # Every data segment that was lost came again.
    lost = run.summary["lost"]
    assert lost > 0
    assert 0 < row["resent"] <= 2 * lost + 5


def test_the_meter_shows_the_queue_of_a_radio_link() -> None:
    needs("curl")
    seen: list[int] = []
    run, code = emulate(
        find("umts-dch"),
        ["curl", "-sS", "-o", "/dev/null", "http://origin/100kB"],
        meter=lambda _t, _s, _r, _d, _a, queue, _state: seen.append(queue),
    )
    assert code == 0
    assert run.summary["packets"] > 60
    # 100 kB take two seconds: Linux's first window alone is more than the link carries in a look.
    assert max(seen) > 3000
    assert seen[-1] < max(seen)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_heard_while_services_start(tmp_path: Path, how: signal.Signals) -> None:
    scenario = tmp_path / "slow.toml"
    scenario.write_text(
        'path = ["mobile", "wire", "origin"]\nlinks.wire = "wireline"\n[hosts]\nmobile = { real = true }\n'
        'origin = { real = true, command = ["sh", "-c", "echo started >&2; exec sleep 1000"] }\n'
    )
    words = ["-m", "airloom", "emulate", str(scenario), "--", "echo", "the command ran"]
    with ourselves(tmp_path).popen(words) as process:
        assert process.stderr
        # It never listens, which the laboratory waits for.
        assert any("started" in line for line in process.stderr)
        process.send_signal(how)
        out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (128 + how, "")
