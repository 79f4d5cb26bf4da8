"""TLS and HTTP/2 of the simulation in a capture, as Wireshark reads them; records beside those of OpenSSL."""

import re
import subprocess
import time
from pathlib import Path
from socket import socket

import pytest

from airloom.scenario import parse
from tests.conftest import needs
from tests.wireshark import fields

SCENARIO = """
path = ["client", "wire", "server"]

[hosts.client.app.http-client]
http = "{http}"
connections = 1
pages = [["/3kB.html", "/40kB", "/100"]]
{client}

[hosts.server.app.http-server]
http = "2"
{server}

[links.wire]
bearer = "wireline"
delay  = "10ms"

[run]
record = "pcapng"
"""

CLIENT_HELLO, SERVER_HELLO, TICKET, CERTIFICATE, SERVER_KEY, DONE, CLIENT_KEY = 1, 2, 4, 11, 12, 14, 16


def captured(http: str, client: str, server: str) -> Path:
    """The capture of a page that came whole."""
    run = parse(SCENARIO.format(http=http, client=client, server=server)).run()
    assert (run.summary["objects"], run.summary["failed"]) == (3, 0)
    return run.folder / "trace.pcapng"


def listed(values: list[str]) -> list[int]:
    """Numbers of a field that a packet may have several of."""
    return [int(value, 0) for one in values if one for value in one.split(",")]


@pytest.mark.parametrize("http", ["1.1", "2"])
@pytest.mark.parametrize(
    ("tls", "handshake"),
    [
        ("tls = {}", [CLIENT_HELLO, SERVER_HELLO]),
        ('tls = { version = "1.2" }', [CLIENT_HELLO, SERVER_HELLO, CERTIFICATE, SERVER_KEY, DONE, CLIENT_KEY, TICKET]),
        ('tls = { version = "1.2", sizes = "2004" }', [CLIENT_HELLO, SERVER_HELLO, CERTIFICATE, DONE, CLIENT_KEY]),
        ('tls = { sizes = "post-quantum", cipher = "chacha20" }', [CLIENT_HELLO, SERVER_HELLO]),
    ],
)
def test_wireshark_reads_every_record(http: str, tls: str, handshake: list[int]) -> None:
    capture = captured(http, tls, tls)
    read = fields(capture, "tls.handshake.type", "_ws.malformed", "_ws.expert.severity", "tls.alert_message.desc")
    assert listed([row[0] for row in read]) == handshake
    assert not any(row[1] for row in read)
    # Errors have this number: a length that does not fit, a structure that cannot be.
    error = 0x00800000
    assert all(severity < error for severity in listed([row[2] for row in read]))
    names = fields(capture, "tls.handshake.extensions_alpn_str")
    assert next(name for (name,) in names if name) == ("h2" if http == "2" else "http/1.1")


def test_wireshark_reads_every_frame_of_http_2() -> None:
    capture = captured("2", "", "")
    clear = ("-d", "tcp.port==80,http2")
    read = fields(capture, "http2.type", "http2.streamid", "_ws.malformed", "tcp.dstport", options=clear)
    assert not any(row[2] for row in read)
    up = [row for row in read if row[3] == "80"]
    # Magic (which Wireshark gives no type), SETTINGS and the first request; later the acknowledgement and two requests.
    kinds = listed([row[0] for row in up])
    assert kinds[:2] == [4, 1]
    assert kinds.count(1) == 3
    assert {1, 3, 5} <= set(listed([row[1] for row in up]))
    down = listed([row[0] for row in read if row[3] != "80"])
    assert down.count(1) == 3
    assert down.count(0) >= 5
    heads = fields(capture, "http2.headers.path", "http2.headers.status", options=clear)
    assert [path for row in heads if row[0] for path in row[0].split(",")] == ["/3kB.html", "/40kB", "/100"]
    assert [code for row in heads if row[1] for code in row[1].split(",")] == ["200"] * 3


