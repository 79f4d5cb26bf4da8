"""From the tables of the sweeps to evidence for each claim. What is near enough is in claims.toml."""

from __future__ import annotations

from wap_vs_http import encoding, figures, http_side, wap_side

COMPUTE = {**encoding.COMPUTE, **http_side.COMPUTE, **wap_side.COMPUTE}
FIGURES = figures.FIGURES
TABLES = {**encoding.TABLES, **figures.TABLES}
