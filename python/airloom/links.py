"""A link between two real hosts, for tests: programs here, servers at the far end.

>>> import airloom
>>> with airloom.link("wireline", seed=7, enter=False) as link:
...     link.run(["ping", "-qnc", "1", link.peer], capture_output=True).returncode
0
"""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from airloom.errors import RunError, UsageError
from airloom.laboratory import Lab

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

    from airloom.freezes import Freezes
    from airloom.scenario import Scenario
    from airloom.serving import Server

#: Where `serve` listens if nobody listens there yet.
HTTP = 80

#: The link that this thread is behind: for `serve`.
_current: ContextVar[Link | None] = ContextVar("airloom_link", default=None)


def link(
    name: str | Path = "wireline",
    *,
    seed: int | None = None,
    overrides: Mapping[str, object] | None = None,
    enter: bool = True,
    record: Sequence[str] = (),
    out: Path | str | None = None,
    force: bool = False,
) -> Link:
    """A link for `with`: this thread, and what it starts, is at its near end, and the far end is a real host as well.

    `name` is a bearer, a preset or a scenario; `overrides` sets its keys. The hosts at both ends of its path are real:
    `peer` is the address of the far one, where pings are answered and `serve` listens. The rest is as in `lab`.
    """
    scenario = _between_real_ends(str(name), overrides)
    if record:
        from airloom.run import with_records

        scenario = with_records(scenario, *record)
    if seed is not None:
        scenario = scenario.with_seed(seed)
    return Link(scenario, enter, None if out is None else Path(out), force)


def serve(app: Any, port: int | None = None, *, timeout_s: float = 10.0) -> Server:
    """Serves at the far end of the link whose block this thread is in: see `Link.serve`."""
    current = _current.get()
    if current is None:
        raise RunError("serve: there is no link here; call it inside of `with airloom.link(..)`")
    return current.serve(app, port, timeout_s=timeout_s)


