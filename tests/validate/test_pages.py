"""A page by curl from real servers, and the simulated client and server that are held against them."""

from dataclasses import replace

import polars as pl
import pytest

from airloom.errors import UsageError
from airloom.run import measure
from airloom.validate import pages
from airloom.validate.pages import CELLS, Page, chosen, compare, missing, scenario
from tests.conftest import needs_laboratory


def packets(client: dict[str, object], server: dict[str, object]) -> list[tuple[str, int]]:
    """Direction and octets of the packets of one object, as the client's end of the link sees them."""
    given = {"connections": 1, "objects": ["/20kB"], **client}
    _, rows = measure(scenario(CELLS[0], 1, given, {"response": "200B", **server}, None))
    seen = rows["packets"].with_columns(pl.col("event").cast(pl.String)).filter(pl.col("event").is_in(["tx", "rx"]))
    return list(seen.sort("t_ns", maintain_order=True).select("event", "len").iter_rows())


@pytest.mark.parametrize("delay", ["0s", "100us"])
def test_a_head_that_is_written_apart_leaves_in_a_packet_of_its_own(delay: str) -> None:
    apart = {"head_apart": True, "delay": delay}
    # Without what acknowledges alone: a server that takes its time acknowledges the request first.
    first = [length for event, length in packets({}, apart) if event == "rx" and length > 52]
    assert first[1:3] == [252, 1500], "a head of 200 octets, then full segments"
    together = [length for event, length in packets({}, {"delay": delay}) if event == "rx" and length > 52]
    assert together[1] == 1500
    assert sum(first) == sum(together) + 52, "a packet more, and not an octet of data"


@pytest.mark.parametrize("reaction", ["0s", "200us"])
def test_a_client_has_acknowledged_before_it_asks(reaction: str) -> None:
    sent = [length for event, length in packets({"reaction": reaction}, {}) if event == "tx"]
    assert sent[:2] == [60, 52]
    assert sent[2] > 60


def test_the_table_has_every_link_and_server() -> None:
    assert len(CELLS) == len({cell.name for cell in CELLS}) == 8
    assert [cell.name for cell in CELLS if "head_apart" in cell.server.keys] == [
        "umts-dch/nginx-sendfile",
        "umts-dch/python",
        "2M-100ms/nginx-sendfile",
        "2M-100ms/python",
    ]


def test_a_server_that_is_not_installed_is_named() -> None:
    (cell,) = chosen("umts-dch/apache")
    absent = replace(cell, server=replace(cell.server, program="no-such-server"))
    assert missing([absent]) == ["no-such-server"] or "curl" in missing([absent])
    with pytest.raises(UsageError, match="no-such-server"):
        compare([absent], [1], jobs=1)


@pytest.mark.emulate
def test_every_server_gives_curl_the_page_and_the_simulation_begins_when_curl_did() -> None:
    needs_laboratory()
    cells = [cell for cell in chosen("2M-100ms/*") if not missing([cell])]
    for verdict in compare(cells, [1], jobs=1):
        (real,), (ours,) = verdict.real, verdict.simulated
        assert (real.began_ns, ours.heads) == (ours.began_ns, (0, 0)), verdict.cell.name
        assert min(real.heads) > 50
        assert pages.spread(verdict) == 0
        assert isinstance(real, Page)
