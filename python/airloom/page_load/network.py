"""The network of a load: radio, gateway, and behind it the servers, this machine or the outside world."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airloom.errors import UsageError
from airloom.fields import did_you_mean
from airloom.page_load.ways import Asked, Way
from airloom.scenario import Scenario, parse, toml_value

#: How a link to what is no server of ours is called, if it is not the page's own.
_MACHINE_LINK, _OUTSIDE_LINK = "internet-machine", "internet-outside"


def link_table(name: str) -> dict[str, Any]:
    """The keys of the link that a bearer or a preset stands for. Raises `UsageError` with a guess and the choices."""
    from airloom import reference
    from airloom.presets import presets

    if (preset := presets().get(name)) is not None:
        return {"bearer": preset.bearer, **preset.keys}
    bearers = reference.names("bearers")
    if name in bearers:
        return {"bearer": name}
    guess = did_you_mean(name, [*bearers, *presets()])
    raise UsageError(
        f"{name}: no bearer or preset is called so{guess}; valid bearers: {', '.join(bearers)}; "
        f"presets: {', '.join(presets())}"
    )


def network(
    link: str,
    way: Way,
    folder: Path,
    asked: Asked,
    commands: Mapping[str, list[str]],
    loopback: list[int],
    delay: str | None,
    loss: float,
    overrides: Mapping[str, object],
) -> Scenario:
    """The scenario of a load. `commands` start the servers; `loopback` are ports of this machine.

    Without a `delay` those servers and this machine are 20 ms away from the gateway; the outside world has a delay of
    its own.
    """
    hosts: dict[str, dict[str, object]] = {"mobile": {"real": True}, "gateway": {}}
    if way.command is not None:
        hosts["gateway"] = {"real": True, "command": way.command(folder, asked)}
    wires: dict[str, tuple[str, str]] = {}
    for name, command in commands.items():
        hosts[name] = {"real": True, "command": command}
        wires["internet" if name == "origin" else f"internet-{name}"] = (name, delay or "20ms")
    if loopback:
        hosts["machine"] = {"real": True, "loopback": loopback}
        wires[_MACHINE_LINK if commands or asked.outside else "internet"] = ("machine", delay or "20ms")
    if asked.outside:
        hosts["outside"] = {"real": True, "outside": True}
        wires[_OUTSIDE_LINK if wires else "internet"] = ("outside", delay or "0ms")
    links: dict[str, object] = {"radio": {**link_table(link), "between": ["mobile", "gateway"]}}
    for name, (far, away) in wires.items():
        links[name] = {"bearer": "wireline", "delay": away, "loss": loss, "between": ["gateway", far]}
    parts = {"title": f"{link}, proxy: {way.name}", "hosts": hosts, "links": links, "run": {"record": ["packets"]}}
    text = "".join(f"{key} = {toml_value(value)}\n" for key, value in parts.items())
    return parse(text, f"load over {link}", overrides)
