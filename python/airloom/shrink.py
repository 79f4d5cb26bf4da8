"""A failing scenario made small: the fewest losses and changes of the timeline with which it still fails.

Losses that luck gave are written down as a list first, packet by packet; then the list and the timeline are cut down by
delta debugging (Zeller and Hildebrandt, IEEE TSE 28 (2), 2002: `ddmin`). What is left is minimal: without any one part
of it the test passes.
"""

from __future__ import annotations

import contextlib
import json
import operator
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import polars as pl

from airloom.errors import AirloomError, Interrupted, UsageError
from airloom.fields import did_you_mean
from airloom.gate.rules import RELATIONS
from airloom.scenario import Scenario, parse

T = TypeVar("T")

#: Does the scenario fail?
Fails = Callable[[Scenario], bool]
#: By direction: how a queue's point is called, and the faults' one.
_DIRECTIONS = {"uplink": "ul", "downlink": "dl"}


class Part(NamedTuple):
    """Something that may be left out: a change of the timeline, or the loss of a packet."""

    #: A link and a direction, or nothing for the timeline.
    where: tuple[str, str] | None
    #: Number of the packet, from 1, or of the entry, from 0.
    number: int


class Shrunk(NamedTuple):
    """What is left."""

    scenario: Scenario
    parts: list[Part]
    #: How many parts there were.
    before: int
    #: How often it was tried.
    tries: int

    @property
    def drops(self) -> dict[str, dict[str, list[int]]]:
        """The packets that are lost, by link and direction."""
        found: dict[str, dict[str, list[int]]] = {}
        for part in self.parts:
            if part.where:
                link, direction = part.where
                found.setdefault(link, {}).setdefault(direction, []).append(part.number)
        return found

    @property
    def timeline(self) -> list[dict[str, Any]]:
        """The changes that are left."""
        found: list[dict[str, Any]] = self.scenario.understood["timeline"]
        return found


