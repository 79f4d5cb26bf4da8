"""What becomes of toxics, without a laboratory."""

import threading
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

import airloom as al
from airloom.control import Control
from airloom.toxics import link as links
from airloom.toxics.link import LinkToxics
from airloom.toxics.toxic import Refused


@pytest.mark.parametrize(
    ("kilobytes", "rate"), [(16, "128000bit/s"), (125_000, "1000000000bit/s"), (123.4567, "987654bit/s")]
)
def test_a_bandwidth_of_any_size_is_a_rate_that_links_know(kilobytes: float, rate: str) -> None:
    made: list[dict[str, Any]] = []
    control = SimpleNamespace(set=lambda _target, changes, **_: made.append(changes))
    understood = {"links": {"radio": {"delay": "20ms", "rate": "384kbit/s", "loss": 0}}}
    link = LinkToxics(cast(Control, control), "radio", understood, 1)
    link.add({"type": "bandwidth", "attributes": {"rate": kilobytes}})
    assert made == [{"rate": {"downlink": rate}}]
    al.load("umts-page", {"links.internet.rate": rate})


def _wait_for(what: Any) -> None:
    end = time.monotonic() + 60
    while not what() and time.monotonic() < end:
        time.sleep(0.001)
    assert what()


def test_what_jitter_draws_anew_is_written_down_nowhere_and_goes_on_after_a_refusal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(links, "_REDRAW_S", 0.001)
    kept: list[dict[str, Any]] = []
    drawn: list[dict[str, Any]] = []
    refuses = threading.Event()

    def change(_target: str, changes: dict[str, Any], *, keep: bool) -> None:
        if refuses.is_set():
            raise al.ScenarioError("change: not now")
        (kept if keep else drawn).append(changes)

    understood = {"links": {"radio": {"delay": "20ms", "rate": None, "loss": 0}}}
    link = LinkToxics(cast(Control, SimpleNamespace(set=change)), "radio", understood, 1)
    link.add({"type": "latency", "attributes": {"latency": 100, "jitter": 50}})
    _wait_for(lambda: len(drawn) > 100)
    refuses.set()
    with pytest.raises(Refused, match="not now"):
        link.add({"type": "bandwidth", "attributes": {"rate": 10}})
    time.sleep(0.01)
    refuses.clear()
    before = len(drawn)
    _wait_for(lambda: len(drawn) > before + 100)
    link.remove("latency_downstream")
    assert len(kept) == 2
    assert kept[1] == {"delay": {"downlink": "20000000ns"}}
    link.close()
