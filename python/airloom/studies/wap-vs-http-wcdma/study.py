"""From the tables of the sweeps to evidence for each claim. What is near enough is in claims.toml."""

from __future__ import annotations

from wap_vs_http import bearers, encoding, figures, http_side, pay_off, pipe, proposal, wap_side

_PARTS = (encoding, pay_off, http_side, wap_side, pipe, bearers, proposal)

COMPUTE = {claim: compute for part in _PARTS for claim, compute in part.COMPUTE.items()}
FIGURES = figures.FIGURES
TABLES = figures.TABLES
