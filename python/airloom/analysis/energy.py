"""What the mobile's radio spends, from the records of a run.

A model says what a radio draws in a state, while it sends and receives, or for a packet; a run says for how long and
how many. Models are data (`energy_models.toml`), each with its source. Joules of a model that is not `verified` are for
orderings at most, and so are those of all of them: phones of one year differ by a factor of two.

The papers of the Wave and Wait protocol measure no joules but what drives them: octets and time beyond what the data
need. `overheads` gives these.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from airloom.analysis.units import duration_s
from airloom.errors import UsageError
from airloom.reference import interfaces

if TYPE_CHECKING:
    from airloom.run import Run

#: Bearers whose mobiles have the radio states of UMTS.
_UMTS = ("umts-dch", "umts-hsdpa")

_SCHEMA = {"host": pl.String, "part": pl.String, "what": pl.String, "seconds": pl.Float64, "joules": pl.Float64}


class Model(NamedTuple):
    """What a radio draws."""

    name: str
    #: `states`: power by radio state; `interface`: sending, receiving, idle; `packets`: joules by packet and octet;
    #: `activity`: states that follow from when packets pass, and joules by octet.
    form: str
    title: str
    source: str
    #: Was the number seen at its source?
    verified: bool
    watts: dict[str, float]
    #: Seconds until a radio that has nothing to do leaves the state, where the scenario does not say; those of
    #: `activity` are `promotion`, `connected` and `tail`.
    tail_s: dict[str, float]
    send: dict[str, float]
    receive: dict[str, float]


@cache
def energy_models() -> dict[str, Model]:
    """All models by name.

    >>> energy_models()["umts.captivate"].watts["dch"]
    1.02
    """
    text = (resources.files("airloom.analysis") / "energy_models.toml").read_text(encoding="utf-8")
    empty: dict[str, Any] = {"tail_s": {}, "send": {}, "receive": {}}
    return {name: Model(name, **{**empty, **table}) for name, table in tomllib.loads(text).items()}


def energy_model(name: str) -> Model:
    """The model with this name; `UsageError` if there is none."""
    model = energy_models().get(name)
    if model is None:
        raise UsageError(f"no energy model {name!r}; there are {', '.join(energy_models())}")
    return model


def bearer(run: Run, link: str | None = None) -> str:
    """What a link comes down to, below what stands in front of it (the first link of the scenario if not given)."""
    return _bearer(_links(run)[_link(run, link)])[0]


def default_models(run: Run, link: str | None = None) -> list[Model]:
    """What is taken where no model was chosen, by the bearer of the link (the first of the scenario if not given).

    All models of UMTS for a radio channel of UMTS. For any other bearer `wlan.ns3`, an interface that sends, receives
    or waits: it asks for nothing but how long the link was busy each way, so that every run of WWP has what it needs.
    `piafs`, `mlppp` and `trace` do not say that; a `trace` is for models that count packets. There is no model of a
    GPRS radio; joules on `egprs` are for orderings at most.
    """
    if bearer(run, link) in _UMTS:
        return [model for name, model in energy_models().items() if name.startswith("umts.")]
    return [energy_model("wlan.ns3")]


def energy(run: Run, model: str | Model | None = None, *, link: str | None = None) -> pl.DataFrame:
    """Seconds and joules of the hosts at the mobile end of a link.

    A row per host, part and state: `host`, `part`, `what`, `seconds`, `joules`. Parts are `transfer` (until the host's
    last octet on the air), `tail` (what the radio spends until its timers let it go, whether the run lasted so long or
    not) and `idle` (the rest of the run). A mobile without channel switching never leaves its DCH and has no tail.
    `link` is the link's name; the first one of the scenario if not given. `model` is the first of `default_models` if
    not given. Raises `UsageError` where the run has not what the model needs.

    Source: Tsaoussidis and others 2000 for the idea; the models name theirs.
    """
    link = _link(run, link)
    if model is None:
        model = default_models(run, link)[0]
    elif isinstance(model, str):
        model = energy_model(model)
    forms = {"states": _by_states, "interface": _by_interface, "packets": _by_packets, "activity": _by_activity}
    rows = forms[model.form](run, model, link, _bearer(_links(run)[link])[1])
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row").filter(
        pl.col("seconds").is_null() | (pl.col("seconds") > 0)
    )


def joules_per_megabyte(run: Run, spent: pl.DataFrame, *, tail: bool = True) -> float:
    """Joules of `energy` for each 10^6 octets that applications received, in both directions.

    Of the connections those count that have an end at a host that spends: what a proxy fetches for it comes a second
    time.
    """
    parts = ("transfer", "tail") if tail else ("transfer",)
    joules = spent.filter(pl.col("part").is_in(parts))["joules"].sum()
    own = _addresses(run, set(spent["host"].to_list()))
    ends = [_address(pl.col(end)).is_in(list(own)) for end in ("src", "dst")]
    flows = run.flows.filter(ends[0] | ends[1])
    octets = flows.select(pl.col("app_bytes_up", "app_bytes_down").sum()).sum_horizontal().item()
    return float(joules) / octets * 1e6 if octets else float("nan")


def overheads(flows: pl.DataFrame) -> pl.DataFrame:
    """Octets beyond the data, flow by flow: `app_bytes`, `wire_bytes`, `overhead_bytes`, `overhead_share`.

    `wire_bytes` are those of all segments of both sides with the transport's headers, not the network's: as in the Wave
    and Wait paper, section 4.

    >>> flows = pl.DataFrame({"flow": [1], "app_bytes_up": [0], "app_bytes_down": [1000]})
    >>> overheads(flows.with_columns(wire_bytes_up=80, wire_bytes_down=1120)).row(0)
    (1, 1000, 1200, 200, 0.2)
    """
    app = pl.col("app_bytes_up").cast(pl.Int64) + pl.col("app_bytes_down").cast(pl.Int64)
    wire = pl.col("wire_bytes_up").cast(pl.Int64) + pl.col("wire_bytes_down").cast(pl.Int64)
    keep = [name for name in ("point", "seed", "flow", "proto") if name in flows.columns]
    summed = flows.select(*keep, app_bytes=app, wire_bytes=wire)
    more = pl.col("wire_bytes") - pl.col("app_bytes")
    return summed.with_columns(overhead_bytes=more, overhead_share=more / pl.col("app_bytes"))


def _addresses(run: Run, hosts: set[str]) -> set[str]:
    """All addresses of some hosts."""
    return {address for _, host, own in interfaces(run.manifest["scenario"]) if host in hosts for address in own}


def _address(end: pl.Expr) -> pl.Expr:
    """That of an end of a connection: `10.77.0.2:80`, `[fd00:77::2]:80`."""
    return end.cast(pl.String).str.replace(r"^\[?([^\]]*?)\]?:\d+$", "$1")


def _links(run: Run) -> dict[str, Any]:
    found: dict[str, Any] = run.manifest["scenario"]["links"]
    return found


def _link(run: Run, link: str | None) -> str:
    links = _links(run)
    link = link or next(iter(links))
    if link not in links:
        raise UsageError(f"the run has no link {link!r}; it has {', '.join(links)}")
    return link


Row = tuple[str, str, str, float | None, float]


def _bearer(keys: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Name and keys of the bearer that a link comes down to, below what stands in front of it (`over`).

    >>> _bearer({"bearer": "vdeldrop", "over": {"umts-dch": {"rrc": {}}}})
    ('umts-dch', {'rrc': {}})
    """
    name = str(keys.get("bearer", ""))
    while isinstance(below := keys.get("over"), dict) and below:
        name, keys = next(iter(below.items()))
    return name, keys


