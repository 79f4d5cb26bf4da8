"""What gates came to, as data, JUnit and Markdown."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

from airloom.errors import UsageError
from airloom.gate.baseline import Baseline
from airloom.gate.measure import Measured
from airloom.gate.rules import Rule, Verdict

#: What is no character of XML 1.0.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
#: A command that fails in a run, and a page whose answer is an error, fails its gate, whether or not a rule says so.
_SUCCESS = {
    "command": Rule("exit_code == 0", "exit_code", "", "==", 0.0),
    "url": Rule("status < 400", "status", "", "<", 400.0),
}


class Row(NamedTuple):
    """A rule over a link."""

    gate: str
    link: str
    rule: str
    #: `pass`, `fail`, `unclear`, `error` or `unsupported`.
    state: str
    value: float
    low: float
    high: float
    limit: float
    why: str

    @property
    def figures(self) -> str:
        """The value with its interval."""
        if math.isnan(self.value):
            return ""
        if self.low == self.high == self.value:
            return f"{self.value:.4g}"
        return f"{self.value:.4g} ({self.low:.4g} to {self.high:.4g})"


class Outcome:
    """All rules of all gates."""

    def __init__(self, measured: Sequence[Measured]) -> None:
        """Decides. Raises `UsageError` for a baseline that cannot be read."""
        self.notes: list[str] = []
        self._baselines: dict[Path, Baseline] = {}
        self.rows = [row for each in measured for row in self._rows(each)]
        for each in measured:
            self.notes += [
                f"{each.gate.name}, {each.link}, seed {seed}: not valid, and not counted: {why}"
                for seed, why in each.invalid
            ]
            self.notes += [
                f"{each.gate.name}, {each.link}, seed {seed}: not loaded: {why}" for seed, why in each.unloaded
            ]

    def _rows(self, of: Measured) -> Iterable[Row]:
        gate, nan = of.gate, math.nan
        rules = list(gate.rules)
        success = _SUCCESS.get(gate.kind)
        if success is not None and not any(rule.measure == success.measure for rule in rules):
            rules.insert(0, success)
        for rule in rules:
            if of.error is not None:
                state = "unsupported" if of.is_unsupported else "error"
                yield Row(gate.name, of.link, rule.text, state, nan, nan, nan, rule.limit, of.error)
            elif not of.summaries:
                why = "no run was valid: this machine was too busy for them"
                yield Row(gate.name, of.link, rule.text, "error", nan, nan, nan, rule.limit, why)
            else:
                before: list[float] = []
                # One that is being made is not there, or as unreadable as before, if nothing was written.
                if rule.vs and (file := gate.folder / rule.vs).exists():
                    with suppress(UsageError):
                        before = self._baseline(file).values(gate.name, of.link, rule.measure)
                verdict: Verdict = rule.decide(of.values(rule.measure), before, is_exact=gate.is_virtual)
                yield Row(gate.name, of.link, rule.text, *verdict)

    def _baseline(self, path: Path) -> Baseline:
        if path not in self._baselines:
            self._baselines[path] = Baseline(path)
            self.notes += self._baselines[path].notes
        return self._baselines[path]

    def exit_code(self, *, strict: bool = False, skip_unsupported: bool = False) -> int:
        """0: all pass; 1: a rule fails; 3: this machine cannot do it, or strictly: unclear; 4: something broke."""
        states = {row.state for row in self.rows}
        if "fail" in states:
            return 1
        if "error" in states:
            return 4
        if ("unsupported" in states and not skip_unsupported) or ("unclear" in states and strict):
            return 3
        return 0

    def document(self) -> dict[str, Any]:
        """As plain data."""

        def said(row: Row) -> dict[str, Any]:
            # JSON has no number for what is not there, or has no end.
            return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in row._asdict().items()}

        return {"rules": [said(row) for row in self.rows], "notes": self.notes}

    def junit(self) -> bytes:
        """JUnit XML in the shape that pytest gives it: one case for each rule and link."""
        count = {state: sum(row.state == state for row in self.rows) for state in ("fail", "error", "unsupported")}
        root = ElementTree.Element("testsuites", name="airloom gate")
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name="airloom gate",
            tests=str(len(self.rows)),
            failures=str(count["fail"]),
            errors=str(count["error"]),
            skipped=str(count["unsupported"]),
            time="0.000",
            timestamp=datetime.now(UTC).isoformat(timespec="seconds"),
            hostname=os.uname().nodename,
        )
        for row in self.rows:
            name = f"{row.rule}[{row.link}]"
            case = ElementTree.SubElement(suite, "testcase", classname=_xml(row.gate), name=_xml(name), time="0.000")
            properties = ElementTree.SubElement(case, "properties")
            for key, value in (("state", row.state), ("value", row.figures), ("limit", f"{row.limit:g}")):
                ElementTree.SubElement(properties, "property", name=key, value=value)
            message = _xml(f"{row.figures}: {row.why}".removeprefix(": "))
            match row.state:
                case "fail":
                    ElementTree.SubElement(case, "failure", message=message).text = _xml(f"{row.rule}: {message}")
                case "error":
                    ElementTree.SubElement(case, "error", message=message)
                case "unsupported":
                    ElementTree.SubElement(case, "skipped", type="airloom.unsupported", message=message)
                case "unclear":
                    ElementTree.SubElement(case, "system-out").text = f"unclear: {message}"
        octets: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
        return octets

    def markdown(self) -> str:
        """A table for the summary of a job."""
        marks = {"pass": "✅", "fail": "❌", "unclear": "🟡", "error": "💥", "unsupported": "⏭️"}
        lines = ["### airloom gate", "", "| | gate | link | rule | measured | |", "|---|---|---|---|---|---|"]
        for row in self.rows:
            cells = (row.gate, row.link, f"`{row.rule}`", row.figures, f"{row.state}: {row.why}")
            lines.append("| " + " | ".join([marks[row.state], *map(_cell, cells)]) + " |")
        return "\n".join([*lines, "", *(f"- {_cell(note)}" for note in self.notes), ""])

    def annotations(self) -> list[str]:
        """Lines by which GitHub shows a failure: https://docs.github.com/actions, workflow commands."""
        shown = {"fail": "error", "error": "error", "unclear": "warning"}
        found = []
        for row in self.rows:
            if row.state in shown:
                measured = ": ".join(filter(None, (row.figures, row.why)))
                text = f"{row.gate} [{row.link}] {row.rule}: {measured}"
                escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
                found.append(f"::{shown[row.state]} title=airloom gate::{escaped}")
        return found


def _xml(text: str) -> str:
    return _NOT_XML.sub("?", text)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\r", " ").replace("\n", " ")
