"""An HTTP/3 client for the interop runner by curl_cffi: `TESTCASE=http3 curl_endpoint.py URL...`."""

import os
import sys
from pathlib import Path
from urllib.parse import urlsplit


def _fetch(urls: list[str]) -> None:
    from curl_cffi import CurlHttpVersion, requests

    with requests.Session(http_version=CurlHttpVersion.V3ONLY, verify=False, timeout=60) as session:
        for url in urls:
            answer = session.get(url)
            answer.raise_for_status()
            (Path("/downloads") / urlsplit(url).path.lstrip("/")).write_bytes(answer.content)


if __name__ == "__main__":
    if os.environ.get("TESTCASE") != "http3":
        print("curl speaks no HTTP/0.9 over QUIC, which all other cases use")
        sys.exit(127)
    _fetch(sys.argv[1:])
