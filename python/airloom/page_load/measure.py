"""One page over one link on one way, measured."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import airloom
from airloom import interpreter
from airloom.errors import RunError, Unsupported, UsageError
from airloom.page_load.site import Authority, site
from airloom.page_load.ways import PORT, WAYS, Way, program
from airloom.scenario import Scenario, parse, toml_value

#: What a server's name may look like: that of a host and, with `internet-` before it, of a link.
_NAME = re.compile(r"[a-z][a-z0-9-]{0,19}")

#: Asks a port of the own host until it is open.
_WAIT = """\
import socket, sys, time
until = time.monotonic() + 60
while True:
    try:
        socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=5).close()
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
    summary: dict[str, Any]

    @property
    def page_s(self) -> float | None:
        """From the request for the page to the end of its load event; `None` if it was not loaded."""
        return None if self.seen["error"] else self.seen["load"] / 1e3


def load_page(
    url: str,
    link: str,
    way: str,
    folder: Path,
    *,
    root: Path | None = None,
    others: Mapping[str, Path] | None = None,
    delay: str = "20ms",
    loss: float = 0.0,
    seed: int = 1,
    timeout_s: float = 120.0,
    overrides: Mapping[str, object] | None = None,
) -> Loaded:
    """Loads `url` (of the host `origin`) in headless Chromium over `link`, a bearer or a preset, on a way of `WAYS`.

    `root` holds the files of the server, by default a sample page; `others` are further servers that the page may name,
    each with its files. `delay` and `loss` are those between the gateway and each server, each way.
    Raises `Unsupported` (exit code 3) if a program is missing.
    """
    chosen = _way(way)
    where = urlsplit(url)
    secure = where.scheme == "https"
    if where.scheme not in ("http", "https") or where.hostname != "origin" or where.port is not None:
        raise UsageError(f"{url}: the page is at http://origin/... or https://origin/..., the server that is started")
    roots: dict[str, Path | None] = {"origin": root, **(others or {})}
    for name in others or {}:
        if name in ("origin", "mobile", "gateway", "radio", "internet") or not _NAME.fullmatch(name):
            raise UsageError(f"a further server cannot be called {name!r}")
    if find_spec("playwright") is None:
        raise Unsupported('playwright is not installed: pip install "airloom[browser]"')
    chromium = program("chromium")
    folder = folder.resolve()
    (folder / "shots").mkdir(parents=True)
    authority = Authority(folder) if secure else None
    commands = {name: site(name, files, folder, authority) for name, files in roots.items()}
    port = "443" if secure else "80"
    job = {
        "url": url,
        "chromium": chromium,
        "flags": [*([authority.flag] if authority else []), *chosen.flags(list(roots), port)],
        "har": str(folder / "load.har"),
        "shots": str(folder / "shots"),
        "timeout_s": timeout_s,
    }
    scenario = _scenario(link, chosen, folder, commands, port, (delay, loss), overrides or {})
    with airloom.lab(scenario, seed=seed, enter=False, out=folder / "run") as laboratory:
        for name in roots:
            wait_for(laboratory, name, port)
        for number in range(chosen.ports(len(roots))):
            wait_for(laboratory, "gateway", str(PORT + number))
        words = interpreter.python("-m", "airloom.page_load.browser")
        began = time.time()
        done = laboratory.run(words, input=json.dumps(job), capture_output=True, text=True, timeout=timeout_s + 120)
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise RunError(f"the browser did not come to its end: {last}")
        seen = json.loads(done.stdout)
    seen["began"] = began
    (folder / "load.json").write_text(json.dumps({"link": link, "proxy": way, "url": url, **seen}, indent=1) + "\n")
    return Loaded(link, way, folder, seen, dict(laboratory.summary))


def _way(name: str) -> Way:
    if name not in WAYS:
        raise UsageError(f"no proxy {name!r}; valid: {', '.join(WAYS)}")
    return WAYS[name]


def wait_for(laboratory: airloom.Lab, host: str, port: str) -> None:
    """Waits until a program in `host` has opened `port`. Raises `RunError` if it does not."""
    try:
        done = laboratory.run(
            interpreter.python("-c", _WAIT, port), host=host, timeout=90, capture_output=True, text=True
        )
    except subprocess.TimeoutExpired:
        raise RunError(f"the program in {host} does not open port {port}") from None
    if done.returncode != 0:
        raise RunError(f"the program in {host} does not open port {port}")


def _scenario(
    link: str,
    way: Way,
    folder: Path,
    servers: Mapping[str, list[str]],
    port: str,
    wire: tuple[str, float],
    overrides: Mapping[str, object],
) -> Scenario:
    from airloom.presets import presets

    found = presets().get(link)
    radio = {"bearer": link} if found is None else {"bearer": found.bearer, **found.keys}
    gateway: dict[str, object] = {}
    if way.command is not None:
        gateway = {"real": True, "command": way.command(folder, list(servers), port)}
    hosts = {"mobile": {"real": True}, "gateway": gateway}
    hosts |= {name: {"real": True, "command": command} for name, command in servers.items()}
    links: dict[str, object] = {"radio": {**radio, "between": ["mobile", "gateway"]}}
    delay, loss = wire
    for name in servers:
        internet = {"bearer": "wireline", "delay": delay, "loss": loss, "between": ["gateway", name]}
        links["internet" if name == "origin" else f"internet-{name}"] = internet
    parts = {"title": f"{link}, proxy: {way.name}", "hosts": hosts, "links": links, "run": {"record": ["packets"]}}
    text = "".join(f"{key} = {toml_value(value)}\n" for key, value in parts.items())
    return parse(text, f"{link}.toml", overrides)
