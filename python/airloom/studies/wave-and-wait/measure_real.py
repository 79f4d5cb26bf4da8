"""The second clock: files that `airloom wwp` really sends between two namespaces, through the link of the study.

In real time: a transfer begins when both ends run, a second or so into the first off-phase.

Prints JSON: the seconds of each transfer by drop rate, its segments, and whether the file arrived as it was; nothing
where no laboratories are allowed.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import airloom
from airloom import wwp
from airloom.study.execute import can_emulate

#: As the study's sweeps set it: every n-th packet of on-phases; none, and no delays either, without errors.
DROPS: dict[int, dict[str, object]] = {
    0: {"links.air.delay.law.uniform.to": 0},
    10: {"links.air.every": 10},
    33: {"links.air.every": 3},
}
SIZE = 5_242_880
SEEDS = range(1, 4)
PORT = 9900
#: A receiver that is not there after so long never comes.
PATIENCE_S = 60.0


def transfer(scenario: Path, file: Path, drop: int, seed: int) -> dict[str, Any]:
    """One file from one namespace to the other."""
    with (
        tempfile.TemporaryDirectory() as inbox,
        airloom.lab(scenario, seed=seed, real=("sender", "receiver"), overrides=DROPS[drop]) as link,
    ):
        command = [sys.executable, "-m", "airloom", "wwp", "receive", "--into", inbox, "--listen", f"0.0.0.0:{PORT}"]
        with link.popen(command, host="receiver", stderr=subprocess.PIPE) as receiver:
            assert receiver.stderr is not None
            receiver.stderr.readline()  # it listens
            sent = wwp.send(file, "receiver", PORT, patience_s=PATIENCE_S)
            receiver.terminate()
            receiver.wait(PATIENCE_S)
        is_same = (Path(inbox) / file.name).read_bytes() == file.read_bytes()
    row = {"drop": drop, "seed": seed, "seconds": sent.seconds, "segments": sent.segments, "resent": sent.resent}
    return {**row, "is_same": is_same, "valid": link.summary["valid"]}


def main(*drops: str) -> None:
    """All of them, or those of these drop rates."""
    scenario = Path(__file__).parent / "scenarios" / "wwp.toml"
    rows = []
    if can_emulate():
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "octets"
            file.write_bytes(bytes(n * n % 251 for n in range(SIZE)))
            for drop in map(int, drops) if drops else DROPS:
                rows += [transfer(scenario, file, drop, seed) for seed in SEEDS]
    json.dump({"transfers": rows}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
