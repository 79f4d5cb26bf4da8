"""A wireless transport laboratory: one network model, virtual time and real time.

>>> import airloom as al
>>> scenario = al.load("umts-page")          # a shipped scenario, or a path
>>> run = scenario.run(seed=1)               # virtual time
>>> run.summary["page_load_s"] > 0
True
>>> run.pages.columns[:2]                    # a polars table
['page', 'url']
"""

from typing import TYPE_CHECKING, Any

from airloom._core import ScenarioError, __version__
from airloom.errors import AirloomError, Interrupted, LabError, RunError, Unsupported
from airloom.laboratory import Lab, lab
from airloom.reexec import pytest_addoption as pytest_addoption  # for `pytest -p airloom`
from airloom.run import Run
from airloom.scenario import Scenario, load, shipped

if TYPE_CHECKING:
    from airloom.sweep import Sweep, SweepResults


def __getattr__(name: str) -> Any:
    # With polars behind them: imported when they are first named, so that the command line starts quickly.
    if name in ("Sweep", "SweepResults"):
        from airloom import sweep

        return getattr(sweep, name)
    raise AttributeError(f"module 'airloom' has no attribute {name!r}")


__all__ = [
    "AirloomError",
    "Interrupted",
    "Lab",
    "LabError",
    "Run",
    "RunError",
    "Scenario",
    "ScenarioError",
    "Sweep",
    "SweepResults",
    "Unsupported",
    "__version__",
    "lab",
    "load",
    "shipped",
]
