"""Other people's HTTP/3: how each is started, and which of them are here."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
AIOQUIC = [sys.executable, str(HERE / "aioquic_peer.py")]
AIRLOOM = [sys.executable, "-m", "airloom"]
#: What the server is called; clients are told where that is.
NAME = "server.test"
#: How many files are fetched over one connection.
MANY = 1000
#: How many of them by those who ask one after the other.
IN_TURN = 50

# Transfers wait for the connection that the first of them opens (PIPEWAIT): half as many at a
# time as servers take, since libcurl opens another connection before a place is free again.
_CURL = """
import asyncio, sys
from curl_cffi import CurlHttpVersion, CurlOpt, requests
name, address, port, authority, *files = sys.argv[1:]
options = {CurlOpt.RESOLVE: [f"{name}:{port}:{address}"], CurlOpt.PIPEWAIT: 1}
how = {"http_version": CurlHttpVersion.V3ONLY, "verify": authority, "curl_options": options, "max_clients": 50}
async def main():
    ports = set()
    async with requests.AsyncSession(**how) as session:
        async def get(file):
            answer = await session.get(f"https://{name}:{port}/" + file.rpartition("/")[2])
            assert answer.status_code == 200
            assert answer.http_version in (3, 30, 31, CurlHttpVersion.V3), answer.http_version
            open(file, "wb").write(answer.content)
            ports.add(answer.local_port)
        await asyncio.gather(*map(get, files))
    assert len(ports) == 1, f"{len(ports)} connections"
asyncio.run(main())
"""

_NIQUESTS = """
import sys
import niquests
name, address, port, authority, *files = sys.argv[1:]
with niquests.Session(resolver=f"in-memory://default?hosts={name}:{address}") as session:
    session.quic_cache_layer.add_domain(name, int(port))
    for file in files:
        answer = session.get(f"https://{name}:{port}/" + file.rpartition("/")[2], verify=authority)
        assert answer.status_code == 200 and answer.http_version == 30, answer.http_version
        open(file, "wb").write(answer.content)
"""

_HYPERCORN = """
import os, sys
from hypercorn.asyncio import serve
from hypercorn.config import Config
import asyncio
folder, certificate, key, address, port = sys.argv[1:]
async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    file = os.path.join(folder, os.path.basename(scope["path"]))
    await send({"type": "http.response.start", "status": 200, "headers": [(b"server", b"hypercorn")]})
    await send({"type": "http.response.body", "body": open(file, "rb").read()})
config = Config()
config.quic_bind, config.bind = [f"{address}:{port}"], [f"{address}:{port}"]
config.certfile, config.keyfile, config.accesslog, config.errorlog = certificate, key, None, None
asyncio.run(serve(app, config))
"""


class Bench:
    """Files, a certificate, and a folder for what arrives."""

    def __init__(self, folder: Path, addresses: list[str]) -> None:
        self.folder, self.www, self.got = folder, folder / "www", folder / "got"
        self.certificate, self.key = folder / "certificate.pem", folder / "key.pem"
        self.www.mkdir()
        drawn = random.Random(1)
        (self.www / "one").write_bytes(drawn.randbytes(1_000_000))
        for n in range(MANY):
            (self.www / f"f{n}").write_bytes(drawn.randbytes(1000 + n))
        script = "fetch('one').then(a => a.arrayBuffer()).then(b => n.textContent = 'got ' + b.byteLength)"
        (self.www / "page.html").write_text(f"<p id=n>?</p><script>{script}</script>")
        # An authority, and a server's certificate of it: some believe nothing less.
        self.authority, key = folder / "authority.pem", folder / "authority.key"
        make = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
        of_authority = ["-subj", "/CN=authority", "-keyout", str(key), "-out", str(self.authority)]
        of_authority += ["-addext", "keyUsage=critical,keyCertSign,cRLSign"]
        signed = ["-CA", str(self.authority), "-CAkey", str(key)]
        signed += ["-keyout", str(self.key), "-out", str(self.certificate), "-subj", f"/CN={NAME}"]
        names = ["-addext", "basicConstraints=critical,CA:FALSE", "-addext", "extendedKeyUsage=serverAuth"]
        names += ["-addext", f"subjectAltName=DNS:{NAME},DNS:origin,{','.join(f'IP:{one}' for one in addresses)}"]
        for more in (of_authority, [*signed, *names]):
            subprocess.run(["openssl", *make.split(), *more], check=True, capture_output=True)

    def pin(self) -> str:
        """The hash of the server's public key, as Chromium wants it."""
        extract = ["openssl", "x509", "-in", str(self.certificate), "-pubkey", "-noout"]
        public = subprocess.run(extract, check=True, capture_output=True).stdout
        to_der = ["openssl", "pkey", "-pubin", "-outform", "der"]
        der = subprocess.run(to_der, input=public, check=True, capture_output=True).stdout
        return base64.b64encode(hashlib.sha256(der).digest()).decode()


@dataclass(frozen=True)
class Client:
    """Somebody who fetches: the command for files from a port at an address."""

    name: str
    version: str | None
    command: Callable[[str, str, list[str]], list[str]]
    #: Does it ask for all of them at once?
    beside: bool = True
    #: Why it cannot be tried, though all that it takes is there.
    wrong: str = ""


@dataclass(frozen=True)
class Server:
    """Somebody who serves: the command for an address and a port."""

    name: str
    version: str | None
    command: Callable[[str, str], list[str]]
    env: dict[str, str] | None = None
    #: Does it go along with a client that moves?
    moves: bool = True
    #: Why it cannot be tried, though all that it takes is there.
    wrong: str = ""


