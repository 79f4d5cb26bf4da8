"""Sweeps: a scenario, what is varied, and seeds become one table.

```
Scenario.sweep(vary, seeds) -> Sweep          axes.py      what is varied: Axis, Level, Point; seeds
Sweep.run(workers | on | executor, out)       sweep.py     the sweep as understood, its identity
  -> groups of runs -> Executor               runner.py    grouping, retrying, giving up; times.py: how far it is
        executors.py: processes.py, Dask
     -> work(group) in a worker               work.py      what a worker does; emulated.py for real time, whole.py with
                                                           run folders; parts.py: what it gives
        -> runs of a group                    share.py     all of them, or what a task takes of a group (ledger.py)
  -> parts -> tables                          layout.py    the folder; kept.py: tables -> parts again
  -> SweepResults                             results.py   tables and questions
```

A sweep is a folder (`layout`): `sweep.json`; `runs.parquet`, one row per run with `point`, one column per axis (named
by its key, holding the label of the level), `seed`, `run_id`, `status` (`ok`, `failed`, `lost`), `error`, and every
value of the summary; `pages.parquet`, `flows.parquet` and others with the same first columns. `SweepResults(folder)`
opens it.

Everything that runs is a `concurrent.futures.Executor`. Running the same sweep into the same folder again makes only
the runs that are missing, and the tables are the same octets however often it was interrupted.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airloom.sweep.axes import Axis, Level, Point
    from airloom.sweep.results import SweepResults
    from airloom.sweep.sweep import Sweep

#: Where each name is. A worker imports this package for `work` alone and must not wait for polars: names are imported
#: when they are first asked for.
_PLACES = {"Axis": "axes", "Level": "axes", "Point": "axes", "Sweep": "sweep", "SweepResults": "results"}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _PLACES:
        return getattr(import_module(f"airloom.sweep.{_PLACES[name]}"), name)
    raise AttributeError(f"module 'airloom.sweep' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = ["Axis", "Level", "Point", "Sweep", "SweepResults"]
