"""Head-of-line time: how long an object that had arrived as a whole waited at the mobile for octets of others."""

from __future__ import annotations

from typing import Any

import numpy as np

from airloom.run import Run
from airloom.study import Data, Evidence, exact, value

from .arrived import complete, path
from .times import BEARERS, MOST, Computation, Numbers, at_most, at_none, object_delay, sweep


def waited(run: Run) -> list[float]:
    """Seconds of each object of a run but the page's own, which has no others beside it."""
    came = complete(run)
    rows = run.objects.iter_rows(named=True)
    return [row["done_ns"] / 1e9 - came[path(row["url"])] for row in rows if row["object"] > 0]


def waits(data: Data, protocol: str, kind: str = "holes", **where: Any) -> Numbers:
    """The mean of a page, seconds, one number per seed."""
    data.at_default_only()
    found = [float(np.mean(waited(run))) for _, run in data.runs(sweep(kind, protocol), **where)]
    return np.asarray(found, dtype=np.float64)


def part(bearer: str) -> Computation:
    """T05: of the time until an object is there, in HTTP/2."""

    def share(data: Data) -> Evidence:
        where: dict[str, Any] = {"bearer": bearer, "loss": MOST}
        until = object_delay(data, "h2", "holes", **where)
        return value(waits(data, "h2", **where) / float(until.mean()), "")

    return share


def in_ms(protocol: str, kind: str, bearer: str) -> Computation:
    """T06, T08."""
    where: dict[str, Any] = {"bearer": bearer} if kind == "holes-air" else {"bearer": bearer, "loss": MOST}
    return lambda data: value(1e3 * waits(data, protocol, kind, **where), "ms")


def explained(bearer: str) -> Computation:
    """T07: what HTTP/3 gains by losses, over what objects wait in HTTP/2."""

    def compare(data: Data) -> Evidence:
        data.at_default_only()
        gains = [
            object_delay(data, "h2", **at).mean() - object_delay(data, "h3", **at).mean()
            for at in (at_most(bearer), at_none(bearer))
        ]
        return exact(float((gains[0] - gains[1]) / waits(data, "h2", bearer=bearer, loss=MOST).mean()), "")

    return compare


COMPUTE: dict[str, Computation] = {
    **{f"T05.{bearer}": part(bearer) for bearer in BEARERS},
    **{
        f"T06.{protocol}.{bearer}": in_ms(protocol, "holes", bearer)
        for protocol in ("h3", "sctp")
        for bearer in BEARERS
    },
    **{f"T07.{bearer}": explained(bearer) for bearer in BEARERS},
    **{f"T08.{bearer}": in_ms("h2", "holes-air", bearer) for bearer in BEARERS},
}
