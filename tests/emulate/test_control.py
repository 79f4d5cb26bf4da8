"""Live control: links changed by hand while a run goes on, from Python and at the keyboard."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Self

import pytest

import airloom as al
from airloom._core import DriveError
from airloom.control import Condition
from airloom.control.desk import Desk
from tests.conftest import needs_laboratory

pytestmark = pytest.mark.emulate

#: A transfer between simulated hosts: what it does depends on nothing but the changes and when they were made.
SCENARIO = """\
title = "a file over three circuits, and somebody who looks on"
[hosts]
mobile = { app = { bulk = { server = "server", size = "30kB" } } }
server = { app = "bulk-server" }
watcher = { real = true }
[links.bundle]
bearer = "mlppp"
between = ["mobile", "server"]
members = ["piafs"]
copies = 3
detect = "100ms"
[links.side]
bearer = "wireline"
between = ["watcher", "server"]
"""

#: On any machine.
LIMIT_S = 60.0


@pytest.fixture(autouse=True)
def _possible_here() -> None:
    needs_laboratory()
    Path("circuits.toml").write_text(SCENARIO)


def _wait_for(lab: al.Lab, target: str, state: str) -> Condition:
    end = time.monotonic() + LIMIT_S
    while True:
        found = next(c for c in lab.control.conditions() if c.target == target)
        if found.state == state:
            return found
        assert time.monotonic() < end, found
        time.sleep(0.02)


def test_circuits_are_released_and_set_up_by_hand_and_virtual_time_repeats_it() -> None:
    with al.lab("circuits.toml", seed=3, enter=False, out="run") as lab:
        names = [condition.target for condition in lab.control.conditions()]
        assert names == ["bundle", *(f"bundle.member.{n}" for n in range(3)), "side"]
        time.sleep(0.3)
        released = lab.control.change("bundle.member.1", state="down")
        assert released > 0.3
        assert _wait_for(lab, "bundle.member.1", "down").is_wanted is False
        set_up = lab.control.change("bundle.member.1", state="up")
        _wait_for(lab, "bundle.member.1", "up")
        lab.control.change("side", rate="1Mbit/s", loss={"uplink": 0.5})
        end = time.monotonic() + LIMIT_S
        while True:
            at, conditions = lab.control.look()
            downlink = conditions[0].downlink
            assert downlink is not None
            if downlink.octets > 30_000 and at > set_up + 3:
                break
            assert time.monotonic() < end
            time.sleep(0.1)
        frames = next(c for c in conditions if c.target == "bundle.member.0").downlink
        assert frames is not None
        assert frames.frames > 50
    run = lab.results
    assert run is not None
    changes = run.manifest["changes"]
    assert [(c["target"], c["set"]) for c in changes[:2]] == [
        ("bundle.member.1", {"state": "down"}),
        ("bundle.member.1", {"state": "up"}),
    ]
    number, unit = re.fullmatch(r"(\d+)(ns|us|ms|s)", changes[0]["at"]).groups()  # type: ignore[union-attr]
    assert int(number) * {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}[unit] == round(released * 1e9)
    assert changes[2]["set"] == {"rate": "1Mbit/s", "loss": {"uplink": 0.5}}

    # The same changes at the same moments do the same, to the last octet and nanosecond.
    again = al.load("run/replay.json", {"run.until": f"{run.summary['simulated_s']}s"}).run(out="again")
    assert again.flows.to_dicts() == run.flows.to_dicts()
    counted = {name: value for name, value in run.summary.items() if name.startswith("bundle.")}
    assert {name: again.summary[name] for name in counted} == counted


def test_faults_are_switched_by_hand_and_again_in_virtual_time() -> None:
    faults = {"faults.drop.rate": 1, "faults.nat": {"first": "1h"}}
    with al.lab("wireline", overrides=faults, enter=False, out="run") as lab:
        (link,) = lab.control.conditions()
        assert link.faults == {"drop": True, "nat": True}

        def passes() -> bool:
            return lab.run("ping -n -q -c 1 -W 1 origin", capture_output=True).returncode == 0

        assert not passes()
        lab.control.change(link.target, faults={"drop": "off", "nat": "off"})
        assert passes()
        assert lab.control.conditions()[0].faults == {"drop": False, "nat": False}
        desk = Desk(lab.control)
        rows = {row.target: (row.state, row.verb) for row in desk.look()[1]}
        assert rows[f"{link.target}.faults.drop"] == ("off", "switch on")
        assert "faults drop on" in desk.toggle(f"{link.target}.faults.drop")
        assert not passes()
        lab.control.change(link.target, faults={"nat": "on"})
        with pytest.raises(al.ScenarioError, match="nothing of the kind among its `faults`"):
            lab.control.change(link.target, faults={"corrupt": "on"})
    assert lab.summary[f"{link.target}.nat_rebindings"] == 1
    replay = json.loads(Path("run/replay.json").read_text())
    made = [entry["set"]["faults"] for entry in replay["timeline"]]
    assert made == [{"drop": "off", "nat": "off"}, {"drop": "on"}, {"nat": "on"}]
    assert al.load("run/replay.json").understood["timeline"] == replay["timeline"]


@pytest.mark.parametrize(
    ("target", "change", "why"),
    [
        ("bundel", {"state": "down"}, "change: target: unknown link `bundel` (did you mean `bundle`?)"),
        ("bundle.member.3", {"state": "down"}, "change: set.state: the bundle has no such member"),
        ("bundle.member.1", {"state": "off"}, "change: set.state: unknown state `off`; valid: up, down"),
        # Of two changes the first would be possible: neither is made.
        ("side", {"loss": 0.5, "rate": "-1kbit/s"}, "change: set.rate: "),
        ("bundle", {"state": "down", "rate": "1kbit/s"}, "change: set.rate: a bundle has no rate"),
        ("side", {}, "change: set: nothing is changed; valid: state, rate, delay, loss, queue, faults"),
    ],
)
def test_a_change_that_makes_no_sense_is_one_line_and_changes_nothing(
    target: str, change: dict[str, object], why: str
) -> None:
    with al.lab("circuits.toml", enter=False, out="run") as lab:
        with pytest.raises(al.ScenarioError) as raised:
            lab.control.set(target, change)
        assert {c.state for c in lab.control.conditions()} == {"up"}
        kept = lab.control
    assert str(raised.value).startswith(why)
    assert "\n" not in str(raised.value)
    assert lab.results is not None
    assert "changes" not in lab.results.manifest
    assert not Path("run/replay.json").exists()
    with pytest.raises(DriveError, match="the run is over"):
        kept.change("side", state="down")
    with pytest.raises(DriveError, match="the run is over"):
        kept.conditions()


class Terminal:
    """`airloom emulate`, with `--control` unless told otherwise, on a terminal of its own."""

    def __init__(
        self, *command: str, control: bool = True, shell: str = "", lines: int = 30, columns: int = 100
    ) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self._theirs = theirs
        self.before = termios.tcgetattr(theirs)
        words = ["emulate", "circuits.toml", *(["--control"] if control else []), "--out", "run", "--", *command]
        command = (sys.executable, "-m", "airloom", *words)
        self.process = subprocess.Popen(
            # The terminal becomes that of the session, so that Ctrl-C is a signal.
            [sys.executable, "-c", _SESSION, *(["/bin/sh", "-c", shell] if shell else command)],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm"},
        )
        self._seen = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            # With all that it started: they are of its session.
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self._theirs)
        os.close(self._ours)

    def wait_for(self, text: str) -> None:
        """Until this was written, since the last time."""
        end = time.monotonic() + LIMIT_S
        while text not in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self._seen.decode(errors="replace")):
            assert time.monotonic() < end, self._seen.decode(errors="replace")
            self._read()
        self._seen = b""

    def _read(self) -> None:
        if select.select([self._ours], [], [], 0.1)[0]:
            self._seen += os.read(self._ours, 65_536)

    def press(self, keys: bytes) -> None:
        os.write(self._ours, keys)

    def end(self) -> int:
        """Its exit code; the terminal has to be as it was."""
        end = time.monotonic() + LIMIT_S
        while self.process.poll() is None:
            assert time.monotonic() < end
            self._read()
        while select.select([self._ours], [], [], 0)[0]:
            self._read()
        assert termios.tcgetattr(self._theirs) == self.before
        return self.process.returncode

    @property
    def seen(self) -> str:
        return self._seen.decode(errors="replace")


_SESSION = """\
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_keys_release_and_set_up_circuits_and_what_the_command_prints_is_shown() -> None:
    with Terminal("sh", "-c", "echo hello from inside; cat; sleep 60") as terminal:
        terminal.wait_for("hello from inside")
        terminal.press(b"2")
        terminal.wait_for("bundle.member.1 state down")
        terminal.wait_for("○ down")
        # Two down from there is the wire; the arrow's characters come one by one.
        terminal.press(b"\x1b")
        terminal.press(b"[B")
        terminal.press(b"j ")
        terminal.wait_for("side state down")
        terminal.press(b"2")
        terminal.wait_for("◐ setting up")
        terminal.press(b"q")
        assert terminal.end() == 0
        assert "airloom run run/replay.json" in terminal.seen
        changes = al.Run("run").manifest["changes"]
        assert [(c["target"], c["set"]["state"]) for c in changes] == [
            ("bundle.member.1", "down"),
            ("side", "down"),
            ("bundle.member.1", "up"),
        ]


