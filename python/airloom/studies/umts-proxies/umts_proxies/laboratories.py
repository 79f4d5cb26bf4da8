"""One measurement between real programs: a laboratory with the study's links, in real time.

The browser is `airloom browse` over Linux's TCP (browsers of today do not pipeline), the servers are nginx with the
files of the page set, the proxies Squid and `forwarder.py`.
"""

from __future__ import annotations

import json
import re
import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import airloom
from airloom import interpreter, page_sets
from airloom.page_load.measure import load_page, wait_for
from airloom.page_load.site import nginx
from airloom.page_load.squid import squid_config
from airloom.programs import needed
from airloom.scenario import toml_value

from .ways import Way

STUDY = Path(__file__).resolve().parents[1]
#: What the browser is told besides what the scenario says, by the use of HTTP.
SETTINGS: dict[str, dict[str, object]] = {
    "no keep-alive": {"keep_alive": False},
    "keep-alive": {},
    "pipelining": {"pipeline": 4},
}
#: How each TCP proxy is started, and what Squid's configuration has besides.
FORWARDERS = {"TCP": [], "TCP, Nagle off": ["--no-nagle"], "TCP, RFC 896": ["--rfc-896"]}
SQUIDS = {"HTTP": (), "HTTP, no cache": ("cache deny all",)}
#: Names of the proxies in `airloom load`.
LOADS = {"none": "none", "TCP": "split-tcp", "HTTP": "squid"}
#: Where proxies listen; the forwarder has a port for each server from here on.
PORT = 3128
#: A surf list that takes longer is given up.
LIMIT_S = 1200.0
#: Seconds between two packets whose round trips are measured: each is alone.
PING_EVERY_S = 3

#: As the slides' Apache: 100 requests on a connection, which is kept for 15 s.
_NGINX = "keepalive_requests 100; keepalive_timeout 15s; tcp_nodelay on;"

#: 1 MB of memory, and copies that are there are used whatever their age (the slides' "forced"). One request of a
#: connection at a time, as Squid comes.
_SQUID = (
    "cache_mem 1 MB",
    "maximum_object_size_in_memory 1 MB",
    "refresh_pattern . 60000 100% 60000 override-expire override-lastmod",
)


def scenario() -> dict[str, Any]:
    """The surf list's scenario, as its file says it."""
    return tomllib.loads((STUDY / "scenarios" / "surf.toml").read_text())


def visited() -> list[int]:
    """The pages of the list, by their numbers in the set."""
    found: list[int] = scenario()["hosts"]["mobile"]["app"]["http-client"]["visit"]
    return found


def surf(way: Way, seed: int, visit: Sequence[int] | None = None) -> dict[str, Any]:
    """One list of pages on one way: the study's fifteen, or these."""
    pages, visit = page_sets.news(), visit or visited()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        folder.chmod(0o755)
        page_sets.to_folder(pages, folder / "www")
        keys: dict[str, object] = {
            f"hosts.{server}.command": nginx(server, folder / "www" / server, folder, _NGINX)
            for server in pages.servers
        }
        keys |= {"links.internet.delay": f"{way.t}ms", "links.internet.loss": way.loss}
        real = ["mobile", *pages.servers]
        if way.kind != "none":
            keys["hosts.gateway.command"] = _gateway(way, pages.servers, folder)
            real.append("gateway")
        lab = airloom.lab(STUDY / "scenarios" / "surf.toml", seed=seed, real=real, overrides=keys, enter=False)
        with lab as laboratory:
            for server in pages.servers:
                wait_for(laboratory, server, "80")
            for n in range({"none": 0, "TCP": len(pages.servers), "HTTP": 1}[way.kind]):
                wait_for(laboratory, "gateway", str(PORT + n))
            words = interpreter.airloom("browse", "--json", "--timeout", str(LIMIT_S))
            words += _settings(way, pages, visit, folder)
            done = laboratory.run(words, capture_output=True, text=True, timeout=LIMIT_S + 60)
            found = json.loads(done.stdout)
            hits = _squid_hits(laboratory) if way.kind == "HTTP" else None
    rows = [
        [*way, number, seed, page["load_s"]]
        for number, page in zip(visit, found["pages"], strict=False)
        if page["load_s"] is not None
    ]
    # Half a list is no list: its slow pages are missing.
    valid = found["done"] and bool(laboratory.summary["valid"])
    runs = [[*way, seed, found["summary"]["requests_per_connection"], hits]]
    return {"rows": rows, "runs": runs, "valid": valid}


