"""Sweeps: a scenario, what is varied, and seeds become one table.

```
Scenario.sweep(vary, seeds) -> Sweep          axes.py      what is varied: Axis, Level, Point; seeds
Sweep.run(workers | on | executor, out)       sweep.py     the sweep as understood, its identity
  -> what is missing                          runner.py    here or elsewhere; times.py: how far it is
        runs that ended a session             suspects.py  when they are tried again, and which are lost
        here: threads                         work.py      `make`; emulated.py for real time
        executors.py: Dask, any Executor      work.py      `work`: the same for a slice of the runs
  -> parts -> tables                          layout.py    the folder
  -> SweepResults                             results.py   tables and questions
```

A sweep is a folder (`layout`): `sweep.json`; `runs.parquet`, one row per run with `point`, one column per axis (named
by its key, holding the label of the level), `seed`, `run_id`, `status` (`ok`, `failed`, `lost`), `error`, and every
value of the summary; `pages.parquet`, `flows.parquet` and others with the same first columns. `SweepResults(folder)`
opens it.

Running the same sweep into the same folder again makes only the runs that are missing, and the tables are the same
octets however often it was interrupted, and wherever the runs were made. The loop over runs, and what writes tables,
are in Rust (`crates/drive/src/sweep.rs`, `crates/record/src/sweep`).
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airloom.sweep.axes import Axis, Level, Point
    from airloom.sweep.results import SweepResults
    from airloom.sweep.sweep import Sweep

#: Where each name is. Who needs one must not wait for polars: names are imported when they are first asked for.
_PLACES = {"Axis": "axes", "Level": "axes", "Point": "axes", "Sweep": "sweep", "SweepResults": "results"}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _PLACES:
        return getattr(import_module(f"airloom.sweep.{_PLACES[name]}"), name)
    raise AttributeError(f"module 'airloom.sweep' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = ["Axis", "Level", "Point", "Sweep", "SweepResults"]
