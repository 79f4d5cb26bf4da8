"""Measures our proxies beside HAProxy and Squid: the same clients and servers, one proxy after the other, on loopback.

`python -m tools.bench.proxies` prints the numbers; `make bench` puts them on the page. Needs HAProxy, Squid, nginx and
iperf3.
"""

from __future__ import annotations

import json
import os
import resource
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

SECONDS = 10.0
#: Clients that ask a cache, each for one thing after the other.
CLIENTS = 16
#: Octets of what they ask for.
OBJECT = 10_000
#: Pairs that do nothing, for what they cost.
IDLE = 1_000
IPERF, NGINX, HAPROXY, SQUID, OURS, CACHE = 15201, 15080, 15301, 15328, 15302, 15329

_NGINX = """daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error; user root;
events {{ worker_connections 1024; }}
http {{ access_log off; keepalive_requests 100000000;
client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u;
scgi_temp_path {folder}/s; server {{ listen 127.0.0.1:{port}; root {folder}/www;
location /kept {{ add_header Cache-Control max-age=3600; }} location /new {{ add_header Cache-Control no-store; }} }} }}
"""
_HAPROXY = """global
    maxconn 4000
defaults
    mode tcp
    timeout connect 10s
    timeout client 5m
    timeout server 5m
listen tcp
    bind 127.0.0.1:{port}
    server one 127.0.0.1:{to}
"""
_SQUID = """http_port 127.0.0.1:{port}
http_access allow all
cache_mem 64 MB
cache_dir null /tmp
access_log none
cache_log /dev/null
cache_store_log none
pid_filename none
coredump_dir /
visible_hostname bench
pinger_enable off
shutdown_lifetime 0 seconds
"""


def measure(seconds: float = SECONDS) -> dict[str, float]:
    """Throughput, memory and requests per CPU second of all; empty (and said) where something is missing."""
    places = os.environ["PATH"] + ":/usr/sbin:/sbin"
    missing = [name for name in ("haproxy", "squid", "nginx", "iperf3") if not shutil.which(name, path=places)]
    if missing:
        print(f"  proxies: not measured: {', '.join(missing)} missing")
        return {}
    os.environ["PATH"] = places
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    numbers: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "www").mkdir()
        for page in ("kept", "new"):
            (folder / "www" / page).write_bytes(bytes(ord("a") + n % 26 for n in range(OBJECT)))
        (folder / "nginx.conf").write_text(_NGINX.format(folder=folder, port=NGINX))
        (folder / "haproxy.conf").write_text(_HAPROXY.format(port=HAPROXY, to=IPERF))
        (folder / "squid.conf").write_text(_SQUID.format(port=SQUID))
        stack.enter_context(_running(["nginx", "-c", f"{folder}/nginx.conf"], NGINX))
        stack.enter_context(_running(["iperf3", "-s", "-p", str(IPERF)], IPERF))
        ours = [sys.executable, "-m", "airloom", "serve"]
        split = [*ours, "split-tcp", "--listen", f"127.0.0.1:{OURS}", "--to", f"127.0.0.1:{IPERF}"]
        cache = [*ours, "http-cache", "--listen", f"127.0.0.1:{CACHE}", "--allow-origin", "127.0.0.1", "--no-log"]
        for key, command, port in (
            ("proxies.haproxy", ["haproxy", "-f", f"{folder}/haproxy.conf"], HAPROXY),
            ("proxies.split_tcp", split, OURS),
        ):
            with _running(command, port) as process:
                numbers |= _tcp(key, process.pid, port, seconds)
        for key, command, port in (
            ("proxies.squid", ["squid", "-N", "-n", f"airloom{os.getpid()}", "-f", f"{folder}/squid.conf"], SQUID),
            ("proxies.http_cache", cache, CACHE),
        ):
            with _running(command, port) as process:
                numbers |= _http(key, process.pid, port, seconds)
    for ratio, what, own, theirs in (
        ("proxies.tcp_ratio", "gbps", "split_tcp", "haproxy"),
        ("proxies.hit_ratio", "hits_per_cpu_s", "http_cache", "squid"),
        ("proxies.miss_ratio", "misses_per_cpu_s", "http_cache", "squid"),
    ):
        numbers[ratio] = numbers[f"proxies.{own}.{what}"] / numbers[f"proxies.{theirs}.{what}"]
    return numbers