def _by_states(run: Run, model: Model, link: str, keys: dict[str, Any]) -> list[Row]:
    states = run.states.filter(pl.col("link") == link)
    end = run.summary["simulated_s"]
    timers = _timers(model, keys)
    switches = keys.get("rrc") is not None
    rows: list[Row] = []
    for (host,), of_host in states.group_by("host", maintain_order=True):
        air = of_host.filter(pl.col("state") == "tx")
        last = _last_s(air)
        stays = [(t / 1e9, state) for t, state in of_host.filter(pl.col("dir").is_null())["t_ns", "state"].rows()]
        begun = stays or [(0.0, "dch")]
        until = [t for t, _ in begun[1:]] + [max(end, last)]
        spent: dict[str, float] = {}
        state = "idle"
        if begun[0][0] > 0:
            spent["idle"] = min(begun[0][0], last)
        for (at, name), then in zip(begun, until, strict=True):
            if at < last:
                spent[name] = spent.get(name, 0.0) + min(then, last) - at
                state = name
        rows += [(host, "transfer", name, s, s * _watts(model, name)) for name, s in spent.items()]
        # From the last octet on the timers run: first that of the state it went in.
        tail = [] if not switches else [name for name in ("dch", "fach") if state == "dch" or name == state]
        rows += [(host, "tail", name, timers[name], timers[name] * _watts(model, name)) for name in tail]
        rest = end - last - sum(timers[name] for name in tail)
        where = "idle" if switches else "dch"
        rows.append((host, "idle", where, max(rest, 0.0), max(rest, 0.0) * _watts(model, where)))
    if not rows:
        raise UsageError(f"the link {link!r} has no radio states: choose a model of another form, such as wlan.ns3")
    return rows


