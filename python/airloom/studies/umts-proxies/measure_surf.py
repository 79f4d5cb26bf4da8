"""The second clock: the study's surf list between real programs, through its links in real time.

The browser is `airloom browse` over Linux's TCP (browsers of today do not pipeline), the servers are nginx with the
files of the page set, the proxies Squid and `forwarder.py`. Each of the nine ways is a laboratory of its own; all of
them go on beside each other.

Prints JSON: `rows` as `umts_proxies/real.py` reads them; `chromium`, rows of the same kind of a browser of today (six
connections to a server, each page from an empty cache), where Chromium and Playwright are installed; and `late`: what
has no rows because the machine could not keep its times. Nothing where no laboratories are allowed.
"""

import json
import os
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
from typing import Any

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
SEEDS = (1,)
#: Where proxies listen; the forwarder has a port for each server from here on.
PORT = 3128
#: A surf list that takes longer is given up.
LIMIT_S = 1200.0
#: A laboratory is hardly any work: most of the time all of them wait for the radio. A Chromium is.
BESIDE = 9
BROWSERS = 2
#: Names of the proxies in `airloom load`.
LOADS = {"none": "none", "TCP": "split-tcp", "HTTP": "squid"}

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


def gateway(proxy: str, servers: list[str], folder: Path) -> list[str]:
    """The command of a proxy."""
    if proxy == "TCP":
        ways = [f"{PORT + n}={name}:80" for n, name in enumerate(servers)]
        return [sys.executable, str(STUDY / "forwarder.py"), *ways]
    (folder / "squid.conf").write_text(squid_config(str(PORT), *_SQUID))
    # It shares memory under names of its own choice: here that memory is nobody else's.
    start = f"mount -t tmpfs shm /dev/shm && exec {program('squid')} -N -f {folder}/squid.conf"
    return ["/bin/sh", "-c", start]


def settings(proxy: str, mode: str, pages: page_sets.PageSet, folder: Path) -> list[str]:
    """The words of `airloom browse`: those of the simulated browser, in this way."""
    surf = tomllib.loads((STUDY / "scenarios" / "surf.toml").read_text())
    said = {**surf["hosts"]["mobile"]["app"]["http-client"], **MODES[mode]}
    if proxy == "HTTP":
        said |= {"proxy": "gateway", "proxy_port": PORT}
    if proxy == "TCP":
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


def surf(proxy: str, mode: str, seed: int) -> dict[str, Any]:
    """One list of pages on one way."""
    pages = page_sets.news()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        folder.chmod(0o755)
        page_sets.to_folder(pages, folder / "www")
        keys: dict[str, object] = {
            f"hosts.{server}.command": nginx(server, folder / "www" / server, folder) for server in pages.servers
        }
        real = ["mobile", *pages.servers]
        if proxy != "none":
            keys["hosts.gateway.command"] = gateway(proxy, pages.servers, folder)
            real.append("gateway")
        lab = airloom.lab(STUDY / "scenarios" / "surf.toml", seed=seed, real=real, overrides=keys, enter=False)
        with lab as laboratory:
            for server in pages.servers:
                wait_for(laboratory, server, "80")
            for n in range({"none": 0, "TCP": len(pages.servers), "HTTP": 1}[proxy]):
                wait_for(laboratory, "gateway", str(PORT + n))
            words = [sys.executable, "-m", "airloom", "browse", "--json", "--timeout", str(LIMIT_S)]
            words += settings(proxy, mode, pages, folder)
            done = laboratory.run(words, capture_output=True, text=True, timeout=LIMIT_S + 60)
            found = json.loads(done.stdout)
    numbers = tomllib.loads((STUDY / "scenarios" / "surf.toml").read_text())["hosts"]["mobile"]["app"]["http-client"]
    rows = [
        [proxy, mode, number, seed, page["load_s"]]
        for number, page in zip(numbers["visit"], found["pages"], strict=False)
        if page["load_s"] is not None
    ]
    # Half a list is no list: its slow pages are missing.
    valid = found["done"] and bool(laboratory.summary["valid"])
    return {"rows": rows, "valid": valid, "summary": found["summary"]}


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


def _all(jobs: list[tuple[object, ...]], beside: int, late: list[Any]) -> list[Any]:
    """The rows of all jobs, but for those that were too late."""
    rows: list[Any] = []
    with ThreadPoolExecutor(beside) as pool:
        for job, found in zip(jobs, pool.map(_apart, jobs), strict=True):
            rows += found["rows"] if found["valid"] else []
            late += [] if found["valid"] else [job]
    return rows


def main(*words: str) -> None:
    """All; `surf` or `chromium`: all of this kind; `surf PROXY MODE SEED`, `chromium PROXY PAGE SEED`: one."""
    if len(words) == 4:
        one = surf(words[1], words[2], int(words[3])) if words[0] == "surf" else None
        json.dump(one or chromium(words[1], int(words[2]), int(words[3])), sys.stdout)
        return
    found: dict[str, list[Any]] = {"rows": [], "chromium": [], "late": []}
    if can_emulate():
        if words[:1] != ("chromium",):
            jobs: list[tuple[object, ...]] = [("surf", *job) for job in product(PROXIES, MODES, SEEDS)]
            found["rows"] = _all(jobs, BESIDE, found["late"])
        if words[:1] != ("surf",) and find_spec("playwright") and shutil.which("chromium"):
            visit = tomllib.loads((STUDY / "scenarios" / "surf.toml").read_text())["hosts"]["mobile"]["app"]
            numbers = visit["http-client"]["visit"]
            jobs = [("chromium", *job) for job in product(PROXIES, numbers, SEEDS)]
            found["chromium"] = _all(jobs, BROWSERS, found["late"])
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
