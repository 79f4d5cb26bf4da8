"""Times and octets of transfers, and what the paper makes of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np

from airloom.analysis import energy_models
from airloom.study import Computation, Data, Evidence, Numbers, pair, value

#: Drop rates of Table 1, per cent.
DROPS = (0, 5, 10, 20, 33, 50)
#: Energy in ratios of power, which is all that is compared.
MODEL = "wlan.ratio"
#: Octets that the application wants moved.
BASE = 5_242_880
#: Lengths of phases of Table 2, seconds.
PHASES = (4, 5, 6, 7, 8, 9, 10)


def completion(data: Data, sweep: str, **where: object) -> Numbers:
    """Connection times."""
    return data.per_seed(sweep, "runs", "completion_s", **where)


def joules(data: Data, sweep: str, **where: object) -> Numbers:
    """What the sender's radio spends until the transfer is over: sending, receiving, waiting."""
    watts = energy_models()[MODEL].watts
    up, down = (data.per_seed(sweep, "runs", f"{way}.busy_s", **where) for way in ("uplink", "downlink"))
    waiting = completion(data, sweep, **where) - up - down
    return watts["transmit"] * up + watts["receive"] * down + watts["idle"] * waiting


def seconds(data: Data, protocol: str, drop: int) -> Numbers:
    """Connection times, one per seed, phases of 10 s."""
    return completion(data, f"table-1-{protocol}", drop=drop)


def octets(data: Data, protocol: str, drop: int) -> Numbers:
    """Octets of the transport in both directions, one number per seed."""
    return total(data, f"table-1-{protocol}", drop=drop)


def total(data: Data, sweep: str, **where: object) -> Numbers:
    """Octets that both ends sent, headers and all that was sent again included, without IP."""
    up = data.per_seed(sweep, "flows", "wire_bytes_up", **where)
    return np.asarray(up + data.per_seed(sweep, "flows", "wire_bytes_down", **where), dtype=np.float64)


def over(data: Data, protocol: str, drop: int) -> Numbers:
    """Byte overhead."""
    return np.asarray(octets(data, protocol, drop) - BASE, dtype=np.float64)


def time_over(data: Data, protocol: str, drop: int) -> Numbers:
    """Time overhead: less the same protocol's time without errors."""
    return np.asarray(seconds(data, protocol, drop) - seconds(data, protocol, 0).mean(), dtype=np.float64)


def ratio_of_times(data: Data, drop: int) -> Numbers:
    """TCP's time in WWP's."""
    return np.asarray(seconds(data, "tcp", drop) / seconds(data, "wwp", drop), dtype=np.float64)


def extreme(drop: int, kind: str, pick: Callable[[Numbers], float], data: Data) -> Evidence:
    """The least or largest ratio over phases of 4 to 10 s, seed by seed."""
    by_length = []
    for length in PHASES:
        where = {"drop": drop, "phase": length}
        if kind == "time":
            tcp, wwp = (data.per_seed(f"table-2-{p}", "runs", "completion_s", **where) for p in ("tcp", "wwp"))
        else:
            tcp, wwp = (total(data, f"table-2-{p}", **where) - BASE for p in ("tcp", "wwp"))
        by_length.append(tcp / wwp)
    stacked = np.stack(by_length)
    return value([pick(stacked[:, n]) for n in range(stacked.shape[1])], "")


def spread(of: Callable[[Data, str, int], Numbers], data: Data, unit: str = "") -> Evidence:
    """W17: WWP's largest over its smallest, among the rows with errors."""
    found = np.stack([of(data, "wwp", d) for d in DROPS if d > 0])
    return value(found.max(axis=0) / found.min(axis=0), unit)


def slope(data: Data) -> Evidence:
    """W18: least squares of the time ratio over the drop rate."""
    at = np.asarray(DROPS, dtype=np.float64) / 100
    ratios = np.stack([ratio_of_times(data, d) for d in DROPS])
    centred = at - at.mean()
    return value(centred @ ratios / (centred @ centred), "")


def favoured(of: Callable[..., Numbers], unit: str, data: Data) -> Evidence:
    """W24: the setting for energy and the one for throughput, mean over the drop rates with errors."""
    return pair(of(data, "favour", favour="energy"), of(data, "favour", favour="throughput"), unit)


def difference_at_33(data: Data) -> Evidence:
    """W25: the largest difference of octets over the lengths of phases."""
    by_length = []
    for length in PHASES:
        where = {"drop": 33, "phase": length}
        by_length.append(total(data, "table-2-tcp", **where) - total(data, "table-2-wwp", **where))
    return value(np.stack(by_length).max(axis=0) / 1000, "kB")


def worth_waiting(data: Data) -> Evidence:
    """W23, at 33 %: how little a radio may draw while it waits before TCP's longer time costs less than its octets.

    TCP's additional time on the air over its additional time: a radio that draws this share of its power of sending
    while it waits spends as much on the one as on the other. Receiving is counted as sending, which is in TCP's favour.
    """
    (tcp, tcp_air), (wwp, wwp_air) = ((seconds(data, p, 33), on_air(data, p, 33)) for p in ("tcp", "wwp"))
    return value((tcp_air - wwp_air) / (tcp - wwp), "")


def on_air(data: Data, protocol: str, drop: int) -> Numbers:
    """Seconds that the link was busy, both directions, one number per seed."""
    up, down = (
        data.per_seed(f"table-1-{protocol}", "runs", f"{way}.busy_s", drop=drop) for way in ("uplink", "downlink")
    )
    return np.asarray(up + down, dtype=np.float64)


def row(of: Callable[[Data, str, int], Numbers], unit: str, protocol: str, drop: int, data: Data) -> Evidence:
    """W01 to W12: time, or octets, of a row of Table 1."""
    return value(of(data, protocol, drop) / (1000 if unit == "kB" else 1), unit)


def worse(what: Callable[[Data, str, int], Numbers], drop: int, unit: str, data: Data) -> Evidence:
    """W34: TCP beside WWP at one drop rate."""
    return pair(what(data, "tcp", drop), what(data, "wwp", drop), unit)


COMPUTE: dict[str, Computation] = {
    **{
        f"W{number:02}.{what}": partial(row, of, unit, protocol, drop)
        for number, (drop, protocol) in enumerate(product(DROPS, ("tcp", "wwp")), 1)
        for what, of, unit in (("time", seconds, "s"), ("octets", over, "kB"))
    },
    "W13": lambda data: value(ratio_of_times(data, 0), ""),
    **{
        f"{claim}.{what}": partial(extreme, drop, "time", pick)
        for claim, drop in (("W14", 10), ("W15", 33), ("W16", 50))
        for what, pick in (("least", np.min), ("most", np.max))
    },
    "W17.time": partial(spread, seconds),
    "W17.octets": partial(spread, over),
    "W17.energy": partial(spread, lambda data, protocol, drop: joules(data, f"table-1-{protocol}", drop=drop)),
    "W18": slope,
    "W19": lambda data: value(1 / ratio_of_times(data, 0), ""),
    "W20": lambda data: value(1 / extreme(33, "time", np.max, data).samples, ""),  # type: ignore[union-attr]
    "W21": partial(extreme, 50, "octets", np.max),
    "W23": worth_waiting,
    "W24.time": partial(favoured, completion, "s"),
    "W24.octets": partial(favoured, total, "B"),
    "W25": difference_at_33,
    **{f"W34.time-{d}": partial(worse, seconds, d, "s") for d in DROPS if d > 0},
    **{f"W34.octets-{d}": partial(worse, over, d, "B") for d in DROPS if d > 0},
}
