"""This machine's TCP through an emulated wire, against records of Linux over the same wire.

The other half of `linux_tcp`: there the simulated TCP is compared, here the emulated link. The records say how long a
kernel's transfers took over a link that another program emulated; this machine's kernel, told the same settings, has to
take as long through ours. Only cases without random loss: where packets are lost at random, a microsecond decides
which of them it is that the sender sent then.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial

from airloom.errors import UsageError
from airloom.validate import linux_tcp, pairs, transfer
from airloom.validate.kept import Kept
from airloom.validate.linux_tcp import Record
from airloom.validate.tasks import Progress, Task, carry_out
from airloom.validate.transfer import Transfer

#: Completion, as a share of the recorded median.
BAR = 0.01


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


def compare(
    found: Sequence[Record],
    *,
    jobs: int = 1,
    executor: Executor | None = None,
    kept: Kept[Transfer] | None = None,
    progress: Progress = lambda _done, _share: None,
) -> list[Verdict]:
    """A verdict per case; `jobs` transfers go on at a time, and what is `kept` is not made again."""
    cases = suitable(found)
    longest_first = sorted(cases, key=lambda r: -statistics.median(_seconds(r)))
    tasks = [Task(str(r.case["id"]), statistics.median(_seconds(r)), partial(_transfer, r)) for r in longest_first]
    made = carry_out(tasks, jobs=jobs, executor=executor, kept=kept, progress=progress)
    ours = {task.name: transfer for task, transfer in zip(tasks, made, strict=True)}
    return [_verdict(record, ours[str(record.case["id"])]) for record in cases]


def _seconds(record: Record) -> list[float]:
    return [float(run["completion_s"]) for run in record.runs]


def _transfer(record: Record) -> Transfer:
    case = record.case
    planned = transfer.scenario(str(case["id"]), linux_tcp.link(case), case["bytes"], linux_tcp.transport(case))
    return pairs.believed(lambda: transfer.real(planned, request=False))[0]


def _verdict(record: Record, ours: Transfer) -> Verdict:
    theirs = _seconds(record)
    resent = statistics.median(run["retransmitted_packets"] for run in record.runs)
    return Verdict(str(record.case["id"]), statistics.median(theirs), min(theirs), max(theirs), resent, ours)
