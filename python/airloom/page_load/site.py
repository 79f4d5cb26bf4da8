"""The server: nginx with a folder of files, or with a page of our own; `airloom serve h3` beside it for HTTP/3."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import random
import re
import shlex
import struct
import subprocess
import zlib
from pathlib import Path

from airloom import interpreter
from airloom.errors import UsageError
from airloom.page_load.ways import INSIDE
from airloom.programs import needed

_CONFIG = """\
daemon off; worker_processes 1; pid {pid}; {user}
events {{}}
http {{
  access_log off; {temporary}
  {more}
  # Every browser asks for an icon: a site that has none is no mistake.
  server {{ listen 80; listen [::]:80; {secure} root {root}; location = /favicon.ico {{ log_not_found off; }} }}
}}
"""

_MORE = """types { text/html html htm; text/css css; text/javascript js; image/png png; image/jpeg jpg jpeg;
          image/gif gif; image/svg+xml svg; font/woff2 woff2; }
  sendfile on;
  # A browser tells a page nothing about what came from other servers unless they allow it (Resource Timing, 4.5.1).
  add_header Timing-Allow-Origin *;
"""

_SECURE = """listen 443 ssl http2; listen [::]:443 ssl http2;
    ssl_certificate {certificate}; ssl_certificate_key {key};"""

#: What a server's name may look like: that of a host and, with `internet-` before it, of a link.
_NAME = re.compile(r"[a-z][a-z0-9-]{0,19}")
#: Names of a load's other hosts and links.
_TAKEN = ("origin", "mobile", "gateway", "machine", "outside", "radio", "internet", "localhost")

#: Where nginx keeps what does not fit into memory.
_TEMPORARY = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


def check_server_name(name: str) -> None:
    """Raises `UsageError` if a further server cannot be called so."""
    if name in _TAKEN or not _NAME.fullmatch(name):
        raise UsageError(f"a further server cannot be called {name!r}")


def remove_empty_folders(folder: Path) -> None:
    """Takes nginx's folders for temporary files away, which are empty once it has ended."""
    for kind in _TEMPORARY:
        for place in folder.glob(f"*-{kind}"):
            with contextlib.suppress(OSError):
                place.rmdir()