# A record of OpenSSL's -msg: direction, and the five octets of its header.
RECORD = re.compile(r"^(>>>|<<<) .*RecordHeader \[length 0005\]\n\s+((?:[0-9a-f]{2} ){4}[0-9a-f]{2})", re.MULTILINE)
DATA = 23
#: Records of a handshake with all that belongs to it, by direction.
COUNT = {"1.3": {">>>": 3, "<<<": 8}, "1.2": {">>>": 4, "<<<": 7}}


def of_openssl(folder: Path, version: str) -> dict[str, list[tuple[int, int]]]:
    """Type and length of each record of a handshake between OpenSSL and itself, by direction."""
    openssl = needs("openssl")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    make = f"req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=origin -keyout {key} -out {certificate}"
    subprocess.run([openssl, *make.split()], check=True, capture_output=True)
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    serve = f"s_server -accept 127.0.0.1:{port} -key {key} -cert {certificate} -quiet -alpn http/1.1"
    server = subprocess.Popen([openssl, *serve.split()], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:
        suite = "-ciphersuites TLS_AES_128_GCM_SHA256" if version == "1.3" else "-cipher ECDHE-RSA-AES128-GCM-SHA256"
        flag = "-tls1_3" if version == "1.3" else "-tls1_2"
        ask = f"s_client -connect 127.0.0.1:{port} {flag} {suite} -groups X25519 -alpn http/1.1 -msg"
        for attempt in range(20):
            # The tickets come behind the handshake: a little is waited for them, and longer if they were not there yet.
            client = subprocess.Popen(
                [openssl, *ask.split()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            time.sleep(0.3 * (attempt + 1))
            said, _ = client.communicate(b"Q\n", timeout=60)
            records = records_in(said.decode(errors="replace"))
            if all(len(records[direction]) >= COUNT[version][direction] for direction in records):
                return records
    finally:
        server.kill()
        server.communicate()
    raise AssertionError(f"no whole handshake: {records}")


def records_in(text: str) -> dict[str, list[tuple[int, int]]]:
    records: dict[str, list[tuple[int, int]]] = {">>>": [], "<<<": []}
    for direction, octets in RECORD.findall(text):
        kind, _, _, high, low = (int(octet, 16) for octet in octets.split())
        records[direction].append((kind, 256 * high + low))
    return records


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_records_of_a_handshake_are_those_of_openssl(tmp_path: Path, version: str) -> None:
    theirs = of_openssl(tmp_path, version)
    der = ["x509", "-in", str(tmp_path / "certificate.pem"), "-outform", "der"]
    certificate = len(subprocess.run([needs("openssl"), *der], capture_output=True, check=True).stdout)
    hello = theirs[">>>"][0][1]
    # Certificate and ClientHello are as large as people make them, and so is what is in a ticket; all else follows.
    place = 6 if version == "1.3" else 4
    around = 4 + 4 + 2 if version == "1.2" else 17 + 4 + 4 + 4 + 1 + 8 + 2 + 2
    ticket = theirs["<<<"][place][1] - around
    sizes = f'client_hello = "{hello}B", certificates = "{certificate}B", ticket = "{ticket}B"'
    tls = f'tls = {{ version = "{version}", {sizes} }}'
    capture = captured("1.1", tls, tls)
    read = fields(capture, "tcp.dstport", "tls.record.content_type", "tls.record.opaque_type", "tls.record.length")
    ours: dict[str, list[tuple[int, int]]] = {">>>": [], "<<<": []}
    for port, clear, opaque, length in read:
        kinds = iter(listed([clear])) if not opaque else iter(listed([clear, opaque]))
        for octets in listed([length]):
            ours[">>>" if port == "443" else "<<<"].append((next(kinds, DATA), octets))
    count = COUNT[version]
    for direction, records in ours.items():
        of_handshake, other = records[: count[direction]], theirs[direction][: count[direction]]
        if version == "1.2" and direction == "<<<":
            # Its ServerHello has other extensions and no number of the session.
            assert abs(of_handshake[0][1] - other[0][1]) <= 20
            of_handshake, other = of_handshake[1:], other[1:]
        assert of_handshake == other
