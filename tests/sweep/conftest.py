"""A scenario whose runs take less than a millisecond and depend on their seed."""

from pathlib import Path

import pytest

from airloom.scenario import Scenario, parse

FETCH = """\
title = "A small object over a lossy wire"
path = ["mobile", "wire", "origin"]

[hosts]
mobile = { app = { http-client = { pages = [["/5kB"]] } } }
origin = { app = "http-server" }

[links]
wire = { bearer = "wireline", rate = "1Mbit/s", delay = "20ms", loss = 0.05 }
"""


@pytest.fixture
def fetch() -> Scenario:
    return parse(FETCH, "fetch.toml")


def is_running(pid: int) -> bool:
    """Is there such a process, and not only its exit code?"""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
