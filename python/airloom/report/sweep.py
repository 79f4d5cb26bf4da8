"""The report of a sweep: what its measures are at every point, with intervals, and how they spread over seeds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from airloom.report import page
from airloom.report.page import Section, escaped

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from airloom.sweep import SweepResults

#: Confidence of every interval here.
CONFIDENCE = 0.95

#: Measures that are shown first where the runs have them.
_FIRST = ("page_load_s", "completion_s", "goodput_bit_s", "rtt_mean_ms", "resent", "rlc_resent", "lost", "rto_count")

#: Measures that are offered, and rows of tables that are shown; the file has them all.
_MOST_MEASURES = 40
_MOST_ROWS = 200

_FILES = (
    ("runs.parquet", "one row per run with its whole summary"),
    ("pages.parquet", "one row per page load of every run"),
    ("flows.parquet", "one row per flow of every run"),
    ("sweep.json", "scenario, axes, seeds, version, command"),
)


def page_text(place: Path, target: Path) -> str:
    """The report of a sweep's folder, as it will stand at `target`."""
    from airloom.sweep import SweepResults

    return document(SweepResults(place), target)


def document(results: SweepResults, target: Path) -> str:
    """The report of an opened sweep, as it will stand at `target`."""
    measures = _measures(results)
    means = {name: _means(results, name) for name in measures}
    sections = [
        *_failures(results),
        _means_section(results, measures, means),
        _spread_section(),
        _runs_section(results, measures, target),
        Section("files", "Files", page.links(results.folder, _FILES, target)),
    ]
    return page.document(
        f"{results.manifest['name']}, sweep", _intro(results), sections, _data(results, measures, means)
    )


def _intro(results: SweepResults) -> str:
    manifest = results.manifest
    runs, failed = results.all_runs.height, results.failures.height
    said = page.facts(
        [
            ("scenario", manifest["name"]),
            ("runs", f"{runs}, {failed} of them failed" if failed else runs),
            ("seeds", _seeds(manifest["seeds"])),
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


def _seeds(seeds: list[int]) -> str:
    whole = seeds == list(range(seeds[0], seeds[0] + len(seeds)))
    return (
        f"{seeds[0]}..{seeds[-1]}"
        if whole and len(seeds) > 1
        else f"{len(seeds)}"
        if len(seeds) > 9
        else ", ".join(map(str, seeds))
    )


def _measures(results: SweepResults) -> list[str]:
    """What the runs measure as a whole, the most asked for first; what is the same everywhere comes last."""
    numbers = [m for m in results.measures if "." not in m and results.runs[m].dtype.is_numeric()]
    changes = {m: results.runs[m].n_unique() > 1 for m in numbers}
    order = sorted(numbers, key=lambda m: (_FIRST.index(m) if m in _FIRST else len(_FIRST), not changes[m], m))
    return order[:_MOST_MEASURES]


def _means(results: SweepResults, measure: str) -> dict[str, NDArray[np.float64]]:
    """Mean and t interval at every point, by the number of the point; not-a-number where there are too few seeds."""
    from scipy import stats

    count = results.manifest["points"]
    found = results.runs.group_by("point").agg(
        pl.col(measure).mean().alias("mean"), pl.col(measure).std().alias("sd"), pl.col(measure).count().alias("n")
    )
    mean, sd, n = np.full(count, np.nan), np.full(count, np.nan), np.zeros(count)
    places = found["point"].to_numpy()
    mean[places] = found["mean"].cast(pl.Float64).fill_null(np.nan).to_numpy()
    sd[places] = found["sd"].cast(pl.Float64).fill_null(np.nan).to_numpy()
    n[places] = found["n"].to_numpy()
    half = stats.t.ppf((1 + CONFIDENCE) / 2, np.maximum(n - 1, 1)) * sd / np.sqrt(np.maximum(n, 1))
    return {"mean": mean, "low": mean - half, "high": mean + half, "n": n}


def _failures(results: SweepResults) -> list[Section]:
    failed = results.failures
    if failed.is_empty():
        return []
    shown = failed.head(_MOST_ROWS)
    body = f"<p>{failed.height} of {results.all_runs.height} runs failed; they are in no number below.</p>"
    return [Section("failures", "Failed runs", body + page.table("Failed runs", shown.columns, shown.rows()))]


def _labels(results: SweepResults) -> list[tuple[Any, ...]]:
    """The labels of every point, by its number."""
    import itertools

    return list(itertools.product(*results.axes.values()))


def _means_section(
    results: SweepResults, measures: list[str], means: dict[str, dict[str, NDArray[np.float64]]]
) -> Section:
    options = "".join(f'<option value="{escaped(m)}">{escaped(m)}</option>' for m in measures)
    choose = f'<label for="measure">Measure: </label><select id="measure">{options}</select>'
    if len(results.axes) > 1:
        keys = "".join(f'<option value="{n}">{escaped(key)}</option>' for n, key in enumerate(results.axes))
        choose += f' <label for="axis">over: </label><select id="axis">{keys}</select>'
    rows = []
    for number, labels in enumerate(_labels(results)):
        for measure in measures[:4]:
            of_point = means[measure]
            low, high = of_point["low"][number], of_point["high"][number]
            interval = "–" if np.isnan(low) else f"{page.number(float(low))} to {page.number(float(high))}"
            rows.append((*labels, measure, float(of_point["mean"][number]), interval, int(of_point["n"][number])))
    columns = [*results.axes, "measure", "mean", "95 % interval (t)", "seeds"]
    shown = rows[:_MOST_ROWS]
    more = "" if len(shown) == len(rows) else f"<p>{len(shown)} of {len(rows)} rows.</p>"
    return Section(
        "means",
        "Means",
        f'<div class="tools">{choose}</div><div id="response" class="plot"></div>'
        + page.table("Means over seeds, with their units in the names", columns, shown)
        + more,
    )


def _spread_section() -> Section:
    return Section("spread-section", "Distribution over seeds", '<div id="spread" class="plot"></div>')


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
    results: SweepResults, measures: list[str], means: dict[str, dict[str, NDArray[np.float64]]]
) -> dict[str, Any]:
    from airloom.analysis import unit_of

    runs = results.runs
    axes = []
    for key, labels in results.axes.items():
        numeric = all(isinstance(x, int | float) and not isinstance(x, bool) for x in labels)
        axes.append(
            {
                "key": key,
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
        "means": {m: {k: page.floats(v) for k, v in columns.items()} for m, columns in means.items()},
        "units": {m: unit_of(m) for m in measures},
    }
