"""Rules, and what they decide.

In virtual time the same seeds give the same figures wherever they are made, so a rule is true or not. In real time the
runs are a sample: a rule passes or fails if all of the 95 % interval of its statistic does, and is unclear otherwise.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from airloom import fields
from airloom.errors import UsageError
from airloom.measures import describe

#: Confidence of the intervals.
CI = 0.95

RELATIONS = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt, "==": operator.eq}
_STATISTIC = r"mean|median|min|max|p[1-9][0-9]?"
_MEASURE = re.compile(rf"([\w.\[\]-]+?)(?:\.({_STATISTIC}))?")
_TEXT = re.compile(rf"{_MEASURE.pattern}\s*(<=|>=|==|<|>)\s*(\S+)")
_KEYS = ("measure", "vs", "max_regression", "better")
#: Units of which more is better.
_MORE_IS_BETTER = ("bit/s", "kbit/s", "Mbit/s", "Gbit/s", "1/s")

State = Literal["pass", "fail", "unclear", "error"]


class Verdict(NamedTuple):
    """What a rule decides."""

    state: State
    #: The statistic, and its interval; equal to it where the figure is exact.
    value: float
    low: float
    high: float
    #: What it is held against.
    limit: float
    #: In words.
    why: str


class Rule(NamedTuple):
    """Something that has to be true of the runs of a gate."""

    text: str
    measure: str
    #: `mean`, `median`, `min`, `max`, `p75`, ...; empty: it is true of every run.
    statistic: str
    relation: str
    #: The bound; of a rule that compares the factor, such as 1.1.
    limit: float
    #: The file that it compares with.
    vs: str | None = None

    @staticmethod
    def read(said: Any, where: str) -> Rule:
        """A rule as it stands in a file. Raises `UsageError`."""
        if isinstance(said, str):
            match = _TEXT.fullmatch(said.strip())
            limit = _number(match[4]) if match else None
            if match is None or limit is None:
                raise UsageError(f"{where}: rule {said!r}: expected such as 'page_load_s.p75 <= 8'")
            return Rule(said.strip(), match[1], match[2] or "", match[3], limit)
        if not isinstance(said, Mapping):
            raise UsageError(f"{where}: a rule is a text or a table, not {said!r}")
        fields.check(said, _KEYS, f"{where}: a rule that compares")
        match = _MEASURE.fullmatch(str(said.get("measure", "")))
        share = _share(said.get("max_regression"))
        if match is None or not match[2] or share is None or not isinstance(said.get("vs"), str):
            raise UsageError(
                f"{where}: a rule that compares is such as "
                "{ measure = 'page_load_s.median', vs = 'baseline.json', max_regression = '10 %' }"
            )
        more = said.get("better", "higher" if describe(match[1]).unit in _MORE_IS_BETTER else "lower")
        if more not in ("higher", "lower"):
            raise UsageError(f"{where}: better is 'higher' or 'lower', not {more!r}")
        relation, factor = (">=", 1 - share) if more == "higher" else ("<=", 1 + share)
        text = f"{said['measure']} {relation} {factor:g} x {said['vs']}"
        return Rule(text, match[1], match[2], relation, factor, said["vs"])

    def decide(self, runs: Sequence[float | None], baseline: Sequence[float] = (), *, is_exact: bool) -> Verdict:
        """What it says of these runs, each with its measure, or with `None` (or NaN) where it has none.

        `baseline` are those that a rule with `vs` compares with. A run that lacks the measure fails the rule: a page
        that was not loaded has no time, and must not leave the verdict to those that were.
        """
        nan = math.nan
        values = [value for value in runs if value is not None and not math.isnan(value)]
        if not values:
            return Verdict("error", nan, nan, nan, self.limit, f"no run has {self.measure}")
        if self.vs is not None and not baseline:
            return Verdict("error", nan, nan, nan, nan, f"{self.vs} has no {self.measure} of it")
        if len(values) < len(runs):
            why = f"{len(runs) - len(values)} of {len(runs)} runs have no {self.measure}"
            return Verdict("fail", nan, nan, nan, self.limit, why)
        holds = RELATIONS[self.relation]
        if not self.statistic:
            worst = next((value for value in values if not holds(value, self.limit)), None)
            shown = values[0] if worst is None else worst
            count = sum(not holds(value, self.limit) for value in values)
            why = f"all of {len(values)} runs" if worst is None else f"not so in {count} of {len(values)} runs"
            return Verdict("fail" if count else "pass", shown, min(values), max(values), self.limit, why)
        value, low, high = _estimate(values, self.statistic, self._ci, is_exact=is_exact)
        limit, lowest, highest = self.limit, self.limit, self.limit
        if self.vs is not None:
            limit, lowest, highest = (
                self.limit * each for each in _estimate(baseline, self.statistic, self._ci, is_exact=is_exact)
            )
        corners = [holds(end, bound) for end in (low, high) for bound in (lowest, highest)]
        state: State = "pass" if all(corners) else "unclear" if any(corners) or self._straddles(low, high) else "fail"
        return Verdict(state, value, low, high, limit, self._why(state, values, baseline, is_exact=is_exact))

    @property
    def _ci(self) -> float:
        """Confidence of its intervals. Of two independent samples, neither of which may be missed, both are wider."""
        return CI if self.vs is None else (1 + CI) / 2

    def _straddles(self, low: float, high: float) -> bool:
        """Equality may hold between the ends of an interval although it does at neither."""
        return self.relation == "==" and low < self.limit < high

    def _why(self, state: State, values: Sequence[float], baseline: Sequence[float], *, is_exact: bool) -> str:
        runs = f"{len(values)} runs"
        if is_exact:
            return f"{runs} in virtual time"
        if state != "unclear":
            return runs
        needed = _runs_needed(values, self.statistic, self._ci)
        if len(values) < needed:
            return f"{runs}; at least {needed} are needed"
        if baseline and len(baseline) < (needed := _runs_needed(baseline, self.statistic, self._ci)):
            return f"{runs}; {self.vs} has {len(baseline)}, and at least {needed} are needed"
        return f"{runs} are too few to tell"


def _estimate(values: Sequence[float], statistic: str, ci: float, *, is_exact: bool) -> tuple[float, float, float]:
    """A statistic with its interval, which is without end where the sample sets none."""
    import numpy as np

    share = {"median": 0.5, "min": 0.0, "max": 1.0}.get(statistic)
    if share is None and statistic != "mean":
        share = int(statistic[1:]) / 100
    value = float(np.mean(values) if share is None else np.quantile(values, share))
    if is_exact or statistic in ("min", "max"):
        return value, value, value
    from airloom.analysis.statistics import mean_interval, order_interval

    if share is not None:
        return value, *order_interval(values, share, ci)
    if len(values) < _runs_needed(values, statistic, ci):
        return value, -math.inf, math.inf
    found = mean_interval(values, ci, "t")
    return value, found.low, found.high


def _runs_needed(values: Sequence[float], statistic: str, ci: float) -> float:
    """The fewest runs that set an interval; of a mean whose runs are all the same as many as of a median."""
    import numpy as np

    from airloom.analysis.statistics import fewest, is_constant

    if statistic == "mean" and (len(values) < 2 or not is_constant(np.asarray(values))):
        return 2
    return fewest(0.5 if statistic in ("mean", "median") else int(statistic[1:]) / 100, ci)


def _number(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def _share(said: Any) -> float | None:
    """`10 %`, `10%` or `0.1`."""
    text = str(said).strip()
    found = _number(text.removesuffix("%").strip())
    if found is None:
        return None
    found = found / 100 if text.endswith("%") else found
    return found if 0 <= found < 10 else None