def package(name: str) -> str | None:
    """The version of a Python package, if it is there."""
    with contextlib.suppress(PackageNotFoundError):
        return version(name)
    return None


def said(*command: str) -> str | None:
    """The version that a program says, if it is there."""
    if shutil.which(command[0]) is None:
        return None
    found = re.search(r"v?\d+(\.\d+)+", subprocess.run(command, capture_output=True, text=True).stdout)
    return found and found[0]


class Go(NamedTuple):
    """The program on quic-go."""

    program: str
    #: If there is somebody to build it.
    version: str | None
    #: Why it could not be built.
    wrong: str = ""


def quic_go(folder: Path) -> Go:
    """Built from the Go module proxy."""
    program = str(folder / "quic-go-peer")
    if shutil.which("go") is None:
        return Go(program, None)
    (found,) = re.findall(r"quic-go/quic-go (v\S+)", (HERE / "go.mod").read_text())
    done = subprocess.run(["go", "build", "-o", program, "."], cwd=HERE, capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stderr, file=sys.stderr)
        return Go(program, found, f"go build: {(done.stderr.strip().splitlines() or [done.returncode])[-1]}")
    return Go(program, found)


def ours(bench: Bench, address: str) -> list[str]:
    """Our server, on a port that it says."""
    at = f"{address}:0"
    # Over loopback nobody else can come; in a laboratory its hosts alone are there.
    who = [] if address.startswith("127.") else ["--allow-client", "0.0.0.0/0"]
    files = ["--cert", str(bench.certificate), "--key", str(bench.key)]
    return [*AIRLOOM, "serve", "h3", str(bench.www), "--no-log", "--listen", at, *who, *files]


def get_by_ours(bench: Bench, address: str, port: str, files: list[str]) -> list[str]:
    """Our client."""
    urls = [f"https://{address}:{port}/{Path(file).name}" for file in files]
    trust = ["--ca", str(bench.authority)]
    return [*AIRLOOM, "h3", "get", *urls, "--into", str(bench.got), *trust]


def clients(bench: Bench, go: Go) -> list[Client]:
    """Those that fetch files."""
    authority = str(bench.authority)
    own = [sys.executable, "-c"]
    return [
        Client("aioquic", package("aioquic"), lambda a, p, files: [*AIOQUIC, "get", a, p, *files]),
        Client(
            "quic-go",
            go.version,
            lambda a, p, files: [go.program, "get", f"https://{a}:{p}", *files],
            wrong=go.wrong,
        ),
        Client(
            "curl_cffi (libcurl, ngtcp2, nghttp3)",
            package("curl_cffi"),
            lambda a, p, files: [*own, _CURL, NAME, a, p, authority, *files],
        ),
        Client(
            "niquests (qh3)",
            package("niquests"),
            lambda a, p, files: [*own, _NIQUESTS, NAME, a, p, authority, *files],
            beside=False,
        ),
        Client("airloom", package("airloom"), lambda a, p, files: get_by_ours(bench, a, p, files)),
    ]


def chromium(bench: Bench, address: str, port: str) -> list[str]:
    """A page with a script that fetches a file, printed as it is at the end."""
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={bench.folder / 'profile'}"]
    options += [f"--ignore-certificate-errors-spki-list={bench.pin()}", f"--host-resolver-rules=MAP {NAME} {address}"]
    options += [f"--origin-to-force-quic-on={NAME}:{port}", "--timeout=30000", "--virtual-time-budget=60000"]
    return ["chromium", *options, "--dump-dom", f"https://{NAME}:{port}/page.html"]


def servers(bench: Bench, go: Go) -> list[Server]:
    """Those that serve files."""
    files = [str(bench.www), str(bench.certificate), str(bench.key)]
    # Told nothing, caddy puts an authority of its own among those that the system believes: this one has nothing of the
    # system's, and makes no certificates.
    private = bench.folder / "caddy"
    private.mkdir(exist_ok=True)
    env = {**os.environ, "HOME": str(private), "XDG_DATA_HOME": str(private), "XDG_CONFIG_HOME": str(private)}

    def caddy(address: str, port: str) -> list[str]:
        site = {
            "listen": [f"{address}:{port}"],
            "protocols": ["h1", "h2", "h3"],
            "automatic_https": {"disable": True},
            "tls_connection_policies": [{}],
            "routes": [{"handle": [{"handler": "file_server", "root": str(bench.www)}]}],
        }
        pairs = [{"certificate": files[1], "key": files[2]}]
        apps = {
            "http": {"servers": {"one": site}},
            "tls": {"certificates": {"load_files": pairs}},
            "pki": {"certificate_authorities": {"local": {"install_trust": False}}},
        }
        config = private / f"{port}.json"
        config.write_text(json.dumps({"admin": {"disabled": True}, "apps": apps}))
        return ["caddy", "run", "--config", str(config)]

    return [
        Server("aioquic", package("aioquic"), lambda a, p: [*AIOQUIC, "serve", *files, a, p]),
        Server("quic-go", go.version, lambda a, p: [go.program, "serve", *files, f"{a}:{p}"], wrong=go.wrong),
        # Debian's has a quic-go that sends to the address of the handshake for good.
        Server("caddy (quic-go)", said("caddy", "version"), caddy, env, moves=False),
        Server(
            "hypercorn (aioquic)",
            package("hypercorn"),
            lambda a, p: [sys.executable, "-c", _HYPERCORN, *files, a, p],
        ),
    ]
