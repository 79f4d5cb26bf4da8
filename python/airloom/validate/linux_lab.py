"""This machine's TCP through an emulated wire, against records of Linux over the same wire.

The other half of `linux_tcp`: there the simulated TCP is compared, here the emulated link. The records say how long a
kernel's transfers took over a link that another program emulated; this machine's kernel, told the same settings, has to
take as long through ours. Only cases without random loss: where packets are lost at random, a microsecond decides
which of them it is that the sender sent then.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from airloom.errors import UsageError
from airloom.validate import linux_tcp, transfer
from airloom.validate.linux_tcp import Record
from airloom.validate.transfer import Transfer

#: Completion, as a share of the recorded median.
BAR = 0.01
#: How often a run is made whose engine was too late for its figures to be believed.
TRIES = 3


@dataclass(frozen=True)
class Verdict:
    """One case."""

    case: str
    #: Median, least and largest seconds of the recorded runs.
    recorded_s: float
    least_s: float
    largest_s: float
    recorded_resent: float
    ours: Transfer

    @property
    def error(self) -> float:
        """How far ours lies outside of what was recorded, as a share of the median.

        Where the recorded runs themselves end in two ways, ours may be anywhere between them.
        """
        if (self.largest_s - self.least_s) / self.recorded_s > linux_tcp.TWO_OUTCOMES:
            outside = max(self.least_s - self.ours.seconds, self.ours.seconds - self.largest_s, 0.0)
            return outside / self.recorded_s
        return self.ours.seconds / self.recorded_s - 1

    @property
    def met(self) -> bool:
        """Close enough, and to be believed?"""
        return abs(self.error) <= BAR and self.ours.verdict != "invalid"


def suitable(found: Sequence[Record]) -> list[Record]:
    """The cases without random loss."""
    cases = [record for record in found if record.case["loss"] == 0]
    if not cases:
        raise UsageError("no case without loss among these records")
    return cases


def compare(found: Sequence[Record], jobs: int, progress: Callable[[int], None] = lambda _: None) -> list[Verdict]:
    """A verdict per case; `jobs` transfers go on at a time, and `progress` is told how many are done."""
    cases = suitable(found)
    longest_first = sorted(cases, key=lambda r: -statistics.median(_seconds(r)))
    verdicts = {}
    with ThreadPoolExecutor(jobs) as pool:
        try:
            work = [pool.submit(_compare, record) for record in longest_first]
            for done, future in enumerate(work):
                verdict = future.result()
                verdicts[verdict.case] = verdict
                progress(done + 1)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [verdicts[str(record.case["id"])] for record in cases]


def _seconds(record: Record) -> list[float]:
    return [float(run["completion_s"]) for run in record.runs]


def _compare(record: Record) -> Verdict:
    case, theirs = record.case, _seconds(record)
    name = str(case["id"])
    planned = transfer.scenario(name, linux_tcp.link(case), case["bytes"], linux_tcp.transport(case))
    for _ in range(TRIES):
        ours = transfer.real(planned, request=False)
        if ours.verdict != "invalid":
            break
    resent = statistics.median(run["retransmitted_packets"] for run in record.runs)
    return Verdict(name, statistics.median(theirs), min(theirs), max(theirs), resent, ours)
