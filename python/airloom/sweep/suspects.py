"""Runs that may be the reason why a session ended: which are tried next, and which are lost.

They are made behind all others and in so few at once that the next end says more; a run that was under way alone when
a second session ended is lost. So a sweep that is begun again and again comes to its end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from airloom.sweep.work import Key

#: A group of suspects is tried in so many parts: one run at a time, if it is not larger.
_PARTS = 64


class Suspects:
    """What was under way when sessions ended."""

    def __init__(self, ends: Sequence[Iterable[Key]]) -> None:
        """`ends`: what was under way at each of them."""
        ended = [set(end) for end in ends]
        self._ends = Counter(run for end in ended for run in end)
        self._alone = {run for end in ended if len(end) == 1 for run in end}

    def __len__(self) -> int:
        """How many runs are suspect."""
        return len(self._ends)

    def __contains__(self, run: Key) -> bool:
        """Was this run under way at an end?"""
        return run in self._ends

    def is_reason(self, run: Key) -> bool:
        """Was it under way at two ends, and nothing else with it?"""
        return self._ends[run] > 1 and run in self._alone

    def parts(self, runs: Iterable[Key]) -> Iterator[list[Key]]:
        """Those of `runs` that are suspect and may be made, parted: each part is to be made by itself."""
        left = [run for run in runs if run in self and not self.is_reason(run)]
        # What was under way at more ends is part of what was under way at fewer: the smallest group comes first, until
        # its reason is found.
        for ends in sorted({self._ends[run] for run in left}, reverse=True):
            group = [run for run in left if self._ends[run] == ends]
            size = -(-len(group) // _PARTS)
            yield from (group[begin : begin + size] for begin in range(0, len(group), size))
