"""The second clock: the study's surf list between real programs, through its links in real time.

The browser is `airloom browse` over Linux's TCP (browsers of today do not pipeline), the servers are nginx with the
files of the page set, the proxies Squid and `forwarder.py`. Each way (`WAYS`) is a laboratory of its own, under each
seed; nine of them go on beside each other.

Prints JSON: `rows`, `runs` and `pings` as `umts_proxies/real.py` reads them; `chromium`, rows of the same kind of a
browser of today (six connections to a server, each page from an empty cache), where Chromium and Playwright are
installed; and `late`: what has no rows because the machine could not keep its times, twice. Nothing where no
laboratories are allowed.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import airloom
from airloom import page_sets
from airloom.page_load.measure import load_page, wait_for
from airloom.page_load.squid import squid_config
from airloom.page_load.ways import program
from airloom.scenario import toml_value
from airloom.study.execute import can_emulate

STUDY = Path(__file__).parent
PROXIES = ("none", "TCP", "HTTP")
MODES: dict[str, dict[str, object]] = {
    "no keep-alive": {"keep_alive": False},
    "keep-alive": {},
    "pipelining": {"pipeline": 4},
}
#: Proxies that are one of these with another setting, and what turns it on.
FORWARDERS = {"TCP": [], "TCP, Nagle off": ["--no-nagle"], "TCP, RFC 896": ["--rfc-896"]}
SQUIDS = {"HTTP": (), "HTTP, no cache": ("cache deny all",)}
SEEDS = (1, 2, 3)
#: Where proxies listen; the forwarder has a port for each server from here on.
PORT = 3128
#: A surf list that takes longer is given up.
LIMIT_S = 1200.0
#: A laboratory is hardly any work: most of the time all of them wait for the radio. A Chromium is.
BESIDE = 9
BROWSERS = 2
#: Round trips of single packets are asked for this often, at this interval.
PINGS = 100
PINGS_S = 3
#: Names of the proxies in `airloom load`.
LOADS = {"none": "none", "TCP": "split-tcp", "HTTP": "squid"}


class Way(NamedTuple):
    """One configuration."""

    proxy: str
    http: str
    #: One-way delay (ms) and loss of the internet.
    t: int = 20
    loss: float = 0.0

    @property
    def kind(self) -> str:
        """Which of the three proxies it is, whatever its settings."""
        return self.proxy.split(",")[0]


#: The nine of the slides; the proxies with another setting; then T and loss with keep-alive: without proxy at every
#: point, with one where something is said of it, and where a slope needs it.
WAYS = (
    *(Way(*names) for names in product(PROXIES, MODES)),
    *(Way(*names) for names in product(("TCP, Nagle off", "TCP, RFC 896"), MODES)),
    Way("HTTP, no cache", "keep-alive"),
    *(Way("none", "keep-alive", t=t) for t in (5, 50, 100, 200, 400)),
    *(Way("none", "keep-alive", loss=loss) for loss in (0.005, 0.01, 0.02, 0.05)),
    *(Way("TCP", "keep-alive", t=t) for t in (100, 200, 400)),
    *(Way("TCP", "keep-alive", loss=loss) for loss in (0.02, 0.05)),
    *(Way("HTTP", "keep-alive", *point) for point in ((400, 0.0), (20, 0.05))),
)

#: As the slides' Apache: 100 requests on a connection, which is kept for 15 s.
_NGINX = """\
daemon off; worker_processes 1; pid {folder}/{name}.pid; {user}
events {{}}
http {{
  access_log off; {temporary}
  keepalive_requests 100; keepalive_timeout 15s; tcp_nodelay on;
  server {{ listen 80; listen [::]:80; root "{root}"; }}
}}
"""

#: 1 MB of memory, and copies that are there are used whatever their age (the slides' "forced"). One request of a
#: connection at a time, as Squid comes.
_SQUID = (
    "cache_mem 1 MB",
    "maximum_object_size_in_memory 1 MB",
    "refresh_pattern . 60000 100% 60000 override-expire override-lastmod",
)


def nginx(name: str, root: Path, folder: Path) -> list[str]:
    """The command of a server."""
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    config = _NGINX.format(
        folder=folder,
        name=name,
        root=root,
        user="user root;" if os.geteuid() == 0 else "",
        temporary="".join(f"{kind}_temp_path {folder / name}-{kind}; " for kind in kinds),
    )
    (folder / f"{name}.conf").write_text(config)
    return [program("nginx"), "-e", "stderr", "-c", str(folder / f"{name}.conf")]


def gateway(way: Way, servers: list[str], folder: Path) -> list[str]:
    """The command of a proxy."""
    if way.kind == "TCP":
        ports = [f"{PORT + n}={name}:80" for n, name in enumerate(servers)]
        return [sys.executable, str(STUDY / "forwarder.py"), *FORWARDERS[way.proxy], *ports]
    (folder / "squid.conf").write_text(squid_config(str(PORT), *_SQUID, *SQUIDS[way.proxy]))
    # It shares memory under names of its own choice: here that memory is nobody else's.
    start = f"mount -t tmpfs shm /dev/shm && exec {program('squid')} -N -f {folder}/squid.conf"
    return ["/bin/sh", "-c", start]


def settings(way: Way, pages: page_sets.PageSet, folder: Path) -> list[str]:
    """The words of `airloom browse`: those of the simulated browser, in this way."""
    surf = tomllib.loads((STUDY / "scenarios" / "surf.toml").read_text())
    said = {**surf["hosts"]["mobile"]["app"]["http-client"], **MODES[way.http]}
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


def surf(way: Way, seed: int) -> dict[str, Any]:
    """One list of pages on one way."""
    pages = page_sets.news()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        folder.chmod(0o755)
        page_sets.to_folder(pages, folder / "www")
        keys: dict[str, object] = {
            f"hosts.{server}.command": nginx(server, folder / "www" / server, folder) for server in pages.servers
        }
        keys |= {"links.internet.delay": f"{way.t}ms", "links.internet.loss": way.loss}
        real = ["mobile", *pages.servers]
        if way.kind != "none":
            keys["hosts.gateway.command"] = gateway(way, pages.servers, folder)
            real.append("gateway")
        lab = airloom.lab(STUDY / "scenarios" / "surf.toml", seed=seed, real=real, overrides=keys, enter=False)
        with lab as laboratory:
            for server in pages.servers:
                wait_for(laboratory, server, "80")
            for n in range({"none": 0, "TCP": len(pages.servers), "HTTP": 1}[way.kind]):
                wait_for(laboratory, "gateway", str(PORT + n))
            words = [sys.executable, "-m", "airloom", "browse", "--json", "--timeout", str(LIMIT_S)]
            words += settings(way, pages, folder)
            done = laboratory.run(words, capture_output=True, text=True, timeout=LIMIT_S + 60)
            found = json.loads(done.stdout)
            hits = squid_hits(laboratory) if way.kind == "HTTP" else None
    numbers = tomllib.loads((STUDY / "scenarios" / "surf.toml").read_text())["hosts"]["mobile"]["app"]["http-client"]
    rows = [
        [*way, number, seed, page["load_s"]]
        for number, page in zip(numbers["visit"], found["pages"], strict=False)
        if page["load_s"] is not None
    ]
    # Half a list is no list: its slow pages are missing.
    valid = found["done"] and bool(laboratory.summary["valid"])
    return {
        "rows": rows,
        "runs": [[*way, seed, found["summary"]["requests_per_connection"], hits]],
        "valid": valid,
        "summary": found["summary"],
    }


def squid_hits(laboratory: airloom.Lab) -> float:
    """The share of Squid's requests that it answered from its cache, as it counts them itself."""
    where = f"http://127.0.0.1:{PORT}/squid-internal-mgr/counters"
    words = [program("curl"), "--silent", "--show-error", "--fail", "--max-time", "30", where]
    done = laboratory.run(words, host="gateway", capture_output=True, text=True, check=True)
    counted = dict(re.findall(r"^client_http\.(\w+) = (\d+)", done.stdout, re.MULTILINE))
    return int(counted["hits"]) / int(counted["requests"])


