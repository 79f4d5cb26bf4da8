"""A link in user space: real clients and servers at its ends, and no namespace anywhere."""

import hashlib
import http.server
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airloom.errors import UsageError
from airloom.user_space import Forward, Forwarding
from tests.conftest import needs

pytestmark = pytest.mark.emulate

ANY = "127.0.0.1:0"
OCTETS = random.Random(1).randbytes(300_000)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """A server of one file; where it is."""
    (tmp_path / "file").write_bytes(OCTETS)

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *given: object) -> None:
            super().__init__(*given, directory=str(tmp_path))  # type: ignore[arg-type]

        def log_message(self, *_: object) -> None: ...

        def do_PUT(self) -> None:
            digest = hashlib.sha256(self.rfile.read(int(self.headers["Content-Length"]))).hexdigest().encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(digest)))
            self.end_headers()
            self.wfile.write(digest)

    class Server(http.server.ThreadingHTTPServer):
        # All that come at once.
        request_queue_size = 64

    with Server(("127.0.0.1", 0), Handler) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{made.server_port}"
        made.shutdown()


def _curl(*words: str) -> list[str]:
    form = "%{size_download} %{time_total}"
    command = [needs("curl"), "-sS", "-m", "60", "-w", form, "-o", "got", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def test_a_file_comes_and_goes_whole_and_as_slowly_as_the_link_is(server: str, tmp_path: Path) -> None:
    os.chdir(tmp_path)
    with Forwarding("wireline", [Forward("tcp", ANY, server)], overrides={"delay": "40ms", "rate": "4Mbit/s"}) as link:
        size, seconds = _curl(f"http://{link.addresses[0]}/file")
        assert (int(size), Path("got").read_bytes() == OCTETS) == (len(OCTETS), True)
        # Two round trips of 80 ms, and 300 kB at 4 Mbit/s.
        assert 0.7 < float(seconds) < 5
        _curl("-T", "file", f"http://{link.addresses[0]}/")
        assert Path("got").read_text() == hashlib.sha256(OCTETS).hexdigest()
    assert link.summary["packets"] > 2 * len(OCTETS) / 1500


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_localhost_is_where_somebody_serves(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    look_up = socket.getaddrinfo

    def six_first(host: str, *given: Any, **named: Any) -> list[Any]:
        names = ("::1", "127.0.0.1") if host == "localhost" else (host,)
        return [found for name in names for found in look_up(name, *given, **named)]

    monkeypatch.setattr(socket, "getaddrinfo", six_first)
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as listening:
        try:
            listening.bind((address, 0))
        except OSError as error:
            pytest.skip(f"this machine has no {address}: {error.strerror}")
        listening.listen()

        def echo() -> None:
            # Whoever looks if somebody serves says nothing.
            octets = b""
            while not octets:
                with listening.accept()[0] as client:
                    octets = client.recv(100)
                    client.sendall(octets)

        threading.Thread(target=echo, daemon=True).start()
        target = f"localhost:{listening.getsockname()[1]}"
        with Forwarding("wireline", [Forward("tcp", ANY, target)]) as link:
            host, port = link.addresses[0].split(":")
            with socket.create_connection((host, int(port)), timeout=30) as client:
                client.sendall(b"hello")
                assert client.recv(100) == b"hello"


def test_losses_of_the_link_cost_time_and_no_octet(server: str, tmp_path: Path) -> None:
    os.chdir(tmp_path)
    lossy = {"delay": "10ms", "rate": "10Mbit/s", "loss": "0.03"}
    with Forwarding("wireline", [Forward("tcp", ANY, server)], overrides=lossy, seed=3) as link:
        _curl(f"http://{link.addresses[0]}/file")
        assert Path("got").read_bytes() == OCTETS
    assert link.summary["lost"] > 0


def test_an_outage_holds_everything_up(server: str, tmp_path: Path) -> None:
    os.chdir(tmp_path)
    with Forwarding("wireline", [Forward("tcp", ANY, server)], overrides={"delay": "10ms"}) as link:
        link.control.change("link", state="down")
        timer = threading.Timer(1.0, link.control.change, ["link"], {"state": "up"})
        timer.start()
        _, seconds = _curl(f"http://{link.addresses[0]}/file")
        timer.join()
    assert float(seconds) > 0.9


def test_datagrams_go_there_and_back_to_whoever_sent_them() -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as echo:
        echo.bind(("127.0.0.1", 0))

        def answer() -> None:
            while (said := echo.recvfrom(2000))[0] != b"end":
                echo.sendto(said[0].upper(), said[1])

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        target = "{}:{}".format(*echo.getsockname())
        with Forwarding("wireline", [Forward("udp", ANY, target)], overrides={"delay": "25ms"}) as link:
            host, port = link.addresses[0].split(":")
            for number in range(3):
                with socket.socket(type=socket.SOCK_DGRAM) as client:
                    client.settimeout(30)
                    start = time.monotonic()
                    client.sendto(f"client {number}".encode(), (host, int(port)))
                    assert client.recv(100) == f"CLIENT {number}".encode()
                    assert time.monotonic() - start >= 0.05
        echo.sendto(b"end", echo.getsockname())
        thread.join()


def test_of_more_clients_than_there_may_be_the_silent_ones_are_forgotten_and_none_hears_what_is_anothers() -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as target, socket.socket(type=socket.SOCK_DGRAM) as steady:
        target.bind(("127.0.0.1", 0))
        at = "{}:{}".format(*target.getsockname())
        with Forwarding("wireline", [Forward("udp", ANY, at)], overrides={"delay": "1ms"}) as link:
            host, port = link.addresses[0].split(":")
            for one in (target, steady):
                one.settimeout(30)

            def ask(client: socket.socket, word: bytes) -> tuple[str, int]:
                client.sendto(word, (host, int(port)))
                said, seen = target.recvfrom(100)
                assert said == word
                target.sendto(word.upper(), seen)
                assert client.recv(100) == word.upper()
                return seen[0], seen[1]

            first = ask(steady, b"steady")
            others = set()
            for number in range(300):
                with socket.socket(type=socket.SOCK_DGRAM) as client:
                    client.settimeout(30)
                    others.add(ask(client, f"client {number}".encode()))
                assert ask(steady, b"still there") == first
            assert first not in others
            # Sockets of those that are forgotten are closed: a port may come again.
            assert len(others) > 256


def test_who_finds_nobody_at_the_target_is_reset() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        nobody = "{}:{}".format(*unused.getsockname())
        with Forwarding("wireline", [Forward("tcp", ANY, nobody)]) as link:
            host, port = link.addresses[0].split(":")
            with socket.create_connection((host, int(port)), timeout=30) as client, pytest.raises(ConnectionResetError):
                client.recv(1)


def test_many_connections_at_once(server: str) -> None:
    done: list[bytes] = []
    with Forwarding("wireline", [Forward("tcp", ANY, server)], overrides={"delay": "5ms"}) as link:
        host, port = link.addresses[0].split(":")

        def fetch() -> None:
            with socket.create_connection((host, int(port)), timeout=60) as client:
                client.sendall(b"GET /file HTTP/1.0\r\n\r\n")
                client.shutdown(socket.SHUT_WR)
                octets = b""
                while piece := client.recv(1 << 16):
                    octets += piece
            done.append(octets.partition(b"\r\n\r\n")[2])

        threads = [threading.Thread(target=fetch) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert done == [OCTETS] * 20


@pytest.mark.parametrize("target", ["nowhere", "127.0.0.1:99999", ":80", "127.0.0.1:x"])
def test_a_target_that_is_none_is_refused(target: str) -> None:
    with pytest.raises(UsageError, match=r"HOST:PORT|--tcp"):
        Forwarding("wireline", [Forward("tcp", ANY, target)])


def test_where_namespaces_are_forbidden_it_works_and_emulate_names_it(server: str, tmp_path: Path) -> None:
    os.chdir(tmp_path)
    # In a user namespace that may make no further ones, and with no rights over the network: as in many containers.
    forbid = 'echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set -all --inh-caps -all "$@"'
    inside = ["unshare", "--user", "--map-root-user", "sh", "-c", forbid, "sh"]
    airloom = [*inside, sys.executable, "-m", "airloom"]
    refused = subprocess.run(
        [*airloom, "emulate", "wireline", "--", "true"], capture_output=True, text=True, check=False
    )
    assert refused.returncode == 3, refused.stderr
    assert "airloom serve link" in refused.stderr
    words = [*airloom, "serve", "link", "wireline", "--set", "delay=40ms", "--tcp", f"{ANY}={server}"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        said = process.stdout.readline()
        assert said.startswith("tcp 127.0.0.1:"), process.stderr and process.stderr.read()
        size, seconds = _curl(f"http://{said.split()[1]}/file")
        assert (int(size), float(seconds) > 0.16) == (len(OCTETS), True)
        process.terminate()
        out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert "packets" in out
