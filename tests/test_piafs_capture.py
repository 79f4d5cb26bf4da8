"""PIAFS frames in a capture, read with the dissector that airloom brings."""

from pathlib import Path

import airloom as al
from tests.wireshark import fields, frames

DISSECTOR = ("-X", f"lua_script:{Path(al.__file__).parent / 'wireshark' / 'piafs.lua'}")


def test_the_monitors_log_is_that_of_the_run() -> None:
    run = al.load("phs-circuit").run()
    assert frames(run.capture, "_ws.malformed || _ws.lua.error || !piafs", *DISSECTOR) == []
    point = 'frame.interface_name == "phs.piafs.dl.tx"'
    rows = fields(run.capture, "piafs.num", "piafs.req", "frame.comment", shown=point, options=DISSECTOR)
    seen = run.packets.cast({"point": str, "event": str})
    sent = seen.filter((seen["point"] == "phs.piafs.dl.tx") & seen["event"].is_in(["tx", "retx"]))
    assert len(rows) == sent.height > 1000
    assert [int(row[0]) for row in rows] == sent["seq"].fill_null(0).to_list()
    assert [int(row[1]) for row in rows] == sent["ack"].to_list()
    lost = sum("CRC error" in row[2] for row in rows)
    assert lost == run.summary["phs.downlink.piafs_crc_errors"] > 10
