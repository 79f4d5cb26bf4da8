"""Measures WWP: a file between two namespaces in real time, and what a simulated transfer costs.

`python -m tools.bench.wwp` prints the numbers; `make bench` puts them on the page.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import airloom
from airloom import wwp
from airloom.scenario import parse
from airloom.study.execute import can_emulate

SIZE = 100_000_000
RATE_BIT_S = 100e6
PORT = 9900
PATIENCE_S = 60.0
WIRE = """\
title = "a wire of 100 Mbit/s and 1 ms between two programs"
[hosts]
home = { real = true }
away = { real = true }
[links.wire]
bearer = "wireline"
between = ["home", "away"]
rate = "100Mbit/s"
delay = "1ms"
# A whole wave stands in it.
queue = "1000 packets"
"""
#: A queue of 50 packets takes a tenth of the largest waves.
SHORT_QUEUE = """\
title = "20 MB with the settings of `airloom wwp`, through a queue that is shorter than a wave"
[hosts.home]
app = {{ bulk = {{ mode = "put", size = "20MB" }} }}
transport = {wwp}
[hosts.away]
app = "bulk-server"
transport = {wwp}
[links.wire]
bearer = "wireline"
between = ["home", "away"]
rate = "20Mbit/s"
delay = "10ms"
queue = "50 packets"
[run]
record = "none"
"""
#: As crates/drive/src/wwp/session.rs has them, with UDP and the seal in the header.
SETTINGS = (
    '{ wwp = { segment = "1400B", header = 16, waves = [16, 32, 64, 128, 256, 512], hold = "0s", '
    'granularity = "10ms", send_buffer = "2MiB", receive_buffer = "2MiB", ports = false } }'
)


def measure(quick: bool = False) -> dict[str, float]:
    """Share of the link in real time; simulated seconds per CPU second, and those of a queue that is short."""
    numbers = simulated(5 if quick else 50)
    if can_emulate():
        shares = [real() for _ in range(1 if quick else 5)]
        numbers |= {"wwp.share_of_link": statistics.median(shares), "wwp.load": os.getloadavg()[0]}
        spread = f"{min(shares):.3f}..{max(shares):.3f}"
        print(f"  wwp          {numbers['wwp.share_of_link']:.3f} of 100 Mbit/s ({spread})", file=sys.stderr)
    else:
        print("  wwp: not measured in real time: no laboratories here", file=sys.stderr)
    return numbers


def real() -> float:
    """Octets of a file by the seconds from the first datagram to its verdict, as a share of the link."""
    # In memory where there is room: a disk that writes through is no part of the link.
    memory = Path("/dev/shm")
    place = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=place) as name:
        folder = Path(name)
        scenario, film, inbox = folder / "wire.toml", folder / "film", folder / "inbox"
        scenario.write_text(WIRE)
        film.write_bytes(os.urandom(SIZE))
        inbox.mkdir()
        words = ["wwp", "receive", "--into", str(inbox), "--listen", f"0.0.0.0:{PORT}"]
        with (
            airloom.lab(scenario, seed=1) as link,
            link.popen([sys.executable, "-m", "airloom", *words], host="away", stderr=subprocess.PIPE) as receiver,
        ):
            assert receiver.stderr is not None
            receiver.stderr.readline()  # it listens
            sent = wwp.send(film, "away", PORT, patience_s=PATIENCE_S)
            receiver.terminate()
            receiver.wait(PATIENCE_S)
        if (inbox / "film").stat().st_size != SIZE:
            raise RuntimeError("the file did not arrive")
    return 8 * sent.size / sent.seconds / RATE_BIT_S


def simulated(seeds: int) -> dict[str, float]:
    """The study's 5 MB with a third dropped, seed by seed, and 20 MB through a short queue."""
    study = Path(airloom.__file__).parent / "studies" / "wave-and-wait" / "scenarios" / "wwp.toml"
    scenario = airloom.load(study).with_keys({"links.air.every": 3})
    scenario.run(seed=1)
    began, simulated_s = time.process_time(), 0.0
    for seed in range(1, seeds + 1):
        simulated_s += scenario.run(seed=seed).summary["simulated_s"]
    factor = simulated_s / (time.process_time() - began)
    queue_s = parse(SHORT_QUEUE.format(wwp=SETTINGS), "queue.toml").run(seed=1).summary["completion_s"]
    print(f"  wwp          {factor:.0f} simulated s per CPU s; {queue_s:.1f} s through a short queue", file=sys.stderr)
    return {"wwp.realtime_factor": factor, "wwp.short_queue_s": queue_s}


if __name__ == "__main__":
    print(json.dumps(measure(), indent=2))
