"""What a reply costs the gateway (2.1): 10 kB encoded, converted from HTML, and passed through. Prints JSON.

The daemon runs on this machine's loopback with a server of the same process as this program; what counts is the CPU
time of the daemon alone, over batches of requests that take turns.
"""

import json
import os
import sys
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path

from wap_vs_http.daemon import gateway
from wap_vs_http.decks import deck

from airloom.bounded import Answering
from airloom.wap import Client

SIZE = 10_000
BATCHES, REQUESTS = 10, 50

_PAGE = "<html><head><title>News</title></head><body><h1>News</h1>\n"


def page(size: int) -> bytes:
    """A web page with the text of a deck."""
    lines = deck(size).decode().split('<p mode="wrap">\n')[1].split("</p>")[0].split("<br/>\n")
    text = "".join(f'<p>{line} <a href="/{n}">more</a></p>\n' for n, line in enumerate(lines))
    end = "</body></html>\n"
    return (_PAGE + text)[: size - len(end)].rpartition("<p>")[0].encode() + end.encode()


BODIES = {
    "/deck": ("text/vnd.wap.wml", deck(SIZE)),
    "/page": ("text/html", page(SIZE)),
    "/file": ("application/octet-stream", os.urandom(SIZE)),
}
NAMES = {"/deck": "encoded", "/page": "converted from HTML", "/file": "passed through"}


class Handler(Answering):
    """Serves the three."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Sends one."""
        self.answer(200, *BODIES[self.path])


def cpu_s(pid: int) -> float:
    """CPU time of a process's threads so far, s."""
    # Nanoseconds on a core, which the accounting by clock ticks is too coarse for.
    return sum(int(file.read_text().split()[0]) for file in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def main() -> None:
    """Measures and prints."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    found: dict[str, list[float]] = {name: [] for name in NAMES.values()}
    sizes: dict[str, int] = {}
    with gateway() as (daemon, port, _), Client("127.0.0.1", port, maximum_group=64_000) as wap:
        for batch in range(BATCHES + 1):
            for path, name in NAMES.items():
                begin = cpu_s(daemon.pid)
                for _ in range(REQUESTS):
                    reply = wap.get(f"http://127.0.0.1:{server.server_address[1]}{path}")
                    assert reply.status == 200, (path, reply.status)
                    sizes[name] = len(reply.body)
                if batch:  # the first one warms up
                    found[name].append(REQUESTS / (cpu_s(daemon.pid) - begin))
    json.dump({"replies_per_cpu_s": found, "reply_octets": sizes}, sys.stdout)


if __name__ == "__main__":
    main()
