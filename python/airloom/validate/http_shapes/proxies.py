"""The proxies that are compared, each on a port of 127.0.0.1."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from airloom.errors import RunError

_SQUID = """\
http_port 127.0.0.1:{port}
http_access allow all
cache deny all
access_log none
cache_log /dev/null
cache_store_log none
visible_hostname squid
pid_filename none
coredump_dir /
shutdown_lifetime 0 seconds
pinger_enable off
logfile_rotate 0
"""


def squid_program() -> str | None:
    """Where Squid is, if it is installed."""
    return shutil.which("squid", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


@contextmanager
def ours() -> Iterator[int]:
    """`airloom serve http-cache` as it is by default; its port."""
    command = [sys.executable, "-m", "airloom", "serve", "http-cache", "--listen", "127.0.0.1:0"]
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
        config.write_text(_SQUID.format(port=port))
        # A name of its own: it shares memory with others of the same name.
        command = [program, "-N", "-n", f"airloom{os.getpid()}", "-f", str(config)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                _wait(port, process)
                yield port
            finally:
                process.kill()


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 60
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=5).close()
        except OSError:
            if process.poll() is not None or time.monotonic() > until:
                raise RunError("squid does not start") from None
            time.sleep(0.05)
