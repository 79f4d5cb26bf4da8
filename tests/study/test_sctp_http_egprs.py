"""The study `sctp-http-egprs`: the laws of its pages, what its captures say, and what counts as a published gap."""

import math
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airloom.scenario import load
from airloom.study import open_study

STUDY = Path(str(resources.files("airloom"))) / "studies" / "sctp-http-egprs"
TRAFFIC = "hosts.mobile.app.http-client.traffic"


@pytest.fixture(scope="module", autouse=True)
def package() -> None:
    """What lies beside `study.py` can be imported once that is."""
    assert open_study("sctp-http-egprs").module


def mean_of_size(law: dict[str, Any], most: float) -> float:
    """Mean of min(X, most) for a Pareto law that says the mean it has without an end."""
    shape = law["law"]["pareto"]["shape"]
    least = law["law"]["pareto"]["mean"] * (shape - 1) / shape
    return float(least * shape / (shape - 1) - least**shape * most ** (1 - shape) / (shape - 1))


def mean_of_count(law: dict[str, Any]) -> float:
    """Mean of a Pareto law within limits, rounded up: the sum over n of the chance of more than n."""
    shape = law["law"]["pareto"]["shape"]
    least = law["law"]["pareto"]["mean"] * (shape - 1) / shape
    more = (1.0 if n < law["least"] else min(1.0, (least / n) ** shape) for n in range(math.ceil(law["most"])))
    return sum(more)


def laws() -> dict[str, dict[str, Any]]:
    """The traffic of every mobile of every scenario, and of every reading that keeps the paper's means."""
    found: dict[str, dict[str, Any]] = {}
    for file in (STUDY / "scenarios").glob("*.toml"):
        for host, entry in tomllib.loads(file.read_text(encoding="utf-8"))["hosts"].items():
            if "traffic" in entry.get("app", {}).get("http-client", {}):
                found[f"{file.stem} {host}"] = entry["app"]["http-client"]["traffic"]
    assumptions = tomllib.loads((STUDY / "assumptions.toml").read_text(encoding="utf-8"))["assumption"]
    (law,) = (a for a in assumptions if a["id"] == "page-law")
    for level in law["levels"]:
        if "drawn means" in level["label"]:
            own = {key.removeprefix(f"{TRAFFIC}."): setting for key, setting in level["set"].items()}
            found[level["label"]] = {**found["tcp mobile"], **own}
    return found


def test_laws_that_end_draw_the_papers_means() -> None:
    known = laws()
    assert len(known) == 9 + 2
    for name, traffic in known.items():
        most = float(traffic["most"].removesuffix("kB").removesuffix("MB")) * (1e3 if "kB" in traffic["most"] else 1e6)
        assert mean_of_size(traffic["main"], most) == pytest.approx(10_000, rel=1e-3), name
        assert mean_of_size(traffic["inline"], most) == pytest.approx(4_000, rel=1e-3), name
        assert mean_of_count(traffic["count"]) == pytest.approx(3, rel=1e-3), name


def test_small_pages_are_the_papers_at_one_scale() -> None:
    sweeps = tomllib.loads((STUDY / "sweep.toml").read_text(encoding="utf-8"))
    for name in ("small-tcp", "small-sctp"):
        of = sweeps[name]["set"]
        assert mean_of_size(of[f"{TRAFFIC}.main"], 15_000) == pytest.approx(1_500, rel=1e-3)
        assert mean_of_size(of[f"{TRAFFIC}.inline"], 15_000) == pytest.approx(600, rel=1e-3)


@pytest.mark.parametrize(
    ("low", "high", "says"),
    [
        ((0.1, 0.2), (0.9, 1.0), "small"),
        ((0.1, 0.2), (5.9, 6.0), "small, large"),
        ((0.8, 0.9), (5.9, 6.0), "large"),
        ((0.8, 0.9), (1.9, 2.0), "neither"),
        ((-2.1, 2.0), (0.9, 1.0), "small: unclear"),
        ((-2.1, -2.0), (3.0, 8.0), "large: unclear"),
    ],
)
def test_an_interval_over_the_edge_is_no_published_gap(
    low: tuple[float, float], high: tuple[float, float], says: str
) -> None:
    from sctp_http.readings import as_published

    assert as_published(np.tile(low, 20), np.tile(high, 20)) == says
    assert as_published(np.array([-1.0, 1.0]), np.array([0.9, 0.9])) == "small: unclear", "two seeds"


@pytest.fixture(scope="module", params=["tcp", "sctp"])
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Any]:
    """A page of two objects without losses, captured at both ends."""
    protocol = request.param
    sweeps = tomllib.loads((STUDY / "sweep.toml").read_text(encoding="utf-8"))
    settings = sweeps[f"sequence-{protocol}"]["set"]
    client = {**settings["hosts.mobile.app.http-client"], "pages": [["/3kB", "/1kB"]]}
    scenario = load(STUDY / "scenarios" / f"{protocol}.toml", {**settings, "hosts.mobile.app.http-client": client})
    return protocol, scenario.run(out=tmp_path_factory.mktemp("sequence") / protocol)


def test_a_message_of_several_packets_is_one_arrow(page: tuple[str, Any]) -> None:
    from sctp_http.messages import arrows

    protocol, run = page
    found = arrows(run)
    labels = [arrow.label.split(":")[0] for arrow in found if not arrow.label.startswith(("SYN", "INIT", "COOKIE"))]
    on = ", stream {}" if protocol == "sctp" else ""
    assert labels == [
        f"{said}{on.format(stream)}" for stream in (0, 1) for said in (f"GET /{3 - 2 * stream}kB", "response")
    ]
    for arrow in found:
        assert arrow.came_s > arrow.sent_s
    responses = [arrow for arrow in found if "response" in arrow.label]
    octets = [int(arrow.label.split(": ")[1].split(" ")[0].replace(",", "")) for arrow in responses]
    assert [number // 1000 for number in octets] == [3, 1]
    assert not any(arrow.is_right for arrow in responses)


def test_the_opening_offers_the_papers_window(page: tuple[str, Any]) -> None:
    from sctp_http.messages import opening

    assert opening(page[1]) == 64_000


@pytest.mark.parametrize("page", ["sctp"], indirect=True)
def test_every_row_of_a_packets_picture_has_32_bits(page: tuple[str, Any]) -> None:
    from sctp_http.messages import exchange, layout

    for seen in exchange(page[1]):
        parts = layout(seen.packet.payload)
        assert parts[0][0] == "common header"
        assert all(sum(bits for _, bits in row) == 32 for _, rows in parts for row in rows)
