"""qlog of runs: what is recorded, how it is exported, and that the packet numbers in it are Wireshark's."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import airloom as al
from airloom.analysis.qlog import analyze
from airloom.errors import UsageError
from airloom.key_log import key_log
from airloom.plot import quic_trace
from airloom.qlog import export
from tests.cli.shell import airloom, inside
from tests.test_http3 import PEER, openings, serving
from tests.wireshark import fields

DATA = Path(__file__).parent / "data" / "qlog"

PAGE = {"hosts.mobile.app.http-client.pages": [["/20kB.html", "/10kB"]]}


def recorded(*kinds: str, points: list[str] | None = None, session: str = "auto") -> al.Run:
    """A page of two objects over HTTP/3."""
    keys: dict[str, object] = {**PAGE, "run.record": list(kinds)}
    keys |= {f"hosts.{host}.transport.quic.session": session for host in ("mobile", "origin")}
    if points is not None:
        keys["run.points"] = points
    return al.load("http3-page", keys).run(out=Path("-".join(kinds)), force=True)


def records(file: Path) -> list[dict[str, Any]]:
    """The records of a text sequence (RFC 7464)."""
    texts = file.read_text().split("\x1e")
    assert texts[0] == ""
    assert all(text.endswith("\n") for text in texts[1:])
    return [json.loads(text) for text in texts[1:]]


def test_each_end_of_a_connection_has_a_file_named_as_qlogdir_wants_it() -> None:
    run = recorded("qlog")
    client, server = run.qlogs
    odcid, end = client.stem.split("_")
    assert len(bytes.fromhex(odcid)) >= 8
    assert (end, server.stem) == ("client", f"{odcid}_server")
    for file, host in ((client, "mobile"), (server, "origin")):
        head, *events = records(file)
        # Both stand in the first 256 octets, as the draft asks.
        assert file.read_text()[:256].count("urn:ietf:params:qlog:file:sequential") == 1
        assert head["serialization_format"] == "application/qlog+json-seq"
        trace = head["trace"]
        assert trace["vantage_point"] == {"name": host, "type": file.stem.split("_")[1]}
        assert trace["common_fields"]["group_id"] == odcid
        assert len(trace["event_schemas"]) == 2
        times = [event["time"] for event in events]
        assert times == sorted(times)
        assert times[-1] <= run.summary["simulated_s"] * 1e3
        names = {event["name"] for event in events}
        assert {"quic:packet_sent", "quic:packet_received", "quic:recovery_metrics_updated"} <= names
        for event in events:
            if event["name"] in ("quic:packet_sent", "quic:packet_received"):
                assert event["data"]["raw"]["length"] > 0
                assert "length" not in event["data"]["header"]


def test_frames_of_http3_that_one_end_makes_are_those_that_the_other_reads() -> None:
    client, server = (records(file)[1:] for file in recorded("qlog").qlogs)

    def frames(events: list[dict[str, Any]], what: str) -> list[str]:
        found = [event["data"] for event in events if event["name"] == f"http3:frame_{what}"]
        return sorted(json.dumps(data, sort_keys=True) for data in found)

    for made, read in ((client, server), (server, client)):
        assert frames(made, "created") == frames(read, "parsed") != []
    data = [json.loads(frame) for frame in frames(client, "parsed") if '"data"' in frame]
    assert sum(frame["frame"]["raw"]["payload_length"] for frame in data) == 30_000
    purposes = {event["data"]["stream_type"] for event in client if event["name"] == "http3:stream_type_set"}
    assert {"control", "request"} <= purposes
    told = {event["data"]["initiator"] for event in client if event["name"] == "http3:parameters_set"}
    assert told == {"local", "remote"}


def test_events_are_the_same_octets_each_time_and_cost_nothing_that_shows() -> None:
    first = {file.name: file.read_bytes() for file in recorded("packets", "pcapng", "qlog").qlogs}
    with_events = recorded("packets", "pcapng", "qlog")
    assert {file.name: file.read_bytes() for file in with_events.qlogs} == first
    without = recorded("packets", "pcapng")
    assert without.qlogs == []
    assert with_events.summary == without.summary
    assert with_events.packets.equals(without.packets)
    assert with_events.flows.equals(without.flows)


@pytest.mark.parametrize("session", ["model", "seeded"])
def test_the_number_of_workers_does_not_change_an_octet(session: str) -> None:
    keys: dict[str, object] = {**PAGE, "run.record": ["pcapng", "qlog"]}
    keys |= {f"hosts.{host}.transport.quic.session": session for host in ("mobile", "origin")}
    sweep = al.load("http3-page", keys).sweep(seeds="1..4", folders=True)
    found = []
    for workers in (1, 8):
        runs = sweep.run(workers=workers, out=f"of-{workers}").folder / "runs"
        # All that a run writes, but for when and where that was.
        files = [file for file in sorted(runs.rglob("*")) if file.is_file() and file.name != "run.json"]
        kinds = Counter(file.suffix for file in files)
        assert (kinds[".sqlog"], kinds[".pcapng"]) == (8, 4)
        assert {file.name for file in files} >= {"packets.parquet", "congestion.parquet", "summary.json"}
        found.append({file.relative_to(runs): hashlib.sha256(file.read_bytes()).hexdigest() for file in files})
    assert found[0] == found[1]


#: What tshark calls the kinds of long headers (RFC 9000, 17.2).
KINDS = {"0": "initial", "1": "0RTT", "2": "handshake", "3": "retry"}


def test_packet_numbers_are_those_that_tshark_reads_behind_the_protection() -> None:
    # `auto`: since there is a capture, packets are protected, and the file has the secrets.
    run = recorded("pcapng", "qlog", points=["mobile.radio.ip"])
    assert run.capture
    seen: dict[str, list[tuple[str, int]]] = {"quic:packet_sent": [], "quic:packet_received": []}
    columns = ("ip.src", "quic.header_form", "quic.long.packet_type", "quic.packet_number")
    rows = fields(run.capture, *columns, shown="quic")
    own = rows[0][0]
    for source, forms, longs, numbers in rows:
        kinds = iter(longs.split(","))
        names = [KINDS[next(kinds)] if form in ("1", "True") else "1RTT" for form in forms.split(",")]
        # A Retry has no number; there is none here.
        name = "quic:packet_sent" if source == own else "quic:packet_received"
        seen[name] += zip(names, map(int, numbers.split(",")), strict=True)
    told: dict[str, list[tuple[str, int]]] = {name: [] for name in seen}
    for event in records(run.qlogs[0])[1:]:
        if event["name"] in told:
            header = event["data"]["header"]
            told[event["name"]].append((header["packet_type"], header["packet_number"]))
    assert len(told["quic:packet_received"]) > 30
    assert told == seen


def test_what_one_end_acknowledges_the_other_has_sent() -> None:
    client, server = (records(file)[1:] for file in recorded("qlog").qlogs)
    for sender, receiver in ((client, server), (server, client)):
        sent = numbers(sender, "quic:packet_sent")
        arrived = numbers(receiver, "quic:packet_received")
        for events, name in ((receiver, "quic:packet_sent"), (sender, "quic:packet_received")):
            acknowledged = set()
            for event in events:
                if event["name"] == name:
                    kind = event["data"]["header"]["packet_type"]
                    for frame in event["data"].get("frames", []):
                        for ends in frame.get("acked_ranges", []):
                            acknowledged |= {(kind, number) for number in range(ends[0], ends[-1] + 1)}
            assert acknowledged
            # Numbers that were left out on purpose, to catch who acknowledges what never came, are not among them.
            assert acknowledged <= arrived <= sent
            assert len(sent) - len(acknowledged) < 10


def numbers(events: list[dict[str, Any]], name: str) -> set[tuple[str, int]]:
    headers = [event["data"]["header"] for event in events if event["name"] == name]
    return {(header["packet_type"], header["packet_number"]) for header in headers}


def test_a_capture_switches_protection_on_and_changes_no_time() -> None:
    captured, bare = recorded("pcapng"), recorded("packets")
    assert captured.summary["page_load_s"] == bare.summary["page_load_s"]
    assert captured.capture
    secrets = key_log(captured.capture)
    assert secrets.count("CLIENT_HANDSHAKE_TRAFFIC_SECRET") == 1
    assert inside("export", captured.folder, "--keylog", "keys.log").code == 0
    assert Path("keys.log").read_text() == secrets
    plain = recorded("pcapng", session="model")
    assert plain.capture
    assert key_log(plain.capture) == ""
    assert plain.summary["page_load_s"] == captured.summary["page_load_s"]
    done = inside("export", plain.folder, "--keylog", "none.log")
    assert (done.code, "no secrets" in done.err) == (2, True)
    assert "no capture" in inside("export", bare.folder, "--keylog", "none.log").err


def test_the_draft_has_tcp_and_rlc_on_the_same_axis() -> None:
    run = al.load("umts-page", {"run.record": ["qlog"]}).run(out="umts", force=True)
    assert run.manifest["scenario"]["run"]["record"] == ["qlog", "packets", "congestion"]
    made = {file.stem: records(file) for file in export(run, "draft", Path("exported"))}
    assert {"flow-1_gateway.radio.ip", "flow-1_origin", "radio.rlc.dl.tx", "radio.rlc.dl.rx"} <= made.keys()
    for head, *events in made.values():
        assert not head["trace"]["event_schemas"][0].startswith("urn:ietf")
        assert all(event["name"].startswith("airloom-") for event in events)
    tcp = made["flow-1_gateway.radio.ip"][1:]
    packets = run.packets.filter(run.packets["proto"] == "tcp")
    assert len(tcp) == packets.height
    assert tcp[0]["name"] == "airloom-tcp:segment_received"
    assert [event["time"] for event in tcp] == [ns / 1e6 for ns in packets["t_ns"]]
    assert made["flow-1_gateway.radio.ip"][0]["trace"]["vantage_point"]["flow"] == "server"
    lost = [event for event in made["radio.rlc.dl.tx"] if event.get("name") == "airloom-rlc:pdu_lost"]
    is_lost = (run.packets["point"] == "radio.rlc.dl.tx") & (run.packets["event"] == "drop")
    is_lost &= run.packets["reason"] == "block error"
    assert len(lost) == run.packets.filter(is_lost).height > 0
    assert {event["data"]["trigger"] for event in lost} == {"block error"}
    windows = [event["data"]["congestion_window"] for event in made["flow-1_origin"][1:]]
    assert windows == run.congestion.filter(run.congestion["host"] == "origin")["cwnd"].to_list()


def test_the_export_of_sctp_and_what_has_no_events() -> None:
    run = al.load("sctp-page", {"run.record": ["qlog"], "run.until": "5s"}).run(out="sctp", force=True)
    names = {event["name"] for file in export(run, "qvis", Path("q")) for event in records(file)[1:]}
    assert {"airloom-sctp:packet_sent", "airloom-sctp:recovery_metrics_updated"} <= names
    nothing = al.load("umts-page", {"run.record": "none"}).run(out="nothing", force=True)
    with pytest.raises(UsageError, match=r'has no events .* add "qlog"'):
        export(nothing, "draft", Path("none"))
    assert not Path("none").exists()
    done = inside("export", nothing.folder)
    assert (done.code, "--qlog draft|qvis" in done.err) == (2, True)
    assert "valid: draft, qvis" in inside("export", nothing.folder, "--qlog", "other").err


def test_what_a_link_drops_is_dropped_by_its_layer() -> None:
    links = {"links.internet.loss": {"downlink": {"model": "list", "list": [3, 5]}}, "links.radio.queue": "5 packets"}
    run = al.load("umts-page", {**links, "run.record": ["packets"], "run.points": ["*"]}).run(1)
    events = [
        (file.stem, event["name"], event["data"])
        for file in export(run, "draft", Path("q"))
        for event in records(file)[1:]
    ]
    dropped = [(stem, data) for stem, name, data in events if name == "airloom-tcp:segment_dropped"]
    assert len(dropped) == run.summary["internet.downlink.lost"] == 2
    assert {stem for stem, _ in dropped} == {"flow-1_internet.queue.dl.tx"}
    sdus = [data for _, name, data in events if name == "airloom-rlc:sdu_dropped"]
    assert len(sdus) == run.summary["radio.downlink.queue_drops"] > 0
    assert {data["trigger"] for data in sdus} == {"queue full"}


def test_a_run_keeps_its_own_events() -> None:
    run = recorded("qlog")
    before = [file.read_bytes() for file in run.qlogs]
    done = inside("export", run.folder, "--qlog", "qvis", "--out", run.folder)
    assert (done.code, "choose another --out" in done.err) == (2, True)
    assert [file.read_bytes() for file in run.qlogs] == before


def test_qvis_gets_the_names_and_places_of_version_0_3() -> None:
    run = recorded("qlog")
    done = inside("export", run.folder, "--qlog", "qvis", "--json")
    every = [Path(file) for file in json.loads(done.out)["files"]]
    # Behind them come those of the radio link's layer.
    files, layers = every[: len(run.qlogs)], every[len(run.qlogs) :]
    assert [file.name for file in files] == [file.name for file in run.qlogs]
    assert {file.stem for file in layers} == {f"radio.rlc.{way}.{end}" for way in ("dl", "ul") for end in ("tx", "rx")}
    assert files[0].parent == run.folder / "qlog-qvis"
    for file, original in zip(files, run.qlogs, strict=True):
        head, *events = records(file)
        assert (head["qlog_version"], head["qlog_format"]) == ("0.3", "JSON-SEQ")
        # The loader looks for it there.
        assert "JSON-SEQ" in file.read_text()[:1024]
        assert head["trace"]["vantage_point"]["type"] == file.stem.split("_")[1]
        assert head["trace"]["common_fields"]["ODCID"] == file.stem.split("_")[0]
        kinds = {event["name"] for event in events}
        assert {"transport:packet_sent", "transport:packet_received", "recovery:metrics_updated"} <= kinds
        assert all(kind.split(":")[0] in ("transport", "recovery", "connectivity", "http") for kind in kinds)
        packets = [event for event in records(original) if event.get("name") == "quic:packet_sent"]
        sent = [event["data"] for event in events if event["name"] == "transport:packet_sent"]
        assert [one["header"] for one in sent] == [event["data"]["header"] for event in packets]
        frames = [frame for one in sent for frame in one.get("frames", [])]
        assert all(frame["length"] >= 0 for frame in frames if frame["frame_type"] in ("stream", "crypto"))
        assert all(len(ends) == 2 for frame in frames for ends in frame.get("acked_ranges", []))


def test_both_forms_are_read_back_as_the_run_says() -> None:
    run = recorded("packets", "qlog")
    flow = run.flows.row(0, named=True)
    for place in (run.folder, export(run, "draft", Path("d"))[0].parent, export(run, "qvis", Path("v"))[0].parent):
        ends = [analyze(file) for file in sorted(place.glob("*_*t.sqlog")) + sorted(place.glob("*_server.sqlog"))]
        client, server = (end.connections[0] for end in ends)
        assert (client["vantage"], server["vantage"]) == ("client", "server")
        assert client["group"] == server["group"]
        # RLC repairs all, so that nothing is lost on the way; the run ends with the page, and words on their way.
        assert client["sent"]["packets"] - server["received"]["packets"] in (0, 1, 2)
        assert server["sent"]["packets"] - client["received"]["packets"] in (0, 1, 2)
        assert client["lost"] + server["lost"] == flow["resent"]
        # The flows table has that of the end that sent more, as it was when the last acknowledgement began to be read.
        metrics = [event["data"] for event in records(run.qlogs[1]) if "smoothed_rtt" in event.get("data", {})]
        assert metrics[-1]["smoothed_rtt"] == pytest.approx(server["smoothed_rtt_s"] * 1e3)
        assert any(abs(each["smoothed_rtt"] - flow["srtt_ms"]) < 1e-3 for each in metrics)
        assert client["handshake_s"] > 0
        assert ends[0].report["unreadable"] is None


def test_a_qlog_is_told_from_a_capture_and_drawn() -> None:
    run = recorded("pcapng", "qlog")
    server = str(run.qlogs[1])
    said = inside("analyze", server, "--plot", "trace.svg", "--trace", "trace.csv")
    assert said.code == 0, said.err
    assert "origin (server)" in said.out
    assert Path("trace.svg").read_text().count("packet number") >= 1
    assert Path("trace.csv").read_text().startswith("connection,t_ns,kind,space,number,len,cwnd,in_flight,rtt_ns,path")
    assert json.loads(inside("analyze", server, "--json").out)["connections"][0]["vantage"] == "server"
    assert "no connection 3" in inside("analyze", server, "--connection", "3").err
    assert inside("analyze", server, "--stall", "1").code == 2
    assert inside("analyze", str(run.capture)).code == 0
    Path("other.json").write_text('{"log": {}}')
    assert "not a qlog" in inside("analyze", "other.json").err
    event = '{"time": 1e303, "name": "quic:packet_sent", "data": {}}'
    Path("late.sqlog").write_text(f'{{"qlog_version": "0.3", "trace": {{}}}}\n{event}\n')
    assert inside("analyze", "late.sqlog").code == 0


def test_of_several_paths_the_one_that_most_packets_took_is_drawn() -> None:
    rows: list[tuple[str, int | None, int, int | None]] = [("sent", n, 0, None) for n in range(10)]
    rows += [("sent", n, 1, None) for n in range(20)]
    rows += [("acknowledged", 9, 0, None), ("acknowledged", 19, 1, None)]
    rows += [("recovery", None, 0, 5_000), ("recovery", None, 1, 9_000)]
    kinds, numbers, paths, windows = zip(*rows, strict=True)
    trace = pl.DataFrame(
        {"connection": 0, "t_ns": range(len(rows)), "kind": kinds, "number": numbers, "path": paths, "cwnd": windows}
    ).with_columns(space=pl.lit("application"), in_flight=pl.col("cwnd"))
    numbered, window = quic_trace(trace).axes
    assert numbered.get_title(loc="left") == "connection 0, path 1, packets sent"
    assert [np.asarray(line.get_ydata()).tolist() for line in numbered.lines] == [[19], list(range(20))]
    assert np.asarray(window.lines[-1].get_ydata()).tolist() == [9_000]
    (alone,) = quic_trace(trace.filter((pl.col("path") == 0) & (pl.col("kind") != "recovery"))).axes
    assert "path" not in alone.get_title(loc="left")


@pytest.mark.parametrize(
    ("name", "form", "sent", "received", "window", "measured"),
    [
        # Both heads in one file: today's, and that of 0.3 behind it. A server; cut after 48 records.
        ("quic-go", "urn:ietf:params:qlog:file:sequential application/qlog+json-seq", 4, 5, 40960, 3),
        # ngtcp2's, a client: it says what it measured again and again, and 0 before.
        ("libcurl", "0.3 JSON-SEQ", 10, 13, 13200, 2),
    ],
)
def test_the_beginnings_of_files_of_other_programs(
    name: str, form: str, sent: int, received: int, window: int, measured: int
) -> None:
    found = analyze(DATA / f"{name}.sqlog")
    assert (found.report["form"], found.report["events"], found.report["unreadable"]) == (form, 47, None)
    (connection,) = found.connections
    assert (connection["sent"]["packets"], connection["received"]["packets"]) == (sent, received)
    assert connection["cwnd"][3] == window
    assert connection["rtt"]["count"] == measured
    # Half a record at the end.
    cut = Path("cut.sqlog")
    cut.write_bytes((DATA / f"{name}.sqlog").read_bytes()[:-30])
    assert analyze(cut).report["unreadable"]


def test_what_aioquic_writes_agrees_with_what_our_server_writes_by_qlogdir(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "www").mkdir()
    (tmp_path / "www" / "file").write_bytes(bytes(100_000))
    ours, theirs, keys = tmp_path / "ours" / "new", tmp_path / "theirs", tmp_path / "keys"
    theirs.mkdir()
    monkeypatch.setenv("QLOGDIR", str(ours))
    monkeypatch.setenv("SSLKEYLOGFILE", str(keys))
    with serving(tmp_path / "www") as at:
        host, _, port = at.rpartition(":")
        monkeypatch.setenv("QLOGDIR", str(theirs))
        command = [sys.executable, str(PEER), "get", host, port, str(tmp_path / "file")]
        subprocess.run(command, check=True, timeout=60)
        one = airloom("h3", "get", f"https://{at}/file", "-o", str(tmp_path / "got"), QLOGDIR=str(ours))
        assert one.code == 0, one.err
    assert "SERVER_TRAFFIC_SECRET_0" in keys.read_text()
    # Contained JSON of version 0.3 of theirs; text sequences of ours: the server's of both, and our client's.
    (file,) = theirs.iterdir()
    written = sorted(path.name.split("_")[1] for path in ours.iterdir())
    assert written == ["client.sqlog", "server.sqlog", "server.sqlog"]
    client = analyze(file)
    assert client.report["form"] == "0.3 JSON"
    (said,) = client.connections
    (answer,) = analyze(ours / f"{said['group']}_server.sqlog").connections
    assert (said["vantage"], answer["vantage"]) == ("client", "server")
    # Whose acknowledgement a busy machine has late may be given up by aioquic.
    (trace,) = json.loads(file.read_text())["traces"]
    assert said["lost"] == sum(event["name"] == "recovery:packet_lost" for event in trace["events"])
    # On loopback all arrives; the server may be gone before the client's last words.
    assert said["sent"]["packets"] - 5 <= answer["received"]["packets"] <= said["sent"]["packets"]
    assert answer["sent"]["packets"] - 5 <= said["received"]["packets"] <= answer["sent"]["packets"]
    assert answer["sent"]["octets"] > 100_000
    asked = [
        {line["name"]: line["value"] for line in event["data"]["frame"]["headers"]}
        for event in records(ours / f"{said['group']}_server.sqlog")
        if event.get("name") == "http3:frame_parsed" and event["data"]["frame"]["frame_type"] == "headers"
    ]
    assert [head[":path"] for head in asked] == ["/file"]
    (mine,) = ours.glob("*_client.sqlog")
    lengths = [
        event["data"]["frame"]["raw"]["payload_length"]
        for event in records(mine)
        if event.get("name") == "http3:frame_parsed" and event["data"]["frame"]["frame_type"] == "data"
    ]
    assert sum(lengths) == 100_000
    assert said["rtt"]["count"] > 0
    assert said["cwnd"][2] >= said["cwnd"][1] > 0
    assert said["handshake_s"] > 0


def test_behind_a_retry_a_connection_is_called_by_the_id_that_its_client_sent_to_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def first_id(file: Path) -> tuple[str, list[str]]:
        packets = [event for event in records(file)[1:] if event["name"].startswith("quic:packet_")]
        kinds = [event["data"]["header"]["packet_type"] for event in packets]
        return packets[0]["data"]["header"]["dcid"], kinds

    (tmp_path / "www").mkdir()
    (tmp_path / "www" / "file").write_bytes(bytes(1000))
    logs = tmp_path / "logs"
    monkeypatch.setenv("QLOGDIR", str(logs))
    with serving(tmp_path / "www") as at:
        # So many handshakes that others are asked to come again.
        openings(at, 64)
        one = airloom("h3", "get", f"https://{at}/file", "-o", str(tmp_path / "got"))
        assert one.code == 0, one.err
    (client,) = logs.glob("*_client.sqlog")
    name, kinds = first_id(client)
    assert "retry" in kinds
    assert client.name == f"{name}_client.sqlog"
    assert (logs / f"{name}_server.sqlog").exists()
    # In a run too, whose server is told to ask.
    run = al.load("http3-page", {**PAGE, "run.record": ["qlog"], "hosts.origin.transport.quic.retry": True}).run()
    name, kinds = first_id(run.qlogs[0])
    assert "retry" in kinds
    assert [file.name for file in run.qlogs] == [f"{name}_client.sqlog", f"{name}_server.sqlog"]


def test_probe_timeouts_are_those_of_the_summary_and_analyses_find_the_most(tmp_path: Path) -> None:
    away = [{"at": f"{at}s", "target": "radio", "set": {"state": state}} for at, state in ((1, "down"), (4, "up"))]
    run = al.load("http3-page", {**PAGE, "run.record": ["qlog"], "timeline": away}).run(out=tmp_path / "run")
    ends = [analyze(file).connections[0] for file in run.qlogs]
    counts = [
        [event["data"]["pto_count"] for event in records(file)[1:] if "pto_count" in event["data"]]
        for file in run.qlogs
    ]
    assert [end["most_pto"] for end in ends] == [max(told) for told in counts]
    assert max(max(told) for told in counts) >= 2
    # Each is one more than the one before, or the first after an acknowledgement.
    passed = [sum(after > before for before, after in pairwise(told)) for told in counts]
    assert all(after in (0, before + 1) for told in counts for before, after in pairwise(told))
    assert sum(passed) == run.summary["rto_count"]


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = airloom("serve", "h3", tmp_path, "--listen", "127.0.0.1:0", QLOGDIR=str(tmp_path / "file" / "logs"))
    assert (done.code, "file/logs" in done.err) == (4, True)


def test_the_events_of_a_run_are_not_put_among_those_of_another(tmp_path: Path) -> None:
    keys = {"run.record": ["qlog"]}
    one, other = (al.load("http3-page", keys).run(seed=seed, out=tmp_path / f"of-{seed}") for seed in (1, 2))
    before = [file.name for file in other.qlogs]
    for place in (one.folder, other.folder):
        with pytest.raises(UsageError, match="choose another --out"):
            export(one, "draft", place)
    assert [file.name for file in other.qlogs] == before
