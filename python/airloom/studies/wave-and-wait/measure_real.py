"""The second clock: the octets of the study from one namespace to another, through its element in real time.

`wwp` is a file that `airloom wwp` sends, `reno` the same octets over this machine's kernel: Reno without SACK and
timestamps, 18 kB under way at most, timeouts of a second at least. A transfer begins when both ends run, a second or
so into the first off-phase. Several go on beside each other, each in a laboratory of its own.

Prints JSON: for each transfer its seconds, octets on the link, segments that came again, joules for each megabyte, and
whether the octets arrived as they were; nothing where no laboratories are allowed.
"""

import fcntl
import hashlib
import json
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl

import airloom
from airloom import analysis, interpreter, wwp
from airloom.study.execute import can_emulate

#: The link: faster and longer than that of Table 1, so that a window counts for something. `real-model` has the same.
LINK: dict[str, object] = {
    "links.air.over.wireline.rate": "3.3Mbit/s",
    "links.air.over.wireline.delay": "96ms",
    "links.air.mtu": 1500,
}
#: As the study's sweeps set it: every n-th packet of on-phases; none, and no delays either, without errors.
DROPS: dict[int, dict[str, object]] = {
    0: {"links.air.delay.law.uniform.to": 0},
    5: {"links.air.every": 20},
    10: {"links.air.every": 10},
    20: {"links.air.every": 5},
    33: {"links.air.every": 3},
    50: {"links.air.every": 2},
}
PROTOCOLS = ("wwp", "reno")
SIZE = 5_242_880
SEEDS = range(1, 4)
PORT = 9900
#: A receiver that is not there after so long never comes.
PATIENCE_S = 60.0
#: A transfer that takes longer is given up, and has no seconds.
LIMIT_S = 600.0
#: Transfers beside each other: at 3.3 Mbit/s none of them is work for a core.
BESIDE = 9
#: What the sender's radio draws: an interface that never sleeps, and a telephone that is released.
MODELS = ("wlan.ns3", "lte.aro")

#: The kernel's TCP as near to the scenario `tcp` as it comes. Its buffers count bookkeeping too, and this kernel's
#: windows grow beyond them: so the program gives it no more than `BUFFER` octets that are not acknowledged.
RENO = {
    "profile": "rfc",
    "congestion": "newreno",
    "sack": False,
    "timestamps": False,
    "window_scaling": False,
}
BUFFER = 18_000
#: How often it looks whether there is room.
LOOK_S = 0.001
RTO_MIN = "/proc/sys/net/ipv4/tcp_rto_min_us"

#: Takes all octets of one connection, and says their hash.
_SINK = """\
import hashlib, socket, sys
with socket.create_server(("", int(sys.argv[1]))) as server:
    print("ready", flush=True)
    connection, _ = server.accept()
sha = hashlib.sha256()
while taken := connection.recv(1 << 16):
    sha.update(taken)
connection.close()
print(sha.hexdigest(), flush=True)
"""


def by_wwp(link: airloom.Lab, file: Path) -> dict[str, Any]:
    """A file by `airloom wwp`."""
    with tempfile.TemporaryDirectory() as inbox:
        command = interpreter.airloom("wwp", "receive", "--into", inbox, "--listen", f"0.0.0.0:{PORT}")
        with link.popen(command, host="receiver", stderr=subprocess.PIPE) as receiver:
            assert receiver.stderr is not None
            receiver.stderr.readline()  # it listens
            sent = wwp.send(file, "receiver", PORT, patience_s=PATIENCE_S)
            receiver.terminate()
            receiver.wait(PATIENCE_S)
        is_same = (Path(inbox) / file.name).read_bytes() == file.read_bytes()
    return {"seconds": sent.seconds, "is_same": is_same}


