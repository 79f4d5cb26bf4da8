"""The dialogue of FTP in a capture, as Wireshark reads it."""

import pytest

from airloom.scenario import parse
from tests.wireshark import fields

SCENARIO = """
path = ["client", "wire", "server"]

[hosts]
client = {{ app = {{ ftp = {{ mode = "{mode}", active = {active}, size = "300kB" }} }} }}
server = {{ app = "ftp-server" }}

[links.wire]
bearer = "wireline"
delay  = "10ms"

[run]
record = "pcapng"
"""

OPENING = ["USER", "PASS", "TYPE"]


@pytest.mark.parametrize(("mode", "word"), [("get", "RETR"), ("put", "STOR")])
@pytest.mark.parametrize(("active", "place", "answer"), [("false", "PASV", "227"), ("true", "PORT", "200")])
def test_wireshark_reads_the_dialogue_and_finds_the_file(
    mode: str, word: str, active: str, place: str, answer: str
) -> None:
    run = parse(SCENARIO.format(mode=mode, active=active)).run()
    assert run.summary["transfers"] == 1
    names = ["ftp.request.command", "ftp.response.code", "_ws.malformed", "ftp-data", "ftp.active.port", "tcp.port"]
    rows = fields(run.capture, *names)
    assert [row[0] for row in rows if row[0]] == [*OPENING, place, word, "QUIT"]
    assert [row[1] for row in rows if row[1]] == ["220", "331", "230", "200", answer, "150", "226", "221"]
    assert not any(row[2] for row in rows)
    if active == "true":
        # Wireshark takes data for FTP's if the server sends it from port 20; ours comes from any.
        (port,) = {row[4] for row in rows if row[4]}
        assert sum(port in row[5].split(",") for row in rows) > 100
    else:
        # It follows the address in the dialogue to the data connection.
        assert sum(bool(row[3]) for row in rows) > 100


@pytest.mark.parametrize(("active", "place", "answer"), [("false", "EPSV", "229"), ("true", "EPRT", "200")])
def test_between_addresses_of_ipv6_the_extended_commands_are_spoken(active: str, place: str, answer: str) -> None:
    text = SCENARIO.format(mode="put", active=active).replace("size =", 'server = "fd00:77::1", size =')
    run = parse(text).run()
    assert (run.summary["transfers"], run.summary["received_bytes"]) == (1, 300_000)
    rows = fields(run.capture, "ftp.request.command", "ftp.response.code")
    assert [row[0] for row in rows if row[0]] == [*OPENING, place, "STOR", "QUIT"]
    assert answer in [row[1] for row in rows]
