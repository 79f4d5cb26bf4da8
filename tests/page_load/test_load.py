"""`airloom load`: real pages in a real browser over modelled links."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from urllib.request import urlopen

import polars as pl
import pytest

import airloom as al
from airloom import tables
from airloom.errors import RunError, UsageError
from airloom.page_load import load_page
from airloom.page_load.folder import LoadFolder
from airloom.page_load.link_events import link_events, phases
from airloom.page_load.measure import Loaded
from airloom.page_load.report import write_report
from airloom.page_load.site import Authority, site, write_sample
from tests.cli.shell import inside
from tests.conftest import needs, needs_laboratory
from tests.emulate.test_loopback import closed_port
from tests.report.browser import Open


def needs_browser() -> None:
    needs_laboratory()
    for program in ("chromium", "nginx"):
        needs(program)
    if find_spec("playwright") is None:
        pytest.skip("playwright is not installed")


@pytest.mark.emulate
def test_a_page_is_loaded_with_and_without_a_proxy_and_both_are_reported(tmp_path: Path, look: Open) -> None:
    needs_browser()
    loss = {"links.radio.loss": 0.1}
    loads = [
        load_page("http://origin/", "umts-dch", way, tmp_path / way, overrides=loss) for way in ("none", "http-cache")
    ]
    (sample := tmp_path / "sample-page").mkdir()
    write_sample(sample)
    size = sum(file.stat().st_size for file in sample.iterdir())
    for loaded in loads:
        assert loaded.seen["error"] is None
        requests = loaded.seen["requests"]
        # The page, a style sheet, a script, twelve images.
        assert [request["status"] for request in requests] == [200] * 15
        assert sum(request["body"] for request in requests) == size
        assert loaded.page_s is not None
        assert all(0 <= request["start"] < request["end"] <= loaded.seen["load"] for request in requests)
        # 384 kbit/s at best, and several round trips.
        assert loaded.page_s > 8 * size / 384e3
        assert len(json.loads((loaded.folder / "load.har").read_text())["log"]["entries"]) >= 15
        assert len(loaded.seen["frames"]) == len(list((loaded.folder / "shots").iterdir())) > 0
        events = link_events(loaded)
        assert events.received > size
        assert 0 < events.connections < 15
        assert len(events.again) > 0 < len(events.lost)
        assert all(at <= loaded.seen["load"] for at in events.again)
    write_report(loads, "http://origin/", tmp_path / "report.html")
    with look(tmp_path / "report.html") as seen:
        assert seen.page.locator(".fall").count() == 2
        assert seen.page.locator(".strip").count() == 2
        assert seen.page.locator(".strip .done img").count() == 2
        assert "umts-dch, http-cache" in seen.page.locator("table").inner_text()


class Pictures(BaseHTTPRequestHandler):
    """A page of 300 pictures."""

    def do_GET(self) -> None:
        page = '<!doctype html><link rel="icon" href="data:,">'
        page += "".join(f'<img src="{number}.svg">' for number in range(300))
        text = page if self.path == "/" else '<svg xmlns="http://www.w3.org/2000/svg"/>'
        self.send_response(200)
        self.send_header("Content-Type", "text/html" if self.path == "/" else "image/svg+xml")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_all_requests_of_a_page_are_seen(tmp_path: Path) -> None:
    chromium = needs("chromium")
    if find_spec("playwright") is None:
        pytest.skip("playwright is not installed")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Pictures)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    (shots := tmp_path / "shots").mkdir()
    job = {
        "url": f"http://127.0.0.1:{server.server_port}/",
        "chromium": chromium,
        "flags": ["--no-sandbox"],
        "insecure": False,
        "har": str(tmp_path / "load.har"),
        "shots": str(shots),
        "timeout_s": 60,
    }
    # Without a laboratory there is no gateway to be knocked at.
    words = "import json, sys; from airloom.page_load import browser; browser.mark = lambda: 0.0; "
    words += "print(json.dumps(browser.load(json.load(sys.stdin))))"
    try:
        done = subprocess.run(
            [sys.executable, "-c", words], input=json.dumps(job), stdout=subprocess.PIPE, text=True, check=True
        )
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    seen = json.loads(done.stdout)
    assert seen["error"] is None
    assert [request["status"] for request in seen["requests"]] == [200] * 301


def two_servers(place: Path) -> tuple[Path, Path]:
    """The sample page, with every other image on another server."""
    page, images = place / "page", place / "images"
    page.mkdir()
    images.mkdir()
    write_sample(page)
    text = (page / "index.html").read_text()
    for number in range(1, 12, 2):
        (page / f"{number}.png").rename(images / f"{number}.png")
        text = text.replace(f'src="{number}.png"', f'src="//images/{number}.png"')
    (page / "index.html").write_text(text)
    return page, images


@pytest.mark.slow
@pytest.mark.emulate
@pytest.mark.parametrize("way", ["none", "split-tcp", "http-cache", "squid"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_page_on_two_servers_comes_from_end_to_end(tmp_path: Path, way: str, scheme: str) -> None:
    needs_browser()
    if way == "squid":
        needs("squid")
    page, images = two_servers(tmp_path)
    loaded = load_page(f"{scheme}://origin/", "wpt/3g", way, tmp_path / way, root=page, others={"images": images})
    assert loaded.seen["error"] is None
    requests = loaded.seen["requests"]
    # TLS and HTTP/2 reach through a proxy.
    assert {request["protocol"] for request in requests} == {"h2" if scheme == "https" else "http/1.1"}
    assert [request["status"] for request in requests] == [200] * 15
    assert sum(request["url"].startswith(f"{scheme}://images/") for request in requests) == 6


@pytest.mark.emulate
def test_the_clocks_meet_at_the_mark_and_not_at_a_datagram_that_left_before(tmp_path: Path) -> None:
    needs_laboratory()
    points = {"run.points": ["mobile.radio.ip"]}
    with al.lab("umts-page", real=["mobile"], overrides=points, enter=False, out=tmp_path / "run") as lab:
        origin = lab.hosts["origin"][0]
        with lab.socket(type=socket.SOCK_DGRAM) as sending:
            sending.sendto(b"which address?", (origin, 53))
            time.sleep(0.1)
            sending.sendto(b"", (origin, 9))
            time.sleep(0.1)
    seen = {"error": None, "origin": 0.0, "marked": 0.0, "load": 60_000.0}
    loaded = SimpleNamespace(folder=tmp_path, seen=seen, page_s=60.0)
    assert link_events(cast(Loaded, loaded)).sent == 28


@pytest.mark.emulate
def test_a_browser_that_hangs_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_browser()
    run = al.Lab.run

    def hung(lab: al.Lab, words: list[str], **more: Any) -> subprocess.CompletedProcess[Any]:
        if "airloom.page_load.browser" in words:
            raise subprocess.TimeoutExpired(words, more["timeout"])
        return run(lab, words, **more)

    monkeypatch.setattr(al.Lab, "run", hung)
    with pytest.raises(RunError, match="it hung for 121 s"):
        load_page("http://origin/", "wireline", "none", tmp_path / "load", timeout_s=1)


@pytest.mark.emulate
@pytest.mark.parametrize("version", ["1.1", "2", "3"])
def test_a_page_comes_by_the_version_of_http_that_is_asked_for(tmp_path: Path, version: str) -> None:
    needs_browser()
    page, images = two_servers(tmp_path)
    loaded = load_page(
        "https://origin/", "wpt/4g", "none", tmp_path / "load", root=page, others={"images": images}, http=version
    )
    assert loaded.seen["error"] is None
    requests = loaded.seen["requests"]
    assert {request["protocol"] for request in requests} == {{"1.1": "http/1.1", "2": "h2", "3": "h3"}[version]}
    assert [request["status"] for request in requests] == [200] * 15
    events = link_events(loaded)
    # Over one connection all is multiplexed, but to HTTP/1.1 there belong several.
    assert events.connections > 2 if version == "1.1" else events.connections >= 2
    packets = tables.read(loaded.folder / "run" / "packets.parquet").filter(pl.col("event").cast(pl.String) == "rx")
    octets = dict(packets.group_by(pl.col("proto").cast(pl.String)).agg(pl.col("len").sum()).iter_rows())
    assert (
        octets.get("udp" if version == "3" else "tcp", 0) > 50_000 > octets.get("tcp" if version == "3" else "udp", 0)
    )


@pytest.mark.slow
@pytest.mark.emulate
@pytest.mark.parametrize("way", ["split-tcp", "http-cache", "squid"])
def test_a_gateway_that_is_killed_during_a_page_ends_it_at_once(tmp_path: Path, way: str) -> None:
    needs_browser()
    if way == "squid":
        needs("squid")

    ended = threading.Event()

    def kill() -> None:
        """Once a third of the page has left the gateway."""
        while not ended.wait(0.1):
            proxies = descendants("/squid" if way == "squid" else way)
            if proxies and sent(proxies[0]) > 20_000:
                for pid in proxies:
                    os.kill(pid, signal.SIGKILL)
                return

    killer = threading.Thread(target=kill)
    killer.start()
    # 61 kB take 16 s.
    slow = {"links.radio.rate": "32kbit/s"}
    try:
        loaded = load_page("http://origin/", "umts-dch", way, tmp_path / "load", overrides=slow)
    finally:
        ended.set()
        killer.join()
    # What has come is shown, the rest is missing: no request hangs.
    assert loaded.seen["error"] is None
    statuses = [request["status"] for request in loaded.seen["requests"]]
    assert 1 <= statuses.count(200) < 15
    assert statuses.count(0) == len(statuses) - statuses.count(200) > 0
    assert loaded.page_s is not None


def sent(pid: int) -> int:
    """Octets that have left the network namespace of a process."""
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/net/dev").read_text().splitlines()[2:]
        return sum(int(line.split(":")[1].split()[8]) for line in lines if not line.strip().startswith("lo:"))
    return 0


def descendants(word: str) -> list[int]:
    """The processes below this one with this word in their command line."""
    found, parents = {}, {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(place.name)] = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            found[int(place.name)] = (place / "cmdline").read_bytes().decode(errors="replace")
        except OSError:  # it ended meanwhile
            continue

    def is_ours(pid: int) -> bool:
        return pid == os.getpid() or (pid in parents and is_ours(parents[pid]))

    return [pid for pid, line in found.items() if word in line and is_ours(pid)]


def test_what_cannot_be_loaded_is_said_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").touch()
    for words, why in (
        (("ftp://origin/",), "expected http://... or https://..."),
        (("http://[::1/",), "is no address of a page"),
        (("http://origin:81/",), "has the ports 80 and 443"),
        (("http://gateway/",), "gateway is a host of the laboratory that serves no pages"),
        ((f"http://localhost:{closed_port()}/",), "of this machine's loopback"),
        (("http://host.airloom:8000/", "--loopback", "x"), "'x' is no port"),
        (("http://origin/", "--strict", "soon"), "expected a time such as 500us or 2ms"),
        (
            ("http://origin/", "--link", "wpt/4gg"),
            "no bearer or preset is called so (did you mean wpt/4g?); valid bearers:",
        ),
        (("http://origin/", "--link", "wpt/3g", "--link", "wpt/3g"), "wpt/3g with none is asked for twice"),
        (("http://origin/", "--proxy", "nginx"), "no proxy 'nginx'; valid: none, split-tcp, http-cache, squid"),
        (("http://origin/", "--link", "umts-dsh"), "umts-dch"),
        (("http://origin/", "--http", "3"), "ask for https://origin/"),
        (("https://origin/", "--http", "4"), "no HTTP/4; valid: 1.1, 2, 3"),
        (("https://origin/", "--http", "3", "--proxy", "split-tcp"), "not with split-tcp"),
        (("https://localhost:8000/", "--http", "3"), "by TCP alone"),
        (("http://origin/", "--site", tmp_path / "nothing"), "is not a folder"),
        (("http://origin/", "--site", tmp_path, "--site", tmp_path), "NAME="),
        (("http://origin/", "--site", f"b={tmp_path}", "--site", f"b={tmp_path}"), "b has files already"),
        (("http://origin/", "--site", f"gateway={tmp_path}"), "cannot be called 'gateway'"),
        (("http://origin/", "--out", tmp_path / "taken"), "taken exists and is not a result folder"),
        (("http://origin/", "--set", "links.radio.los=1"), "los"),
    ):
        done = inside("load", *words, *(() if "--out" in words else ("--out", tmp_path / "out")))
        assert done.code == 2, done.err
        assert why in done.err
        assert not (tmp_path / "out").exists()


def test_loads_are_replaced_once_something_is_loaded(tmp_path: Path) -> None:
    place = tmp_path / "m"
    (place / "umts-dch-none").mkdir(parents=True)
    (place / "loads.json").write_text('{"load_id": "1", "name": "http://origin/"}')
    done = inside("load", "http://origin/", "--proxy", "squit", "--out", place, "--force")
    assert (done.code, "no proxy 'squit'" in done.err) == (2, True)
    assert sorted(path.name for path in place.iterdir()) == ["loads.json", "umts-dch-none"]
    folder = LoadFolder(place, "http://origin/", force=True)
    with suppress(KeyboardInterrupt), folder.place("wpt/3g", "none", None, None) as load:
        load.mkdir()
        raise KeyboardInterrupt
    folder.remove()
    assert sorted(path.name for path in place.iterdir()) == ["loads.json", "umts-dch-none"]
    folder = LoadFolder(place, "http://origin/", force=True)
    with folder.place("wpt/3g", "none", None, None) as load:
        load.mkdir()
    folder.finish([], ["airloom", "load"])
    assert sorted(path.name for path in place.iterdir()) == ["loads.json", "report.html", "wpt-3g-none"]
    assert list(tmp_path.iterdir()) == [place]


def test_a_request_is_made_of_what_it_waited_for() -> None:
    request = {"start": 1, "connect": 5, "secure": 8, "connected": 12, "request": 13, "response": 20, "end": 30}
    expected = [("queued", 1, 5), ("connecting", 5, 8), ("TLS", 8, 12), ("queued", 12, 13), ("waiting", 13, 20)]
    assert phases(request) == [*expected, ("receiving", 20, 30)]
    again = request | {"connect": 1, "secure": 1, "connected": 1}
    assert phases(again) == [("queued", 1, 13), ("waiting", 13, 20), ("receiving", 20, 30)]
    # What failed has no times but two.
    assert phases({key: 0 for key in request} | {"start": 2, "end": 4}) == [("waiting", 2, 4)]


def test_the_sample_page_is_always_the_same(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write_sample(tmp_path / name)
    names = sorted(file.name for file in (tmp_path / "a").iterdir())
    assert len(names) == 15
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in names)


def test_a_folder_that_nginx_cannot_be_told_of_is_refused(tmp_path: Path) -> None:
    needs("nginx")
    for name in ('a"b', "a$b", "a\nb"):
        (tmp_path / name).mkdir()
        with pytest.raises(UsageError, match="cannot be told"):
            load_page("http://origin/", "umts-dch", "none", tmp_path / "out" / name[:1], root=tmp_path / name)
        with pytest.raises(UsageError, match="cannot be told"):
            site("origin", None, tmp_path / name, None)
        shutil.rmtree(tmp_path / "out")


@pytest.mark.parametrize("name", ["a b", "a;b", "a{b}c", "a\\b", "a\\nb", "a'b#c", "\u00e9"])
def test_nginx_is_told_of_folders_with_any_other_name(tmp_path: Path, name: str) -> None:
    needs("nginx")
    needs("openssl")
    folder = tmp_path / name
    (folder / "out").mkdir(parents=True)
    (folder / "files").mkdir()
    (folder / "files" / "index.html").write_text("here")
    place = folder / "out"
    command = site("origin", folder / "files", place, Authority(place))
    config = (place / "origin.conf").read_text()
    port = closed_port()
    config = config.replace("listen 80; listen [::]:80;", f"listen 127.0.0.1:{port};")
    config = config.replace(
        "listen 443 ssl http2; listen [::]:443 ssl http2;", f"listen 127.0.0.1:{closed_port()} ssl http2;"
    )
    (place / "origin.conf").write_text(config)
    tried = subprocess.run([*command, "-t"], capture_output=True, text=True, check=False)
    assert tried.returncode == 0, tried.stderr
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            for _ in range(200):
                with suppress(OSError):
                    assert urlopen(f"http://127.0.0.1:{port}/", timeout=10).read() == b"here"
                    break
                assert process.poll() is None
                time.sleep(0.05)
            else:
                pytest.fail("nginx does not answer")
        finally:
            process.terminate()
    assert {path.name for path in place.iterdir()} >= {"origin-client_body", "origin-scgi"}
