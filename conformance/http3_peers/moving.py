"""A simulated client that changes its link while it loads from somebody else's server."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path

from http3_peers.programs import AIRLOOM, Server

#: Where the server is.
ADDRESS = "10.77.2.1"

_SCENARIO = """\
title = "A client that moves, and a real server"
[hosts]
router = {{}}
origin = {{ real = true, command = {command} }}
[hosts.mobile]
forward = false
transport = "quic"
app = {{ http-client = {{ http = "3", server = "origin", start = "4s", pages = [["/one"]] }} }}
[links]
first = {{ bearer = "wireline", between = ["mobile", "router"], rate = "2Mbit/s", delay = "20ms" }}
second = {{ bearer = "wireline", between = ["mobile", "router"], rate = "2Mbit/s", delay = "30ms" }}
wan = {{ bearer = "wireline", between = ["router", "origin"], rate = "100Mbit/s", delay = "1ms" }}
[run]
record = ["pcapng", "qlog"]
[[timeline]]
at = "6s"
target = "first"
set = {{ state = "down" }}
"""


def moving(server: Server, octets: int) -> list[str]:
    """What becomes of `one`, of so many octets: how long it took, or what is wrong.

    And does the server ask at the new address (PATH_CHALLENGE), mark its packets (ECN; RFC 9000, 13.4), count the marks
    of the client's?
    """
    with tempfile.TemporaryDirectory() as place:
        file, out = Path(place) / "moving.toml", Path(place) / "run"
        file.write_text(_SCENARIO.format(command=json.dumps(server.command(ADDRESS, "443"))))
        command = [*AIRLOOM, "emulate", str(file), "--out", str(out), "--", "sleep", "14"]
        env = server.env or dict(os.environ)
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            return [f"FAILED: {done.stderr.strip().splitlines()[-1:]}"]
        found = json.loads((out / "summary.json").read_text())
        (events,) = (file.read_text() for file in out.glob("*_client.sqlog"))
        asks = '"path_challenge"' in events
        ecn = [_has(out / "trace.pcapng", what) for what in ("udp && ip.dsfield.ecn == 2", "quic.frame_type == 3")]
    # In two seconds of 2 Mbit/s; where nobody listens the machine itself says so.
    if found["first.downlink.bytes"] < octets / 10:
        return ["FAILED: it says nothing"]
    if not server.moves and found["second.downlink.packets"] == 0:
        return ["does not go along", "no", *("yes" if one else "no" for one in ecn)]
    if (found["mobile.bytes"], found["mobile.connections"]) != (octets, 1):
        return [f"FAILED: {found['mobile.bytes']} octets over {found['mobile.connections']} connections"]
    return [f"{found['page_load_s']:.1f} s", *("yes" if one else "no" for one in (asks, *ecn))]


def _has(capture: Path, what: str) -> bool:
    """Does the server send packets that tshark's filter takes?"""
    command = ["tshark", "-r", str(capture), "-Y", f"ip.src == {ADDRESS} && {what}"]
    return bool(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
