"""A wireless transport laboratory: one network model, virtual time and real time.

>>> import airloom as al
>>> scenario = al.load("umts-page")          # a shipped scenario, or a path
>>> run = scenario.run(seed=1)               # virtual time
>>> run.summary["page_load_s"] > 0
True
>>> run.pages.columns[:2]                    # a polars table
['page', 'url']
"""

from airloom._core import ScenarioError, __version__
from airloom.errors import AirloomError, Interrupted, RunError, Unsupported
from airloom.run import Run
from airloom.scenario import Scenario, load, shipped

__all__ = [
    "AirloomError",
    "Interrupted",
    "Run",
    "RunError",
    "Scenario",
    "ScenarioError",
    "Unsupported",
    "__version__",
    "load",
    "shipped",
]