def test_a_command_that_has_the_terminal_goes_on_after_ctrl_z() -> None:
    with Terminal("sh", "-c", "echo ready; read word; echo said $word", control=False) as terminal:
        terminal.wait_for("ready")
        terminal.press(b"\x1a")
        terminal.wait_for("it goes on")
        terminal.press(b"this\n")
        terminal.wait_for("said this")
        assert terminal.end() == 0


def test_what_the_output_is_piped_into_keeps_the_terminal() -> None:
    # In one group with airloom, as a shell has it.
    reads = "import sys; print(sys.stdin.readline()); print('heard', open('/dev/tty').readline())"
    inside = f"{sys.executable} -m airloom emulate circuits.toml --out inner -- sh -c 'echo up; sleep 1'"
    with Terminal("true", control=False, shell=f'{inside} | {sys.executable} -u -c "{reads}"') as terminal:
        terminal.wait_for("up")
        terminal.press(b"a key\n")
        terminal.wait_for("heard a key")
        assert terminal.end() == 0


def test_ctrl_c_ends_it_and_leaves_nothing_behind() -> None:
    with Terminal("sleep", "987654") as terminal:
        terminal.wait_for("bundle.member.2")
        terminal.press(b"3")
        terminal.wait_for("bundle.member.2 state down")
        terminal.press(b"\x03")
        assert terminal.end() == 128 + signal.SIGINT
        assert "interrupted, nothing was written" in terminal.seen
        assert [p.name for p in Path.cwd().iterdir()] == ["circuits.toml"]
        commands = [p.read_bytes() for p in Path("/proc").glob("[0-9]*/cmdline") if _is_readable(p)]
        assert b"sleep\x00987654\x00" not in commands


def _is_readable(path: Path) -> bool:
    try:
        path.read_bytes()
    except OSError:
        return False
    return True


@pytest.mark.parametrize(("lines", "columns"), [(0, 0), (1, 1), (3, 12)])
def test_a_terminal_of_any_size_will_do(lines: int, columns: int) -> None:
    with Terminal("sh", "-c", "echo hello; sleep 60", lines=lines, columns=columns) as terminal:
        terminal.wait_for("h")
        terminal.press(b"2")
        time.sleep(0.5)
        terminal.press(b"q")
        assert terminal.end() == 0
        assert len(al.Run("run").manifest["changes"]) == 1


def test_without_a_terminal_it_says_what_to_do() -> None:
    words = [sys.executable, "-m", "airloom", "emulate", "circuits.toml", "--control", "--", "true"]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 2
    assert "--control-page shows the same in a browser" in done.stderr
