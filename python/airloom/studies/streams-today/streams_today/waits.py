"""Head-of-line time: how long an object that had arrived as a whole waited at the mobile for octets of others."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from airloom.run import Run
from airloom.study import Computation, Data, Evidence, Numbers, jackknifed, value

from .arrived import complete, path
from .times import BEARERS, MOST, at_most, at_none, object_delay, sweep


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


def part(bearer: str, data: Data) -> Evidence:
    """T05: of the time until an object is there, in HTTP/2."""
    where: dict[str, Any] = {"bearer": bearer, "loss": MOST}
    until = object_delay(data, "h2", "holes", **where)
    return value(waits(data, "h2", **where) / float(until.mean()), "")


def in_ms(protocol: str, kind: str, bearer: str, data: Data) -> Evidence:
    """T06, T08."""
    where: dict[str, Any] = {"bearer": bearer} if kind == "holes-air" else {"bearer": bearer, "loss": MOST}
    return value(1e3 * waits(data, protocol, kind, **where), "ms")


def explained(bearer: str, data: Data) -> Evidence:
    """T07: what HTTP/3 gains by losses, over what objects wait in HTTP/2."""
    data.at_default_only()
    lossy, clean = (
        object_delay(data, "h2", **at) - object_delay(data, "h3", **at) for at in (at_most(bearer), at_none(bearer))
    )
    waited = waits(data, "h2", bearer=bearer, loss=MOST)
    return jackknifed(lambda gained, waited: gained.mean() / waited.mean(), lossy - clean, waited, unit="")


COMPUTE: dict[str, Computation] = {
    **{f"T05.{bearer}": partial(part, bearer) for bearer in BEARERS},
    **{
        f"T06.{protocol}.{bearer}": partial(in_ms, protocol, "holes", bearer)
        for protocol in ("h3", "sctp")
        for bearer in BEARERS
    },
    **{f"T07.{bearer}": partial(explained, bearer) for bearer in BEARERS},
    **{f"T08.{bearer}": partial(in_ms, "h2", "holes-air", bearer) for bearer in BEARERS},
}
