"""The network of the QUIC interop runner as a scenario: two networks with a link between them.

```
client ── 193.167.0.0/24 ── left ══ the scenario's link ══ right ── 193.167.100.0/24 ── server
 .100                        .2                              .2                          .100
```

with fd00:cafe:cafe:0::/64 and fd00:cafe:cafe:100::/64 beside them. Cross-traffic joins at `left` and `right`.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from airloom import interpreter
from airloom.interop.words import CROSS_BEGINS_S, Words
from airloom.reference import interfaces

CLIENT, SERVER = "193.167.0.100", "193.167.100.100"
CLIENT6, SERVER6 = "fd00:cafe:cafe:0::100", "fd00:cafe:cafe:100::100"
#: Where the runner's captures are taken.
POINTS = {"left": "client.near.ip", "right": "server.far.ip"}
#: As long as ns-3 goes on by itself.
_LONGEST = "10h"
#: Names that endpoints know each other by, in both families.
NAMES = f"""\
127.0.0.1 localhost
::1 localhost ip6-localhost
{SERVER} server server4 server46
{SERVER6} server6 server46
{CLIENT} client client4 client46
{CLIENT6} client6 client46
193.167.0.2 sim
"""


def scenario(words: Words, seed: int) -> dict[str, Any]:
    """The network, client and server real hosts."""
    links: dict[str, Any] = {
        "near": _edge(["client", "left"], 0, {"client": 100, "left": 2}),
        "middle": _middle(words),
        "far": _edge(["right", "server"], 100, {"right": 2, "server": 100}),
    }
    hosts: dict[str, Any] = {
        "client": {"real": True},
        "left": {"forward": True},
        "right": {"forward": True},
        "server": {"real": True},
    }
    _cross(words, hosts, links)
    return _scenario(f"the network of the QUIC interop runner: {words.name}", hosts, links, seed, POINTS)


def lacks(understood: Mapping[str, Any]) -> str | None:
    """What a scenario as understood has not, and cases need: the ends with their addresses, and a capture at both."""
    ends = {(host, link): set(map(ip_address, own)) for link, host, own in interfaces(understood)}
    run = understood["run"]
    if "pcapng" not in run["record"]:
        return "run.record has no pcapng"
    for point, own in zip(POINTS.values(), ((CLIENT, CLIENT6), (SERVER, SERVER6)), strict=True):
        host, link, _ = point.split(".")
        if not understood["hosts"].get(host, {}).get("real"):
            return f"there is no real host `{host}`"
        if not ends.get((host, link), set()).issuperset(map(ip_address, own)):
            return f"`{host}` is not at {own[0]} and {own[1]} on a link `{link}`"
        if not any(fnmatchcase(point, pattern) for pattern in run.get("points", [])):
            return f"run.points has no {point}"
    return None


#: The same where the endpoints are beyond two devices.
SIM_POINTS = {"left": "left.middle.ip", "right": "right.middle.ip"}


def between_devices(words: Words, seed: int) -> dict[str, Any]:
    """The link alone, between two real hosts whose kernels forward to the networks of client and server."""
    links = {"middle": _middle(words)}
    networks = {
        "left": ["193.167.0.0/24", "fd00:cafe:cafe:0::/64"],
        "right": ["193.167.100.0/24", "fd00:cafe:cafe:100::/64"],
    }
    hosts: dict[str, Any] = {}
    for name, other in (("left", "right"), ("right", "left")):
        routes = [{"to": network, "via": other} for network in networks[other]]
        hosts[name] = {"real": True, "forward": True, "routes": routes}
    _cross(words, hosts, links)
    return _scenario(f"the link of the QUIC interop runner: {words.name}", hosts, links, seed, SIM_POINTS)


def _scenario(
    title: str, hosts: dict[str, Any], links: dict[str, Any], seed: int, points: dict[str, str]
) -> dict[str, Any]:
    captures = {"record": ["pcapng"], "points": [*points.values()]}
    run = {"until": _LONGEST, "limit": _LONGEST, "seed": seed, **captures}
    return {"title": title, "hosts": hosts, "links": links, "run": run}


def _middle(words: Words) -> dict[str, Any]:
    networks = {"subnet": "193.167.50.0/24", "subnet6": "fd00:cafe:cafe:50::/64"}
    return {**words.link, "between": ["left", "right"], **networks}


def _edge(between: list[str], network: int, hosts: dict[str, int]) -> dict[str, Any]:
    return {
        "bearer": "wireline",
        "between": between,
        "subnet": f"193.167.{network}.0/24",
        "subnet6": f"fd00:cafe:cafe:{network}::/64",
        "addresses": {
            name: [f"193.167.{network}.{host}", f"fd00:cafe:cafe:{network}::{host}"] for name, host in hosts.items()
        },
    }


def _cross(words: Words, hosts: dict[str, Any], links: dict[str, Any]) -> None:
    """A flow beside those of the endpoints, from a host of its own behind the server's side."""
    if words.cross is None:
        return
    wire = {"bearer": "wireline", "rate": "100Mbit/s", "delay": "1ms", "queue": "100 packets"}
    links["down"] = {**wire, "between": ["sink", "left"], "subnet": "193.167.51.0/24"}
    links["up"] = {**wire, "between": ["right", "source"], "subnet": "193.167.49.0/24"}
    if words.cross == "tcp":
        # Reno with SACK, and buffers that do not limit it.
        tcp = {
            "tcp": {
                "profile": "linux",
                "congestion": words.congestion,
                "receive_buffer": "10MB",
                "send_buffer": "100MB",
            }
        }
        flow = {"bulk": {"server": "source", "size": "1000GB"}}
        hosts["sink"] = {"app": [flow], "transport": tcp}
        hosts["source"] = {"app": ["bulk-server"], "transport": tcp}
        return
    hosts |= {"sink": {"real": True}, "source": {"real": True}}


def cross_programs(words: Words) -> dict[str, list[str]]:
    """The programs of a flow of UDP, by host: the rate is of what they carry, as ns-3's source counts it."""
    if words.cross != "udp":
        return {}
    program = interpreter.python(str(Path(__file__).parent / "cross.py"))
    return {"sink": [*program, "sink"], "source": [*program, "sink", str(words.cross_rate), str(CROSS_BEGINS_S)]}
