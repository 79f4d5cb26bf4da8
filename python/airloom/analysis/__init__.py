"""Statistics: tables in, tables out. Every number comes with its unit, its interval and the number of seeds.

The unit of observation is the seed: runs of the same seed share their radio, so what is pooled over other axes is first
averaged within each seed. Formulas are scipy's and polars'.
"""

from airloom.analysis.distribution import cdf
from airloom.analysis.energy import default_models, energy, energy_models, joules_per_megabyte, overheads
from airloom.analysis.pairs import paired, unpaired
from airloom.analysis.statistics import Interval, mean_interval, quantile_interval, ratio_interval
from airloom.analysis.stop import is_precise
from airloom.analysis.summary import summarise
from airloom.analysis.tails import tails
from airloom.analysis.units import unit_of
from airloom.analysis.warm_up import cut_warm_up

__all__ = [
    "Interval",
    "cdf",
    "cut_warm_up",
    "default_models",
    "energy",
    "energy_models",
    "is_precise",
    "joules_per_megabyte",
    "mean_interval",
    "overheads",
    "paired",
    "quantile_interval",
    "ratio_interval",
    "summarise",
    "tails",
    "unit_of",
    "unpaired",
]