def _gateway(way: Way, servers: list[str], folder: Path) -> list[str]:
    """The command of a proxy."""
    if way.kind == "TCP":
        ports = [f"{PORT + n}={name}:80" for n, name in enumerate(servers)]
        return interpreter.python(str(STUDY / "forwarder.py"), *FORWARDERS[way.proxy], *ports)
    (folder / "squid.conf").write_text(squid_config(str(PORT), *_SQUID, *SQUIDS[way.proxy]))
    # It shares memory under names of its own choice: here that memory is nobody else's.
    start = f"mount -t tmpfs shm /dev/shm && exec {needed('squid')} -N -f {folder}/squid.conf"
    return ["/bin/sh", "-c", start]


def _settings(way: Way, pages: page_sets.PageSet, visit: Sequence[int], folder: Path) -> list[str]:
    """The words of `airloom browse`: those of the simulated browser, in this way."""
    said = {**scenario()["hosts"]["mobile"]["app"]["http-client"], **SETTINGS[way.http], "visit": list(visit)}
    if way.kind == "HTTP":
        said |= {"proxy": "gateway", "proxy_port": PORT}
    if way.kind == "TCP":
        ports = {name: f"gateway:{PORT + n}" for n, name in enumerate(pages.servers)}
        pages = replace(
            pages,
            pages=tuple(
                replace(page, objects=tuple(replace(o, server=ports.get(o.server or "")) for o in page.objects))
                for page in pages.pages
            ),
        )
    pages.write(folder / "pages.json")
    said["page_set"] = str(folder / "pages.json")
    return [word for key, value in said.items() for word in ("--set", f"{key}={toml_value(value)}")]


def _squid_hits(laboratory: airloom.Lab) -> float:
    """The share of Squid's requests that it answered from its cache, as it counts them itself."""
    where = f"http://127.0.0.1:{PORT}/squid-internal-mgr/counters"
    words = [needed("curl"), "--silent", "--show-error", "--fail", "--max-time", "30", where]
    done = laboratory.run(words, host="gateway", capture_output=True, text=True, check=True)
    counted = dict(re.findall(r"^client_http\.(\w+) = (\d+)", done.stdout, re.MULTILINE))
    return int(counted["hits"]) / int(counted["requests"])


def ping(size: int, seed: int, count: int) -> dict[str, Any]:
    """Packets of `size` octets to the gateway's kernel and back, one at a time: what they take there, and back."""
    lab = airloom.lab(STUDY / "scenarios" / "rtt.toml", seed=seed, real=["mobile", "gateway"], enter=False)
    # 28 of them are headers of IP and ICMP.
    words = [needed("ping"), "-c", str(count), "-i", str(PING_EVERY_S), "-s", str(size - 28), "-W", "20", "gateway"]
    with lab as laboratory:
        limit_s = count * PING_EVERY_S + 120
        done = laboratory.run(words, host="mobile", capture_output=True, text=True, timeout=limit_s)
    times = [float(ms) / 1e3 for ms in re.findall(r"time=([\d.]+) ms", done.stdout)]
    summary = laboratory.summary
    valid = len(times) == count and bool(summary["valid"])
    mean_s = sum(times) / len(times) if times else None
    there, back = (summary[f"radio.{way}.sdu_delay_mean_ms"] / 1e3 for way in ("uplink", "downlink"))
    return {"pings": [[size, seed, mean_s, there, back]], "valid": valid}


def chromium(proxy: str, number: int, seed: int) -> dict[str, Any]:
    """One page in Chromium."""
    radio, internet = scenario()["links"]["radio"], scenario()["links"]["internet"]
    keys = {f"links.radio.{key}": radio[key] for key in ("rate", "loss")}
    pages = page_sets.news()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        folder.chmod(0o755)
        page_sets.to_folder(pages, folder / "www")
        first = pages.pages[number - 1].objects[0]
        others = {server: folder / "www" / server for server in pages.servers if server != first.server}
        found = load_page(
            f"http://origin{first.path}",
            radio["bearer"],
            LOADS[proxy],
            folder / "load",
            root=folder / "www" / (first.server or ""),
            others=others,
            delay=internet["delay"],
            seed=seed,
            overrides=keys,
        )
    rows = [] if found.page_s is None else [[proxy, "keep-alive", number, seed, found.page_s]]
    return {"chromium": rows, "valid": bool(found.summary["valid"])}
