"""Named links: what other tools mean by "3G", under their own names, and some of ours."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any, NamedTuple

#: What the tools do not say: the queue of a shaped link, here that of the kernel's own network emulator.
QUEUE = "1000 packets"


class Preset(NamedTuple):
    """A bearer and its keys."""

    name: str
    bearer: str
    keys: dict[str, object]
    #: Where the figures are from, and what is odd about them.
    about: str
    #: The figures in one line.
    figures: str


@cache
def presets() -> dict[str, Preset]:
    """All presets by name.

    >>> presets()["wpt/3g"].figures
    'down 1600 kbit/s, up 768 kbit/s, RTT 300 ms'
    >>> presets()["sitespeed/3g"].keys["delay"]
    {'downlink': '75ms', 'uplink': '75ms'}
    """
    import tomllib

    text = (resources.files("airloom") / "presets.toml").read_text(encoding="utf-8")
    found = {}
    for group in tomllib.loads(text).values():
        about, bearer = group.pop("about"), group.pop("bearer", "wireline")
        prefix = group.pop("prefix")
        for name, figures in group.items():
            note = f"; {figures.pop('note')}" if "note" in figures else ""
            preset = _preset(f"{prefix}/{name}", bearer, figures, about + note)
            found[preset.name] = preset
    return found


def _preset(name: str, bearer: str, figures: dict[str, Any], about: str) -> Preset:
    if "keys" in figures:
        shown = ", ".join(f"{key} {_said(value)}" for key, value in figures["keys"].items())
        return Preset(name, bearer, figures["keys"], about, shown)
    keys: dict[str, object] = {}
    said: list[str] = []
    if "down" in figures:
        keys["rate"] = {"downlink": _rate(figures["down"]), "uplink": _rate(figures["up"])}
        keys["queue"] = QUEUE
        said += [f"down {figures['down']:g} kbit/s", f"up {figures['up']:g} kbit/s"]
    half = figures.get("rtt", 0) / 2
    down, up = figures.get("down_delay", half), figures.get("up_delay", half)
    if down or up:
        keys["delay"] = {"downlink": _delay(down), "uplink": _delay(up)}
        said.append(f"RTT {down + up:g} ms" if down == up else f"delay {down:g} ms down, {up:g} ms up")
    if loss := figures.get("loss"):
        keys["loss"] = {"downlink": loss, "uplink": loss}
        said.append(f"loss {loss * 100:g} % each way")
    return Preset(name, bearer, keys, about, ", ".join(said))


def _said(value: object) -> str:
    if not isinstance(value, dict):
        return str(value)
    if value.keys() == {"downlink", "uplink"}:
        return f"{value['downlink']} down, {value['uplink']} up"
    return ", ".join(f"{key} {_said(part)}" for key, part in value.items())


def _rate(kbit: float) -> str:
    return f"{round(kbit * 1000)}bit/s"


def _delay(ms: float) -> str:
    return f"{ms:g}ms"


def describe(preset: Preset) -> str:
    """The true numbers, and what such a link does not have."""
    lines = [f"{preset.name}: {preset.figures}", f"  from    {preset.about}", f"  bearer  {preset.bearer}"]
    lines += [f"  {key:<7} {_said(value)}" for key, value in preset.keys.items()]
    if preset.bearer == "wireline":
        missing = [] if "loss" in preset.keys else ["no loss"]
        missing += ["no jitter", "no radio"]
        lines.append(f"  this is a rate and a fixed delay: {', '.join(missing)}")
        if "queue" in preset.keys:
            lines.append(f"  the queue of {QUEUE} is ours: the tool does not say one")
    return "\n".join(lines)
