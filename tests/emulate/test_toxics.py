"""toxiproxy's calls over links: its clients, and what comes of each toxic."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from airloom.toxics.proxies import Proxies
from airloom.toxics.socket_face import SocketFace
from airloom.toxics.toxic import Refused
from tests.conftest import needs_laboratory

pytestmark = pytest.mark.emulate


#: What a client is told of a connection that was cut.
BROKEN = (OSError, HTTPException)


class _Hello(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        octets = b"x" * int(self.path[1:] or 5)
        self.send_response(200)
        self.send_header("Content-Length", str(len(octets)))
        self.end_headers()
        self.wfile.write(octets)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def upstream() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Hello)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def proxies() -> Iterator[Proxies]:
    needs_laboratory()
    made = Proxies()
    yield made
    made.close()


def fetch(listen: str, octets: int = 5) -> float:
    """How long it takes."""
    start = time.monotonic()
    with urllib.request.urlopen(f"http://{listen}/{octets}", timeout=20) as answer:
        assert len(answer.read()) == octets
    return time.monotonic() - start


def ended(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def toxic(kind: str, stream: str = "downstream", toxicity: float = 1.0, **attributes: float) -> dict[str, Any]:
    return {"type": kind, "stream": stream, "toxicity": toxicity, "attributes": attributes}


def test_delays_rates_and_outages_are_those_of_the_link(proxies: Proxies, upstream: str) -> None:
    proxy = proxies.create({"name": "web", "upstream": upstream})
    assert fetch(proxy.listen) < 5
    proxy.link.add(toxic("latency", latency=300))
    # The opening of the connection over the link, and the answer.
    assert fetch(proxy.listen) >= 0.6
    proxy.link.update("latency_downstream", {"attributes": {"latency": 100}})
    assert fetch(proxy.listen) >= 0.2
    proxy.link.remove("latency_downstream")
    proxy.link.add(toxic("bandwidth", rate=50))
    assert fetch(proxy.listen, 50_000) >= 1.0
    proxy.link.clear()
    proxy.link.add(toxic("outage"))
    threading.Timer(0.5, proxy.link.clear).start()
    assert fetch(proxy.listen) >= 0.5
    at = [change["set"] for change in proxy.link._control.changes]
    assert {"state": "down"} in at
    assert any("rate" in change for change in at)


def test_a_proxy_that_is_said_again_by_a_name_of_its_address_stays(proxies: Proxies, upstream: str) -> None:
    proxy = proxies.create({"name": "web", "listen": "localhost:0", "upstream": upstream})
    proxy.link.add(toxic("latency", latency=1))
    again = {"name": "web", "listen": f"localhost:{proxy.listen.rpartition(':')[2]}", "upstream": upstream}
    assert proxies.populate([again]) == [proxy]
    assert proxy.document()["toxics"]


def test_lost_packets_are_sent_again(proxies: Proxies, upstream: str) -> None:
    proxy = proxies.create({"name": "web", "upstream": upstream})
    proxy.link.add(toxic("packet_loss", loss=0.1))
    fetch(proxy.listen, 1_000_000)
    link = proxy._link
    proxies.delete("web")
    assert link.summary["lost"] > 0


def test_what_is_done_to_connections_is_done_to_their_octets(proxies: Proxies, upstream: str) -> None:
    proxy = proxies.create({"name": "web", "upstream": upstream})
    proxy.link.add(toxic("limit_data", bytes=1000))
    with pytest.raises(BROKEN):
        fetch(proxy.listen, 5000)
    proxy.link.clear()
    proxy.link.add(toxic("slicer", average_size=1000, delay=20_000))
    assert fetch(proxy.listen, 10_000) >= 0.2
    proxy.link.clear()
    proxy.link.add(toxic("timeout", timeout=200))
    place = ("127.0.0.1", int(proxy.listen.rpartition(":")[2]))
    with socket.create_connection(place, timeout=20) as connection:
        start = time.monotonic()
        connection.sendall(b"GET /5 HTTP/1.1\r\n\r\n")
        assert ended(connection)
        assert time.monotonic() - start >= 0.2
    proxy.link.clear()
    proxy.link.add(toxic("reset_peer", timeout=100))
    with socket.create_connection(place, timeout=20) as connection, pytest.raises(ConnectionResetError):
        connection.recv(1)
    proxy.link.clear()
    proxy.link.add(toxic("slow_close", delay=300))
    with socket.create_connection(place, timeout=20) as connection:
        connection.sendall(b"GET /5 HTTP/1.0\r\n\r\n")
        start = time.monotonic()
        while connection.recv(1000):
            pass
        assert time.monotonic() - start >= 0.3
    proxy.link.clear()
    assert fetch(proxy.listen) < 5


def test_toxicity_is_the_share_of_connections(proxies: Proxies, upstream: str) -> None:
    proxy = proxies.create({"name": "web", "upstream": upstream})
    proxy.link.add(toxic("limit_data", toxicity=0.5, bytes=1))
    broken = 0
    for _ in range(20):
        try:
            fetch(proxy.listen)
        except BROKEN:
            broken += 1
    assert 0 < broken < 20
    with pytest.raises(Refused, match="all connections share"):
        proxy.link.add(toxic("latency", toxicity=0.5, latency=5))


def test_a_proxy_listens_on_loopback_only_and_ends_with_its_connections(proxies: Proxies, upstream: str) -> None:
    with pytest.raises(Refused, match="not loopback"):
        proxies.create({"name": "all", "listen": "0.0.0.0:0", "upstream": upstream})
    proxy = proxies.create({"name": "web", "upstream": upstream})
    host, _, port = proxy.listen.rpartition(":")
    with socket.create_connection((host, int(port))) as connection:
        proxies.update("web", {"enabled": False})
        connection.settimeout(20)
        assert ended(connection)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), timeout=5)
    proxies.reset()
    assert fetch(proxy.listen) < 5


def ask(path: Path, *requests: object) -> list[dict[str, Any]]:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(20)
        connection.connect(str(path))
        with connection.makefile("rwb") as lines:
            found = []
            for request in requests:
                lines.write((request if isinstance(request, bytes) else json.dumps(request).encode()) + b"\n")
                lines.flush()
                found.append(json.loads(lines.readline()))
            return found


def test_the_socket_is_its_owners_and_speaks_the_same_verbs(proxies: Proxies, upstream: str, tmp_path: Path) -> None:
    path = tmp_path / "control"
    face = SocketFace(proxies, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    made, added, changed, removed, listed, gone, *wrong = ask(
        path,
        {"verb": "create", "proxy": {"name": "db", "upstream": upstream}},
        {"verb": "create", "proxy": "db", "toxic": toxic("latency", latency=20)},
        {"verb": "update", "proxy": "db", "toxic": {"name": "latency_downstream", "attributes": {"jitter": 5}}},
        {"verb": "delete", "proxy": "db", "toxic": "latency_downstream"},
        {"verb": "list"},
        {"verb": "delete", "proxy": "db"},
        {"verb": "list", "proxy": "db"},
        {"verb": "sing"},
        b"{",
        b"[" * 5000,
        [],
    )
    assert made["result"]["enabled"]
    assert added["result"]["attributes"] == {"latency": 20, "jitter": 0}
    assert changed["result"]["attributes"] == {"latency": 20, "jitter": 5}
    assert removed == gone == {"result": None}
    assert listed["result"]["db"]["toxics"] == []
    assert [each["status"] for each in wrong] == [404, 404, 400, 400, 400]
    face.close()
    assert not path.exists()


def test_the_socket_switches_faults_that_the_link_has(upstream: str, tmp_path: Path) -> None:
    needs_laboratory()
    (tmp_path / "bad.toml").write_text(
        'path = ["a", "wire", "b"]\nhosts = { a = { real = true }, b = { real = true } }\n'
        'links = { wire = { bearer = "wireline", faults = { drop = { rate = 1 } } } }\n'
    )
    proxies = Proxies(str(tmp_path / "bad.toml"))
    face = SocketFace(proxies, tmp_path / "control")
    db = {"verb": "switch", "proxy": "db"}
    made, off, wrong, bare = ask(
        tmp_path / "control",
        {"verb": "create", "proxy": {"name": "db", "upstream": upstream}},
        {**db, "faults": {"drop": "off"}},
        {**db, "faults": {"nat": "off"}},
        db,
    )
    assert fetch(made["result"]["listen"]) < 10
    assert off == {"result": {"drop": False}}
    assert (wrong["status"], bare["status"]) == (400, 400)
    assert "which could be switched" in wrong["error"]
    (on,) = ask(tmp_path / "control", {**db, "faults": {"drop": "on"}})
    assert on == {"result": {"drop": True}}
    with pytest.raises(BROKEN):
        urllib.request.urlopen(f"http://{made['result']['listen']}/5", timeout=2)
    face.close()
    proxies.close()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """`airloom serve toxiproxy` in a process of its own."""
    needs_laboratory()
    words = [sys.executable, "-m", "airloom", "serve", "toxiproxy", "--listen", "127.0.0.1:0"]
    with subprocess.Popen([*words, "--socket", str(tmp_path / "s")], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        yield process.stdout.readline().split("http://")[1].strip().rstrip("/")
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    assert not (tmp_path / "s").exists()


def call(method: str, address: str, path: str, body: object = None, **headers: str) -> tuple[int, Any]:
    octets = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(f"http://{address}{path}", octets, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            said = answer.read()
            return answer.status, json.loads(said) if said else None
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def test_http_answers_as_toxiproxy_does(served: str, upstream: str) -> None:
    assert call("GET", served, "/version")[1]["version"].startswith("2.9.0")
    status, proxy = call("POST", served, "/proxies", {"name": "web", "listen": "localhost:0", "upstream": upstream})
    assert (status, proxy["enabled"], proxy["toxics"]) == (201, True, [])
    assert call("POST", served, "/proxies", {"name": "web", "upstream": upstream})[0] == 409
    assert call("POST", served, "/proxies", {"name": "web"})[1] == {
        "error": "missing required field: upstream",
        "status": 400,
    }
    assert call("GET", served, "/proxies")[1].keys() == {"web"}
    toxics = "/proxies/web/toxics"
    assert call("POST", served, toxics, {"type": "latency", "attributes": {"latency": 10}}) == (
        200,
        {
            "name": "latency_downstream",
            "type": "latency",
            "stream": "downstream",
            "toxicity": 1.0,
            "attributes": {"latency": 10, "jitter": 0},
        },
    )
    assert call("POST", served, toxics, {"type": "latency"})[0] == 409
    assert call("POST", served, toxics, {"type": "gremlin"})[0] == 400
    assert call("POST", served, toxics, {"type": "latency", "stream": "sideways"})[0] == 400
    for method in ("POST", "PATCH"):
        changed = call(method, served, f"{toxics}/latency_downstream", {"attributes": {"jitter": 3}})
        assert changed[1]["attributes"] == {"latency": 10, "jitter": 3}
        assert call(method, served, "/proxies/web", {"enabled": method == "PATCH"})[1]["enabled"] is (method == "PATCH")
    assert len(call("GET", served, toxics)[1]) == 1
    assert call("POST", served, "/reset")[0] == 204
    assert call("GET", served, toxics) == (200, [])
    more = [{"name": name, "listen": "127.0.0.1:0", "upstream": upstream, "enabled": True} for name in ("a", "b")]
    status, made = call("POST", served, "/populate", more)
    assert (status, [each["name"] for each in made["proxies"]]) == (201, ["a", "b"])
    assert call("DELETE", served, "/proxies/a")[0] == 204
    assert call("GET", served, "/proxies/a") == (404, {"error": "proxy not found", "status": 404})


def test_pages_of_other_places_and_bad_requests_are_refused(served: str) -> None:
    assert call("POST", served, "/reset", Origin="http://evil.example")[0] == 403
    assert call("GET", served, "/proxies", Host="evil.example")[0] == 403
    for body in (b"{", b"[" * 100_000, b"7", b'{"name": 3, "upstream": "a:1"}', b'{"name": "a/b", "upstream": "a:1"}'):
        assert call("POST", served, "/proxies", body)[0] == 400
    assert call("POST", served, "/proxies", {"name": "a", "upstream": "nowhere"})[0] == 400
    assert call("POST", served, "/proxies", {"name": "a", "listen": "a..b:80", "upstream": "a:1"})[0] == 400
    with pytest.raises(ValueError, match="Expecting value"):  # no call of toxiproxy, and no JSON
        call("PUT", served, "/proxies", {})


def test_links_of_an_emulation_take_toxics_over_a_socket(tmp_path: Path) -> None:
    needs_laboratory()
    script = (
        "import json, os, socket, subprocess, sys\n"
        "def rtt():\n"
        "    said = subprocess.run(['ping', '-nc', '2', '10.77.0.1'], capture_output=True, text=True).stdout\n"
        "    return float(said.rsplit('= ', 1)[1].split('/')[0])\n"
        "before = rtt()\n"
        "with socket.socket(socket.AF_UNIX) as s:\n"
        "    s.connect(os.environ['AIRLOOM_CONTROL'])\n"
        "    s.sendall(json.dumps({'verb': 'create', 'proxy': 'link', 'toxic':\n"
        "        {'type': 'latency', 'attributes': {'latency': 150}}}).encode() + b'\\n')\n"
        "    print(s.recv(1000).decode(), end='')\n"
        "print(rtt() - before > 140, os.environ['AIRLOOM_LINK'], os.environ['AIRLOOM_SEED'])\n"
    )
    words = ["-m", "airloom", "emulate", "wireline", "--seed", "5", "--control-socket", str(tmp_path / "s")]
    done = subprocess.run(
        [sys.executable, *words, "--", sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ},
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "True wireline 5"
    assert not (tmp_path / "s").exists()
