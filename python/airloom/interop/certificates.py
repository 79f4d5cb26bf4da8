"""Certificates of a server, as the interop runner makes them: by openssl, signed by an authority of their own."""

from __future__ import annotations

import random
import string
import subprocess
from pathlib import Path

from airloom.errors import RunError
from airloom.programs import needed

_NAMES = ("server", "server4", "server6", "server46")
_AUTHORITY = """\
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
"""


def make_certificates(folder: Path, length: int = 1) -> None:
    """`cert.pem`, a chain of `length` with the server's own first, `priv.key`, and `ca.pem`.

    A longer chain has large certificates: more than a server may send before it knows the client's address.
    """
    program = needed("openssl")
    folder.mkdir()

    def openssl(*words: str) -> None:
        done = subprocess.run([program, *words], cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RunError(f"openssl {words[0]}: {done.stderr.strip()}")

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    (folder / "ca.cnf").write_text(_AUTHORITY)
    names = [f"DNS:{name}" for name in _NAMES]
    if length > 1:
        letters = random.Random(length)
        names += [f"DNS:{''.join(letters.choices(string.ascii_letters + string.digits, k=250))}" for _ in range(20)]
    (folder / "leaf.cnf").write_text(f"subjectAltName = {','.join(names)}\n")
    openssl("req", "-x509", *key, "-days", "10", "-subj", "/O=airloom interop", "-keyout", "0.key", "-out", "ca.pem")
    chain: list[str] = []
    issuer = ("-CA", "ca.pem", "-CAkey", "0.key", "-CAcreateserial")
    for n in range(1, length + 1):
        openssl("req", *key, "-subj", f"/O=airloom interop {n}", "-keyout", f"{n}.key", "-out", f"{n}.csr")
        extensions = ("-extfile", "leaf.cnf" if n == length else "ca.cnf")
        openssl("x509", "-req", "-days", "10", "-in", f"{n}.csr", "-out", f"{n}.pem", *issuer, *extensions)
        issuer = ("-CA", f"{n}.pem", "-CAkey", f"{n}.key", "-CAcreateserial")
        chain.insert(0, (folder / f"{n}.pem").read_text())
    (folder / "cert.pem").write_text("".join(chain))
    (folder / f"{length}.key").rename(folder / "priv.key")
    for file in folder.iterdir():
        if file.name not in ("cert.pem", "priv.key", "ca.pem"):
            file.unlink()
