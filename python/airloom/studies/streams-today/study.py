"""From the tables and captures of the sweeps to evidence for each claim. What is near enough is in claims.toml."""

from __future__ import annotations

from streams_today import figures, times, waits

COMPUTE = {**times.COMPUTE, **waits.COMPUTE}
FIGURES = figures.FIGURES
TABLES = figures.TABLES