def ping(seed: int) -> dict[str, Any]:
    """Round trips of packets of 1,500 octets, one at a time, through two kernels."""
    lab = airloom.lab(STUDY / "scenarios" / "rtt.toml", seed=seed, real=["mobile", "gateway"], enter=False)
    with lab as laboratory:
        words = [program("ping"), "-c", str(PINGS), "-i", str(PINGS_S), "-s", "1472", "-W", "20", "gateway"]
        limit_s = PINGS * PINGS_S + 120
        done = laboratory.run(words, host="mobile", capture_output=True, text=True, timeout=limit_s)
    times = [float(ms) / 1e3 for ms in re.findall(r"time=([\d.]+) ms", done.stdout)]
    valid = len(times) == PINGS and bool(laboratory.summary["valid"])
    return {"pings": [[seed, sum(times) / PINGS]], "valid": valid}


def chromium(proxy: str, number: int, seed: int) -> dict[str, Any]:
    """One page in Chromium."""
    scenario = tomllib.loads((STUDY / "scenarios" / "surf.toml").read_text())
    radio, internet = scenario["links"]["radio"], scenario["links"]["internet"]
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
    return {"rows": rows, "valid": bool(found.summary["valid"])}


def _apart(job: tuple[object, ...]) -> dict[str, Any]:
    """One of them in a process of its own: a laboratory is entered by a thread."""
    words = [sys.executable, __file__, *map(str, job)]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True, timeout=LIMIT_S + 300)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _or_late(job: tuple[object, ...]) -> dict[str, Any]:
    """The same; one that fails is as one that is late."""
    try:
        return _apart(job)
    except subprocess.CalledProcessError:
        return {"valid": False}


