"""The proxies that are compared, each on a port of 127.0.0.1."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from airloom import interpreter
from airloom.errors import RunError
from airloom.page_load.squid import squid_config


@contextmanager
def ours() -> Iterator[int]:
    """`airloom serve http-cache` as it is by default; its port."""
    command = interpreter.airloom("serve", "http-cache", "--listen", "127.0.0.1:0")
    command += ["--allow-origin", "127.0.0.1", "--no-log", "--set", "server_timeout=5s"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout
            found = re.match(r"listening on \S+:(\d+)", process.stdout.readline())
            if found is None:
                raise RunError("airloom serve http-cache does not start")
            yield int(found[1])
        finally:
            process.send_signal(signal.SIGINT)


@contextmanager
def squid(program: str) -> Iterator[int]:
    """Squid as its makers deliver it, but for who may ask; its port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="airloom-squid-") as folder:
        Path(folder).chmod(0o755)
        config = Path(folder) / "squid.conf"
        config.write_text(squid_config(f"127.0.0.1:{port}", "cache deny all"))
        # A name of its own: it shares memory with others of the same name.
        name = f"airloom{os.getpid()}"
        command = [program, "-N", "-n", name, "-f", str(config)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                _wait(port, process)
                yield port
            finally:
                process.terminate()
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()
                for left in Path("/dev/shm").glob(f"{name}-*"):
                    left.unlink(missing_ok=True)


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 60
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=5).close()
        except OSError:
            if process.poll() is not None or time.monotonic() > until:
                raise RunError("squid does not start") from None
            time.sleep(0.05)
