"""From the tables of the sweeps to evidence for each claim. What is near enough is in claims.toml."""

from __future__ import annotations

from wave_and_wait import bursts, figures, jitter, phases, procedures, transfers

COMPUTE = {**transfers.COMPUTE, **procedures.COMPUTE, **phases.COMPUTE, **jitter.COMPUTE, **bursts.COMPUTE}
FIGURES = figures.FIGURES
TABLES = figures.TABLES
