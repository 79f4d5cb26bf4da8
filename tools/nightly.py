"""Runs all parts of `make nightly` in three lanes, and says what each took: `python -m tools.nightly [--minutes N]`.

Laboratories wait most of the time. So what looks at the clock is in front, one part after the other, and what computes
is behind it, in the class SCHED_IDLE, with the processor time that the lane in front leaves. Between them are other
people's programs, which mostly wait, and give up where they get no processor for seconds: they stand back for the lane
in front alone, and begin when the clocks have been compared. Fuzzing is last behind and gets what is left of the time.

A part is a target of the Makefile. What it prints is in `target/nightly/PART.log`.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from tools.run_tests import ROOT, idle, nicer

LOGS = ROOT / "target" / "nightly"
#: Studies that measure real programs, too, that which takes longest first; and all others.
REAL = ("umts-proxies", "phs-multilink", "wap-vs-http-wcdma", "wave-and-wait")
OTHERS = sorted({file.parent.name for file in ROOT.glob("python/airloom/studies/*/claims.toml")} - set(REAL))
FRONT = ("clocks", "python", *(f"real-{study}" for study in REAL), "wheel")
BEHIND = ("package", *(f"study-{study}" for study in (*REAL, *OTHERS)), "rust", "fuzz")
BETWEEN = ("peers",)
PARTS = (*FRONT, *BEHIND, *BETWEEN)
#: Waits for another one: claims that rest on real programs are judged with what was simulated.
#: And what disturbs others waits for those that it would disturb most.
AFTER = {**{f"real-{study}": f"study-{study}" for study in REAL}, "wheel": "package", "peers": "clocks"}
#: Seconds of fuzzing at least, whatever the time.
FUZZ_S = 600


#: What a process does to itself before it becomes a part, so that others come first.
StandBack = Callable[[], None] | None


class Row(NamedTuple):
    """A part that has ended."""

    part: str
    code: int
    seconds: float


class Night:
    """The parts that have ended, those that run, and when all shall have ended."""

    def __init__(self, minutes: float, make: list[str]) -> None:
        self.end = time.monotonic() + 60 * minutes
        self.make = make
        self.rows: list[Row] = []
        self.ended = {part: threading.Event() for part in PARTS}
        self.running: set[subprocess.Popen[bytes]] = set()
        self.stopped = False

    def part(self, part: str, stand_back: StandBack = None) -> None:
        """Runs one; its output goes to a file."""
        if part in AFTER:
            self.ended[AFTER[part]].wait()
            if self.stopped:
                return
        try:
            self.run(part, stand_back)
        finally:
            # Whatever became of it: no lane waits for what will not come.
            self.ended[part].set()

    def run(self, part: str, stand_back: StandBack) -> None:
        begin = time.monotonic()
        left = max(FUZZ_S, round(self.end - begin))
        with (LOGS / f"{part}.log").open("wb") as log:
            process = subprocess.Popen(
                [*self.make, f"nightly-{part}", "READY=", f"FUZZ={left}"],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=stand_back,
            )
            self.running.add(process)
            code = process.wait()
            self.running.discard(process)
        row = Row(part, code, time.monotonic() - begin)
        self.rows.append(row)
        print(line(row), flush=True)

    def lane(self, parts: Collection[str], stand_back: StandBack = None) -> None:
        """Runs one after the other."""
        try:
            for part in parts:
                if not self.stopped:
                    self.part(part, stand_back)
        finally:
            # If one cannot even be begun, what comes after it never is: no other lane waits for it.
            for part in parts:
                self.ended[part].set()

    def stop(self) -> None:
        """Ends what runs, with all that it has started; nothing begins any more."""
        self.stopped = True
        for event in self.ended.values():
            event.set()
        for process in list(self.running):
            os.killpg(process.pid, signal.SIGTERM)


def line(row: Row) -> str:
    """What became of a part."""
    told = "ok" if row.code == 0 else f"FAILED: {(LOGS / f'{row.part}.log').relative_to(ROOT)}"
    return f"nightly-{row.part:<23}  {row.seconds / 60:6.1f} min  {told}"


def main(words: list[str], make: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=130, metavar="N", help="that all shall take: 130")
    night = Night(parser.parse_args(words).minutes, make)
    LOGS.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    with ThreadPoolExecutor(3) as pool:
        try:
            lanes = ((FRONT, None), (BEHIND, idle), (BETWEEN, nicer))
            for each in [pool.submit(night.lane, *lane) for lane in lanes]:
                each.result()
        except BaseException:
            night.stop()
            raise
    failed = [row.part for row in night.rows if row.code]
    print(f"nightly: {(time.monotonic() - begin) / 60:.1f} min; failed: {', '.join(failed) or 'nothing'}")
    return bool(failed)


def on_end() -> None:
    """Whoever ends this ends its parts, too: they have sessions of their own. So does a terminal that is closed."""
    for each in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(each) is not signal.SIG_IGN:
            signal.signal(each, lambda number, _: sys.exit(128 + number))


if __name__ == "__main__":
    on_end()
    sys.exit(main(sys.argv[1:], ["make", "--no-print-directory"]))
