"""Servers at the far end of a link: applications of this process, and programs."""

from __future__ import annotations

import asyncio
import inspect
import os
import socket
import socketserver
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from wsgiref.simple_server import ServerHandler, WSGIRequestHandler

from airloom.errors import RunError, Unsupported, UsageError

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from airloom.laboratory import Lab

#: How long a server may take to end its last answers.
_GRACE_S = 2.0
#: How often is asked whether a program listens.
_STEP_S = 0.01


class Server(Protocol):
    """What `serve` gives."""

    #: Where it listens.
    address: str
    port: int
    #: `http://ADDRESS/`, with the port if it is not 80.
    url: str

    def close(self) -> None:
        """Ends it, before the block does."""


class Outside:
    """Starts threads from one that never enters a link: they are on the machine."""

    def __init__(self) -> None:
        """Begins where the caller is."""
        self._home = ThreadPoolExecutor(1, "airloom-outside")
        # Its thread is there from now on, and not only when it is needed.
        self._home.submit(int).result()

    def start(self, work: Callable[[], None]) -> threading.Thread:
        """A new thread that does this."""
        thread = threading.Thread(target=work, name="airloom-serve", daemon=True)
        self._home.submit(thread.start).result()
        return thread

    def close(self) -> None:
        """No more threads; those that are there go on."""
        self._home.shutdown()


def is_command(app: Any) -> bool:
    """Is it the words of a program?"""
    return isinstance(app, list | tuple) or (isinstance(app, str) and not Path(app).is_dir())


def _url(address: str, port: int) -> str:
    return f"http://{address}/" if port == 80 else f"http://{address}:{port}/"


class Command:
    """A program in the far host."""

    def __init__(self, lab: Lab, host: str, words: str | Sequence[str], port: int, timeout_s: float) -> None:
        """Starts it and waits until it listens."""
        self.address, self.port = lab.hosts[host][0], port
        self.url = _url(self.address, port)
        self._said = tempfile.TemporaryFile()  # noqa: SIM115
        self._program = lab.popen(words, host=host, stdout=self._said, stderr=subprocess.STDOUT)
        try:
            self._wait(lab, host, timeout_s)
        except BaseException:
            self.close()
            raise

    def _wait(self, lab: Lab, host: str, timeout_s: float) -> None:
        end = time.monotonic() + timeout_s
        name = " ".join(self._program.args)
        while True:
            # From its own host: over the link it would wait for the link.
            with lab.socket(host) as asking:
                if asking.connect_ex((self.address, self.port)) == 0:
                    return
            if self._program.poll() is not None:
                raise RunError(f"serve: `{name}` ended with {self._program.returncode}{self._last_words()}")
            if time.monotonic() > end:
                raise RunError(
                    f"serve: `{name}` does not listen on port {self.port} of {self.address} "
                    f"within {timeout_s:g} s{self._last_words()}"
                )
            time.sleep(_STEP_S)

    def _last_words(self) -> str:
        # Of a log of any length only the end.
        self._said.seek(max(0, self._said.seek(0, os.SEEK_END) - 1000))
        lines = self._said.read().decode(errors="replace").strip().splitlines()
        return f": {lines[-1]}" if lines else ""

    def close(self) -> None:
        """Asks it to end, and ends it."""
        self._program.terminate()
        try:
            self._program.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            self._program.kill()
            self._program.wait(_GRACE_S)
        self._said.close()


class InProcess:
    """An application in a thread of this process, on a socket at the far end."""

    def __init__(self, app: Any, bound: socket.socket, address: str, outside: Outside) -> None:
        """Starts it; connections are taken when this returns."""
        self.address, self.port = address, bound.getsockname()[1]
        self.url = _url(address, self.port)
        try:
            bound.listen(128)
            run, self._stop = _server_of(app, bound)
        except BaseException:
            bound.close()
            raise
        self._bound = bound
        self._thread = outside.start(partial(_serve, run, bound))
        self._is_open = True

    def close(self) -> None:
        """No further connections; answers that are under way have a moment."""
        if not self._is_open:
            return
        self._is_open = False
        self._stop()
        self._thread.join(_GRACE_S)
        self._bound.close()


#: Serves until it is stopped, and what stops it.
_Run = tuple[Callable[[], None], Callable[[], None]]


def _serve(run: Callable[[], None], bound: socket.socket) -> None:
    # Whoever asks an application that did not begin is refused, and does not wait for it.
    with bound:
        run()


