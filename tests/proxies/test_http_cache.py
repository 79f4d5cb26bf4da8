"""`airloom serve http-cache` between real programs, and between programs that keep to no rule."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.cli.shell import airloom
from tests.conftest import needs, until
from tests.proxies.running import Proxy, Server, connect, receive, reset, serving, stop

Answer = Callable[[socket.socket, str, bytes], None]


def heads(connection: socket.socket) -> Iterator[tuple[str, bytes]]:
    """Path and head of each request on a connection, whose bodies are thrown away."""
    said = b""
    while True:
        while b"\r\n\r\n" not in said:
            got = connection.recv(65_536)
            if not got:
                return
            said += got
        head, _, said = said.partition(b"\r\n\r\n")
        if length := re.search(rb"(?i)content-length: *(\d+)", head):
            while len(said) < int(length[1]):
                said += connection.recv(65_536)
            said = said[int(length[1]) :]
        yield head.split()[1].decode(), head


def whole(body: bytes, *fields: str) -> bytes:
    lines = ["HTTP/1.1 200 OK", f"Content-Length: {len(body)}", *fields, "", ""]
    return "\r\n".join(lines).encode() + body


@contextmanager
def between(answer: Answer, *words: str) -> Iterator[tuple[Proxy, Server]]:
    """A proxy, and a server that answers each request by `answer(connection, path, head)`."""

    def serve(connection: socket.socket) -> None:
        for path, head in heads(connection):
            answer(connection, path, head)

    with Server(serve) as origin, serving("http-cache", "--allow-origin", "127.0.0.1", "--no-log", *words) as proxy:
        yield proxy, origin


def ask(proxy: Proxy, origin: Server, path: str, *fields: str) -> bytes:
    """What a client hears that asks once and closes."""
    lines = [f"GET http://127.0.0.1:{origin.port}{path} HTTP/1.1", f"Host: 127.0.0.1:{origin.port}", *fields]
    with connect(proxy.address) as client:
        client.sendall("\r\n".join([*lines, "Connection: close", "", ""]).encode())
        return receive(client)


def numbered(connection: socket.socket, path: str, head: bytes) -> None:
    """Another body each time, fresh for as long as the path says."""
    numbered.count = getattr(numbered, "count", 0) + 1  # type: ignore[attr-defined]
    body = f"{numbered.count}".encode()  # type: ignore[attr-defined]
    if b'If-None-Match: "same"' in head:
        connection.sendall(b'HTTP/1.1 304 Not Modified\r\nETag: "same"\r\nCache-Control: max-age=60\r\n\r\n')
    else:
        connection.sendall(whole(body, f"Cache-Control: max-age={path.lstrip('/')}", 'ETag: "same"'))


def test_curl_gets_fresh_answers_from_the_store_and_old_ones_after_a_check() -> None:
    curl = needs("curl")
    with between(numbered) as (proxy, origin):

        def get(path: str, *more: str) -> str:
            command = [curl, "-sSi", "-x", f"http://{proxy.host}:{proxy.port}", *more]
            url = f"http://127.0.0.1:{origin.port}{path}"
            return subprocess.run([*command, url], capture_output=True, text=True, check=True, timeout=60).stdout

        began = time.monotonic()
        first, second = get("/60"), get("/60")
        took = time.monotonic() - began
        assert first.rsplit("\n", 1)[1] == second.rsplit("\n", 1)[1]
        (age,) = re.findall(r"^Age: (\d+)\r?$", second, re.MULTILINE)
        assert int(age) <= took + 1
        assert "Via: 1.1 airloom" in second
        assert "Date: " in second
        stale = get("/0"), get("/0")
        assert stale[0].rsplit("\n", 1)[1] == stale[1].rsplit("\n", 1)[1]
        assert get("/60", "-H", "Cache-Control: no-cache").startswith("HTTP/1.1 200")
        assert get("/60", "-H", 'If-None-Match: "same"').startswith("HTTP/1.1 304")
        assert proxy.number('airloom_http_cache_answers_total{how="hit"}') >= 2
        assert proxy.number('airloom_http_cache_answers_total{how="validated"}') >= 2
        assert origin.connections == 1, "one connection for all of it"


def test_curl_goes_through_a_tunnel() -> None:
    curl = needs("curl")

    def serve(connection: socket.socket, path: str, head: bytes) -> None:
        connection.sendall(whole(b"through " + path.encode()))

    with between(serve) as (proxy, origin):
        url = f"http://127.0.0.1:{origin.port}/x"
        command = [curl, "-sSv", "-p", "-x", f"http://{proxy.host}:{proxy.port}", url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode != 0
        assert "403" in done.stderr

    def serve_all(connection: socket.socket) -> None:
        for path, head in heads(connection):
            serve(connection, path, head)

    with Server(serve_all) as origin:
        words = ("--allow-origin", "127.0.0.1", "--no-log", "--set", f"connect_ports=[{origin.port}]")
        with serving("http-cache", *words) as proxy:
            command = [curl, "-sS", "-p", "-x", f"http://{proxy.host}:{proxy.port}"]
            url = f"http://127.0.0.1:{origin.port}/x"
            done = subprocess.run([*command, url], capture_output=True, text=True, timeout=60, check=False)
            assert done.stdout == "through /x", done
            assert proxy.number("airloom_http_cache_tunnels_total") == 1


@pytest.mark.parametrize(
    ("request_head", "status"),
    [
        ("POST {url} HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        ("POST {url} HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 400),
        ("GET {url} HTTP/1.1\r\nHost: a\r\nX: y\r\n z: 1\r\n\r\n", 400),
        ("GET {url} HTTP/1.1\r\nHost: a\nX: y\r\n\r\n", 400),
        ("GET {url} HTTP/1.1\r\nHost: a\r\nX: " + "y" * 50_000 + "\r\n\r\n", 431),
        ("GET {url}" + "y" * 50_000 + " HTTP/1.1\r\nHost: a\r\n\r\n", 414),
        ("GET {url} HTTP/1.1\r\n\r\n", 400),
        ("GET http://169.254.169.254/latest/meta-data HTTP/1.1\r\nHost: a\r\n\r\n", 403),
        ("GET http://[::ffff:10.0.0.1]/ HTTP/1.1\r\nHost: a\r\n\r\n", 403),
        ("CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: a\r\n\r\n", 403),
    ],
)
def test_requests_that_smuggle_or_lead_inside_reach_nobody(
    wild: tuple[Proxy, Server], request_head: str, status: int
) -> None:
    proxy, origin = wild
    before = origin.connections
    with connect(proxy.address) as client:
        client.sendall(request_head.replace("{url}", f"http://127.0.0.1:{origin.port}/").encode())
        client.shutdown(socket.SHUT_WR)
        heard = receive(client)
    assert heard.startswith(f"HTTP/1.1 {status} ".encode()), heard
    assert heard.count(b"HTTP/1.1 ") == 1
    # What would have to be said to the proxy for it to be allowed.
    assert (status == 403) == (b"(--allow-origin " in heard or b"(--set connect_ports=" in heard), heard
    assert origin.connections == before


def test_the_log_says_when_and_why() -> None:
    with serving("http-cache") as proxy:
        with connect(proxy.address) as client:
            client.sendall(b"GET http://127.0.0.1:9/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            assert receive(client).startswith(b"HTTP/1.1 403 ")
        assert proxy.process.stderr
        line = json.loads(next(said for said in proxy.process.stderr if said.startswith("{")))
    assert line["why"] == "the address of 127.0.0.1 is private, loopback or the like (--allow-origin 127.0.0.1)"
    assert (datetime.now(UTC) - datetime.fromisoformat(line["time"])).total_seconds() < 600


@pytest.fixture(scope="module")
def wild() -> Iterator[tuple[Proxy, Server]]:
    settings = ["server_timeout=8s", "head_timeout=5s", "stall_timeout=5s", "server_connections=100"]
    words = [word for setting in settings for word in ("--set", setting)]
    with between(lie, *words) as found:
        yield found


LARGE = whole(bytes(20_000_000), "Cache-Control: max-age=60")


def lie(connection: socket.socket, path: str, head: bytes) -> None:
    """Everything a server can do wrong."""
    match path:
        case "/two-lengths":
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello")
        case "/no-http":
            connection.sendall(b"220 this is a mail server\r\n\r\n")
        case "/silent":
            connection.recv(1)
        case "/reset":
            reset(connection)
        case "/reset-in-the-middle":
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\nCache-Control: max-age=60\r\n\r\nonly this")
            threading.Event().wait(0.2)
            reset(connection)
        case "/more":
            connection.sendall(whole(b"mine") + whole(b"somebody else's"))
        case "/endless-head":
            with suppress(OSError):
                while True:
                    connection.sendall(b"X: y\r\n" * 1000 if path else b"")
        case "/large":
            connection.sendall(LARGE)
        case _:
            connection.sendall(whole(b"fine"))


@pytest.mark.parametrize(
    ("path", "status"),
    [("two-lengths", 502), ("no-http", 502), ("silent", 504), ("reset", 502), ("endless-head", 502), ("fine", 200)],
)
def test_a_server_that_lies_gives_the_client_a_status(wild: tuple[Proxy, Server], path: str, status: int) -> None:
    assert ask(*wild, f"/{path}").startswith(f"HTTP/1.1 {status} ".encode())


def test_half_an_answer_breaks_off_and_is_not_kept(wild: tuple[Proxy, Server]) -> None:
    for _ in range(2):
        heard = ask(*wild, "/reset-in-the-middle")
        assert b"Content-Length: 500" in heard
        assert heard.endswith(b"only this")
    assert wild[0].number("airloom_http_cache_broken_total") >= 2


def test_what_answers_no_request_is_nobodys(wild: tuple[Proxy, Server]) -> None:
    for _ in range(5):
        assert ask(*wild, "/more").endswith(b"\r\n\r\nmine")
        assert ask(*wild, "/fine").endswith(b"\r\n\r\nfine")


def test_a_thousand_idle_and_five_hundred_slow_clients_hinder_nobody_and_hold_little(
    wild: tuple[Proxy, Server],
) -> None:
    proxy, origin = wild
    idle = [connect(proxy.address) for _ in range(1000)]
    slow = [connect(proxy.address) for _ in range(500)]
    try:
        until(lambda: proxy.number("airloom_http_cache_clients") == 1500)
        for number, client in enumerate(slow):
            if number % 2:
                client.sendall(b"GET http://127.0.0.1/ HT")
            else:
                client.sendall(f"GET http://127.0.0.1:{origin.port}/large HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        assert ask(proxy, origin, "/fine").endswith(b"fine")
        # Half a head is told so; an answer that nobody takes ends with a reset.
        assert receive(slow[1]).startswith(b"HTTP/1.1 408 ")
        # Those that wait for nothing stay.
        until(lambda: proxy.number("airloom_http_cache_clients") <= 1000)
        assert proxy.number("airloom_http_cache_kept_octets") <= 1_000_000
        assert ask(proxy, origin, "/fine").endswith(b"fine")
        status = subprocess.run(
            ["grep", "VmHWM", f"/proc/{proxy.process.pid}/status"], capture_output=True, text=True, check=True
        ).stdout
        assert int(status.split()[1]) < 400_000
    finally:
        for client in (*idle, *slow):
            client.close()


def test_two_clients_never_hear_each_others_answers() -> None:
    def serve(connection: socket.socket, path: str, head: bytes) -> None:
        who = re.search(rb"X-Who: (\S+)", head)
        assert who
        body = path.encode() + b" for " + who[1]
        connection.sendall(whole(body, "Cache-Control: private") if path < "/5" else whole(body))

    with between(serve, "--set", "server_pipeline=4", "--set", "server_connections=3") as (proxy, origin):
        wrong: list[bytes] = []

        def client(who: int) -> None:
            with connect(proxy.address) as connection:
                for round_ in range(30):
                    paths = [f"/{(round_ + n) % 10}" for n in range(4)]
                    text = "".join(
                        f"GET http://127.0.0.1:{origin.port}{path} HTTP/1.1\r\nHost: a\r\nX-Who: {who}\r\n\r\n"
                        for path in paths
                    )
                    connection.sendall(text.encode())
                    heard = b""
                    while heard.count(b" for ") < 4 or not heard.endswith(str(who).encode()):
                        part = connection.recv(65_536)
                        if not part:
                            break
                        heard += part
                    found = re.findall(rb"(/\d) for (\d+)", heard)
                    if found != [(path.encode(), str(who).encode()) for path in paths]:
                        wrong.append(heard)

        threads = [threading.Thread(target=client, args=(who,)) for who in range(10, 22)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong, wrong[:2]
        assert origin.connections <= 10


def test_connections_to_servers_that_are_over_take_no_descriptors() -> None:
    def last(connection: socket.socket, path: str, head: bytes) -> None:
        connection.sendall(whole(path.encode(), "Connection: close"))

    with between(last) as (proxy, origin):
        descriptors = Path(f"/proc/{proxy.process.pid}/fd")
        before = len(list(descriptors.iterdir()))
        for number in range(20):
            assert ask(proxy, origin, f"/{number}").endswith(f"/{number}".encode())
        assert origin.connections == 20
        until(lambda: len(list(descriptors.iterdir())) <= before)


def test_it_stops_at_once_when_connections_alone_are_left() -> None:
    with between(numbered, "--grace", "600") as (proxy, origin), connect(proxy.address) as idle:
        host = f"127.0.0.1:{origin.port}"
        idle.sendall(f"GET http://{host}/60 HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        assert b"200 OK" in idle.recv(65_536)
        assert proxy.number("airloom_http_cache_servers") == 1, "the connection to the server is kept"
        proxy.process.send_signal(signal.SIGTERM)
        assert proxy.process.wait(60) == 0, "not after its 600 seconds"


def test_it_lets_an_exchange_end_and_then_stops() -> None:
    asked, go_on = threading.Event(), threading.Event()

    def slow(connection: socket.socket, path: str, head: bytes) -> None:
        asked.set()
        go_on.wait(60)
        connection.sendall(whole(b"at last"))

    with between(slow, "--grace", "600") as (proxy, origin), connect(proxy.address) as client:
        host = f"127.0.0.1:{origin.port}"
        client.sendall(f"GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        assert asked.wait(60)
        stop(proxy)
        go_on.set()
        assert receive(client).endswith(b"at last")
        client.close()
        assert proxy.process.wait(60) == 0, "not after its 600 seconds"


def test_settings_that_cannot_be_used_are_refused() -> None:
    for wrong in (
        ["--listen", "0.0.0.0:0"],
        ["--set", "mode=transparent"],
        ["--set", "buffer=0B"],
        ["--set", "name=a b"],
        ["--allow-origin", "http://x"],
    ):
        done = airloom("serve", "http-cache", *wrong)
        assert done.code == 2, (wrong, done)
