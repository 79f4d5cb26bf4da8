"""Measures the WAP gateway beside Kannel's: the same client and origin, one after the other, in a network of their own.

`python -m tools.bench.wap` prints the numbers; `make bench` puts them on the page. Needs root, nginx and Kannel.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
SESSIONS = 8
SECONDS = 10.0
#: A small deck, as the examples of the 1990s were.
DECK = """<?xml version="1.0"?>
<!DOCTYPE wml PUBLIC "-//WAPFORUM//DTD WML 1.1//EN" "http://www.wapforum.org/DTD/wml_1.1.xml">
<wml><card id="menu" title="News"><p>Today</p><p><a href="/1.wml">Weather</a><br/><a href="/2.wml">Trains</a></p>
<p>Type a place: <input name="place" title="Place" maxlength="20"/></p>
<do type="accept" label="Search"><go href="/search.wml"><postfield name="q" value="$(place)"/></go></do></card></wml>
"""
NGINX = """daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error;
events {{ worker_connections 1024; }}
http {{ access_log off; types {{ text/vnd.wap.wml wml; }} keepalive_requests 100000000;
client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u;
scgi_temp_path {folder}/s; server {{ listen 127.0.0.1:8080; root {folder}/www; }} }}
"""
URL = "http://127.0.0.1:8080/menu.wml"


def measure(seconds: float = SECONDS) -> dict[str, float]:
    """Requests per CPU second, and delays, of both; empty (and said) where something is missing."""
    places = os.environ["PATH"] + ":/usr/sbin:/sbin"
    missing = [
        name for name in ("nginx", "bearerbox", "wapbox", "ip", "unshare") if not shutil.which(name, path=places)
    ]
    if missing or os.geteuid() != 0:
        print(f"  wap: not measured: {', '.join(missing) or 'root'} missing")
        return {}
    build = ["cargo", "build", "--quiet", "--release", "-p", "airloom-drive", "--example", "wap_load"]
    subprocess.run(build, cwd=ROOT, check=True)
    inside = ["unshare", "--net", sys.executable, "-m", "tools.bench.wap", "inside", str(seconds)]
    done = subprocess.run(
        inside, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, "PATH": places}
    )
    numbers: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return numbers


def _inside(seconds: float) -> None:
    """In a network namespace, whose loopback acknowledges at once: Kannel's programs talk over TCP there."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for network in ("127.0.0.0/8", "127.0.0.1"):
        route = [
            "local",
            network,
            "dev",
            "lo",
            "table",
            "local",
            "proto",
            "kernel",
            "scope",
            "host",
            "src",
            "127.0.0.1",
        ]
        subprocess.run(["ip", "route", "replace", *route, "quickack", "1"], check=True)
    numbers: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)  # nginx reads as a user without rights
        (Path(folder) / "www").mkdir()
        (Path(folder) / "www" / "menu.wml").write_text(DECK)
        (Path(folder) / "nginx.conf").write_text(NGINX.format(folder=folder))
        nginx = subprocess.Popen(["nginx", "-c", f"{folder}/nginx.conf"])
        try:
            with _ours() as pids:
                numbers |= _load("wap", pids, seconds)
            with _kannel(Path(folder)) as pids:
                numbers |= _load("wap.kannel", pids, seconds)
        finally:
            nginx.terminate()
            nginx.wait()
    numbers["wap.ratio"] = numbers["wap.per_cpu_s"] / numbers["wap.kannel.per_cpu_s"]
    print(json.dumps(numbers))


@contextmanager
def _ours() -> Iterator[Callable[[], list[int]]]:
    words = ["serve", "wap-gateway", "--connectionless", "off", "--allow-origin", "127.0.0.1", "--no-log"]
    with subprocess.Popen([sys.executable, "-m", "airloom", *words], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            process.stdout.readline()
            yield lambda: [process.pid]
        finally:
            process.terminate()


@contextmanager
def _kannel(folder: Path) -> Iterator[Callable[[], list[int]]]:
    command = [sys.executable, "-m", "tests.wap.kannel", "127.0.0.1", str(folder / "kannel")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            process.stdout.readline()
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
            yield lambda: [int(pid) for pid in children.read_text().split()]
        finally:
            process.terminate()


def _load(name: str, pids: Callable[[], list[int]], seconds: float) -> dict[str, float]:
    command = [str(TARGET / "release" / "examples" / "wap_load"), "127.0.0.1:9201", URL, str(SESSIONS), str(seconds)]
    subprocess.run([*command[:-1], "1"], check=True, stdout=subprocess.DEVNULL)  # everything is warm
    before = _cpu_s(pids())
    said = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    spent = _cpu_s(pids()) - before
    if said["failed"]:
        sys.exit(f"{name}: {said['failed']} of {said['replies']} requests failed")
    found = {
        f"{name}.per_cpu_s": said["replies"] / spent,
        f"{name}.per_s": said["replies"] / said["seconds"],
        f"{name}.p50_us": said["p50_us"],
        f"{name}.p99_us": said["p99_us"],
    }
    rate, p99_ms = found[f"{name}.per_cpu_s"], said["p99_us"] / 1000
    print(f"  {name:<12} {rate:.0f} requests per CPU s, p99 {p99_ms:.2f} ms", file=sys.stderr)
    return found


def _cpu_s(pids: list[int]) -> float:
    fields = (Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids)
    return sum(int(f[11]) + int(f[12]) for f in fields) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    if sys.argv[1:2] == ["inside"]:
        _inside(float(sys.argv[2]))
    else:
        began = time.monotonic()
        print(json.dumps(measure(), indent=2))
        print(f"{time.monotonic() - began:.0f} s")