def _by_interface(run: Run, model: Model, link: str, _: dict[str, Any]) -> list[Row]:
    end = run.summary["simulated_s"]
    states = run.states.filter((pl.col("link") == link) & (pl.col("state") == "tx"))
    on_air: dict[str, tuple[float, float, float]] = {}
    if states.is_empty():
        # Without the link's name it may be that of another one.
        busy = [run.summary.get(f"{link}.{direction}.busy_s") for direction in ("uplink", "downlink")]
        if None in busy:
            what = bearer(run, link)
            fits = "no model fits it"
            if what == "trace":
                fits = "choose a model of another form, such as wavelan.2mbit, with packets recorded"
            raise UsageError(f"the link {link!r} ({what}) does not say how long it was busy: {fits}")
        on_air[_first_host(run, link)] = (float(busy[0] or 0), float(busy[1] or 0), end)
    for (host,), of_host in states.group_by("host", maintain_order=True):
        each = [_length_s(of_host.filter(pl.col("dir") == direction)) for direction in ("ul", "dl")]
        on_air[str(host)] = (each[0], each[1], _last_s(of_host))
    rows: list[Row] = []
    for host, (up, down, last) in on_air.items():
        for part, what, seconds in (
            ("transfer", "transmit", up),
            ("transfer", "receive", down),
            # A radio that does both at once waits for nothing meanwhile.
            ("transfer", "idle", max(last - up - down, 0.0)),
            ("idle", "idle", max(end - last, 0.0)),
        ):
            rows.append((host, part, what, seconds, seconds * _watts(model, what)))
    return rows


def _by_packets(run: Run, model: Model, link: str, _: dict[str, Any]) -> list[Row]:
    rows, _at_s = _counted(run, model, link)
    end = run.summary["simulated_s"]
    return [*rows, (_first_host(run, link), "transfer", "idle", end, end * _watts(model, "idle"))]


