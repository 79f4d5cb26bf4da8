"""A gateway behind a wire: a laboratory with a phone, whose programs a test starts, and a program at the far end."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

import airloom as al
from tests.conftest import needs_laboratory

SCENARIO = """\
title = "a gateway behind a wire"
path = ["mobile", "wire", "gateway"]
[hosts]
mobile = { real = true }
gateway = { real = true }
[links]
wire = { bearer = "wireline", rate = "2Mbit/s", delay = "20ms" }
"""


def gateway_behind(
    folder: Path, *program: str | Path, seed: int, out: Path | None = None, wire: Mapping[str, object] | None = None
) -> al.Lab:
    """The laboratory. `gateway` runs this Python with these words, and what it prints is in `folder / "said"`.

    `wire` has keys of the wire. With `out` there is a run folder with a capture.
    """
    needs_laboratory()
    scenario = folder / "wire.toml"
    scenario.write_text(SCENARIO)
    words = shlex.join(str(word) for word in (sys.executable, *program))
    start = f"cd {Path(__file__).parents[2]} && PYTHONPATH=. exec {words} > {shlex.quote(str(folder / 'said'))}"
    overrides: dict[str, object] = {f"links.wire.{key}": value for key, value in (wire or {}).items()}
    overrides["hosts.gateway.command"] = ["sh", "-c", start]
    if out:
        overrides["run.record"] = ["pcapng"]
    return al.lab(str(scenario), seed=seed, enter=False, overrides=overrides, out=out)
