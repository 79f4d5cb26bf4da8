"""Kannel 1.4.5 as a gateway, with an origin behind it: `kannel.py ADDRESS FOLDER` runs both until it is ended.

One JSON line on standard output says when they are ready. The UDP ports 9200 and 9201 are fixed in Kannel, so every
instance needs an address of its own. Nothing may connect to the port between its two programs but they themselves:
bearerbox would take the connection for a wapbox and send clients' datagrams there, so readiness is read from the
kernel's tables.
"""

from __future__ import annotations

import contextlib
import json
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

from airloom.programs import path_of

CONFIGURATION = """\
group = core
admin-port = {admin}
admin-interface = 127.0.0.1
admin-password = tests
wapbox-port = {boxes}
box-deny-ip = "*.*.*.*"
box-allow-ip = "127.0.0.1"
wdp-interface-name = "{address}"
log-file = "{folder}/bearerbox.log"
log-level = 1

group = wapbox
bearerbox-host = 127.0.0.1
syslog-level = none
http-timeout = 30
log-file = "{folder}/wapbox.log"
log-level = 1

group = ppg
ppg-url = /wappush
ppg-port = {push}
concurrent-pushes = 100
trusted-pi = true
ppg-deny-ip = "*.*.*.*"
ppg-allow-ip = "127.0.0.1"
users = 1024
"""

DECK = """\
<?xml version="1.0"?>
<!DOCTYPE wml PUBLIC "-//WAPFORUM//DTD WML 1.1//EN" "http://www.wapforum.org/DTD/wml_1.1.xml">
<wml><card id="a" title="First"><p>{text}</p></card></wml>
"""


class Origin(BaseHTTPRequestHandler):
    """`/deck` is WML, `/size/N` text of N octets, `/status/N` that status, `/delay/S` takes its time.

    What is posted is answered by what it was.
    """

    protocol_version = "HTTP/1.1"
    seen: ClassVar[list[str]] = []

    def log_message(self, *_: object) -> None:
        """Says nothing."""

    def _answer(self, body: bytes, kind: str, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self) -> None:
        """Answers by the path."""
        what, _, argument = self.path.lstrip("/").partition("/")
        if what == "size":
            return self._answer(bytes(ord("a") + n % 26 for n in range(int(argument))), "text/plain")
        if what == "status":
            return self._answer(b"", "text/plain", int(argument))
        if what == "delay":
            time.sleep(float(argument))
        if what == "headers":
            return self._answer(str(self.headers).encode(), "text/plain")
        self._answer(DECK.format(text="Hello, world").encode(), "text/vnd.wap.wml")

    do_HEAD = do_GET

    def do_POST(self) -> None:
        """Says how much came, and what it was."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        said = f"{len(body)} octets of {self.headers['Content-Type']}, sum {sum(body)}"
        self._answer(said.encode(), "text/plain")


def free_port() -> int:
    """A TCP port that nobody has at this moment, below those that the kernel gives to whoever connects."""
    while True:
        with socket.socket() as s, contextlib.suppress(OSError):
            port = random.randrange(20_000, 32_768)
            s.bind(("127.0.0.1", port))
            return port


def _listens(table: str, port: int, state: str) -> bool:
    rows = Path(f"/proc/net/{table}").read_text().splitlines()[1:]
    fields = (row.split() for row in rows)
    return any(f[3] == state and int(f[1].split(":")[1], 16) == port for f in fields)


def _bound(address: str, port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.bind((address, port))
        except OSError:
            return True
        return False


def _wait(program: subprocess.Popen[bytes], ready: Callable[[], bool], folder: Path) -> None:
    end = time.monotonic() + 60
    while not ready():
        if program.poll() is not None or time.monotonic() > end:
            said = "".join(path.read_text(errors="replace")[-800:] for path in sorted(folder.glob("*.out")))
            raise RuntimeError(f"{program.args!r} did not start: {said}")
        time.sleep(0.05)


def main(address: str, folder: Path) -> None:
    """Runs the gateway and the origin until a signal comes."""
    address = socket.gethostbyname(address)
    folder.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    origin = ThreadingHTTPServer((address, 0), Origin)
    threading.Thread(target=origin.serve_forever, daemon=True).start()
    ports = {"admin": free_port(), "boxes": free_port(), "push": free_port()}
    settings = folder / "kannel.conf"
    settings.write_text(CONFIGURATION.format(address=address, folder=folder, **ports))
    programs: list[subprocess.Popen[bytes]] = []

    def start(name: str, ready: Callable[[], bool]) -> None:
        found = path_of(name) or name
        with (folder / f"{name}.out").open("wb") as out:
            programs.append(subprocess.Popen([found, "-v", "4", settings], stdout=out, stderr=out, cwd=folder))
        _wait(programs[-1], ready, folder)

    try:
        start("bearerbox", lambda: _bound(address, 9201) and _listens("tcp", ports["boxes"], "0A"))
        start("wapbox", lambda: _listens("tcp", ports["push"], "0A"))
        # The two have to find each other, which nothing shows.
        time.sleep(0.5)
        print(json.dumps({"origin": f"http://{address}:{origin.server_port}", "push": ports["push"]}), flush=True)
        while all(program.poll() is None for program in programs):
            time.sleep(0.1)
    finally:
        for program in reversed(programs):
            program.terminate()
        for program in programs:
            try:
                program.wait(5)
            except subprocess.TimeoutExpired:
                program.kill()
                program.wait()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
