"""HTTP/3 on real sockets: `airloom serve h3` and `airloom h3 get`, with each other and with aioquic."""

from __future__ import annotations

import asyncio
import json
import random
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from airloom import http3
from airloom._core import hq_get
from airloom.errors import RunError, UsageError
from tests.cli.shell import inside, serves
from tests.conftest import needs

PEER = Path(__file__).parent.parent / "conformance" / "http3_peers" / "aioquic_peer.py"
AIRLOOM = [sys.executable, "-m", "airloom"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What is served: a file of a megabyte, some small ones, and a link that leads out."""
    www = tmp_path / "www"
    www.mkdir()
    drawn = random.Random(1)
    (www / "large").write_bytes(drawn.randbytes(1_000_000))
    for n in range(200):
        (www / f"f{n}").write_bytes(drawn.randbytes(10 * n))
    (www / "index.html").write_text("<p>page</p>")
    (tmp_path / "secret").write_text("secret")
    (www / "out").symlink_to("../secret")
    return www


@contextmanager
def serving(folder: Path, *words: str) -> Iterator[str]:
    """`airloom serve h3` on a port of its own; ended by Ctrl-C."""
    says = r"listening on (127\.0\.0\.1:\d+)\n"
    with serves(says, "h3", folder, "--listen", "127.0.0.1:0", *words) as (found, process):
        yield found[1]
    assert process.returncode == 0, process.communicate()


def test_files_arrive_whole_and_what_is_not_there_is_not_found(folder: Path, tmp_path: Path) -> None:
    into = tmp_path / "got"
    with serving(folder) as at:
        names = ["large", *(f"f{n}" for n in range(200))]
        command = [*AIRLOOM, "h3", "get", *(f"https://{at}/{name}" for name in names), "--into", str(into), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        for name in names:
            assert (into / name).read_bytes() == (folder / name).read_bytes(), name
        assert [one["octets"] for one in json.loads(done.stdout)] == [1_000_000, *range(0, 2000, 10)]
        paths = ["/", "/%66%31?x", "/none", "/out", "/../secret", "/%2e%2e/secret", "/..%2fsecret", "//out"]
        got = http3.get([f"https://{at}{path}" for path in paths], [None] * len(paths))
        assert [(one.status, one.octets) for one in got] == [(200, 11), (200, 10), *[(404, 0)] * 6]
        one = subprocess.run([*AIRLOOM, "h3", "get", f"https://{at}/none", "-o", str(into / "none")], timeout=60)
        assert one.returncode == 1


def test_whom_a_client_believes_and_what_it_says_of_failures(folder: Path, tmp_path: Path) -> None:
    openssl = needs("openssl")
    pair = {name: tmp_path / name for name in ("one", "other")}
    for name in pair.values():
        make = f"req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -keyout {name}.key -out {name}"
        # Not an authority, as `req -x509` makes them: who shows an authority's own certificate is not believed.
        alt = [
            "-subj",
            "/CN=here",
            "-addext",
            "subjectAltName=DNS:localhost",
            "-addext",
            "basicConstraints=critical,CA:FALSE",
        ]
        subprocess.run([openssl, *make.split(), *alt], check=True, capture_output=True)
    with serving(folder, "--cert", str(pair["one"]), "--key", f"{pair['one']}.key") as at:
        url = f"https://localhost:{at.rpartition(':')[2]}/f1"
        assert http3.get([url], [None], trust=pair["one"])[0].octets == 10
        with pytest.raises(RunError, match="certificate"):
            http3.get([url], [None], trust=pair["other"])
        with pytest.raises(RunError, match="certificate"):
            http3.get([url.replace("localhost", "127.0.0.1")], [None], trust=pair["one"])
        assert http3.get([url], [None], trust=None, insecure=True)[0].status == 200
        with pytest.raises(UsageError, match="none"):
            http3.get([url], [None], trust=tmp_path / "none")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        with pytest.raises(RunError):
            http3.get([f"https://127.0.0.1:{silent.getsockname()[1]}/"], [None], patience_s=0.5)
    for urls in (["https://a/", "https://b/"], [], ["https://a b/"], ["https://a:x/"], ["ftp://a/"]):
        with pytest.raises(UsageError):
            http3.get(urls, [None] * len(urls))


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://127.0.0.1:4433/", "index.html"),
        ("https://127.0.0.1:4433", "index.html"),
        ("https://here?a=/b", "index.html"),
        ("https://here/a/b.html?c=/d#e/f", "b.html"),
        ("https://here/a/b.html#e", "b.html"),
        ("https://here/a/", "a"),
        ("https://here/a/..", "index.html"),
    ],
)
def test_files_have_the_last_name_of_their_paths(
    url: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Path] = []

    def fetched(_: object, files: list[Path], **__: object) -> list[http3.Fetched]:
        asked.extend(files)
        return []

    monkeypatch.setattr(http3, "get", fetched)
    assert inside("h3", "get", url, "--into", str(tmp_path)).code == 0
    assert asked == [tmp_path / name]


def test_of_this_machines_addresses_that_of_ipv4_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def resolved(*addresses: str) -> None:
        families = [socket.AF_INET6 if ":" in address else socket.AF_INET for address in addresses]
        found = [
            (family, socket.SOCK_DGRAM, 17, "", (address, 4433))
            for family, address in zip(families, addresses, strict=True)
        ]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        http3.get(["https://somewhere:4433/"], [None])

    def h3_get(to: str, *_: object) -> list[tuple[int, int, float, float]]:
        asked.append(to)
        return [(200, 0, 0.0, 0.0)]

    monkeypatch.setattr(http3, "h3_get", h3_get)
    resolved("::1", "127.0.0.1")
    resolved("::1")
    resolved("2001:db8::1", "192.0.2.1")
    assert asked == ["127.0.0.1:4433", "[::1]:4433", "[2001:db8::1]:4433"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--listen", "0.0.0.0:0"], "say who may come"),
        (["--cert", "none.pem", "--key", "none.key"], "none.pem"),
        (["--cert", "none.pem"], "--cert and --key belong together"),
        (["--listen", "here"], "expected ADDRESS:PORT"),
        (["--header", "one"], "expected NAME: VALUE"),
        (["--header", "a b: c"], "expected NAME: VALUE"),
        (["--header", "a: b\nc: d"], "expected NAME: VALUE"),
        (["--header", "Content-Length: 1"], "content-length is not for you to say"),
        (["--header", "Server: x"], "server is not for you to say"),
    ],
)
def test_a_server_that_cannot_begin_says_why(folder: Path, words: list[str], said: str) -> None:
    done = subprocess.run([*AIRLOOM, "serve", "h3", str(folder), *words], capture_output=True, text=True, timeout=60)
    assert done.returncode in (2, 4)
    assert said in done.stderr


def test_connections_are_bounded_and_nonsense_is_dropped(folder: Path) -> None:
    with serving(folder, "--connections", "1") as at:
        host, _, port = at.rpartition(":")
        drawn = random.Random(1)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as forger:
            for size in range(0, 1400, 7):
                forger.sendto(drawn.randbytes(size), (host, int(port)))
                forger.sendto(b"\xc0\x00\x00\x00\x01" + drawn.randbytes(max(size, 1195)), (host, int(port)))
        assert http3.get([f"https://{at}/f1"], [None])[0].status == 200

        async def two() -> str:
            import ssl

            from aioquic.asyncio.client import connect
            from aioquic.asyncio.protocol import QuicConnectionProtocol
            from aioquic.quic.configuration import QuicConfiguration
            from aioquic.quic.events import QuicEvent

            class Silent(QuicConnectionProtocol):
                def quic_event_received(self, event: QuicEvent) -> None:
                    pass

            settings = QuicConfiguration(is_client=True, alpn_protocols=["h3"], verify_mode=ssl.CERT_NONE)
            async with connect(host, int(port), configuration=settings, create_protocol=Silent):
                try:
                    await asyncio.to_thread(http3.get, [f"https://{at}/f1"], [None], patience_s=5.0)
                except RunError as error:
                    return str(error)
            return ""

        # In a thread of its own: another test may have left its loop in this one.
        with ThreadPoolExecutor(1) as alone:
            assert "refused" in alone.submit(lambda: asyncio.run(two())).result()


def openings(at: str, number: int) -> list[int]:
    """Asks for connections, each from a port of its own, and says no more: the types of the packets that come back."""
    from aioquic.quic.configuration import QuicConfiguration
    from aioquic.quic.connection import QuicConnection

    host, _, port = at.rpartition(":")
    there = (host, int(port))
    types = []
    with ExitStack() as sockets:
        for _ in range(number):
            asks = QuicConnection(configuration=QuicConfiguration(is_client=True, alpn_protocols=["h3"]))
            asks.connect(there, now=0.0)
            own = sockets.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            own.settimeout(20)
            own.sendto(asks.datagrams_to_send(now=0.0)[0][0], there)
            types.append(own.recv(2048)[0] >> 4 & 3)
    return types


def test_behind_a_flood_of_openings_who_wants_to_connect_shows_where_it_is(folder: Path) -> None:
    with serving(folder) as at:
        # RFC 9000, 17.2: Initial packets, and from the sixty-fifth on Retry ones, for which nothing is kept (8.1.2).
        assert openings(at, 100) == [0] * 64 + [3] * 36
        assert http3.get([f"https://{at}/f1"], [None])[0].status == 200


class Repeater(threading.Thread):
    """A relay to a server that copies one datagram in four of the client's: the copy comes first, from another port.

    What comes to that one is counted, and goes nowhere.
    """

    def __init__(self, server: tuple[str, int]) -> None:
        super().__init__(daemon=True)
        self.server, self.copies, self.astray = server, [0, 0], [0, 0]
        self.near, self.far, self.other = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(3))
        for one in (self.near, self.far, self.other):
            one.bind(("127.0.0.1", 0))
        self.at = "{}:{}".format(*self.near.getsockname())
        self.ends = threading.Event()
        self.start()

    def run(self) -> None:
        client, count = None, 0
        while not self.ends.is_set():
            for one in select.select([self.near, self.far, self.other], [], [], 0.1)[0]:
                datagram, source = one.recvfrom(2048)
                if one is self.near:
                    client, count = source, count + 1
                    # The handshake is over by then.
                    if count >= 8 and count % 4 == 0:
                        self.copies = [self.copies[0] + 1, self.copies[1] + len(datagram)]
                        self.other.sendto(datagram, self.server)
                    self.far.sendto(datagram, self.server)
                elif one is self.other:
                    self.astray = [self.astray[0] + 1, self.astray[1] + len(datagram)]
                elif client:
                    self.near.sendto(datagram, client)

    def __enter__(self) -> Repeater:
        return self

    def __exit__(self, *_: object) -> None:
        self.ends.set()
        self.join()
        for one in (self.near, self.far, self.other):
            one.close()


def test_who_repeats_packets_from_elsewhere_gets_little_and_breaks_nothing(folder: Path, tmp_path: Path) -> None:
    with serving(folder) as at:
        host, _, port = at.rpartition(":")
        with Repeater((host, int(port))) as relay:
            got = http3.get([f"https://{relay.at}/large"], [tmp_path / "got"])[0]
            assert (got.status, (tmp_path / "got").read_bytes()) == (200, (folder / "large").read_bytes())
        copies, octets = relay.copies
        # RFC 9000, 8.1, 9.3: three times what came from there at most.
        assert copies >= 3, relay.copies
        assert 0 < relay.astray[1] <= 3 * octets, (relay.copies, relay.astray)


def test_aioquic_fetches_from_us(folder: Path, tmp_path: Path) -> None:
    into = tmp_path / "got"
    into.mkdir()
    names = ["large", *(f"f{n}" for n in range(200))]
    with serving(folder) as at:
        host, _, port = at.rpartition(":")
        files = [str(into / name) for name in names]
        subprocess.run([sys.executable, str(PEER), "get", host, port, *files], check=True, timeout=60)
    for name in names:
        assert (into / name).read_bytes() == (folder / name).read_bytes(), name


def test_we_fetch_from_aioquic(folder: Path, tmp_path: Path) -> None:
    openssl = needs("openssl")
    certificate, key = tmp_path / "certificate", tmp_path / "key"
    make = f"req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=here -keyout {key} -out {certificate}"
    subprocess.run([openssl, *make.split()], check=True, capture_output=True)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    names = ["large", *(f"f{n}" for n in range(200))]
    files: list[Path | None] = [tmp_path / name for name in names]
    with subprocess.Popen(
        [sys.executable, str(PEER), "serve", str(folder), certificate, key, "127.0.0.1", str(port)]
    ) as process:
        try:
            # It says nothing when it is ready: what is sent before is sent again.
            got = http3.get([f"https://127.0.0.1:{port}/{name}" for name in names], files)
        finally:
            process.kill()
    assert {one.status for one in got} == {200}
    for name in names:
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes(), name


def test_the_first_datagram_leaves_at_once_and_is_marked() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        silent.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
        silent.setblocking(False)
        # Before it would be sent again, after a second (RFC 9002, 6.2.2).
        with pytest.raises(RunError, match="says nothing"):
            http3.get([f"https://127.0.0.1:{silent.getsockname()[1]}/"], [None], patience_s=0.3)
        octets, about, _, _ = silent.recvmsg(2048, 64)
        assert len(octets) == 1200
        assert [(kind, value[0] & 3) for _, kind, value in about] == [(socket.IP_TOS, 2)]


SERVE_HQ = """
import sys
from pathlib import Path
from airloom._core import serve_hq
www, cert, key = map(Path, sys.argv[1:4])
serve_hq("127.0.0.1:0", www, (cert, key), [], lambda at: print(at, flush=True), retry=True, chacha20=True, early=True)
"""


def test_http_0_9_fetches_what_is_there_and_says_what_is_not(folder: Path, tmp_path: Path) -> None:
    needs("openssl")
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    words += ["-days", "2", "-subj", "/CN=localhost", "-keyout", str(tmp_path / "key"), "-out", str(tmp_path / "cert")]
    subprocess.run(words, check=True, capture_output=True)
    command = [sys.executable, "-c", SERVE_HQ, str(folder), str(tmp_path / "cert"), str(tmp_path / "key")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            at = process.stdout.readline().strip()
            names = ["large", *(f"f{n}" for n in range(200))]
            got = tmp_path / "got"
            got.mkdir()
            visits = [[(f"/{name}", got / name) for name in part] for part in (names[:1], names[1:])]
            hq_get(at, "localhost", visits, 30.0, chacha20=True, early=True, new_keys=True)
            assert all((got / name).read_bytes() == (folder / name).read_bytes() for name in names)
            for target in ("/none", "/out", "/../secret"):
                with pytest.raises(ConnectionError, match=f"the server has no {target}"):
                    hq_get(at, "localhost", [[(target, got / "x")]], 30.0, chacha20=True)
            # One that offers other ciphers alone finds none in common.
            with pytest.raises(RunError, match="handshake"):
                http3.get([f"https://{at}/f1"], [None])
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