class Link(Lab):
    """A link between two real hosts; see `link`."""

    def __init__(self, scenario: Scenario, enter: bool, out: Path | None = None, force: bool = False) -> None:
        """Use `link`."""
        from airloom.reference import addresses

        understood = scenario.understood
        near, self._far = _ends(understood)
        super().__init__(scenario, near, enter, out, force)
        #: The IPv4 address of the far end.
        self.peer: str = addresses(understood, self._far)[0]
        self._open = ExitStack()
        self._browser: Browser | None = None
        self._before: Link | None = None
        self._page_loads: list[float] = []
        self._freezes: Freezes | None = None
        self._hars = 0

    def __enter__(self) -> Self:
        """Makes the link, and enters its near end."""
        from airloom.serving import Outside

        # Its threads stay where this one is now: on the machine.
        self._outside_threads = Outside()
        try:
            super().__enter__()
        except BaseException:
            self._outside_threads.close()
            raise
        self._before = _current.get()
        _current.set(self)
        return self

    def __exit__(self, *why: Any) -> None:
        """Closes what was opened, leaves the link, ends every program behind it, and reads the figures."""
        # Whoever closes it may be another thread than the one that it is there for.
        if _current.get() is self:
            _current.set(self._before)
        try:
            self._open.close()
        finally:
            self._browser = None
            try:
                super().__exit__(*why)
            finally:
                self._outside_threads.close()
        for name, way in (("bytes_up", "uplink"), ("bytes_down", "downlink")):
            # Wires count what they took, radio links what they delivered.
            counted = [self.summary[key] for key in (f"{way}.bytes", f"{way}.delivered_bytes") if key in self.summary]
            if counted:
                self.summary[name] = counted[0]
        if self._page_loads:
            self.summary["page_load_s"] = sum(self._page_loads) / len(self._page_loads)
        if self._freezes is not None:
            self.summary.update(self._freezes.summary())

    def serve(self, app: Any, port: int | None = None, *, timeout_s: float = 10.0) -> Server:
        """Serves at the far end until the block ends. `port` is 80 by default, then any free one.

        `app` is a WSGI or ASGI application (ASGI by uvicorn), an `aiohttp.web.Application`, a handler class of
        `http.server` or `socketserver`, a folder of files, or a command: a program in the far host, which takes `port`
        itself and has `timeout_s` to open it. All but a command are threads of this process, in the machine's own
        network: they reach its data bases, and only their clients come over the link. Raises `RunError` for what does
        not listen in time, and `Unsupported` if a package is missing.
        """
        from airloom.serving import Command, InProcess, is_command

        if self._core is None:
            raise RunError("a link is there inside its `with` block only")
        server: Server
        if is_command(app):
            if port is None:
                raise UsageError("serve: say which port the command opens: serve([...], 8000)")
            server = Command(self, self._far, app, port, timeout_s)
        else:
            server = InProcess(app, self._listening(port), self.peer, self._outside_threads)
        self._open.callback(server.close)
        return server

    def _listening(self, port: int | None) -> socket.socket:
        """A socket that is bound at the far end."""
        tries = [HTTP, 0] if port is None else [port]
        for number in tries:
            bound = self.socket(self._far)
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                bound.bind(("", number))
            except OSError as error:
                bound.close()
                if number == tries[-1]:
                    raise RunError(f"serve: port {number} of {self._far}: {error.strerror}") from None
            else:
                return bound
        raise AssertionError("one of them was the last")

    def browser(self, **options: Any) -> Browser:
        """Playwright's Chromium behind the link, until the block ends; `options` are those of its `launch`.

        Needs `pip install "airloom[browser]"`, and Chromium: Playwright's own or the system's.
        """
        from airloom.serving import chromium

        if self._browser is None:
            self._browser = self._open.enter_context(chromium(options))
        return self._browser

    def page(self, url: str | None = None, **options: Any) -> Page:
        """A page of `browser` in a context of its own, `options` are those of `new_context`; opened at `url` if told.

        The time until the page's load event goes into `summary["page_load_s"]`, as the mean over all these pages;
        `summary["freezes"]` and `summary["freeze_s"]` are those of their videos (`airloom.freezes`).
        """
        from airloom.freezes import Freezes

        if self._folder is not None:
            self._hars += 1
            har = self._folder.path(f"page-{self._hars}.har")
            options = {"record_har_path": har, "record_har_content": "omit", **options}
        context = self.browser().new_context(**options)
        if self._freezes is None:
            self._freezes = Freezes()
        self._freezes.watch(context)
        # Before the browser: that is when the HAR is written.
        self._open.callback(self._close, context, self._freezes)
        page = context.new_page()
        if url is not None:
            page.goto(url, wait_until="load")
            page.wait_for_function("performance.getEntriesByType('navigation')[0].loadEventEnd > 0")
            self._page_loads.append(page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd") / 1e3)
        return page

    @staticmethod
    def _close(context: BrowserContext, freezes: Freezes) -> None:
        freezes.finish(context)
        context.close()


def _between_real_ends(name: str, overrides: Mapping[str, object] | None) -> Scenario:
    from airloom.emulation import find
    from airloom.scenario import parse

    found = find(name, overrides)
    near, far = _ends(found.understood)
    if near == far:
        raise UsageError(f"{name}: a link for tests has two ends")
    return parse(found.text, found.file, found.overrides, (near, far))


def _ends(understood: dict[str, Any]) -> tuple[str, str]:
    """The near and the far end: those of the path, else the first real host and the last host of all."""
    from airloom.reference import addresses_of_all

    names = list(addresses_of_all(understood))
    if path := understood.get("path"):
        near, far = path[0], path[-1]
    else:
        real = [n for n in names if understood["hosts"][n.partition("[")[0]].get("real")]
        near, far = (real or names)[0], names[-1]

    def one(name: str) -> str:
        return name if name in names else next((n for n in names if n.startswith(f"{name}[")), name)

    return one(near), one(far)
