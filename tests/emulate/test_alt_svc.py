"""A server's word that it speaks QUIC, too (Alt-Svc, RFC 7838), and libcurl behind a link that takes it by it."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import airloom as al
from airloom.page_load.site import Authority
from tests.conftest import needs_laboratory
from tests.emulate.test_interop import nginx

pytestmark = pytest.mark.emulate

NAME, PORT = "server.test", 8443

#: As `curl --alt-svc FILE` does, by whatever version server and file lead to: which one it was, and what came.
CURL = """\
import io, json, sys
from curl_cffi import Curl, CurlHttpVersion, CurlInfo, CurlOpt
url, resolve, authority, alternatives = sys.argv[1:]
curl, body = Curl(), io.BytesIO()
# Read and written; for HTTP/1.1, 2 and 3 (CURLALTSVC_H1, _H2, _H3).
curl.setopt(CurlOpt.ALTSVC, alternatives.encode())
curl.setopt(CurlOpt.ALTSVC_CTRL, 1 << 3 | 1 << 4 | 1 << 5)
curl.setopt(CurlOpt.URL, url.encode())
curl.setopt(CurlOpt.RESOLVE, [resolve])
curl.setopt(CurlOpt.CAINFO, authority.encode())
curl.setopt(CurlOpt.WRITEDATA, body)
curl.perform()
names = {CurlHttpVersion.V1_1: "1.1", CurlHttpVersion.V2_0: "2", CurlHttpVersion.V3: "3"}
print(json.dumps([names[curl.getinfo(CurlInfo.HTTP_VERSION)], body.getvalue().decode()]))
curl.close()
"""


@contextmanager
def serving_quic(link: al.Link, folder: Path) -> Iterator[None]:
    """`airloom serve h3` at the far end, at the port that nginx has for TCP."""
    command = [sys.executable, "-P", "-m", "airloom", "serve", "h3", str(folder / "www"), "--no-log"]
    command += ["--listen", f"{link.peer}:{PORT}", "--allow-client", "0.0.0.0/0"]
    command += ["--cert", str(folder / f"{NAME}.crt"), "--key", str(folder / f"{NAME}.key")]
    with link.popen(command, host=link._far, stdout=-1, text=True) as process:
        assert process.stdout
        assert process.stdout.readline().startswith("listening on")
        yield
        process.terminate()


def test_libcurl_goes_on_by_the_alternative_that_it_was_told_of_and_by_tcp_where_that_is_dead(tmp_path: Path) -> None:
    needs_laboratory()
    authority = Authority(tmp_path)
    authority.certify(NAME)
    pair = f"ssl_certificate {tmp_path / NAME}.crt; ssl_certificate_key {tmp_path / NAME}.key;"
    word = f"add_header Alt-Svc 'h3=\":{PORT}\"; ma=3600';"
    told = tmp_path / "alternatives"

    def get(link: al.Link) -> list[str]:
        words = [f"https://{NAME}:{PORT}/file", f"{NAME}:{PORT}:{link.peer}", str(tmp_path / "authority.crt")]
        done = link.run([sys.executable, "-c", CURL, *words, str(told)], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        found: list[str] = json.loads(done.stdout)
        return found

    with al.link("wireline", seed=1, overrides={"rate": "10Mbit/s", "delay": "10ms"}, enter=False) as link:
        link.serve(list(map(str, nginx(tmp_path, f"listen {PORT} ssl http2; {pair} {word}"))), PORT)
        (tmp_path / "www" / "file").write_text("it is the same")
        with serving_quic(link, tmp_path):
            assert get(link) == ["2", "it is the same"]
            assert f"h3 {NAME} {PORT}" in told.read_text()
            assert get(link) == ["3", "it is the same"]
        assert get(link) == ["2", "it is the same"]
