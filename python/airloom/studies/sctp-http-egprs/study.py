"""From the tables of the sweeps to evidence for each claim. What is near enough is in claims.toml."""

from __future__ import annotations

from sctp_http import delays, figures, flows, pages, radios, readings

COMPUTE = {**pages.COMPUTE, **flows.COMPUTE}
FIGURES = {**figures.FIGURES, **delays.FIGURES, **flows.FIGURES, **radios.FIGURES}
TABLES = {**figures.TABLES, **readings.TABLES, **delays.TABLES, **flows.TABLES, **radios.TABLES}