def by_reno(link: airloom.Lab, file: Path) -> dict[str, Any]:
    """The same octets over the kernel's TCP, from the SYN until both ends have closed."""
    for host in ("sender", "receiver"):
        link.run(f"echo 1000000 > {RTO_MIN}", host=host, check=True)
    octets = file.read_bytes()
    command = interpreter.python("-c", _SINK, str(PORT))
    with link.popen(command, host="receiver", stdout=subprocess.PIPE, text=True) as sink:
        assert sink.stdout is not None
        sink.stdout.readline()
        began = time.monotonic()
        try:
            with socket.socket() as connection:
                connection.settimeout(LIMIT_S)
                connection.connect(("receiver", PORT))
                _write(connection, memoryview(octets), began + LIMIT_S)
                connection.shutdown(socket.SHUT_WR)
                connection.settimeout(max(began + LIMIT_S - time.monotonic(), 1.0))
                connection.recv(1)
        except TimeoutError:
            sink.terminate()
            sink.wait(PATIENCE_S)
            return {"seconds": None, "is_same": None}
        seconds = time.monotonic() - began
        arrived = sink.stdout.readline().strip()
        sink.wait(PATIENCE_S)
    return {"seconds": seconds, "is_same": arrived == hashlib.sha256(octets).hexdigest()}


def _write(connection: socket.socket, octets: memoryview, until: float) -> None:
    while octets:
        if time.monotonic() > until:
            raise TimeoutError
        (waiting,) = struct.unpack("i", fcntl.ioctl(connection, termios.TIOCOUTQ, bytes(4)))
        if waiting < BUFFER:
            octets = octets[connection.send(octets[: BUFFER - waiting]) :]
        else:
            time.sleep(LOOK_S)


def transfer(protocol: str, drop: int, seed: int) -> dict[str, Any]:
    """One transfer, from namespace to namespace."""
    keys: dict[str, object] = {**LINK, **DROPS[drop], "run.record": ["packets"], "run.limit": "2h"}
    if protocol == "reno":
        keys |= {f"hosts.{host}.transport": {"tcp": RENO} for host in ("sender", "receiver")}
    scenario = Path(__file__).parent / "scenarios" / "wwp.toml"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "octets"
        file.write_bytes(bytes(n * n % 251 for n in range(SIZE)))
        lab = airloom.lab(scenario, seed=seed, real=("sender", "receiver"), overrides=keys, out=folder / "run")
        with lab as link:
            row = {"wwp": by_wwp, "reno": by_reno}[protocol](link, file)
        assert link.results is not None
        row |= {"protocol": protocol, "drop": drop, "seed": seed, "valid": bool(link.summary["valid"])}
        return row | _spent(link.results)


def _spent(run: airloom.Run) -> dict[str, Any]:
    """What the records say: octets of both hosts with IP's headers, segments that came again, joules per megabyte."""
    sent = run.packets.filter(pl.col("event").cast(pl.String) == "tx")
    data = sent.filter((pl.col("point").cast(pl.String) == "sender.air.ip") & (pl.col("len") > 100))
    joules = {model: float(analysis.energy(run, model)["joules"].sum()) / SIZE * 1e6 for model in MODELS}
    return {"octets": int(sent["len"].sum()), "data_packets": data.height, "joules_per_mb": joules}


def _apart(job: tuple[str, int, int]) -> dict[str, Any]:
    """One transfer in a process of its own: a laboratory is entered by a thread, and polars has many."""
    words = interpreter.python(__file__, "one", *map(str, job))
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True, timeout=LIMIT_S + 5 * PATIENCE_S)
    row: dict[str, Any] = json.loads(done.stdout)
    return row


def main(*words: str) -> None:
    """All of them; `one PROTOCOL DROP SEED`: one; words such as `reno` or `33`: of these protocols and drop rates."""
    if words[:1] == ("one",):
        json.dump(transfer(words[1], int(words[2]), int(words[3])), sys.stdout)
        return
    protocols = [name for name in PROTOCOLS if name in words] or PROTOCOLS
    drops = [drop for drop in DROPS if str(drop) in words] or list(DROPS)
    rows: list[dict[str, Any]] = []
    if can_emulate():
        # The longest first.
        jobs = sorted(product(protocols, drops, SEEDS), key=lambda job: (job[0] != "reno", -job[1]))
        with ThreadPoolExecutor(BESIDE) as pool:
            rows = list(pool.map(_apart, jobs))
    json.dump({"transfers": rows}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
