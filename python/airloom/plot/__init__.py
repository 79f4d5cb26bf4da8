"""Plots: each takes a table and returns a figure. Importing this imports matplotlib."""

from airloom.plot.figure import save_svg
from airloom.plot.time_sequence import time_sequence

__all__ = ["save_svg", "time_sequence"]
