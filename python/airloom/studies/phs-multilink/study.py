"""From the tables of the sweeps to evidence for each claim. What is near enough is in claims.toml."""

from __future__ import annotations

from phs_multilink import bursts, by_hand, figures, monitor, outdoor, release, tables, transfers

COMPUTE = {
    **transfers.COMPUTE,
    **outdoor.COMPUTE,
    **release.COMPUTE,
    **bursts.COMPUTE,
    **monitor.COMPUTE,
    **by_hand.COMPUTE,
}
FIGURES = figures.FIGURES
TABLES = tables.TABLES
