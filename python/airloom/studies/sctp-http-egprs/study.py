"""From the tables of the sweeps to evidence for each claim. What is near enough is in claims.toml."""

from __future__ import annotations

from sctp_http import figures, pages

COMPUTE = pages.COMPUTE
FIGURES = figures.FIGURES
TABLES = figures.TABLES
