"""One page over one link on one way, measured."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import airloom
from airloom import interpreter
from airloom.errors import RunError, Unsupported, UsageError
from airloom.page_load import http as versions
from airloom.page_load.address import Address, Where, check_served, rules, understand
from airloom.page_load.network import network
from airloom.page_load.progress import speed_index_s, visual_progress
from airloom.page_load.site import Authority, check_server_name, remove_empty_folders, site
from airloom.page_load.ways import PORT, WAYS, Asked, Server, Way
from airloom.programs import needed

#: Asks a TCP port of the own host until it is open; looks for one of UDP, which answers nobody.
_WAIT = """\
import socket, sys, time
until = time.monotonic() + 60
def ask(port, is_udp):
    if not is_udp:
        return socket.create_connection(("127.0.0.1", port), timeout=5).close()
    if not any(f":{port:04X} " in line[:48] for name in ("udp", "udp6") for line in open("/proc/net/" + name)):
        raise OSError
while True:
    try:
        ask(int(sys.argv[1]), "udp" in sys.argv)
        break
    except OSError:
        if time.monotonic() > until: sys.exit("it does not start")
        time.sleep(0.05)
"""


class Loaded(NamedTuple):
    """What a load gave."""

    link: str
    way: str
    #: Folder with `run` (the run folder), `load.har`, `shots` and `load.json`.
    folder: Path
    #: What the browser saw: see `airloom.page_load.browser`.
    seen: dict[str, Any]
    #: The run's summary, with the verdict on its times.
    summary: dict[str, float]
    #: Why the times are not valid, in words, if they are not.
    reasons: list[str]
    seed: int
    #: The version of HTTP that was asked for, if one was.
    http: str | None = None

    @property
    def page_s(self) -> float | None:
        """From the request for the page to the end of its load event; `None` if it was not loaded."""
        return None if self.seen["error"] else self.seen["load"] / 1e3

    @property
    def status(self) -> int | None:
        """The HTTP status of the page itself, after redirections; `None` if there was no answer."""
        status: int | None = self.seen.get("status")
        return status

    @property
    def valid(self) -> bool:
        """Did the laboratory keep its times?"""
        return bool(self.summary.get("valid"))


def load_page(
    url: str,
    link: str,
    way: str,
    folder: Path,
    *,
    root: Path | None = None,
    others: Mapping[str, Path] | None = None,
    loopback: Sequence[int] = (),
    outside: bool = False,
    insecure: bool = False,
    delay: str | None = None,
    loss: float = 0.0,
    seed: int = 1,
    timeout_s: float = 120.0,
    overrides: Mapping[str, object] | None = None,
    http: str | None = None,
) -> Loaded:
    """Loads `url` in headless Chromium over `link`, a bearer or a preset, on a way of `WAYS`.

    `http://origin/` is a server that is started: `root` holds its files, by default a sample page; `others` are further
    servers that the page may name, each with its files. `http://localhost:8000/` is a program of this machine, reached
    through the link, and every other host is in the outside world. `loopback` are further ports of this machine that
    the page may ask (as `localhost`, or `host.airloom`), `outside` lets it ask the outside world as well. `insecure`
    takes certificates that nobody vouches for. `delay` (by default 20 ms, to the outside world 0) and `loss` are those
    between the gateway and each server, each way. `http` is the version, one of "1.1", "2" and "3" (for `https://` and
    without a proxy: QUIC); without it what browser and server agree on, HTTP/2 with `https://origin/`. Raises
    `UsageError` where the address cannot be loaded, and `Unsupported` (exit code 3) if a program is missing.
    """
    chosen = _way(way)
    roots: dict[str, Path | None] = {"origin": root, **(others or {})}
    for name in others or {}:
        check_server_name(name)
    address = understand(url, roots)
    if address.where is not Where.ORIGIN and root is None:
        del roots["origin"]
    if chosen.is_forward and address.where is Where.MACHINE and address.server != address.host:
        raise UsageError(
            f"{url} with {way}: to a forwarding proxy {address.host} is itself; "
            f"ask for {address.url.replace(address.host, address.server, 1)}"
        )
    versions.check(http, address, chosen)
    check_served(address)
    if find_spec("playwright") is None:
        raise Unsupported('playwright is not installed: pip install "airloom[browser]"')
    chromium = needed("chromium")
    folder = folder.resolve()
    (folder / "shots").mkdir(parents=True)
    authority = Authority(folder) if address.is_secure and roots else None
    commands = {name: site(name, files, folder, authority, by_quic=http == "3") for name, files in roots.items()}
    asked = _asked(address, list(roots), outside)
    ports = _ports(address, loopback)
    scenario = network(link, chosen, folder, asked, commands, ports, delay, loss, overrides or {})
    # A proxy's rule comes first: it is the first one that counts.
    named = [*chosen.rules(asked), *rules(address, ports)]
    job = {
        "url": url,
        "chromium": chromium,
        "flags": [
            *([authority.flag] if authority else []),
            *([f"--host-resolver-rules={','.join(named)}"] if named else []),
            *chosen.flags(asked),
            *versions.flags(http, asked),
        ],
        "insecure": insecure,
        "har": str(folder / "load.har"),
        "shots": str(folder / "shots"),
        "timeout_s": timeout_s,
    }
    # The browser's profile and sockets: gone after the laboratory, however that ends. Their paths have to be short.
    with (
        tempfile.TemporaryDirectory(prefix="airloom-", ignore_cleanup_errors=True) as temporary,
        airloom.lab(scenario, seed=seed, enter=False, out=folder / "run") as laboratory,
    ):
        for name in roots:
            wait_for(laboratory, name, "443" if authority else "80")
            if http == "3":
                wait_for(laboratory, name, "443", "udp")
        for number in range(chosen.ports(asked)):
            wait_for(laboratory, "gateway", str(PORT + number))
        words = interpreter.python("-m", "airloom.page_load.browser")
        began = time.time()
        try:
            done = laboratory.run(
                words,
                input=json.dumps(job),
                capture_output=True,
                text=True,
                timeout=timeout_s + 120,
                env={**os.environ, "TMPDIR": temporary},
            )
        except subprocess.TimeoutExpired as hung:
            raise RunError(f"the browser did not come to its end: it hung for {hung.timeout:.0f} s") from None
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise RunError(f"the browser did not come to its end: {last}")
        seen = json.loads(done.stdout)
    seen["began"] = began
    colours = seen.pop("colours")
    zero = seen["origin"] / 1e3 if "origin" in seen else began
    seen["progress"] = visual_progress([at - zero for at in seen["frames"]], colours)
    seen["speed_index"] = speed_index_s(seen["progress"]) if seen["error"] is None else None
    remove_empty_folders(folder)
    said = {"link": link, "proxy": way, "http": http, "url": url, "seed": seed, **seen}
    (folder / "load.json").write_text(json.dumps(said, indent=1) + "\n")
    results = laboratory.results
    reasons = results.verdict_reasons if results and results.verdict == "invalid" else []
    return Loaded(link, way, folder, seen, dict(laboratory.summary), reasons, seed, http)


def check_page(
    url: str,
    link: str,
    *,
    loopback: Sequence[int] = (),
    outside: bool = False,
    overrides: Mapping[str, object] | None = None,
    http: str | None = None,
) -> None:
    """Raises `UsageError` or `ScenarioError` where `load_page` without a proxy would, whoever serves the page."""
    way = _way("none")
    address = understand(url)
    versions.check(http, address, way)
    started = ["origin"] if address.where is Where.ORIGIN else []
    commands = {name: ["true"] for name in started}
    asked = _asked(address, started, outside)
    network(link, way, Path(), asked, commands, _ports(address, loopback), None, 0.0, overrides or {})


def _way(name: str) -> Way:
    if name not in WAYS:
        raise UsageError(f"no proxy {name!r}; valid: {', '.join(WAYS)}")
    return WAYS[name]


def _asked(address: Address, started: list[str], outside: bool) -> Asked:
    """The page's own server first, then the others that are started."""
    usual = 443 if address.is_secure else 80
    servers = [Server(name, usual, name) for name in started]
    if address.where is not Where.ORIGIN:
        is_outside = address.where is Where.OUTSIDE
        servers.insert(0, Server(address.host, address.port, address.server, is_outside))
    return Asked(servers, outside or address.where is Where.OUTSIDE)


def _ports(address: Address, loopback: Sequence[int]) -> list[int]:
    """The ports of this machine that the page may ask: its own first."""
    return list(dict.fromkeys([*([address.port] if address.where is Where.MACHINE else []), *loopback]))


def wait_for(laboratory: airloom.Lab, host: str, *port: str) -> None:
    """Waits until a program in `host` has opened a port: its number, and `udp` if it is one of UDP.

    Raises `RunError` if it does not.
    """
    try:
        laboratory.run(interpreter.python("-c", _WAIT, *port), host=host, timeout=90, capture_output=True, check=True)
    except subprocess.SubprocessError:
        raise RunError(f"the program in {host} does not open port {' '.join(port)}") from None
