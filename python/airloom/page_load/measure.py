"""One page over one link on one way, measured."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import airloom
from airloom.errors import RunError, Unsupported, UsageError
from airloom.page_load.site import site
from airloom.page_load.ways import PORT, WAYS, Way, program
from airloom.scenario import Scenario, parse, toml_value

#: The laboratory; the links' other keys follow.
_SCENARIO = """\
title = {title}
path = ["mobile", "radio", "gateway", "internet", "origin"]

[hosts]
mobile = {{ real = true }}
gateway = {gateway}
origin = {{ real = true, command = {command} }}

[links]
radio = {radio}
internet = {{ bearer = "wireline", delay = "{delay}" }}

[run]
record = ["packets"]
"""

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
    delay: str = "20ms",
    seed: int = 1,
    timeout_s: float = 120.0,
    overrides: Mapping[str, object] | None = None,
) -> Loaded:
    """Loads `url` (of the host `origin`) in headless Chromium over `link`, a bearer or a preset, on a way of `WAYS`.

    `root` holds the files of the server, by default a sample page; `delay` is that between gateway and server, each
    way.
    Raises `Unsupported` (exit code 3) if a program is missing.
    """
    chosen = _way(way)
    where = urlsplit(url)
    secure = where.scheme == "https"
    if where.scheme not in ("http", "https") or where.hostname != "origin" or where.port is not None:
        raise UsageError(f"{url}: the page is at http://origin/... or https://origin/..., the server that is started")
    if find_spec("playwright") is None:
        raise Unsupported('playwright is not installed: pip install "airloom[browser]"')
    chromium = program("chromium")
    folder = folder.resolve()
    (folder / "shots").mkdir(parents=True)
    server = site(root, folder, secure=secure)
    port = "443" if secure else "80"
    scenario = _scenario(link, chosen, folder, server.command, port, delay, overrides or {})
    job = {
        "url": url,
        "chromium": chromium,
        "flags": [*server.flags, *(flag.replace("{port}", port) for flag in chosen.flags)],
        "har": str(folder / "load.har"),
        "shots": str(folder / "shots"),
        "timeout_s": timeout_s,
    }
    with airloom.lab(scenario, seed=seed, enter=False, out=folder / "run") as laboratory:
        _wait(laboratory, "origin", port)
        if chosen.command is not None:
            _wait(laboratory, "gateway", str(PORT))
        words = [sys.executable, "-m", "airloom.page_load.browser"]
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


def _wait(laboratory: airloom.Lab, host: str, port: str) -> None:
    try:
        done = laboratory.run(
            [sys.executable, "-c", _WAIT, port], host=host, timeout=90, capture_output=True, text=True
        )
    except subprocess.TimeoutExpired:
        raise RunError(f"the program in {host} does not open port {port}") from None
    if done.returncode != 0:
        raise RunError(f"the program in {host} does not open port {port}")


def _scenario(
    link: str, way: Way, folder: Path, server: list[str], port: str, delay: str, overrides: Mapping[str, object]
) -> Scenario:
    from airloom.presets import presets

    found = presets().get(link)
    radio = {"bearer": link} if found is None else {"bearer": found.bearer, **found.keys}
    gateway: dict[str, object] = {}
    if way.command is not None:
        words = [word.replace("{port}", port) for word in way.command(folder)]
        gateway = {"real": True, "command": words}
    text = _SCENARIO.format(
        title=toml_value(f"{link}, proxy: {way.name}"),
        gateway=toml_value(gateway),
        command=toml_value(server),
        radio=toml_value(radio),
        delay=delay,
    )
    return parse(text, f"{link}.toml", overrides)
