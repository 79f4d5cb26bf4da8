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

from airloom import _startup as _startup
from airloom._core import ScenarioError, __version__
from airloom.errors import AirloomError, Interrupted, LabError, RunError, Unsupported

if TYPE_CHECKING:
    from airloom.analysis.capture import CaptureAnalysis, analyze
    from airloom.comparison import compare
    from airloom.laboratory import Lab, lab
    from airloom.links import Link, link, serve
    from airloom.run import Run
    from airloom.scenario import Scenario, load, shipped
    from airloom.sweep import Sweep, SweepResults

#: Where each name is. Imported when it is first named, so that the command line and the workers of a sweep start
#: quickly: behind some of them stand polars and scipy.
_PLACES = {
    "CaptureAnalysis": "analysis.capture",
    "Lab": "laboratory",
    "Link": "links",
    "Run": "run",
    "Scenario": "scenario",
    "Sweep": "sweep",
    "SweepResults": "sweep",
    "analyze": "analysis.capture",
    "compare": "comparison",
    "lab": "laboratory",
    "link": "links",
    "load": "scenario",
    "serve": "links",
    "shipped": "scenario",
}

#: Subpackages and modules for users, which need not be imported by name either.
_MODULES = ("analysis", "http3", "page_sets", "plot", "presets", "reference", "report", "sweep", "wap", "wwp")


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _PLACES:
        return getattr(import_module(f"airloom.{_PLACES[name]}"), name)
    if name in _MODULES:
        return import_module(f"airloom.{name}")
    raise AttributeError(f"module 'airloom' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})


__all__ = [
    "AirloomError",
    "CaptureAnalysis",
    "Interrupted",
    "Lab",
    "LabError",
    "Link",
    "Run",
    "RunError",
    "Scenario",
    "ScenarioError",
    "Sweep",
    "SweepResults",
    "Unsupported",
    "__version__",
    "analyze",
    "compare",
    "lab",
    "link",
    "load",
    "serve",
    "shipped",
]
