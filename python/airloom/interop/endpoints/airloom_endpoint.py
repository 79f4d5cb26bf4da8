"""Our own endpoints for the interop runner: `airloom_endpoint.py client URL...` or `server`.

What to do is in TESTCASE; files are in /www, /downloads and /certs. 127: this case is not supported.
"""

import os
import socket
import sys
from pathlib import Path
from urllib.parse import urlsplit

#: What the library's connections cannot do.
WITHOUT = {
    "v2": "QUIC version 2 (RFC 9369)",
    "connectionmigration": "a client that moves to a server's preferred address (RFC 9000, 9.6)",
}
CASE = os.environ.get("TESTCASE", "")
SERVER = {"handshake", "transfer", "retry", "resumption", "zerortt", "http3", "multiconnect", "chacha20", "ecn"}
CLIENT = SERVER | {"keyupdate"}
UNSUPPORTED = 127
#: A server that says nothing for so long is given up, and a connection is kept for so long.
PATIENCE_S = 100.0


def _fetch(urls: list[str]) -> None:
    from airloom import http3
    from airloom._core import hq_get

    files = [(urlsplit(url).path, Path("/downloads") / urlsplit(url).path.lstrip("/")) for url in urls]
    if CASE == "http3":
        for one in http3.get(urls, [file for _, file in files], trust=Path("/certs/ca.pem")):
            if one.status != 200:
                sys.exit(f"{one.status} {one.url}")
        return
    visits = [files]
    if CASE == "multiconnect":
        visits = [[file] for file in files]
    elif CASE in ("resumption", "zerortt"):
        visits = [files[:1], files[1:]]
    host = urlsplit(urls[0]).hostname or ""
    family, _, _, _, address = socket.getaddrinfo(host, urlsplit(urls[0]).port or 443, type=socket.SOCK_DGRAM)[0]
    ip, port = str(address[0]), int(address[1])
    to = f"[{ip}]:{port}" if family == socket.AF_INET6 else f"{ip}:{port}"
    words = {"chacha20": CASE == "chacha20", "early": CASE == "zerortt", "new_keys": CASE == "keyupdate"}
    hq_get(to, host, visits, PATIENCE_S, **words)


def _serve() -> None:
    from airloom._core import serve_h3, serve_hq

    certificate = (Path("/certs/cert.pem"), Path("/certs/priv.key"))
    if CASE == "http3":
        # The case is by IPv4.
        serve_h3("0.0.0.0:443", Path("/www"), certificate, [], ["0.0.0.0/0"], 256, 1.0, lambda _: None, None)
        return
    words = {"retry": CASE == "retry", "chacha20": CASE == "chacha20", "early": CASE == "zerortt"}
    serve_hq("[::]:443", Path("/www"), certificate, ["0.0.0.0/0", "::/0"], lambda _: None, **words)


if __name__ == "__main__":
    role, *requests = sys.argv[1:]
    if CASE not in (CLIENT if role == "client" else SERVER):
        print(WITHOUT.get(CASE, f"no case {CASE!r}"))
        sys.exit(UNSUPPORTED)
    if role == "client":
        _fetch(requests)
    else:
        _serve()
