"""Links and laboratories before anybody enters them: what they are of."""

from pathlib import Path

import airloom as al


def test_each_link_is_of_its_file_as_it_is_now(wire: Path) -> None:
    def delay() -> object:
        return al.link(wire, enter=False).scenario.understood["links"]["wire"]["delay"]["downlink"]

    assert delay() == "20ms"
    wire.write_text(wire.read_text().replace('"20ms"', '"200ms"'))
    assert delay() == "200ms"
