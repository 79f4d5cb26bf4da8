"""Simulated hosts speak QUIC with real ones: TLS, and HTTP/3 above it."""

import json
import os
import sys
from pathlib import Path

import pytest

from airloom.validate.h3_both_clocks import make_certificate
from tests.cli.shell import Done, airloom
from tests.conftest import needs_laboratory
from tests.test_http3 import PEER
from tests.test_qlog import records
from tests.wireshark import fields

pytestmark = pytest.mark.emulate

WIRE = """\
title = "QUIC between a simulated and a real host"
path = ["mobile", "wire", "origin"]
[links]
wire = { bearer = "wireline", rate = "2Mbit/s", delay = "50ms" }
[run]
record = ["pcapng", "qlog"]
"""

#: A server that is simulated, at 10.77.0.1 as everywhere.
SERVER = (
    WIRE
    + """\
[hosts]
mobile = { real = true }
origin = { transport = "quic", app = { http-server = { http = "3" } } }
"""
)

#: Of another stack: libcurl by ngtcp2.
CURL = """\
import sys
from curl_cffi import CurlHttpVersion, requests
answer = requests.get(sys.argv[1], http_version=CurlHttpVersion.V3ONLY, verify=False)
print(answer.status_code, len(answer.content))
"""


#: A simulated client that loses the first of its two links on the way; the server is real.
MOVING = """\
title = "A client that moves, and a real server"
[hosts]
router = {}
origin = { real = true, command = %s }
[hosts.mobile]
forward = false
transport = "quic"
app = { http-client = { http = "3", server = "origin", start = "3s", pages = [["/page"]] } }
[links]
first = { bearer = "wireline", between = ["mobile", "router"], rate = "2Mbit/s", delay = "20ms" }
second = { bearer = "wireline", between = ["mobile", "router"], rate = "2Mbit/s", delay = "30ms" }
wan = { bearer = "wireline", between = ["router", "origin"], rate = "100Mbit/s", delay = "1ms" }
[run]
record = ["qlog"]
[[timeline]]
at = "4s"
target = "first"
set = { state = "down" }
"""


def emulate(folder: Path, scenario: str, *command: str) -> Done:
    (folder / "quic.toml").write_text(scenario)
    done = airloom("emulate", folder / "quic.toml", "--out", folder / "run", "--", *command)
    assert done.code == 0, done.out + done.err
    return done


def test_real_clients_of_two_stacks_load_from_a_simulated_server(tmp_path: Path) -> None:
    needs_laboratory()
    get = f"{sys.executable} -P -m airloom h3 get https://10.77.0.1/20kB --insecure -o {tmp_path}/file"
    other = f"{sys.executable} -c '{CURL}' https://10.77.0.1/30kB"
    assert "200 30000" in emulate(tmp_path, SERVER, "sh", "-c", f"{get} && {other}").out
    assert len((tmp_path / "file").read_bytes()) == 20_000
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["origin.requests"] == summary["origin.connections_h3"] == 2
    # The secrets are in the capture: others see heads of requests (from 10.77.0.2) and of answers.
    heads = fields(tmp_path / "run" / "trace.pcapng", "ip.src", shown="http3.frame_type == 1")
    assert sorted(heads) == [["10.77.0.1"], ["10.77.0.1"], ["10.77.0.2"], ["10.77.0.2"]]
    # Both count the marks of its packets (ECN; RFC 9000, 13.4.1): acknowledgements of type 3.
    counting = "ip.src == 10.77.0.2 && udp.dstport == 443 && quic.frame_type == 3"
    assert len({port for (port,) in fields(tmp_path / "run" / "trace.pcapng", "udp.srcport", shown=counting)}) == 2


def test_a_simulated_client_loads_from_a_real_server(tmp_path: Path) -> None:
    needs_laboratory()
    (tmp_path / "www").mkdir()
    (tmp_path / "www" / "page").write_bytes(os.urandom(25_000))
    serve = [sys.executable, "-P", "-m", "airloom", "serve", "h3", str(tmp_path / "www")]
    serve += ["--listen", "10.77.0.1:443", "--allow-client", "0.0.0.0/0"]
    hosts = f"""\
[hosts]
origin = {{ real = true, command = {json.dumps(serve)} }}
[hosts.mobile]
transport = "quic"
app = {{ http-client = {{ http = "3", start = "3s", pages = [["/page"]] }} }}
"""
    emulate(tmp_path, WIRE + hosts, "sleep", "6")
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["mobile.bytes"] == 25_000


def test_a_server_of_another_stack_goes_along_with_a_client_that_moves(tmp_path: Path) -> None:
    needs_laboratory()
    make_certificate(tmp_path)
    (tmp_path / "page").write_bytes(os.urandom(500_000))
    serve = [sys.executable, str(PEER), "serve", str(tmp_path), str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")]
    emulate(tmp_path, MOVING % json.dumps([*serve, "10.77.2.1", "443"]), "sleep", "9")
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    # All of it over one connection, some by either link.
    assert (summary["mobile.bytes"], summary["pages"], summary["mobile.connections"]) == (500_000, 1, 1)
    assert min(summary["first.downlink.bytes"], summary["second.downlink.bytes"]) > 100_000
    # aioquic asks at the new address whether the client is there (PATH_CHALLENGE), which says so (PATH_RESPONSE).
    (events,) = (records(file)[1:] for file in (tmp_path / "run").glob("*_client.sqlog"))
    told = [(event["time"], event["name"], frame) for event in events for frame in event["data"].get("frames", [])]
    asked = [
        (time, frame) for time, name, frame in told if frame["frame_type"] == "path_challenge" and "received" in name
    ]
    answers = [time for time, name, frame in told if frame["frame_type"] == "path_response" and "sent" in name]
    assert len(asked) >= 1
    assert 4_000 < asked[0][0] <= answers[0]


def test_tls_is_for_real_peers(tmp_path: Path) -> None:
    (tmp_path / "quic.toml").write_text(SERVER.replace('"quic"', '{ quic = { session = "tls" } }'))
    done = airloom("run", tmp_path / "quic.toml")
    assert done.code == 2
    assert "tls is what real hosts speak, and none of this run is one" in done.err