def _server_of(app: Any, bound: socket.socket) -> _Run:
    if isinstance(app, str | Path):
        if not Path(app).is_dir():
            raise UsageError(f"serve: {app} is not a folder")
        return _threads(partial(_Files, directory=str(app)), bound)
    if inspect.isclass(app) and issubclass(app, socketserver.BaseRequestHandler):
        return _threads(app, bound)
    if type(app).__module__.startswith("aiohttp."):
        return _aiohttp(app, bound)
    if not callable(app):
        raise UsageError(
            f"serve: {app!r} is no application; expected WSGI, ASGI, aiohttp.web, a handler class, a folder, a command"
        )
    if inspect.iscoroutinefunction(app) or inspect.iscoroutinefunction(type(app).__call__):
        return _uvicorn(app, bound)
    return _threads(partial(_Wsgi, app), bound)


class _Threads(socketserver.ThreadingTCPServer):
    daemon_threads = True
    #: As servers of CGI and WSGI tell their applications.
    server_name = "airloom"

    def __init__(self, handler: Any, bound: socket.socket) -> None:
        super().__init__(bound.getsockname(), handler, bind_and_activate=False)
        self.socket.close()
        self.socket = bound
        self.server_port = bound.getsockname()[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is what links are for."""


class _Files(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Says nothing: it is a test that looks."""


class _Wsgi(WSGIRequestHandler):
    def __init__(self, app: Any, *arguments: Any) -> None:
        self._app = app
        super().__init__(*arguments)

    def log_message(self, *_: object) -> None:
        """Says nothing: it is a test that looks."""

    def address_string(self) -> str:
        # Not looked up: there is no name server.
        return str(self.client_address[0])

    def handle(self) -> None:
        self.raw_requestline = self.rfile.readline(65537)
        if len(self.raw_requestline) > 65536:
            self.send_error(414)
        elif self.parse_request():
            handler = ServerHandler(self.rfile, self.wfile, self.get_stderr(), self.get_environ())  # type: ignore[arg-type]
            handler.request_handler = self  # type: ignore[attr-defined]  # that is where it logs
            handler.run(self._app)

    def get_environ(self) -> dict[str, Any]:
        self.server.base_environ = {  # type: ignore[attr-defined]
            "SERVER_NAME": self.connection.getsockname()[0],
            "GATEWAY_INTERFACE": "CGI/1.1",
            "SERVER_PORT": str(self.server.server_port),  # type: ignore[attr-defined]
            "REMOTE_HOST": "",
            "CONTENT_LENGTH": "",
            "SCRIPT_NAME": "",
        }
        return dict(super().get_environ())


def _threads(handler: Any, bound: socket.socket) -> _Run:
    server = _Threads(handler, bound)
    return partial(server.serve_forever, 0.02), server.shutdown


def _uvicorn(app: Any, bound: socket.socket) -> _Run:
    try:
        import uvicorn
    except ImportError:
        raise Unsupported("serve: an ASGI application takes uvicorn: pip install uvicorn") from None
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1))

    def stop() -> None:
        server.should_exit = True

    return lambda: server.run(sockets=[bound]), stop


def _aiohttp(app: Any, bound: socket.socket) -> _Run:
    from aiohttp import web

    loop = asyncio.new_event_loop()
    ended = asyncio.Event()

    async def run() -> None:
        runner = web.AppRunner(app, shutdown_timeout=1)
        await runner.setup()
        await web.SockSite(runner, bound).start()
        await ended.wait()
        await runner.cleanup()

    def work() -> None:
        with closing(loop):
            loop.run_until_complete(run())

    def stop() -> None:
        # One that did not begin is over already.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(ended.set)

    return work, stop


@contextmanager
def chromium(options: Mapping[str, Any]) -> Iterator[Browser]:
    """A browser that is born where this thread is."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise Unsupported('playwright is not installed: pip install "airloom[browser]"') from None
    from airloom.programs import path_of

    with sync_playwright() as play:
        wanted = dict(options)
        if "executable_path" not in wanted and not Path(play.chromium.executable_path).exists():
            if (system := path_of("chromium")) is None:
                raise Unsupported("there is no Chromium: playwright install chromium")
            wanted["executable_path"] = system
        if os.geteuid() == 0:
            # Its own sandbox does not work for root.
            wanted["chromium_sandbox"] = False
        browser = play.chromium.launch(**wanted)
        try:
            yield browser
        finally:
            browser.close()