class Authority:
    """The laboratory's certificate authority: a key of its own, which this load's browser trusts and nobody else."""

    def __init__(self, folder: Path) -> None:
        """Makes `authority.crt` and its key in `folder`."""
        self._openssl = needed("openssl")
        self._folder = folder
        self._certificate, self._key = folder / "authority.crt", folder / "authority.key"
        self._make(
            "-x509", "-days", "2", "-subj", "/CN=airloom laboratory", "-keyout", self._key, "-out", self._certificate
        )
        public = [self._openssl, "pkey", "-in", str(self._key), "-pubout", "-outform", "der"]
        der = subprocess.run(public, check=True, capture_output=True).stdout
        digest = base64.b64encode(hashlib.sha256(der).digest()).decode()
        #: What makes Chromium trust chains in which this key stands.
        self.flag = f"--ignore-certificate-errors-spki-list={digest}"

    def certify(self, name: str) -> None:
        """Makes `NAME.crt`, a chain up to the authority, and `NAME.key`."""
        request, chain, extensions = (self._folder / f"{name}.{end}" for end in ("csr", "crt", "ext"))
        self._make("-subj", f"/CN={name}", "-keyout", self._folder / f"{name}.key", "-out", request)
        extensions.write_text(f"subjectAltName=DNS:{name}\nbasicConstraints=CA:FALSE\n")
        sign = [self._openssl, "x509", "-req", "-in", request, "-CA", self._certificate, "-CAkey", self._key]
        sign += ["-CAcreateserial", "-days", "2", "-extfile", extensions]
        signed = subprocess.run(list(map(str, sign)), check=True, capture_output=True).stdout
        chain.write_bytes(signed + self._certificate.read_bytes())

    def _make(self, *words: str | Path) -> None:
        start = [self._openssl, "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        subprocess.run([*start, *map(str, words)], check=True, capture_output=True)


def site(
    name: str, root: Path | None, folder: Path, authority: Authority | None, *, by_quic: bool = False
) -> list[str]:
    """The command of an nginx for the server `name` with the files in `root` (or the sample page).

    Its own files go into `folder`. With an authority it speaks TLS and HTTP/2, too, and `by_quic` HTTP/3.
    """
    if root is None:
        root = folder / "www"
        root.mkdir()
        write_sample(root)
    elif not root.is_dir():
        raise UsageError(f"{root} is not a folder with a page in it")
    if authority is not None:
        authority.certify(name)
    secure = ""
    if authority is not None:
        secure = _SECURE.format(certificate=_path(folder, f"{name}.crt"), key=_path(folder, f"{name}.key"))
    command = nginx(name, root, folder, _MORE, secure)
    if not by_quic:
        return command
    # The system's nginx has no QUIC.
    pair = [
        word for end, what in (("crt", "--cert"), ("key", "--key")) for word in (what, str(folder / f"{name}.{end}"))
    ]
    clients = [word for network in INSIDE for word in ("--allow-client", network)]
    ours = ["-q", "serve", "h3", str(root.resolve()), "--listen", "[::]:443", "--no-log", *pair, *clients]
    ours += ["--header", "Timing-Allow-Origin: *"]
    return ["/bin/sh", "-c", f"{shlex.join(command)} & exec {shlex.join(interpreter.airloom(*ours))} > /dev/null"]


def nginx(name: str, root: Path, folder: Path, more: str, secure: str = "") -> list[str]:
    """The command of an nginx for the files in `root`, its own ones in `folder`; `more` is about HTTP, `secure` TLS."""
    config = _CONFIG.format(
        pid=_path(folder, f"{name}.pid"),
        root=_path(root.resolve()),
        user="user root;" if os.geteuid() == 0 else "",
        temporary="".join(f"{kind}_temp_path {_path(folder, f'{name}-{kind}')}; " for kind in _TEMPORARY),
        more=more,
        secure=secure,
    )
    (folder / f"{name}.conf").write_text(config)
    return [needed("nginx"), "-e", "stderr", "-c", str(folder / f"{name}.conf")]


def _path(folder: Path, name: str = "") -> str:
    """A path as nginx reads it in its configuration. Raises `UsageError` for those of which it cannot be told."""
    # Behind a dollar sign it looks for a variable, and nothing takes that from it.
    if any(sign in str(folder) for sign in '"$\n'):
        raise UsageError(f"nginx cannot be told of a folder called {folder}")
    return '"' + str(folder / name).replace("\\", "\\\\") + '"'


#: Sizes of the sample page's images, in octets, about: many small ones and a few large.
_IMAGES = (600, 900, 1200, 1500, 2000, 2500, 3200, 4000, 5000, 6500, 9000, 14000)


_WORDS = "bearer block channel circuit datagram frame handover link packet page radio round segment timer wave"


def write_sample(root: Path) -> None:
    """A news page: text, a style sheet, a script that a browser waits for, twelve images; always the same octets."""
    chance = random.Random(1)
    words = _WORDS.split()
    paragraphs = "".join(
        f"<p>{' '.join(chance.choices(words, k=60)).capitalize()}.</p>"
        + "".join(f'<img src="{n}.png" width="120" height="60" alt="">' for n in range(part * 3, part * 3 + 3))
        for part in range(4)
    )
    head = (
        '<meta charset="utf-8"><title>Sample</title><link rel="icon" href="data:,"><link rel="stylesheet" href="s.css">'
    )
    page = f'<!doctype html><html lang="en"><head>{head}<script src="s.js"></script></head><body>'
    (root / "index.html").write_text(f"{page}<h1>News over the air</h1>{paragraphs}</body></html>\n")
    style = "body { font: 16px/1.5 sans-serif; max-width: 46em; margin: 1em auto } h1 { color: #0072b2 }\n"
    (root / "s.css").write_text(style + "".join(f".c{n} {{ margin: {n}px }}\n" for n in range(150)))
    (root / "s.js").write_text("document.documentElement.dataset.ready = 'yes';\n" + "// filler\n" * 400)
    for number, size in enumerate(_IMAGES):
        (root / f"{number}.png").write_bytes(_picture(chance, max((size - 100) // 3, 1)))


def _picture(chance: random.Random, pixels: int) -> bytes:
    """A PNG of noise, which does not become smaller."""
    width = 40
    rows = -(-pixels // width)
    lines = b"".join(b"\0" + chance.randbytes(3 * width) for _ in range(rows))

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, rows, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines, 0)) + chunk(b"IEND", b"")