@contextmanager
def _running(command: list[str], port: int) -> Iterator[subprocess.Popen[bytes]]:
    """A program for the time of the context, once its port answers."""
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=quiet, stderr=quiet) as process:
        try:
            until = time.monotonic() + 60
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=5).close()
                    break
                except OSError:
                    if time.monotonic() > until or process.poll() is not None:
                        sys.exit(f"{command[0]} does not start")
                    time.sleep(0.05)
            yield process
        finally:
            process.terminate()
            process.wait(60)


def _tcp(key: str, pid: int, port: int, seconds: float) -> dict[str, float]:
    before = _memory(pid)
    idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(IDLE)]
    time.sleep(1)
    each = (_memory(pid) - before) / IDLE
    for pair in idle:
        pair.close()
    time.sleep(1)
    spent = _cpu_s(pid)
    command = ["iperf3", "-c", "127.0.0.1", "-p", str(port), "-t", str(seconds), "-P", "2", "-J"]
    said = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    spent = _cpu_s(pid) - spent
    octets = said["end"]["sum_received"]["bytes"]
    gbps = said["end"]["sum_received"]["bits_per_second"] / 1e9
    print(f"  {key:<20} {gbps:.1f} Gbit/s, {spent / octets * 1e9:.2f} CPU s/GB, {each:.0f} octets an idle pair")
    return {f"{key}.gbps": gbps, f"{key}.cpu_s_per_gb": spent / octets * 1e9, f"{key}.idle_pair_octets": each}


def _http(key: str, pid: int, port: int, seconds: float) -> dict[str, float]:
    numbers: dict[str, float] = {}
    for what, path in (("hits", "kept"), ("misses", "new")):
        _ask(port, path, 0.5)
        spent = _cpu_s(pid)
        began = time.monotonic()
        replies = _ask(port, path, seconds)
        took, spent = time.monotonic() - began, _cpu_s(pid) - spent
        numbers |= {f"{key}.{what}_per_cpu_s": replies / spent, f"{key}.{what}_per_s": replies / took}
        print(f"  {key:<20} {what}: {replies / spent:.0f} requests per CPU s, {replies / took:.0f} per s")
    return numbers


def _ask(port: int, path: str, seconds: float) -> int:
    """Asks again and again on connections that stay; how many answers came, each of which is looked at."""
    request = f"GET http://127.0.0.1:{NGINX}/{path} HTTP/1.1\r\nHost: 127.0.0.1:{NGINX}\r\n\r\n".encode()
    poll = select.epoll()
    clients = {}
    for _ in range(CLIENTS):
        client = socket.create_connection(("127.0.0.1", port))
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.sendall(request)
        poll.register(client.fileno(), select.EPOLLIN)
        clients[client.fileno()] = (client, bytearray())
    replies, until = 0, time.monotonic() + seconds
    while time.monotonic() < until:
        for number, _ in poll.poll(1.0):
            client, heard = clients[number]
            heard += client.recv(65_536)
            head = heard.find(b"\r\n\r\n")
            if head < 0 or len(heard) < head + 4 + OBJECT:
                continue
            if len(heard) != head + 4 + OBJECT or not heard.startswith(b"HTTP/1.1 200 "):
                sys.exit(f"not an answer: {bytes(heard[:200])!r}")
            heard.clear()
            replies += 1
            client.sendall(request)
    for client, _ in clients.values():
        client.close()
    return replies


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    print(json.dumps(measure(float(sys.argv[1]) if sys.argv[1:] else SECONDS), indent=2))
