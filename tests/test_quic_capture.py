"""A page over HTTP/3 in a capture: Wireshark reads it by the secrets that the file carries."""

import airloom as al
from tests.wireshark import BROKEN, fields, frames


def test_http3_is_read_by_the_secrets_in_the_file_and_nothing_looks_broken() -> None:
    run = al.load("http3-page").run()
    assert frames(run.capture, f"quic.decryption_failed || {BROKEN}") == []
    # SETTINGS of both ends, and HEADERS: those of nine requests and of as many answers.
    kinds = [
        int(kind, 0) for row in fields(run.capture, "http3.frame_type", shown="http3") for kind in row[0].split(",")
    ]
    assert kinds.count(4) >= 2
    assert kinds.count(1) >= 18


def test_protection_changes_no_time_and_without_it_no_secrets_are_written() -> None:
    protected = al.load("http3-page", {"hosts.mobile.app.http-client.pages": [["/1kB"]]}).run()
    keys = {f"hosts.{host}.transport.quic.session": "model" for host in ("mobile", "origin")}
    bare = al.load("http3-page", {"hosts.mobile.app.http-client.pages": [["/1kB"]], **keys}).run()
    assert bare.summary["page_load_s"] == protected.summary["page_load_s"]
    assert protected.capture is not None
    assert bare.capture is not None
    assert b"CLIENT_HANDSHAKE_TRAFFIC_SECRET" in protected.capture.read_bytes()
    assert b"TRAFFIC_SECRET" not in bare.capture.read_bytes()


def test_requests_that_leave_with_the_first_packet_are_read_too() -> None:
    keys = {f"hosts.{host}.transport.quic.zero_rtt": True for host in ("mobile", "origin")}
    pages = {"per_page": True, "pages": [["/1kB"], ["/2kB"]]}
    client = {f"hosts.mobile.app.http-client.{key}": value for key, value in pages.items()}
    run = al.load("http3-page", {**keys, **client}).run()
    assert run.summary["connections_early"] == 1
    # 0-RTT packets (RFC 9000, 17.2.3), and the session that the second hello offers.
    assert frames(run.capture, "quic.long.packet_type == 1") != []
    assert frames(run.capture, "tls.handshake.type == 1 && tls.handshake.extension.type == 41") != []
    assert frames(run.capture, f"quic.decryption_failed || {BROKEN}") == []
