"""Can anybody use the wheel? `python tools/wheel_check.py WHEEL...`: a fresh environment, no compiler, pytest.

It is installed from binary packages alone, with the programs of the environment and of nothing else to be found; then
pytest has to find the fixture `airloom`, and a child process of a test has to be behind the link.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

TEST = """\
import subprocess, sys

ASKS = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=30)"


def test_a_child_is_behind_the_link(airloom):
    import http.server

    with airloom as link:
        server = link.serve(http.server.BaseHTTPRequestHandler)
        subprocess.run([sys.executable, "-c", ASKS, link.peer, str(server.port)], check=True)
    assert link.summary["packets"] > 0
"""


def main(wheel: Path) -> None:
    """Ends with an error if it cannot be used."""
    if not re.fullmatch(r"airloom-[^-]+-cp311-abi3-(manylinux|linux|macosx).*\.whl", wheel.name):
        sys.exit(f"{wheel.name}: not one for every Python from 3.11 on (abi3)")
    with tempfile.TemporaryDirectory(prefix="airloom-wheel-") as temporary:
        place = Path(temporary)
        venv.create(place / "env", with_pip=True)
        programs = place / "env" / "bin"
        # Nothing that could compile; what the laboratory itself needs of the system it does not start by name.
        kept = {name: os.environ[name] for name in os.environ if name.startswith(("PIP_", "SSL_", "HTTP", "http"))}
        env = {**kept, "PATH": str(programs), "HOME": temporary}

        def run(*words: str | Path) -> None:
            done = subprocess.run(
                [programs / "python", *words],
                cwd=place,
                env=env,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            if done.returncode:
                sys.exit(f"{wheel.name}: not so: {what}\n{done.stdout}")

        steps = {
            "installed": ("-m", "pip", "install", "--quiet", "--only-binary", ":all:", wheel.absolute(), "pytest"),
            "tells its version": ("-m", "airloom", "--version"),
            "simulates": ("-m", "airloom", "run", "umts-page", "--out", place / "run"),
            "pytest finds the fixture": ("-m", "pytest", "-q", place / "test_link.py", "--airloom-required"),
        }
        (place / "test_link.py").write_text(TEST)
        for what, words in steps.items():
            start = time.monotonic()
            run(*words)
            print(f"{wheel.name}: {what} ({time.monotonic() - start:.1f} s)", flush=True)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        main(Path(name))
