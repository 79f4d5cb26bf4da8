"""PIAFS frames in a capture, read with the dissector that airloom brings."""

import subprocess
from pathlib import Path

import airloom as al
from tests.conftest import needs

LUA = Path(al.__file__).parent / "wireshark" / "piafs.lua"


def read(capture: Path, *words: str) -> list[list[str]]:
    """What tshark prints, by columns."""
    command = [needs("tshark"), "-X", f"lua_script:{LUA}", "-r", str(capture), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [line.split("\t") for line in done.stdout.splitlines()]


def test_the_monitors_log_is_that_of_the_run() -> None:
    run = al.load("phs-circuit").run()
    capture = run.folder / "trace.pcapng"
    assert read(capture, "-Y", "_ws.malformed || _ws.lua.error || !piafs") == []
    point = 'frame.interface_name == "phs.piafs.dl.tx"'
    fields = ["piafs.num", "piafs.req", "frame.comment"]
    rows = read(capture, "-Y", point, "-T", "fields", *(word for f in fields for word in ("-e", f)))
    seen = run.packets.cast({"point": str, "event": str})
    frames = seen.filter((seen["point"] == "phs.piafs.dl.tx") & seen["event"].is_in(["tx", "retx"]))
    assert len(rows) == frames.height > 1000
    assert [int(row[0]) for row in rows] == frames["seq"].fill_null(0).to_list()
    assert [int(row[1]) for row in rows] == frames["ack"].to_list()
    lost = sum("CRC error" in row[2] for row in rows if len(row) > 2)
    assert lost == run.summary["phs.downlink.piafs_crc_errors"] > 10
