"""A scenario whose runs take less than a millisecond and depend on their seed."""

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
