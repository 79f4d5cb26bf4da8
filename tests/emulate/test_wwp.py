"""A real file over WWP between two namespaces, through a link that comes and goes."""

import hashlib
import json
import os
import pty
import random
import signal
import subprocess
import sys
import threading
import time
from itertools import takewhile
from pathlib import Path

import pytest

import airloom as al
from tests.conftest import needs_laboratory

pytestmark = pytest.mark.emulate

#: At the link's rate this takes four seconds, however fast the machine is: long enough for a bar to be shown.
SIZE = 2_000_000
#: Longest time that the whole may take, on any machine.
LIMIT_S = 300.0

SCENARIO = """\
title = "a link that comes and goes"
path = ["home", "air", "away"]
[hosts]
home = { real = true }
away = { real = true }
[links.air]
bearer = "vdeldrop"
over = { wireline = { rate = "4Mbit/s", delay = "5ms" } }
at = "both"
every = 3
on = "500ms"
off = "1s"
delay = { law = { uniform = { from = 0, to = 0.02 } } }
"""


class Screen:
    """A terminal, and what was written to it."""

    def __init__(self) -> None:
        self._ours, self.theirs = pty.openpty()
        self._seen = b""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while True:
            try:
                piece = os.read(self._ours, 4096)
            except OSError:
                # Nobody has the other end any more.
                return
            if not piece:
                return
            self._seen += piece

    def seen(self) -> str:
        """All of it, once nobody writes any more."""
        os.close(self.theirs)
        self._thread.join(timeout=30)
        os.close(self._ours)
        return self._seen.decode(errors="replace")


def _wwp(*words: str | Path) -> list[str]:
    return [sys.executable, "-m", "airloom", "wwp", *map(str, words)]


def test_a_file_goes_through_a_link_that_loses_a_third_interrupted_and_resumed(tmp_path: Path) -> None:
    needs_laboratory()
    Path("link.toml").write_text(SCENARIO)
    film, inbox = tmp_path / "film.bin", tmp_path / "inbox"
    film.write_bytes(random.Random(9).randbytes(SIZE))
    inbox.mkdir()
    ends = time.monotonic() + LIMIT_S
    # A reset may get lost as all else: the receiver gives a sender up that was interrupted.
    receive = _wwp("receive", "--into", inbox, "--listen", "0.0.0.0:9900", "--patience", "10", "--json")
    send = _wwp("send", film, "away:9900", "--patience", "60", "--json")
    with (
        al.lab("link.toml", seed=4, enter=False) as link,
        link.popen(receive, host="away", stdout=subprocess.PIPE, text=True) as receiver,
    ):
        with link.popen(send) as sender:
            while sum(part.stat().st_size for part in inbox.iterdir()) < SIZE // 4:
                assert sender.poll() is None
                assert time.monotonic() < ends
                time.sleep(0.05)
            sender.send_signal(signal.SIGINT)
            assert sender.wait(60) == 128 + signal.SIGINT
        (part,) = inbox.iterdir()
        assert part.suffix == ".part"

        screen = Screen()
        shown = {**os.environ, "TERM": "xterm"}
        with link.popen(send, stdout=subprocess.PIPE, stderr=screen.theirs, text=True, env=shown) as again:
            out, _ = again.communicate(timeout=LIMIT_S)
        progress = screen.seen()
        assert again.returncode == 0, progress
        # Its last words may get lost: then the receiver waits some seconds for them before it says what it has.
        assert receiver.stdout
        got = "".join(takewhile(lambda line: line != "}\n", receiver.stdout)) + "}"
        receiver.terminate()
    said = json.loads(out)
    assert SIZE // 4 <= said["resumed_at"] < SIZE
    assert said["resent"] > 0
    assert [path.name for path in inbox.iterdir()] == ["film.bin"]
    digest = hashlib.sha256(film.read_bytes()).hexdigest()
    assert hashlib.sha256((inbox / "film.bin").read_bytes()).hexdigest() == digest == said["sha256"]
    there = json.loads(got)
    assert (there["sha256"], there["resumed_at"]) == (digest, said["resumed_at"])
    assert "sending film.bin" in progress
    assert f"/{SIZE}" in progress
    assert link.summary["uplink.vdeldrop_dropped"] > 0