def _all(jobs: list[tuple[object, ...]], beside: int, late: list[Any]) -> list[dict[str, Any]]:
    """What all jobs found; those that failed or were too late are tried once more, fewer beside each other.

    Raises `CalledProcessError` for one that fails again.
    """
    found: list[dict[str, Any]] = []
    for run, at_once in ((_or_late, beside), (_apart, (beside + 1) // 2)):
        with ThreadPoolExecutor(at_once) as pool:
            results = list(pool.map(run, jobs))
        found += [result for result in results if result["valid"]]
        jobs = [job for job, result in zip(jobs, results, strict=True) if not result["valid"]]
    late += jobs
    return found


def _one(kind: str, *words: str) -> dict[str, Any]:
    """One job, as `_apart` says it."""
    if kind == "surf":
        return surf(Way(words[0], words[1], int(words[2]), float(words[3])), int(words[4]))
    if kind == "ping":
        return ping(int(words[0]))
    return chromium(words[0], int(words[1]), int(words[2]))


def main(*words: str) -> None:
    """All; `surf`, `ping` or `chromium`: all of this kind; with a way (or page) and seed: one."""
    if len(words) > 1:
        json.dump(_one(*words), sys.stdout)
        return
    found: dict[str, list[Any]] = {"rows": [], "runs": [], "pings": [], "chromium": [], "late": []}
    asked = words or ("surf", "ping", "chromium")
    if can_emulate():
        jobs: list[tuple[object, ...]] = [("ping", seed) for seed in SEEDS if "ping" in asked]
        jobs += [("surf", *way, seed) for seed in SEEDS for way in WAYS if "surf" in asked]
        for result in _all(jobs, BESIDE, found["late"]):
            for kind in ("rows", "runs", "pings"):
                found[kind] += result.get(kind, [])
        if "chromium" in asked and find_spec("playwright") and shutil.which("chromium"):
            visit = tomllib.loads((STUDY / "scenarios" / "surf.toml").read_text())["hosts"]["mobile"]["app"]
            numbers = visit["http-client"]["visit"]
            jobs = [("chromium", *job) for job in product(PROXIES, numbers, SEEDS[:1])]
            for result in _all(jobs, BROWSERS, found["late"]):
                found["chromium"] += result["rows"]
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
