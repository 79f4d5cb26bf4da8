"""`airloom browse`: the browser of the simulated network on real sockets."""

import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from airloom.browsing import Browsed, browse
from airloom.errors import UsageError
from tests.cli.shell import airloom
from tests.proxies.running import Server

SET = {
    "format": "airloom page set 1",
    "pages": [{"objects": [{"path": "/", "size": "20B"}, *({"path": f"/{n}", "size": f"{n}B"} for n in range(1, 9))]}],
}


class Requests:
    """What a server was asked on each connection; all but the first request wait until there are `hold` of them."""

    def __init__(self, hold: int) -> None:
        self.hold = hold
        self.connections: list[list[str]] = []

    def serve(self, connection: socket.socket) -> None:
        """Sends as many octets as were asked for."""
        mine: list[str] = []
        self.connections.append(mine)
        waiting: list[bytes] = []
        said = b""
        while octets := connection.recv(65_536):
            said += octets
            whole, end, said = said.rpartition(b"\r\n\r\n")
            for path, size in re.findall(rb"GET (\S+?)(?:\?octets=(\d+))? HTTP", whole + end):
                mine.append(path.decode())
                head = b"HTTP/1.1 404 Not Found" if path == b"/none" else b"HTTP/1.1 200 OK"
                body = b"x" * int(size or 5)
                waiting.append(b"%s\r\nContent-Length: %d\r\n\r\n%s" % (head, len(body), body))
            if len(waiting) >= self.hold or len(mine) == 1:
                connection.sendall(b"".join(waiting))
                waiting.clear()


@contextmanager
def asked(hold: int = 1) -> Iterator[tuple[Requests, Server]]:
    requests = Requests(hold)
    with Server(requests.serve) as running:
        yield requests, running


def test_urls_come_one_after_another() -> None:
    with asked() as (requests, running):
        here = f"http://127.0.0.1:{running.port}"
        done = airloom("browse", f"{here}/a", f"{here}/b?c=d", "--json")
        assert done.code == 0, done
        found = json.loads(done.out)
        assert [page["url"] for page in found["pages"]] == [f"{here}/a", f"{here}/b?c=d"]
        assert [(o["status"], o["bytes"], o["request"]) for o in found["objects"]] == [(200, 5, 1), (200, 5, 2)]
        assert found["done"]
        assert found["pages"][1]["start_s"] >= found["pages"][0]["load_s"] > 0
        assert requests.connections == [["/a", "/b?c=d"]]
        done = airloom("browse", f"{here}/none")
        assert done.code == 1
        assert "1 failed" in done.err


def test_it_pipelines_the_objects_of_a_page_set() -> None:
    Path("set.json").write_text(json.dumps(SET))
    with asked(hold=8) as (requests, running):
        settings = {"page_set": "set.json", "server": f"127.0.0.1:{running.port}", "connections": 1}
        found = airloom_browse(settings | {"pipeline": 8})
        assert requests.connections == [["/", *(f"/{n}" for n in range(1, 9))]]
        assert found.summary["bytes"] == 20 + sum(range(1, 9))
        assert {o["connection"] for o in found.objects} == {0}
        alone = airloom_browse(settings | {"keep_alive": False})
        assert len(requests.connections) == 1 + 9
        assert alone.summary["connections"] == 9


def airloom_browse(settings: dict[str, object]) -> Browsed:
    found = browse(settings=settings, timeout_s=60)
    assert found.done
    return found


def test_wrong_words_are_one_line() -> None:
    for words, why in (
        ((), "nothing to load"),
        (("https://a/",), "expected http://HOST/PATH"),
        (("http://a:b/",), "http://a:b/"),
        (("http://nosuchhost.invalid/",), "there is no host `nosuchhost.invalid`"),
        (
            ("http://127.0.0.1/", "--set", "pipelin=3"),
            "--set pipelin=3: unknown key `pipelin` (did you mean `pipeline`?)",
        ),
        (("http://127.0.0.1/", "--seed", str(2**64)), "too big"),
        (("http://127.0.0.1/", "--set", "pages=[['/']]"), "not by both"),
        (("http://127.0.0.1/", "--set", "tls={}"), "--set tls={}: TLS is a model between simulated hosts"),
        (("http://127.0.0.1/", "--set", "tls={}", "--set", "proxy=127.0.0.1"), "cannot shake hands with real servers"),
        (("--set", "page_set=nothing.json"), "nothing.json"),
    ):
        done = airloom("browse", *words)
        assert done.code == 2, done
        assert why in done.err
        assert done.err.count("\n") == 1
    with pytest.raises(UsageError, match="nothing to load"):
        browse()


def test_a_server_that_says_nothing_is_left_when_told_so_or_when_time_is_up() -> None:
    def silent(connection: socket.socket) -> None:
        connection.recv(65_536)
        connection.recv(65_536)

    with Server(silent) as running:
        url = f"http://127.0.0.1:{running.port}/"
        done = airloom("browse", url, "--timeout", "0.3")
        assert done.code == 4
        assert "not done: 0 pages" in done.err
        # The one who counts may be behind.
        while running.connections < 1:
            time.sleep(0.01)
        before = running.connections
        words = [sys.executable, "-m", "airloom", "browse", url]
        with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
            while running.connections == before and process.poll() is None:
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
        assert process.returncode != 0
        assert "Traceback" not in said
