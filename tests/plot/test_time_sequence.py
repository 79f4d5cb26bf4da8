from pathlib import Path

import numpy as np
import polars as pl
import pytest

import airloom as al
from airloom.errors import UsageError
from airloom.plot import save_svg, time_sequence
from tests.conftest import WIRE

TRANSFER = """\
path = ["mobile", "wire", "origin"]
hosts = { mobile = { app = { bulk = { size = "100kB" } } }, origin = { app = "bulk-server" } }
links = { wire = { bearer = "wireline", rate = "1Mbit/s", delay = "20ms", loss = 0.03 } }
run = { record = ["packets"] }
"""


@pytest.fixture
def run(tmp_path: Path) -> al.Run:
    (tmp_path / "transfer.toml").write_text(TRANSFER)
    return al.load(tmp_path / "transfer.toml").run()


def test_data_acknowledgements_and_retransmissions_are_drawn_at_the_sender(run: al.Run) -> None:
    figure = time_sequence(run.packets)
    (axes,) = figure.axes
    assert "origin.wire.ip" in axes.get_title(loc="left")
    assert axes.get_xlabel().endswith("(s)")
    assert axes.get_ylabel().endswith("(octets)")
    acknowledged, data, resent = axes.lines
    known = np.asarray(acknowledged.get_ydata())
    assert (np.diff(known) >= 0).all()
    assert 50_000 < known[-1] <= 100_001
    assert np.asarray(data.get_ydata()).max() < 100_000 + 1
    assert len(np.asarray(resent.get_ydata())) == run.summary["resent"]
    assert f"({run.summary['resent']:.0f})" in str(resent.get_label())


def test_the_same_table_gives_the_same_octets(run: al.Run, tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        save_svg(time_sequence(run.packets), tmp_path / name)
    text = (tmp_path / "a.svg").read_text()
    assert text == (tmp_path / "b.svg").read_text()
    assert "<dc:date>" not in text


def test_rlc_attempts_share_the_time_axis() -> None:
    rows = [
        # time, point, event, protocol, octets, sequence number, acknowledgement
        (0, "origin.net.ip", "tx", "tcp", 40, 2**32 - 1, None),
        (1, "origin.net.ip", "tx", "tcp", 1500, 0, None),
        (2, "origin.net.ip", "tx", "tcp", 1500, 1460, None),
        (3, "radio.rlc.dl.tx", "tx", "rlc", 42, 4094, None),
        (4, "radio.rlc.dl.tx", "tx", "rlc", 42, 4095, None),
        (5, "radio.rlc.dl.tx", "drop", "rlc", 42, 4095, None),
        (6, "radio.rlc.dl.tx", "tx", "rlc", 42, 0, None),
        (7, "radio.rlc.dl.tx", "retx", "rlc", 42, 4095, None),
        (8, "radio.2.rlc.dl.tx", "tx", "rlc", 42, 17, None),  # another mobile's
    ]
    packets = pl.DataFrame(
        {
            "t_ns": [r[0] * 10**9 for r in rows],
            "point": [r[1] for r in rows],
            "dir": ["dl" for _ in rows],
            "pkt_id": pl.Series([1 if r[1] != "radio.2.rlc.dl.tx" else 2 for r in rows], dtype=pl.UInt64),
            "event": [r[2] for r in rows],
            "flow": pl.Series([1 if r[3] == "tcp" else 0 for r in rows], dtype=pl.UInt32),
            "proto": [r[3] for r in rows],
            "len": pl.Series([r[4] for r in rows], dtype=pl.UInt32),
            "seq": pl.Series([r[5] for r in rows], dtype=pl.UInt64),
            "ack": pl.Series([r[6] for r in rows], dtype=pl.UInt64),
        }
    )
    tcp, rlc = time_sequence(packets).axes
    assert tcp.get_shared_x_axes().joined(tcp, rlc)
    first, again, lost = rlc.lines
    assert np.asarray(first.get_ydata()).tolist() == [4094, 4095, 4096]
    assert np.asarray(again.get_ydata()).tolist() == [4095]
    assert np.asarray(lost.get_xdata()).tolist() == [5]
    assert np.asarray(tcp.lines[1].get_ydata()).tolist() == [1, 1461]


def test_a_run_without_tcp_has_nothing_to_draw(tmp_path: Path) -> None:
    (tmp_path / "wire.toml").write_text(WIRE)
    with pytest.raises(UsageError, match="no flow of TCP"):
        time_sequence(al.load(tmp_path / "wire.toml").run().packets)
