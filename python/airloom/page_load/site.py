"""The server: nginx with a folder of files, or with a page of our own."""

from __future__ import annotations

import base64
import hashlib
import os
import random
import struct
import subprocess
import zlib
from pathlib import Path
from typing import NamedTuple

from airloom.errors import UsageError
from airloom.page_load.ways import program

_CONFIG = """\
daemon off; worker_processes 1; pid {folder}/nginx.pid; {user}
events {{}}
http {{
  access_log off; {temporary}
  types {{ text/html html htm; text/css css; text/javascript js; image/png png; image/jpeg jpg jpeg; image/gif gif;
           image/svg+xml svg; font/woff2 woff2; }}
  sendfile on;
  server {{ listen 80; listen [::]:80; root "{root}"; }}
  {secure}
}}
"""

_SECURE = """server {{ listen 443 ssl http2; listen [::]:443 ssl http2; root "{root}";
    ssl_certificate {folder}/origin.crt; ssl_certificate_key {folder}/origin.key; }}"""


class Site(NamedTuple):
    """A server that can be started."""

    command: list[str]
    #: Words that make Chromium trust the laboratory's key, and no other.
    flags: list[str]


def site(root: Path | None, folder: Path, *, secure: bool) -> Site:
    """nginx with the files in `root` (or the sample page); its own files go into `folder`.

    `secure`: it speaks TLS and HTTP/2, too.
    """
    nginx = program("nginx")
    if root is None:
        root = folder / "www"
        root.mkdir()
        write_sample(root)
    elif not root.is_dir():
        raise UsageError(f"{root} is not a folder with a page in it")
    elif '"' in str(root.resolve()) or "\n" in str(root.resolve()):
        raise UsageError(f"nginx cannot be told of a folder called {root}")
    flags: list[str] = []
    block = ""
    if secure:
        flags.append(f"--ignore-certificate-errors-spki-list={_certificate(folder)}")
        block = _SECURE.format(root=root.resolve(), folder=folder)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    config = _CONFIG.format(
        folder=folder,
        root=root.resolve(),
        user="user root;" if os.geteuid() == 0 else "",
        temporary="".join(f"{kind}_temp_path {folder / kind}; " for kind in kinds),
        secure=block,
    )
    (folder / "nginx.conf").write_text(config)
    return Site([nginx, "-e", "stderr", "-c", str(folder / "nginx.conf")], flags)


def _certificate(folder: Path) -> str:
    """Makes a key and a certificate for `origin`; the hash of the key as Chromium asks for it."""
    openssl = program("openssl")
    key, certificate = folder / "origin.key", folder / "origin.crt"
    make = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    make += [
        "-subj",
        "/CN=origin",
        "-addext",
        "subjectAltName=DNS:origin",
        "-keyout",
        str(key),
        "-out",
        str(certificate),
    ]
    subprocess.run(make, check=True, capture_output=True)
    public = [openssl, "pkey", "-in", str(key), "-pubout", "-outform", "der"]
    der = subprocess.run(public, check=True, capture_output=True).stdout
    return base64.b64encode(hashlib.sha256(der).digest()).decode()


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
