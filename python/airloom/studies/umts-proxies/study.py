"""From the tables of the sweeps to evidence for each claim. What is near enough is in claims.toml."""

from __future__ import annotations

from umts_proxies import clocks, figures, observations, parts, real, round_trips, tables

COMPUTE = {**round_trips.COMPUTE, **observations.COMPUTE, **parts.COMPUTE, **real.COMPUTE, **clocks.COMPUTE}
FIGURES = {**figures.FIGURES, **round_trips.FIGURES, **clocks.FIGURES}
TABLES = {**tables.TABLES, **round_trips.TABLES, **clocks.TABLES}
