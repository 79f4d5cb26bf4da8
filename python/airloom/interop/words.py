"""The words of the QUIC interop runner's network, and the links that they mean.

`simple-p2p --delay=15ms --bandwidth=10Mbps --queue=25`: names, options and refusals are those of
quic-interop/quic-network-simulator (`sim/scenarios`), units those of ns-3. Ours are `cellular --preset=NAME`, any
bearer or preset in the place of the wire, and `--congestion` of `tcp-cross-traffic`. What stands there is read, never
run: no shell sees it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import Any, NamedTuple

from airloom.errors import UsageError
from airloom.fields import check, did_you_mean

#: The runner's own network, where nothing else is asked for.
DEFAULT = "simple-p2p --delay=15ms --bandwidth=10Mbps --queue=25"

_BITS = {"bps": 1, "b/s": 1, "Bps": 8, "B/s": 8}
_PREFIXES = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9}
#: Units of time of ns-3, in seconds; a bare number is seconds.
_TIMES = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0}
#: When a flow beside those of the endpoints begins, in seconds.
CROSS_BEGINS_S = 20


class Words(NamedTuple):
    """What a scenario of the runner means here."""

    #: Its name.
    name: str
    #: The bottleneck: bearer and its keys, `faults` among them. Its near end is the client's side.
    link: dict[str, Any]
    #: `tcp` where a flow of TCP competes, towards the client, and its congestion control; `udp` for one of UDP.
    cross: str | None = None
    congestion: str = "newreno"
    #: Rate in bit/s of a flow of UDP that competes.
    cross_rate: int = 0
    #: Seconds after which the client's address changes first, if it changes again and again; 0: it does not.
    moves_s: float = 0


def _rate(text: str) -> int:
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?([kKMG]?)(bps|b/s|Bps|B/s)", text)
    if not match or not float(match[1]):
        raise ValueError("expected a rate such as 10Mbps")
    return round(float(match[1]) * _PREFIXES[match[2]] * _BITS[match[3]])


def _time(text: str) -> float:
    match = re.fullmatch(r"\+?([0-9]+(?:\.[0-9]+)?)(s|ms|us|ns|min|h|)", text)
    if not match or float(match[1]) * _TIMES[match[2]] > 1e6:
        raise ValueError("expected a time such as 15ms")
    return float(match[1]) * _TIMES[match[2]]


def _some_time(text: str) -> float:
    if not (seconds := _time(text)):
        raise ValueError("it is zero")
    return seconds


def _number(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,9}", text) or not least <= int(text) <= most:
            raise ValueError(f"expected a number from {least} to {most}")
        return int(text)

    return read


def _list(text: str) -> list[int]:
    if not re.fullmatch(r"[0-9]{1,9}(,[0-9]{1,9})*", text) or "0" in text.split(","):
        raise ValueError("expected packet numbers from 1, such as 1,3,15")
    return sorted({int(number) for number in text.split(",")})


def _direction(text: str) -> str:
    known = {"both": "both", "toclient": "downlink", "toserver": "uplink"}
    if text not in known:
        raise ValueError(f"expected {', '.join(known)}")
    return known[text]


def _yes(text: str) -> bool:
    if text.lower() not in ("", "1", "true", "t", "0", "false", "f"):
        raise ValueError("expected true or false")
    return text.lower() in ("", "1", "true", "t")


def _congestion(text: str) -> str:
    if text not in ("newreno", "cubic"):
        raise ValueError("expected newreno or cubic")
    return text


_queue, _percent, _burst = _number(1, 1_000_000), _number(0, 100), _number(1, 1_000_000)
_Option = Callable[[str], Any]
_WIRE: dict[str, _Option] = {"delay": _time, "bandwidth": _rate, "queue": _queue}
_RATES: dict[str, _Option] = {
    "rate_to_client": _percent,
    "rate_to_server": _percent,
}
_BURSTS: dict[str, _Option] = {"burst_to_client": _burst, "burst_to_server": _burst}

#: By scenario: the options that have to be given, and the others.
_SCENARIOS: dict[str, tuple[dict[str, _Option], dict[str, _Option]]] = {
    "simple-p2p": (_WIRE, {}),
    "drop-rate": (_WIRE | _RATES, _BURSTS),
    "droplist": (_WIRE, {"drops_to_client": _list, "drops_to_server": _list}),
    "corrupt-rate": (_WIRE | _RATES, _BURSTS),
    "blackhole": (
        _WIRE | {"on": _time, "off": _some_time},
        {"repeat": _number(1, 1_000_000), "direction": _direction},
    ),
    "rebind": (_WIRE | {"first-rebind": _some_time}, {"rebind-freq": _some_time, "rebind-addr": _yes}),
    "tcp-cross-traffic": (_WIRE, {"congestion": _congestion}),
    "udp-cross-traffic": (_WIRE | {"crossdatarate": _rate}, {}),
    "asymmetric-p2p": (
        {
            "delay": _time,
            "forward-data-rate": _rate,
            "forward-queue": _queue,
            "return-data-rate": _rate,
            "return-queue": _queue,
        },
        {"drop-rate-to-client": _percent, "drop-rate-to-server": _percent},
    ),
    "cellular": ({"preset": str}, {}),
}


def parse(text: str) -> Words:
    """What `text` means; `UsageError` says what is wrong with it, in one line.

    >>> parse("simple-p2p --delay=15ms --bandwidth=10Mbps --queue=25").link["rate"]
    '10000000bit/s'
    >>> parse("droplist --delay=15ms --bandwidth=10Mbps")
    Traceback (most recent call last):
    airloom.errors.UsageError: scenario droplist: Missing parameter: queue
    """
    name, given = _split(text)
    needed, others = _SCENARIOS[name]
    known = needed | others
    check([f"--{option}" for option in given], [f"--{option}" for option in known], f"scenario {name}", "option")
    values: dict[str, Any] = {}
    for option, value in given.items():
        try:
            values[option] = known[option](value)
        except ValueError as error:
            raise UsageError(f"scenario {name}: --{option}={value}: {error}") from None
    for option in needed:
        if option not in values:
            raise UsageError(f"scenario {name}: Missing parameter: {option}")
    return _meaning(name, values)


def _split(text: str) -> tuple[str, dict[str, str]]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"scenario {text!r}: {error}") from None
    if not words:
        raise UsageError(f"no scenario; valid: {', '.join(_SCENARIOS)}, such as {DEFAULT!r}")
    name, *rest = words
    if name not in _SCENARIOS:
        raise UsageError(f"no scenario {name!r}{did_you_mean(name, _SCENARIOS)}; valid: {', '.join(_SCENARIOS)}")
    given: dict[str, str] = {}
    rest.reverse()
    while rest:
        word = rest.pop()
        match = re.fullmatch(r"--?([A-Za-z][A-Za-z_-]*)(?:=(.*))?", word, re.DOTALL)
        if not match:
            raise UsageError(f"scenario {name}: {word!r} is no option; options look like --delay=15ms")
        option, value = match[1], match[2]
        if value is None:
            value = rest.pop() if rest and not rest[-1].startswith("-") else ""
        if option in given:
            raise UsageError(f"scenario {name}: --{option} is given twice")
        given[option] = value
    return name, given


def _meaning(name: str, given: dict[str, Any]) -> Words:
    if name == "cellular":
        return Words(name, _preset(given["preset"]))
    link: dict[str, Any] = {"bearer": "wireline", "delay": _seconds(given["delay"])}
    if name == "asymmetric-p2p":
        link["rate"] = _ways(f"{given['forward-data-rate']}bit/s", f"{given['return-data-rate']}bit/s")
        link["queue"] = _ways(_packets(given["forward-queue"]), _packets(given["return-queue"]))
        shares = given.get("drop-rate-to-client", 0), given.get("drop-rate-to-server", 0)
        link["faults"] = {"protocol": "udp", "drop": {"rate": _ways(*(share / 100 for share in shares))}}
        return Words(name, link)
    link |= {"rate": f"{given['bandwidth']}bit/s", "queue": _packets(given["queue"])}
    match name:
        case "drop-rate" | "corrupt-rate":
            strikes: dict[str, Any] = {"rate": _ways(*(given[key] / 100 for key in _RATES))}
            if any(key in given for key in _BURSTS):
                # Without a largest burst: as long as luck has it.
                strikes["burst"] = _ways(*(given.get(key, 1_000_000) for key in _BURSTS))
            link["faults"] = {"protocol": "udp", {"drop-rate": "drop"}.get(name, "corrupt"): strikes}
        case "droplist":
            lists = {"downlink": given.get("drops_to_client", []), "uplink": given.get("drops_to_server", [])}
            link["faults"] = {"protocol": "udp", "drop_list": lists}
        case "blackhole":
            hole = {"on": _seconds(given["on"]), "off": _seconds(given["off"]), "repeat": given.get("repeat", 1)}
            link["faults"] = {"blackhole": {**hole, "direction": given.get("direction", "both")}}
        case "rebind":
            nat: dict[str, Any] = {"first": _seconds(given["first-rebind"])}
            if "rebind-freq" in given:
                nat["every"] = _seconds(given["rebind-freq"])
            # At the server's side: what is under way to it comes from the new address already.
            link["faults"] = {"nat": {**nat, "address": given.get("rebind-addr", False)}}
            return Words(name, link, moves_s=given["first-rebind"] if "every" in nat else 0)
        case "tcp-cross-traffic":
            return Words(name, link, cross="tcp", congestion=given.get("congestion", "newreno"))
        case "udp-cross-traffic":
            return Words(name, link, cross="udp", cross_rate=given["crossdatarate"])
    return Words(name, link)


def _preset(name: str) -> dict[str, Any]:
    from airloom import reference
    from airloom.presets import presets

    if name in (bearers := reference.names("bearers")):
        return {"bearer": name}
    if name in presets():
        preset = presets()[name]
        return {"bearer": preset.bearer, **preset.keys}
    guess = did_you_mean(name, [*bearers, *presets()])
    raise UsageError(
        f"scenario cellular: no preset {name!r}{guess}; airloom list presets, or a bearer: {', '.join(bearers)}"
    )


def _seconds(seconds: float) -> str:
    return f"{round(seconds * 1e9)}ns"


def _packets(waiting: int) -> str:
    # There the queue is in front of the device, which has one more in service.
    return f"{waiting + 1} packets"


def _ways(to_client: Any, to_server: Any) -> dict[str, Any]:
    return {"downlink": to_client, "uplink": to_server}
