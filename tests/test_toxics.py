"""What becomes of toxics, without a laboratory."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

import airloom as al
from airloom.control import Control
from airloom.toxics.link import LinkToxics


@pytest.mark.parametrize(
    ("kilobytes", "rate"), [(16, "128000bit/s"), (125_000, "1000000000bit/s"), (123.4567, "987654bit/s")]
)
def test_a_bandwidth_of_any_size_is_a_rate_that_links_know(kilobytes: float, rate: str) -> None:
    made: list[dict[str, Any]] = []
    control = SimpleNamespace(set=lambda _target, changes: made.append(changes))
    understood = {"links": {"radio": {"delay": "20ms", "rate": "384kbit/s", "loss": 0}}}
    link = LinkToxics(cast(Control, control), "radio", understood, 1)
    link.add({"type": "bandwidth", "attributes": {"rate": kilobytes}})
    assert made == [{"rate": {"downlink": rate}}]
    al.load("umts-page", {"links.internet.rate": rate})
