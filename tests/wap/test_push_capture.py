"""Wireshark's own dissectors read what the daemon pushes to a listening phone, in a laboratory."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.conftest import needs
from tests.wap.wire import gateway_behind
from tests.wireshark import BROKEN, frames

GATEWAY = """
import socket, subprocess, sys, time
from pathlib import Path
from airloom.wap.pap import Initiator
from airloom.wap.service import INDICATION_TYPE, LOADING_TYPE, Indication, Loading
folder = Path(sys.argv[1])
command = [sys.executable, "-m", "airloom", "serve", "wap-gateway", "--listen", "0.0.0.0:9201", "--no-log"]
with subprocess.Popen([*command, "--push", "127.0.0.1:9206"], stdout=subprocess.PIPE, text=True) as gateway:
    gateway.stdout.readline()
    while not (folder / "listens").exists():
        time.sleep(0.1)
    initiator = Initiator("http://127.0.0.1:9206/")
    phone = socket.gethostbyname("mobile")
    notice = Indication("http://mail.example/1", "signal-high", "Grüße & more", "m1").document()
    loading = Loading("http://o/x", "execute-high").document()
    for kind, document, method in (
        (INDICATION_TYPE, notice, "unconfirmed"),
        (LOADING_TYPE, loading, "unconfirmed"),
        (INDICATION_TYPE, notice, "confirmed"),
        (LOADING_TYPE, loading, "confirmed"),
    ):
        name = initiator.push(phone, document, kind, method=method).push_id
        while (status := initiator.status(name)).state == "pending":
            time.sleep(0.1)
        with (folder / "states").open("a") as states:
            print(method, status.state, status.code, file=states)
    gateway.wait()
"""

PHONE = """
import json, sys
from pathlib import Path
from airloom.wap.receiver import Receiver
with Receiver("0.0.0.0") as receiver:
    Path(sys.argv[1], "listens").touch()
    heard = [receiver.next(60) for _ in range(4)]
print(json.dumps([push.text() for push in heard]))
"""


@pytest.mark.emulate
def test_pushes_of_the_daemon_are_dissected_without_a_complaint(tmp_path: Path) -> None:
    needs("tshark")
    for name, text in (("gateway.py", GATEWAY), ("phone.py", PHONE)):
        (tmp_path / name).write_text(text)
    run = tmp_path / "run"
    with gateway_behind(tmp_path, tmp_path / "gateway.py", tmp_path, seed=1, out=run) as link:
        command = [sys.executable, str(tmp_path / "phone.py"), str(tmp_path)]
        done = link.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert ["Grüße" in text for text in json.loads(done.stdout)] == [True, False, True, False]
    states = (tmp_path / "states").read_text().splitlines()
    assert states[:3] == ["unconfirmed delivered 1000"] * 2 + ["confirmed delivered 1000"]

    capture = run / "trace.pcapng"
    assert frames(capture, BROKEN) == []
    # Two without a session, and one that asks for a session.
    assert len(frames(capture, "udp.dstport == 2948 && wbxml")) == 2
    assert len(frames(capture, "udp.dstport == 2948 && !wbxml")) == 1
    # Confirmed ones in the session, each acknowledged.
    assert len(frames(capture, "wsp.pdu_type == 0x07 && wbxml")) == 2
