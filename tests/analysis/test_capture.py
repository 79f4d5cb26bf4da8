"""`airloom analyze` beside tshark, on captures of ours and of other programs."""

import json
import struct
import subprocess
from pathlib import Path

import pytest

import airloom as al
from airloom import plot
from airloom.errors import UsageError
from tests.cli.shell import inside
from tests.conftest import needs, needs_laboratory, until
from tests.wireshark import fields, frames

LOSSY = """\
title = "1 MB over a lossy wire"
path = ["mobile", "wire", "origin"]
[hosts]
mobile = { app = { http-client = { pages = [["/1MB"]] } } }
origin = { app = "http-server" }
[links]
wire = { bearer = "wireline", rate = "2Mbit/s", delay = "50ms", loss = { downlink = 0.02 } }
[run]
record = ["packets", "pcapng"]
points = ["origin.wire.ip"]
"""

#: A host that takes what comes, and one that sends 300 kB and waits for the end of the connection.
SINK = (
    "import socket\ns = socket.create_server(('::', 47110), family=socket.AF_INET6, dualstack_ipv6=True)\n"
    "while True:\n c, _ = s.accept()\n while c.recv(65536): pass\n c.close()\n"
)
SOURCE = (
    "import socket\nc = socket.create_connection(('origin', 47110))\nc.sendall(bytes(300_000))\n"
    "c.shutdown(socket.SHUT_WR)\nc.recv(1)\n"
)


def counted(capture: Path, what: str) -> int:
    """How many frames tshark finds of a kind."""
    return len(frames(capture, what))


def again(capture: Path) -> int:
    """Segments that were sent again, as tshark counts them: one soon after its gap it takes for overtaken."""
    kinds = ("retransmission", "spurious_retransmission", "out_of_order")
    return counted(capture, " || ".join(f"tcp.analysis.{kind}" for kind in kinds))


#: A link that is down for three seconds, and a queue before it that drops; captured at the receiver, as by default.
OUTAGE = """\
title = "2 MB over a channel with an outage"
path = ["mobile", "radio", "gateway", "wan", "server"]
[hosts]
mobile = { app = { bulk = { server = "server", size = "2MB" } } }
gateway = {}
server = { app = "bulk-server" }
[links]
radio = { bearer = "umts-dch", loss = { downlink = 0.05, uplink = 0.02 } }
wan = { bearer = "wireline", rate = "10Mbit/s", delay = "20ms", queue = "20 packets", loss = { downlink = 0.002 } }
[[timeline]]
at = "20s"
target = "radio"
set = { state = "down" }
[[timeline]]
at = "23s"
target = "radio"
set = { state = "up" }
[run]
record = ["pcapng"]
"""


@pytest.fixture(scope="module")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> al.Run:
    folder = tmp_path_factory.mktemp("lossy")
    (folder / "lossy.toml").write_text(LOSSY)
    return al.load(folder / "lossy.toml").run(out=folder / "run")


def test_what_a_run_sent_again_is_found_in_its_capture(lossy: al.Run) -> None:
    capture = lossy.folder / "trace.pcapng"
    found = al.analyze(capture)
    (connection,) = found.connections
    assert (connection["interface"], connection["has_handshake"]) == ("origin.wire.ip", True)
    server = connection["sides"][1]
    sent_again = lossy.flows["resent"].sum()
    assert (
        server["retransmissions"] == server["fast_retransmissions"] + server["timer_retransmissions"] == sent_again > 5
    )
    assert again(capture) == sent_again
    assert server["duplicate_acks"] == counted(capture, "tcp.analysis.duplicate_ack")
    assert server["unique_octets"] > 1_000_000
    assert server["octets"] - server["unique_octets"] > 0
    # 50 ms each way, and what waits before the link.
    assert 0.1 <= server["rtt"]["min_s"] < 0.11 < server["rtt"]["max_s"]
    flights = [int(n) for (n,) in fields(capture, "tcp.analysis.bytes_in_flight", shown="tcp.analysis.bytes_in_flight")]
    # Sent and not acknowledged (RFC 5681's FlightSize); tshark takes off what is acknowledged selectively.
    assert server["most_in_flight"] >= max(flights)


