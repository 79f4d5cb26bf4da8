"""The report of a sweep: what its measures are at every point, with intervals, and how they spread over seeds."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from airloom.analysis import quantile_interval
from airloom.analysis.units import key_title, titled
from airloom.report import page
from airloom.report.page import Section, escaped
from airloom.sweep.axes import seeds_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from airloom.sweep import SweepResults

#: Confidence of every interval here.
CONFIDENCE = 0.95

#: Measures that are shown first where the runs have them.
_FIRST = ("page_load_s", "completion_s", "goodput_bit_s", "rtt_mean_s", "resent", "rlc_resent", "lost", "rto_count")

#: Measures that are offered, and rows of tables that are shown; the file has them all.
_MOST_MEASURES = 40
_MOST_ROWS = 200

_FILES = (
    ("runs.parquet", "one row per run with its whole summary"),
    ("pages.parquet", "one row per page load of every run"),
    ("flows.parquet", "one row per flow of every run"),
    ("sweep.json", "scenario, axes, seeds, version, command"),
)


def document(results: SweepResults, target: Path) -> str:
    """The report of an opened sweep, as it will stand at `target`."""
    measures = _measures(results)
    medians = {name: _medians(results, name) for name in measures}
    sections = [
        *_failures(results),
        _medians_section(results, measures, medians),
        Section("spread-section", "Distribution over seeds", '<div id="spread" class="plot"></div>'),
        _runs_section(results, measures, target),
        Section("files", "Files", page.links(results.folder, _FILES, target)),
    ]
    return page.document(
        f"{results.manifest['name']}, sweep", _intro(results), sections, _data(results, measures, medians)
    )


def _intro(results: SweepResults) -> str:
    manifest = results.manifest
    runs, failed = results.all_runs.height, results.failures.height
    said = page.facts(
        [
            ("scenario", manifest["name"]),
            ("runs", f"{runs}, {failed} of them failed" if failed else runs),
            ("seeds", _seeds(results.seeds)),
            ("clock", f"{manifest['clock']} time"),
            ("sweep", manifest["sweep_id"]),
            ("airloom", manifest["version"]),
            ("begun", f"{manifest['start_utc'][:19]}Z"),
        ]
    )
    axes = "".join(
        f"<li><code>{escaped(key)}</code>: {escaped(', '.join(map(str, labels)))}</li>"
        for key, labels in results.axes.items()
    )
    varied = f"<p>Varied:</p><ul>{axes}</ul>" if axes else "<p>Nothing was varied but the seed.</p>"
    title = manifest["scenario"].get("title") or manifest["name"]
    command = escaped(page.command_line(manifest))
    return f'<h1>{escaped(title)}</h1>{said}{varied}<p>To repeat it:</p><pre tabindex="0"><code>{command}</code></pre>'


def _seeds(seeds: Sequence[int]) -> str:
    said = seeds_text(seeds).replace(",", ", ")
    return said if len(seeds) <= 9 or ".." in said else f"{len(seeds)}"


def _measures(results: SweepResults) -> list[str]:
    """What the runs measure as a whole, the most asked for first; what is the same everywhere comes last."""
    numbers = [m for m in results.measures if "." not in m and results.runs[m].dtype.is_numeric()]
    changes = {m: results.runs[m].n_unique() > 1 for m in numbers}
    order = sorted(numbers, key=lambda m: (_FIRST.index(m) if m in _FIRST else len(_FIRST), not changes[m], m))
    return order[:_MOST_MEASURES]


def _medians(results: SweepResults, measure: str) -> dict[str, NDArray[np.float64]]:
    """Median with its interval, and mean, at every point by its number; not-a-number where there are too few seeds."""
    count = results.manifest["points"]
    found = {name: np.full(count, np.nan) for name in ("median", "low", "high", "mean")} | {"n": np.zeros(count)}
    for (point,), rows in results.runs.group_by("point"):
        values = rows[measure].drop_nulls().cast(pl.Float64).to_numpy()
        median = quantile_interval(values, 0.5, CONFIDENCE)
        of_point = (median.value, median.low, median.high, values.mean() if len(values) else np.nan, len(values))
        for column, value in zip(found.values(), of_point, strict=True):
            column[point] = value
    return found


def _failures(results: SweepResults) -> list[Section]:
    failed = results.failures
    if failed.is_empty():
        return []
    shown = failed.head(_MOST_ROWS)
    body = f"<p>{failed.height} of {results.all_runs.height} runs failed; they are in no number below.</p>"
    return [Section("failures", "Failed runs", body + page.table("Failed runs", shown.columns, shown.rows()))]


def _labels(results: SweepResults) -> list[tuple[Any, ...]]:
    """The labels of every point, by its number."""
    return list(itertools.product(*results.axes.values()))


def _medians_section(
    results: SweepResults, measures: list[str], medians: dict[str, dict[str, NDArray[np.float64]]]
) -> Section:
    options = "".join(f'<option value="{escaped(m)}">{escaped(titled(m))}</option>' for m in measures)
    choose = f'<label for="measure">Measure: </label><select id="measure">{options}</select>'
    if len(results.axes) > 1:
        keys = "".join(f'<option value="{n}">{escaped(key)}</option>' for n, key in enumerate(results.axes))
        choose += f' <label for="axis">over: </label><select id="axis">{keys}</select>'
    rows = []
    for number, labels in enumerate(_labels(results)):
        for measure in measures[:4]:
            of_point = medians[measure]
            low, high = of_point["low"][number], of_point["high"][number]
            interval = "–" if np.isnan(low) else f"{page.number(float(low))} to {page.number(float(high))}"
            value, mean = float(of_point["median"][number]), float(of_point["mean"][number])
            rows.append((*labels, titled(measure), value, interval, mean, int(of_point["n"][number])))
    columns = [*results.axes, "measure", "median", "95 % interval of it", "mean", "seeds"]
    shown = rows[:_MOST_ROWS]
    more = "" if len(shown) == len(rows) else f"<p>{len(shown)} of {len(rows)} rows.</p>"
    return Section(
        "medians",
        "Medians",
        f'<div class="tools">{choose}</div><div id="response" class="plot"></div>'
        + page.table("Medians and means over seeds", columns, shown)
        + more,
    )


def _runs_section(results: SweepResults, measures: list[str], target: Path) -> Section:
    runs = results.runs.select("point", *results.axes, "seed", "run_id", *measures[:6])
    shown = runs.head(_MOST_ROWS)
    text = page.table("Runs", shown.columns, shown.rows())
    if runs.height > shown.height:
        text += f"<p>{shown.height} of {runs.height} runs; runs.parquet has all.</p>"
    folders = sorted(p for p in (results.folder / "runs").glob("*") if (p / "trace.pcapng").is_file())
    captures = "".join(
        f'<li><a href="{escaped(page.beside(p, "trace.pcapng", target))}">{escaped(p.name)}</a></li>'
        for p in folders[:_MOST_ROWS]
    )
    if captures:
        text += f"<h3>Captures</h3><ul>{captures}</ul>"
    else:
        text += "<p>This sweep kept no captures. Any of its runs can be made again with one: see the command above.</p>"
    return Section("runs", "Runs", f"<details><summary>Run by run</summary>{text}</details>")


def _data(
    results: SweepResults, measures: list[str], medians: dict[str, dict[str, NDArray[np.float64]]]
) -> dict[str, Any]:
    runs = results.runs
    axes = []
    for key, labels in results.axes.items():
        numeric = all(isinstance(x, int | float) and not isinstance(x, bool) for x in labels)
        axes.append(
            {
                "key": key,
                "title": key_title(key),
                "short": key.rsplit(".", 1)[-1],
                "labels": [x if numeric else str(x) for x in labels],
                "numeric": numeric,
            }
        )
    points = [
        [label if axis["numeric"] else str(label) for label, axis in zip(labels, axes, strict=True)]
        for labels in _labels(results)
    ]
    return {
        "kind": "sweep",
        "axes": axes,
        "points": points,
        "point": page.packed(runs["point"].cast(pl.UInt32).to_numpy()),
        "values": {m: page.floats(runs[m].cast(pl.Float64).fill_null(np.nan).to_numpy()) for m in measures},
        "medians": {m: {k: page.floats(v) for k, v in columns.items()} for m, columns in medians.items()},
        "titles": {m: titled(m) for m in measures},
    }
