"""The interop runner's `sim` container: two devices, and the link of a scenario between them.

The devices go into a laboratory of two hosts, `left` and `right`, whose kernels forward between a device and the model.
So nothing passes beside it. The captures have the runner's names; times begin when the network is ready.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from airloom import interpreter
from airloom.errors import RunError, Unsupported, UsageError
from airloom.interop import network
from airloom.interop.split import split_capture
from airloom.interop.words import Words
from airloom.laboratory import Lab, Program, lab
from airloom.programs import path_of
from airloom.scenario import parse, toml_value

_SIDE = Path(__file__).parent / "side.py"
#: How long the server may take, as there.
_SERVER_S = 10
#: A QUIC long header of a version that nobody has, and padding: a server answers it (RFC 9000, 6.1).
_PROBE = bytes([0xC0, 0x0A, 0x1A, 0x2A, 0x3A, 8, *range(8), 0, *bytes(1200)])


def run(
    words: Words, devices: tuple[str, str], logs: Path, server: str, *, seed: int, say: Callable[[str], None]
) -> None:
    """Forwards until the process is told to end; `server` is waited for first (`HOST:PORT`)."""
    if os.geteuid() != 0:
        raise Unsupported("interop sim takes devices out of their network namespace: only root may")
    for program in ("ip", "nsenter"):
        if path_of(program) is None:
            raise Unsupported(f"interop sim needs {program} (iproute2, util-linux)")
    addresses = [_addresses(device) for device in devices]
    if not logs.is_dir():
        raise UsageError(f"{logs} is no folder: say --logs DIR")
    if server:
        say(f"waiting for {server}")
        wait_for(server)
    table = network.between_devices(words, seed)
    text = "\n".join(f"{key} = {toml_value(value)}" for key, value in table.items())
    with tempfile.TemporaryDirectory(prefix="airloom-sim-") as temporary:
        behind = lab(parse(text, f"{words.name}.toml"), enter=False, out=Path(temporary) / "run")
        with contextlib.ExitStack() as everything:
            here = everything.enter_context(behind)
            # The client's side comes last: what waits for it finds the whole network.
            for side in (1, 0):
                host = ("left", "right")[side]
                everything.enter_context(_side(here, host, devices[side], addresses[side]))
            for host, command in network.cross_programs(words).items():
                here.popen(command, host=host, stdin=subprocess.DEVNULL)
            say(f"scenario {words.name}: ready")
            try:
                while True:
                    time.sleep(3600)
            except (KeyboardInterrupt, SystemExit):
                # Inside: a signal is raised again and again until somebody handles it.
                everything.close()
                for name, point in network.SIM_POINTS.items():
                    split_capture(Path(temporary) / "run" / "trace.pcapng", point, logs / f"trace_node_{name}.pcap")
                shutil.copy(Path(temporary) / "run" / "summary.json", logs / "summary.json")
                raise


def _addresses(device: str) -> list[str]:
    """Those of a device, but for what every device of IPv6 has."""
    done = subprocess.run(["ip", "-j", "address", "show", "dev", device], capture_output=True, text=True, check=False)
    if done.returncode:
        raise UsageError(f"there is no device {device}: interop sim stands between two; say --left and --right")
    found = [a for link in json.loads(done.stdout) for a in link.get("addr_info", []) if a.get("scope") == "global"]
    return [f"{a['local']}/{a['prefixlen']}" for a in found]


@contextlib.contextmanager
def _side(here: Lab, host: str, device: str, addresses: list[str]) -> Iterator[Program]:
    outside = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        words = interpreter.python(str(_SIDE), device, *addresses)
        program = here.popen(words, host=host, stdin=outside, stdout=subprocess.PIPE, text=True)
    finally:
        os.close(outside)
    try:
        assert program.stdout
        if program.stdout.readline() != "ready\n":
            raise RunError(f"{device} could not be brought into the laboratory")
        yield program
    finally:
        program.terminate()
        program.wait(10)


def wait_for(server: str, within_s: float = _SERVER_S) -> None:
    """Waits until a QUIC server answers a version that it does not know."""
    match = re.fullmatch(r"\[?([^\[\]]+?)\]?:([0-9]{1,5})", server)
    if not match or not 0 < int(match[2]) < 65536:
        raise UsageError(f"WAITFORSERVER={server}: expected HOST:PORT")
    try:
        family, kind, _, _, address = socket.getaddrinfo(match[1], int(match[2]), type=socket.SOCK_DGRAM)[0]
    except OSError as error:
        raise RunError(f"WAITFORSERVER={server}: {error.strerror}") from None
    end = time.monotonic() + within_s
    with socket.socket(family, kind) as own:
        own.settimeout(0.5)
        own.connect(address)
        while time.monotonic() < end:
            # Refused: it does not listen yet.
            with contextlib.suppress(TimeoutError, ConnectionRefusedError):
                own.send(_PROBE)
                own.recv(2048)
                return
            time.sleep(0.05)
    raise RunError(f"WAITFORSERVER={server}: nobody answers after {within_s:g} s")
