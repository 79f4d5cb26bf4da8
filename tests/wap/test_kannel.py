"""Our client against the gateway that most of the world's WAP went through."""

from __future__ import annotations

import json
import random
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Self

import pytest

from airloom._core import WapClient, WapListener
from airloom.wap import USUAL_HEADERS, Client, WapError, listen
from airloom.wap.service import Indication, Loading, parse
from tests.cli.shell import airloom
from tests.conftest import needs
from tests.wap.gateway import text_of
from tests.wap.wire import gateway_behind

# Nobody else's: the ports are fixed in Kannel.
ADDRESS = "127.92.1.1"


class Gateway(NamedTuple):
    host: str
    origin: str
    push: int


@pytest.fixture(scope="module")
def kannel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    needs("bearerbox")
    needs("wapbox")
    command = [sys.executable, "-m", "tests.wap.kannel", ADDRESS, str(tmp_path_factory.mktemp("kannel"))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        try:
            assert program.stdout is not None
            said = json.loads(program.stdout.readline())
            yield Gateway(ADDRESS, said["origin"], said["push"])
        finally:
            program.terminate()


def test_methods_in_a_session(kannel: Gateway) -> None:
    with Client(kannel.host) as wap:
        deck = wap.get(f"{kannel.origin}/deck")
        assert (deck.status, deck.content_type) == (200, "application/vnd.wap.wmlc")
        assert "<p>Hello, world</p>" in deck.text()
        head = wap.request("HEAD", f"{kannel.origin}/size/300")
        assert (head.status, head.body) == (200, b"")
        assert head.content_type == "text/plain"
        assert wap.get(f"{kannel.origin}/status/404").status == 404
        posted = wap.post(f"{kannel.origin}/form", b"name=value")
        assert posted.body == b"10 octets of application/x-www-form-urlencoded, sum 1019"
        # Kannel does not pass these on.
        assert wap.request("DELETE", f"{kannel.origin}/deck").status == 501
        # A header of the request stands in place of the session's.
        sent = wap.get(f"{kannel.origin}/headers", [("Accept-Language", "de"), ("Accept", "text/plain")]).text()
        assert "Accept-Language: de" in sent
        assert "airloom" in sent
    # It says what it is told.
    assert ("Encoding-Version", "1.3") in wap.core.server_headers


def test_large_replies_and_requests_come_in_groups(kannel: Gateway) -> None:
    with Client(kannel.host) as wap:
        assert wap.get(f"{kannel.origin}/size/100000").body == text_of(100_000)
        # 72 packets with the head, three in a group, whatever the client says it takes.
        assert wap.core.counters["groups_received"] == 23
        body = bytes(n % 251 for n in range(40_000))
        said = wap.post(f"{kannel.origin}/large", body, "application/octet-stream").text()
        assert said == f"40000 octets of application/octet-stream, sum {sum(body)}"
        assert wap.core.counters["groups_sent"] > 0
    assert wap.core.counters["malformed"] == 0


def test_a_request_that_takes_too_long_is_aborted(kannel: Gateway) -> None:
    with Client(kannel.host) as wap:
        with pytest.raises(WapError) as raised:
            wap.get(f"{kannel.origin}/delay/3", time_s=0.3)
        assert raised.value.reason == "timeout"
        assert wap.get(f"{kannel.origin}/size/5").body == b"abcde"


def test_a_slow_origin_is_waited_for_by_the_hold_on_acknowledgement(kannel: Gateway) -> None:
    with Client(kannel.host) as wap:
        # Kannel says "wait" after four seconds; before that our Invoke is not repeated.
        # A program that is held up across that second hears it too late: it is asked up to three times.
        resent = [0]
        while len(resent) <= 3:
            assert wap.get(f"{kannel.origin}/delay/5.5").status == 200
            resent.append(wap.core.counters["resent"])
            if resent[-1] == resent[-2]:
                break
        else:
            raise AssertionError(f"the Invoke was repeated each time: {resent}")


def test_without_a_session(kannel: Gateway) -> None:
    with Client(kannel.host, connectionless=True) as wap:
        assert wap.get(f"{kannel.origin}/size/900").body == text_of(900)
        assert "<p>Hello, world</p>" in wap.get(f"{kannel.origin}/deck").text()
        assert wap.post(f"{kannel.origin}/form", b"a=b").body.startswith(b"3 octets")


def test_suspension_is_not_agreed_to(kannel: Gateway) -> None:
    with Client(kannel.host) as wap:
        assert wap.core.agreed is not None
        assert wap.core.agreed["options"] == 0
        with pytest.raises(WapError) as raised:
            wap.core.suspend()
        assert raised.value.reason == "not-agreed"
        assert wap.get(f"{kannel.origin}/size/5").status == 200


def test_the_command_line(kannel: Gateway, tmp_path: Path) -> None:
    done = airloom("wap", "get", f"{kannel.origin}/deck", "--gateway", kannel.host)
    assert done.code == 0, done.err
    assert "<p>Hello, world</p>" in done.out
    assert "200 OK, application/vnd.wap.wmlc" in done.err
    raw = tmp_path / "deck.wbxml"
    assert airloom("wap", "get", f"{kannel.origin}/deck", "--gateway", kannel.host, "--raw", "-o", raw).code == 0
    assert raw.read_bytes()[:2] in (b"\x01\x04", b"\x02\x04", b"\x03\x04")
    posted = airloom("wap", "post", f"{kannel.origin}/x", "--data", "a=b", "--gateway", f"{kannel.host}:9201", "--json")
    said = json.loads(posted.out)
    assert (said["status"], said["body"]) == (200, "3 octets of application/x-www-form-urlencoded, sum 256")
    missing = airloom("wap", "get", f"{kannel.origin}/status/404", "--gateway", kannel.host, "--connectionless")
    assert missing.code == 1


PUSHES = {
    "text/vnd.wap.si": (
        '<?xml version="1.0"?><!DOCTYPE si PUBLIC "-//WAPFORUM//DTD SI 1.0//EN" "http://www.wapforum.org/DTD/si.dtd">'
        '<si><indication href="http://www.example.org/mail" si-id="m1">One new message</indication></si>'
    ),
    "text/vnd.wap.sl": (
        '<?xml version="1.0"?><!DOCTYPE sl PUBLIC "-//WAPFORUM//DTD SL 1.0//EN" "http://www.wapforum.org/DTD/sl.dtd">'
        '<sl href="http://www.example.org/load"/>'
    ),
}
CONTROL = """<?xml version="1.0"?>
<!DOCTYPE pap PUBLIC "-//WAPFORUM//DTD PAP 1.0//EN" "http://www.wapforum.org/DTD/pap_1.0.dtd">
<pap><push-message push-id="{number}@example.org"><address address-value="WAPPUSH={to}/TYPE=IPv4@example.org"/>
<quality-of-service delivery-method="unconfirmed" bearer="CSD" bearer-required="true"
network="GSM" network-required="true"/>
</push-message></pap>"""


def test_pushes_arrive_and_are_read(kannel: Gateway) -> None:
    import http.client

    to = "127.92.1.2"
    listener = WapListener(to, 2948)
    heard = []
    for number, (kind, document) in enumerate(PUSHES.items()):
        parts = [("application/xml", CONTROL.format(number=number, to=to)), (kind, document)]
        body = "".join(f"--end\r\nContent-Type: {kind}\r\n\r\n{text}\r\n" for kind, text in parts) + "--end--\r\n"
        connection = http.client.HTTPConnection("127.0.0.1", kannel.push, timeout=30)
        headers = {"Content-Type": 'multipart/related; boundary=end; type="application/xml"'}
        connection.request("POST", "/wappush", body, headers)
        assert connection.getresponse().status == 202
        connection.close()
        push = next(listen(listener, time_s=30))
        assert push.content_type in ("application/vnd.wap.sic", "application/vnd.wap.slc")
        heard.append(parse(push.text()))
    assert heard == [
        Indication("http://www.example.org/mail", "signal-medium", "One new message", "m1"),
        Loading("http://www.example.org/load", "execute-low"),
    ]


class Relay:
    """Passes datagrams between one client and a gateway: loses, repeats and delays some of each direction."""

    def __init__(self, gateway: str, seed: int | None) -> None:
        """Without a seed nothing happens to datagrams."""
        self._random = random.Random(seed) if seed is not None else None
        self._gateway = (gateway, 9201)
        self._near, self._far = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
        self._near.bind(("127.0.0.1", 0))
        self._far.bind(("127.0.0.1", 0))
        self.port: int = self._near.getsockname()[1]
        self._client: tuple[str, int] | None = None
        self._over = False
        self.lost = self.repeated = self.delayed = 0
        #: What was passed on, and whether it was on its way to the gateway.
        self.passed: list[tuple[bool, bytes]] = []
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._over = True
        self._thread.join()
        self._near.close()
        self._far.close()

    def _run(self) -> None:
        late: list[tuple[float, bool, bytes]] = []
        while not self._over:
            for at, outwards, datagram in [entry for entry in late if entry[0] <= time.monotonic()]:
                late.remove((at, outwards, datagram))
                self._send(outwards, datagram)
            for ready in select.select([self._near, self._far], [], [], 0.01)[0]:
                datagram, sender = ready.recvfrom(65_535)
                outwards = ready is self._near
                if outwards:
                    self._client = sender
                fate = self._random.random() if self._random else 1.0
                if fate < 0.05:
                    self.lost += 1
                elif fate < 0.10:
                    self.delayed += 1
                    late.append((time.monotonic() + 0.05, outwards, datagram))
                else:
                    self._send(outwards, datagram)
                    if fate < 0.15:
                        self.repeated += 1
                        self._send(outwards, datagram)

    def _send(self, outwards: bool, datagram: bytes) -> None:
        self.passed.append((outwards, datagram))
        if outwards:
            self._far.sendto(datagram, self._gateway)
        elif self._client:
            self._near.sendto(datagram, self._client)


def test_everything_arrives_once_though_datagrams_are_lost_repeated_and_late(kannel: Gateway) -> None:
    with Relay(kannel.host, seed=1) as relay, Client("127.0.0.1", relay.port) as wap:
        assert wap.get(f"{kannel.origin}/size/100000", time_s=110).body == text_of(100_000)
        for size in (0, 900, 4_000):
            assert wap.get(f"{kannel.origin}/size/{size}", time_s=110).body == text_of(size)
    assert relay.lost > 0
    assert relay.repeated > 0
    assert relay.delayed > 0
    assert wap.core.counters["malformed"] == 0


#: The first octet of an Ack that asks whether a transaction is known, and of the one that says so (Tve, Tok).
VERIFICATION = 0x1C


def test_a_number_that_goes_back_is_verified(kannel: Gateway) -> None:
    """Kannel asks whether the first transaction of the second client, whose number is below the last one's, is new."""
    with Relay(kannel.host, seed=None) as relay:
        for first in (5_000, 100):
            wap = WapClient("127.0.0.1", relay.port, headers=USUAL_HEADERS, first=first)
            status, _, _, body = wap.request("GET", f"{kannel.origin}/size/900")
            assert (status, body) == (200, text_of(900))
            verified = [outwards for outwards, datagram in relay.passed if datagram[0] == VERIFICATION]
            assert verified == ([] if first == 5_000 else [False, True])
            wap.close()


BAD = {
    "loss": 0.05,
    "duplication": {"probability": 0.05, "delay": "10ms"},
    "reordering": {"probability": 0.05, "delay": "30ms"},
}
CLIENT = """
import json, sys, time
from airloom.wap import Client
said = json.loads(open(sys.argv[1]).readline())
sizes = []
with Client("gateway") as wap:
    for n in (100_000, 900, 5_000):
        body = wap.get(f"{said['origin']}/size/{n}", time_s=110).body
        sizes.append(len(body))
        assert body == bytes(ord("a") + n % 26 for n in range(n))
    for method, path in (("HEAD", "size/300"), ("POST", "form"), ("GET", "status/404"), ("DELETE", "deck")):
        body = (b"a=b", "text/plain") if method == "POST" else (None, None)
        sizes.append(wap.request(method, f"{said['origin']}/{path}", None, *body, 110).status)
    counters = wap.core.counters
# Kannel never asks for what was lost of a long body: each packet has to be acknowledged by itself.
with Client("gateway", group_packets=1) as wap:
    posted = wap.post(f"{said['origin']}/form", bytes(range(200)) * 100, "application/octet-stream", time_s=110)
print(json.dumps({"sizes": sizes, "posted": posted.text(), **counters}))
"""


@pytest.mark.emulate
def test_everything_arrives_through_a_wire_that_loses_repeats_and_reorders(tmp_path: Path) -> None:
    needs("bearerbox")
    said = tmp_path / "said"
    client = tmp_path / "client.py"
    client.write_text(CLIENT)
    with gateway_behind(tmp_path, "-m", "tests.wap.kannel", "gateway", tmp_path, seed=5, wire=BAD) as link:
        wait = f"until [ -s {said} ]; do sleep 0.1; done; exec {sys.executable} {client} {said}"
        done = link.run(["sh", "-c", wait], capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["sizes"] == [100_000, 900, 5_000, 200, 200, 404, 501]
    assert found["posted"] == f"20000 octets of application/octet-stream, sum {sum(range(200)) * 100}"
    assert found["malformed"] == 0
