import pytest

from airloom.emulation import find
from airloom.presets import presets
from tests.cli.shell import airloom


@pytest.mark.parametrize("name", presets())
def test_every_preset_is_a_link_that_can_be_run(name: str) -> None:
    preset = presets()[name]
    link = find(name).understood["links"]["link"]
    assert link["bearer"] == preset.bearer
    for key in preset.keys:
        assert link[key] is not None


@pytest.mark.parametrize(
    ("name", "down", "up", "delays"),
    [
        # As the tools print them, see the header of presets.toml.
        ("wpt/3g", "1600kbit/s", "768kbit/s", ("150ms", "150ms")),
        ("sitespeed/3g", "1600kbit/s", "768kbit/s", ("75ms", "75ms")),
        ("devtools/slow-3g", "500kbit/s", "500kbit/s", ("200ms", "200ms")),
        ("lighthouse/mobile", "1638400bit/s", "750kbit/s", ("75ms", "75ms")),
        ("firefox/regular-2g", "256kbit/s", "51200bit/s", ("150ms", "150ms")),
        ("nlc/edge", "240kbit/s", "200kbit/s", ("400ms", "440ms")),
    ],
)
def test_the_same_name_means_what_its_tool_means(name: str, down: str, up: str, delays: tuple[str, str]) -> None:
    link = find(name).understood["links"]["link"]
    assert (link["rate"]["downlink"], link["rate"]["uplink"]) == (down, up)
    delay = link["delay"]
    both = (delay["downlink"], delay["uplink"]) if isinstance(delay, dict) else (delay, delay)
    assert both == delays


def test_a_preset_is_listed_with_what_it_does_not_have() -> None:
    done = airloom("list", "presets", "wpt/3g")
    assert done.code == 0
    assert "down 1600 kbit/s, up 768 kbit/s, RTT 300 ms" in done.out
    assert "no loss, no jitter, no radio" in done.out
    wrong = airloom("list", "presets", "3g")
    assert wrong.code == 2
    assert "wpt/3g" in wrong.err