def _by_activity(run: Run, model: Model, link: str, _: dict[str, Any]) -> list[Row]:
    """A radio that no record speaks of: it is connected while packets pass, and lets go when none came for a while."""
    rows, at_s = _counted(run, model, link)
    host = _first_host(run, link)
    stays = ("connected", "tail")
    transfer = dict.fromkeys(("promotion", *stays, "idle"), 0.0)

    def wait(seconds: float, spent: dict[str, float]) -> float:
        for state in stays:
            spent[state] += min(seconds, model.tail_s[state])
            seconds -= min(seconds, model.tail_s[state])
        return seconds

    if at_s:
        transfer["idle"] += at_s[0]
        transfer["promotion"] += model.tail_s["promotion"]
    for before, after in pairwise(at_s):
        released_s = wait(after - before, transfer)
        if released_s > 0:
            transfer["idle"] += released_s
            transfer["promotion"] += model.tail_s["promotion"]
    last = at_s[-1] if at_s else 0.0
    tail = {state: model.tail_s[state] if at_s else 0.0 for state in stays}
    rest = max(run.summary["simulated_s"] - last - sum(tail.values()), 0.0)
    for part, spent in (("transfer", transfer), ("tail", tail), ("idle", {"idle": rest})):
        rows += [(host, part, state, s, s * _watts(model, state)) for state, s in spent.items()]
    return rows


def _counted(run: Run, model: Model, link: str) -> tuple[list[Row], list[float]]:
    """What packets cost one by one, and when they passed."""
    points = {"send": f"{link}.queue.ul.tx", "receive": f"{link}.queue.dl.tx"}
    seen = run.packets.with_columns(pl.col("point").cast(pl.String))
    if seen.filter(pl.col("point").is_in(list(points.values()))).is_empty():
        raise UsageError(f"the link {link!r} does not carry packets one by one: {model.name} cannot count them")
    host = _first_host(run, link)
    here = pl.col("event").cast(pl.String) == "enq"
    rows: list[Row] = []
    for what, of_packet in (("send", model.send), ("receive", model.receive)):
        at_point = seen.filter(pl.col("point") == points[what])
        # What was lost on the way has been sent, but not received; of what has come twice the link does not know.
        if what == "send":
            unsent = pl.col("reason").cast(pl.String).is_in(["queue full", "link down"]).fill_null(value=False)
            counted = at_point.filter(pl.col("event").cast(pl.String).is_in(["enq", "drop"]) & ~unsent)
        else:
            lost = at_point.filter(pl.col("event").cast(pl.String) == "drop")
            arrived = seen.filter((pl.col("point") == f"{host}.{link}.ip") & (pl.col("event").cast(pl.String) == "rx"))
            counted = at_point.filter(here).join(lost, on="pkt_id", how="anti") if arrived.is_empty() else arrived
        joules = counted.height * of_packet["packet_j"] + sum(counted["len"].to_list()) * of_packet["octet_j"]
        rows.append((host, "transfer", what, None, joules))
    passed = seen.filter(pl.col("point").is_in(list(points.values())) & here)["t_ns"].sort()
    return rows, (passed / 1e9).to_list()


def _last_s(air: pl.DataFrame) -> float:
    """When the last air time ends; 0 without any."""
    return max(air["until_ns"].to_list(), default=0) / 1e9


def _length_s(air: pl.DataFrame) -> float:
    """How long something was on the air; timeslots of one moment count once."""
    ends = pl.col("until_ns").cum_max().shift(1, fill_value=0)
    lengths = air.sort("t_ns").select((pl.col("until_ns") - pl.max_horizontal("t_ns", ends)).clip(lower_bound=0))
    return int(lengths.sum().item()) / 1e9


def _timers(model: Model, keys: dict[str, Any]) -> dict[str, float]:
    rrc = keys.get("rrc") or {}
    own = {"dch": rrc.get("dch_inactivity"), "fach": rrc.get("fach_inactivity")}
    return {name: model.tail_s[name] if text is None else duration_s(text) for name, text in own.items()}


def _watts(model: Model, state: str) -> float:
    if state not in model.watts:
        raise UsageError(f"the model {model.name} does not know the state {state!r}")
    return model.watts[state]


def _first_host(run: Run, link: str) -> str:
    return next(host for of_link, host, _ in interfaces(run.manifest["scenario"]) if of_link == link)