def test_at_the_receiver_causes_do_not_show_and_the_outage_is_the_first_stall(tmp_path: Path) -> None:
    (tmp_path / "outage.toml").write_text(OUTAGE)
    run = al.load(tmp_path / "outage.toml").run(out=tmp_path / "run")
    capture = tmp_path / "run" / "trace.pcapng"
    found = al.analyze(capture)
    (connection,) = found.connections
    (dropped,) = found.report["dropped"]
    assert (dropped["interface"], dropped["segments"]) == ("wan.queue.dl.tx", run.summary["wan.lost"])
    server = connection["sides"][1]
    assert server["seen_from"] == "receiver"
    for key in ("fast_retransmissions", "timer_retransmissions", "timeouts", "most_in_flight", "window_full"):
        assert server[key] is None, key
    assert server["rtt"]["count"] == 0
    assert "timer-retransmission" not in found.trace.filter(side=1)["kind"].unique().to_list()
    assert server["rhythm"]["count"] > 10 * len(server["stalls"]), "rounds of the radio link"
    assert any(stall["begin_s"] < 20.1 and stall["end_s"] > 23 for stall in server["stalls"])
    done = inside("analyze", capture)
    rows = [line.split() for line in done.out.splitlines()]
    assert rows[2][4:5] + rows[2][8:10] == ["server", "-", "-"], "no timeouts and no round trips"
    lasting = [float(row[2]) for row in rows[4:]]
    assert lasting == sorted(lasting, reverse=True)
    assert lasting[-1] > 3
    assert "captured near the receiver" in done.err
    assert "by a timer" not in done.err
    assert "dropped at wan.queue.dl.tx" in done.err


def test_every_form_of_a_file_says_the_same(lossy: al.Run, tmp_path: Path) -> None:
    capture = lossy.folder / "trace.pcapng"
    expected = al.analyze(capture).report
    for form in ("nsecpcap", "pcapng"):
        subprocess.run([needs("editcap"), "-F", form, capture, tmp_path / form], check=True)
        report = al.analyze(tmp_path / form).report
        for connection in report["connections"]:
            connection["interface"] = "origin.wire.ip"  # pcap has no names
        assert report == expected
    subprocess.run([needs("editcap"), "-F", "pcap", "-s", "80", capture, tmp_path / "short"], check=True)
    short = al.analyze(tmp_path / "short").connections[0]["sides"][1]
    whole = expected["connections"][0]["sides"][1]
    same = ("octets", "unique_octets", "retransmissions", "duplicate_acks", "most_in_flight", "window")
    assert [short[key] for key in same] == [whole[key] for key in same], "headers are enough"


def test_a_cut_file_counts_up_to_the_cut(lossy: al.Run, tmp_path: Path) -> None:
    octets = (lossy.folder / "trace.pcapng").read_bytes()
    cut = tmp_path / "cut.pcapng"
    cut.write_bytes(octets[: len(octets) // 2])
    done = inside("analyze", cut, "--json")
    assert done.code == 0
    report = json.loads(done.out)
    assert "cut" in report["unreadable"]
    assert "the file is cut" in done.err
    assert 400 < report["segments"] < al.analyze(lossy.folder / "trace.pcapng").report["segments"]


def test_what_is_no_capture_is_said_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "picture.pcap").write_bytes(b"GIF89a" * 10)
    (tmp_path / "empty.pcap").write_bytes(b"")
    for name, why in (
        ("picture.pcap", "begins neither as pcap nor as pcapng"),
        ("empty.pcap", "begins neither"),
        ("missing.pcap", "No such file"),
        (".", "directory"),
    ):
        done = inside("analyze", tmp_path / name)
        assert (done.code, done.out) == (2, "")
        assert why in done.err
        assert done.err.count("\n") <= 1
    (tmp_path / "other.pcap").write_bytes(struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 127))
    assert "link type 127 is not known" in inside("analyze", tmp_path / "other.pcap").err
    with pytest.raises(UsageError, match="longer than 0"):
        al.analyze(tmp_path / "picture.pcap", stall_s=0)


