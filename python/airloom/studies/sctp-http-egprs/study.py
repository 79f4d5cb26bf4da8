"""From the tables of the sweeps to evidence for each claim. What is near enough is in claims.toml."""

from __future__ import annotations

from sctp_http import delays, drawn, figures, flows, pages, radios, readings, setup, tables

COMPUTE = {**pages.COMPUTE, **drawn.COMPUTE, **setup.COMPUTE, **flows.COMPUTE}
FIGURES = {**figures.FIGURES, **delays.FIGURES, **flows.FIGURES, **radios.FIGURES}
TABLES = {**tables.TABLES, **readings.TABLES, **delays.TABLES, **flows.TABLES, **radios.TABLES}
"""What the study computes and draws."""
