"""Fixtures for every test."""

import os
import shutil
from pathlib import Path

import pytest

WIRE = """\
title = "Ping over a wire"
path = ["mobile", "wire", "origin"]

[hosts]
mobile = { app = "ping" }
origin = {}

[links]
wire = { bearer = "wireline", rate = "1Mbit/s", delay = "20ms" }

[run]
record = ["packets", "pcapng"]
"""


@pytest.fixture
def wire(tmp_path: Path) -> Path:
    """A small scenario file."""
    path = tmp_path / "wire.toml"
    path.write_text(WIRE)
    return path


def needs(program: str) -> str:
    """The path of a peer; the test is skipped, with the reason, where it is missing."""
    path = shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if path is None:
        pytest.skip(f"{program} is not installed: tools/peers test")
    return path