def ddmin(parts: Sequence[T], fails: Callable[[list[T]], bool]) -> list[T]:
    """The parts without any one of which it no longer fails; with all of them it does.

    >>> ddmin(range(1, 101), lambda parts: {7, 42} <= set(parts))
    [7, 42]
    """
    left, pieces = list(parts), 2
    if fails([]):
        return []
    while len(left) > 1:
        size = -(-len(left) // pieces)
        cuts = [left[at : at + size] for at in range(0, len(left), size)]
        others = [[part for other in cuts if other is not cut for part in other] for cut in cuts]
        # Two pieces are each other's complement.
        found = next((cut for cut in (*cuts, *(others if len(cuts) > 2 else ())) if fails(cut)), None)
        if found is not None:
            pieces = 2 if len(found) <= size else max(len(cuts) - 1, 2)
            left = found
        elif len(cuts) == len(left):
            break
        else:
            pieces = min(2 * pieces, len(left))
    return left


def shrink(
    scenario: Scenario, fails: Fails, *, most: int = 1000, told: Callable[[int, int], None] | None = None
) -> Shrunk:
    """The smallest timeline and list of losses with which `scenario` still fails.

    `told` hears the number of tries and of parts that are left. Raises `UsageError` if it does not fail as it is, or no
    longer once its losses are written down; after `most` tries what was found so far is given.
    """
    parts, bare = listed(scenario)
    tries = 0
    best = parts

    class Enough(Exception):
        """The tries are used up."""

    def try_parts(some: list[Part]) -> bool:
        nonlocal tries, best
        if tries >= most:
            raise Enough
        tries += 1
        failed = fails(_with(bare, some))
        if failed and len(some) < len(best):
            best = some
        if told:
            told(tries, len(best))
        return failed

    if told:
        told(0, len(parts))
    if not fails(scenario):
        raise UsageError(f"{scenario.name}: it does not fail as it is: there is nothing to be shrunk")
    if not try_parts(parts):
        raise UsageError(
            f"{scenario.name}: with its losses as a list it no longer fails: what makes it fail is something else"
        )
    with contextlib.suppress(Enough):
        best = ddmin(parts, try_parts)
    return Shrunk(_with(bare, best), best, len(parts), tries)


def listed(scenario: Scenario) -> tuple[list[Part], Scenario]:
    """What may be left out of a scenario, and the scenario without all of it.

    Losses are those of wires (`loss`) and of `faults` (`drop`, `drop_list`), as they come in a run. What radio loses
    stays: its fate hangs on the time, not on a packet.
    """
    understood = scenario.understood
    parts = [Part(None, number) for number in range(len(understood["timeline"]))]
    links = understood["links"]
    struck = {name for name, link in links.items() if {"drop", "drop_list"} & link.get("faults", {}).keys()}
    wires = {name for name, link in links.items() if link["bearer"] == "wireline"}
    if struck | wires:
        packets = _packets(scenario)
        for name in sorted(struck | wires):
            for direction, short in _DIRECTIONS.items():
                of_link = packets.filter(pl.col("point").is_in([f"{name}.queue.{short}.tx", f"{name}.faults.{short}"]))
                numbers = _numbers(of_link, links[name], direction)
                parts += [Part((name, direction), number) for number in numbers]
    return parts, _parsed(scenario, {**understood, "links": {name: _bare(link) for name, link in links.items()}})


def _packets(scenario: Scenario) -> pl.DataFrame:
    """What happened in a run of it."""
    with tempfile.TemporaryDirectory(prefix="airloom-shrink-") as temporary:
        # At all points, whichever the file names: what is recorded moves nothing.
        all_of_it = scenario.with_keys({"run.record": ["packets"], "run.points": ["*"]}).with_seed(scenario.seed)
        run = all_of_it.run(out=Path(temporary) / "run")
        return run.packets.with_columns(pl.col("point", "event", "reason").cast(pl.String))


def _numbers(packets: pl.DataFrame, link: dict[str, Any], direction: str) -> list[int]:
    """The numbers of lost packets, as a drop list counts them: those that come to the far end."""
    is_dropped = (pl.col("event") == "drop") & pl.col("reason").is_in(["drop", "drop list"])
    by_faults = packets.filter(is_dropped)
    on_wire = packets.filter((pl.col("event") == "drop") & (pl.col("reason") == "lost"))
    if on_wire.is_empty():
        # Real programs send where a simulation has nothing: what a list names is a part, whatever it has met here.
        named = link.get("faults", {}).get("drop_list", {}).get(direction, [])
        return sorted({*named, *by_faults["seq"].to_list()})
    if "protocol" in link.get("faults", {}):
        raise UsageError("losses of a wire and `faults.protocol` have no common numbers: give one of them up")
    # What is lost on the wire would have come as well: all that was put on it, but for what vanishes unnumbered.
    unnumbered = packets.filter((pl.col("event") == "drop") & pl.col("reason").is_in(["mtu", "black hole"]))
    sent = packets.filter((pl.col("event") == "enq") | ((pl.col("event") == "drop") & (pl.col("reason") == "lost")))
    sent = sent.filter(~pl.col("pkt_id").is_in(unnumbered["pkt_id"].to_list()))
    lost = {*on_wire["pkt_id"].to_list(), *by_faults["pkt_id"].to_list()}
    return [number for number, packet in enumerate(sent["pkt_id"].to_list(), 1) if packet in lost]


def _bare(link: dict[str, Any]) -> dict[str, Any]:
    """The link without losses that are listed."""
    bare = {key: value for key, value in link.items() if key != "faults"}
    if link["bearer"] == "wireline":
        bare.pop("loss", None)
    if faults := {key: value for key, value in link.get("faults", {}).items() if key not in ("drop", "drop_list")}:
        bare["faults"] = faults
    return bare


def _with(bare: Scenario, parts: Sequence[Part]) -> Scenario:
    """The scenario with these parts."""
    understood = bare.understood
    entries = {part.number for part in parts if part.where is None}
    understood["timeline"] = [entry for number, entry in enumerate(understood["timeline"]) if number in entries]
    for part in parts:
        if part.where:
            link, direction = part.where
            faults = understood["links"][link].setdefault("faults", {})
            faults.setdefault("drop_list", {}).setdefault(direction, []).append(part.number)
    return _parsed(bare, understood)


def _parsed(like: Scenario, understood: dict[str, Any]) -> Scenario:
    return parse(json.dumps(understood), f"{like.name}.json").with_seed(like.seed)


def by_command(command: Sequence[str]) -> Fails:
    """Fails if a command does that is given the scenario's file in the place of `{}` (else as its last word)."""

    def fails(scenario: Scenario) -> bool:
        with tempfile.TemporaryDirectory(prefix="airloom-shrink-") as temporary:
            file = Path(temporary) / f"{scenario.name}.json"
            file.write_text(text_of(scenario))
            words = [word.replace("{}", str(file)) for word in command]
            if not any("{}" in word for word in command):
                words.append(str(file))
            env = {**os.environ, "AIRLOOM_SCENARIO": str(file)}
            try:
                done = subprocess.run(words, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False)
            except OSError as error:
                raise UsageError(f"{words[0]}: the test cannot be run: {error.strerror}") from None
            if done.returncode in (126, 127):
                raise UsageError(f"{words[0]}: the test cannot be run: {done.stderr.decode(errors='replace').strip()}")
            return done.returncode != 0

    return fails


_NUMBER = r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
#: `page_load_s <= 8`.
_RULE = re.compile(rf"\s*([A-Za-z0-9_.\[\]-]+)\s*(<=|>=|==|!=|<|>)\s*({_NUMBER})\s*")
_COMPARED: dict[str, Callable[[float, float], bool]] = {**RELATIONS, "!=": operator.ne}


def by_rule(rule: str) -> Fails:
    """Fails if a number of the summary is not as the rule says, or the run does not come to its end.

    >>> import airloom as al
    >>> by_rule("page_load_s <= 2")(al.load("umts-page"))
    True
    """
    match = _RULE.fullmatch(rule)
    if not match:
        raise UsageError(f"--unless {rule!r}: expected a number of the summary and a bound, such as 'page_load_s <= 8'")
    name, compared, bound = match[1], _COMPARED[match[2]], float(match[3])

    def fails(scenario: Scenario) -> bool:
        with tempfile.TemporaryDirectory(prefix="airloom-shrink-") as temporary:
            try:
                summary = scenario.run(out=Path(temporary) / "run").summary
            except Interrupted:
                raise
            except AirloomError:
                return True
        if name not in summary:
            guess = did_you_mean(name, summary)
            raise UsageError(f"--unless {rule!r}: the summary has no {name}{guess}")
        return not compared(summary[name], bound)

    return fails


def text_of(scenario: Scenario) -> str:
    """The scenario as a file."""
    return json.dumps(scenario.understood, indent=2, ensure_ascii=False) + "\n"


def as_test(found: Shrunk, rule: str | None, command: Sequence[str]) -> str:
    """The failing scenario as a test for pytest, the fix of which makes it pass."""
    name = re.sub(r"\W", "_", found.scenario.name)
    what = ", ".join(
        f"{link} {direction} {', '.join(map(str, numbers))}"
        for link, ways in found.drops.items()
        for direction, numbers in ways.items()
    )
    doc = f"Packets lost: {what or 'none'}; changes of the timeline: {len(found.timeline)}."
    wanted, told = ("by_rule", rule) if rule else ("by_command", list(command))
    body = f"    assert not {wanted}({told!r})(parse(SCENARIO, {found.scenario.file!r}))"
    imports = f"from airloom.scenario import parse\nfrom airloom.shrink import {wanted}\n"
    test = f'def test_{name}() -> None:\n    """{doc}"""\n{body}\n'
    return f'{imports}\nSCENARIO = r"""\n{text_of(found.scenario)}"""\n\n\n{test}'
