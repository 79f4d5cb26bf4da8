"""Our own HTTP/3 for the interop runner: `TESTCASE=http3 airloom_endpoint.py client URL...` or `server`."""

import os
import sys
from pathlib import Path
from urllib.parse import urlsplit


def _fetch(urls: list[str]) -> None:
    from airloom import http3

    files = [Path("/downloads") / urlsplit(url).path.lstrip("/") for url in urls]
    for one in http3.get(urls, files, trust=Path("/certs/ca.pem")):
        if one.status != 200:
            sys.exit(f"{one.status} {one.url}")


def _serve() -> None:
    from airloom._core import serve_h3

    certificate = (Path("/certs/cert.pem"), Path("/certs/priv.key"))
    # The case is by IPv4.
    serve_h3("0.0.0.0:443", Path("/www"), certificate, [], ["0.0.0.0/0"], 256, 1.0, lambda _: None, None)


if __name__ == "__main__":
    if os.environ.get("TESTCASE") != "http3":
        # HTTP/0.9 over QUIC, which all other cases use, is nothing that our client and server have.
        sys.exit(127)
    if sys.argv[1] == "client":
        _fetch(sys.argv[2:])
    else:
        _serve()