def test_the_command_prints_connections_and_writes_trace_and_figure(lossy: al.Run, tmp_path: Path) -> None:
    capture = lossy.folder / "trace.pcapng"
    done = inside("analyze", capture, "--plot", tmp_path / "f.svg", "--trace", tmp_path / "t.csv", "--stall", "0.1")
    assert done.code == 0, done.err
    assert "10.77.0.1:80" in done.out
    assert "after duplicate acknowledgements" in done.err
    assert (tmp_path / "f.svg").read_text().startswith("<?xml")
    rows = (tmp_path / "t.csv").read_text().splitlines()
    assert rows[0] == "connection,t_ns,side,kind,seq,len,ack,window,in_flight"
    assert len(rows) - 1 == al.analyze(capture).report["segments"]
    for words, why in (
        (("--plot", tmp_path / "f.gif"), "has to end in"),
        (("--connection", "7"), "there is no connection 7"),
        (("--trace", tmp_path / "no" / "t.csv"), "No such file"),
    ):
        wrong = inside("analyze", capture, *words)
        assert (wrong.code, why in wrong.err) == (2, True), wrong.err


def test_the_figure_shows_what_was_sent_again(lossy: al.Run) -> None:
    found = al.analyze(lossy.folder / "trace.pcapng")
    figure = plot.sequence_trace(found.trace, *found.busiest())
    (axes,) = figure.axes
    labels = [text.get_text() for text in axes.get_legend().get_texts()]  # type: ignore[union-attr]
    server = found.connections[0]["sides"][1]
    causes = {
        "sent again after duplicate acknowledgements": server["fast_retransmissions"],
        "sent again by a timer": server["timer_retransmissions"],
    }
    assert {f"{cause} ({times})" for cause, times in causes.items() if times} <= set(labels)
    assert sum(causes.values()) == lossy.flows["resent"].sum()
    with pytest.raises(UsageError, match="nothing to draw"):
        plot.sequence_trace(found.trace, 9)


@pytest.mark.emulate
@pytest.mark.parametrize(
    "seer", [["dumpcap", "-q", "-i", "any", "-f", "tcp", "-w"], ["tcpdump", "-q", "-U", "-i", "any", "tcp", "-w"]]
)
def test_a_capture_of_linux_tcp_by_another_program(seer: list[str], tmp_path: Path) -> None:
    needs_laboratory()
    capture, python = tmp_path / "up.pcapng", needs("python3")
    (tmp_path / "sink.py").write_text(SINK)
    (tmp_path / "source.py").write_text(SOURCE)
    (tmp_path / "up.toml").write_text(
        'title = "up"\npath = ["mobile", "wire", "origin"]\n[hosts]\nmobile = { real = true }\n'
        f'origin = {{ real = true, command = ["{python}", "{tmp_path}/sink.py"] }}\n'
        '[links]\nwire = { bearer = "wireline", rate = "2Mbit/s", delay = "30ms", loss = { uplink = 0.03 } }\n'
    )
    with al.lab(tmp_path / "up.toml", seed=5, enter=False) as link:
        seeing = link.popen([needs(seer[0]), *seer[1:], str(capture)])
        while not capture.exists() or capture.stat().st_size == 0:
            assert seeing.poll() is None
        done = link.run([python, str(tmp_path / "source.py")])
        assert done.returncode == 0
        # What it has seen it writes a little later; on a signal it ends without.
        until(lambda: [c["end"] for c in al.analyze(capture).connections[:1]] == ["closed"])
        seeing.terminate()
        seeing.wait()
    (connection,) = al.analyze(capture).connections
    client = connection["sides"][0]
    assert client["unique_octets"] == 300_000
    assert client["retransmissions"] == again(capture) > 0
    assert client["rtt"]["min_s"] >= 0.06
