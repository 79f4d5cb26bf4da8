"""Writes the reference pages that come from the Python package: docs/reference/results.md."""

from __future__ import annotations

from pathlib import Path

from airloom.measures import COMPONENTS, columns, groups, measures, tables

ROOT = Path(__file__).parent.parent

_HEAD = """\
# Results

Generated from `python/airloom/measures.toml` and `columns.toml` by `make docs`. In the terminal:
`airloom list measures NAME`; in Python: `airloom.measures.describe(KEY)`.

## Measures

`summary.json` of a run, and a column each in `runs.parquet` of a sweep. A name ends in its unit: `_s` seconds, `_ms`
milliseconds, `_us` microseconds, `_bit_s` bits a second, `_bytes` octets, `_share` a number from 0 to 1; a name
without one is a number of things. A measure that does not exist in a run, such as the mean time of no page, is not
there.

In front of a name stands whose it is: the host or the link, and where several applications of a host, or members of
a bundle, can count the same, which of them. DIRECTION is `downlink` or `uplink`:

    mobile.page_load_s                  of the applications on the host mobile
    mobile.app[1].bytes                 of its second application
    radio.rlc_resent                    of the link radio, in both directions
    radio.downlink.rlc_resent           of one direction
    bundle.member.2.downlink.lost       of a member of a bundle

A measure that only one host or link can have is there without the name in front as well. What a measure is called does
not depend on what came about: where the pages of one of two browsers fail, `page_load_s` is not the other's.

"of" says what gives a measure: an application, a proxy or a bearer by its name in scenarios, or what else it takes.
"""

_TABLES = """\
Parquet files in the folder of a run, or of a sweep; polars, pandas, DuckDB and others read them. In Python:
`run.pages`, `run.flows`, `results.runs` and so on. `_ns` are nanoseconds since the run began, or how long something
took.
"""


def results() -> str:
    """What the numbers of a run mean."""
    lines = [_HEAD]
    for group, title in groups().items():
        lines += [f"### {title}", "", "| measure | unit | of | meaning |", "|---|---|---|---|"]
        for measure in measures().values():
            if measure.group == group:
                names = ", ".join(COMPONENTS.get(c, f"`{c}`") for c in measure.components)
                lines.append(f"| `{measure.name}` | {measure.unit} | {names} | {measure.meaning} |")
        lines.append("")
    lines += ["## Tables", "", _TABLES]
    for table, about in tables().items():
        lines += [f"### {table}", "", about, "", "| column | unit | meaning |", "|---|---|---|"]
        lines += [f"| `{column.name}` | {column.unit} | {column.meaning} |" for column in columns(table)]
        lines.append("")
    return "\n".join(lines[:-1]) + "\n"


def pages() -> dict[Path, str]:
    """The pages by their place."""
    return {ROOT / "docs" / "reference" / "results.md": results()}


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT))
