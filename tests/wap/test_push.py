"""Pushes: an initiator, the gateway's daemon, a phone that listens, and what independent programs make of it."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

import airloom as al
from airloom import interpreter
from airloom._core import WapListener
from airloom.wap import Client, Push, listen, parse_gateway
from airloom.wap.pap import ACCEPTED, Initiator, Method, PapError, Status, notification
from airloom.wap.receiver import MOST_OF_A_HOST, Receiver
from airloom.wap.service import INDICATION_TYPE, LOADING_TYPE, Indication, Loading, parse
from tests.cli.shell import airloom
from tests.conftest import needs, until
from tests.wap.gateway import Gateway, Liar, serving
from tests.wireshark import BROKEN, frames

#: Kannel's initiator, which no PATH has.
TEST_PPG = Path("/usr/lib/kannel/test/test_ppg")

MAIL = Indication("http://mail.example/1", "signal-high", "Grüße & more", "m1")


@pytest.fixture(scope="module")
def gateway() -> Iterator[Gateway]:
    with serving("--allow-origin", "127.0.0.1", "--push", "127.0.0.1:0") as running:
        yield running


@pytest.fixture
def initiator(gateway: Gateway) -> Initiator:
    return Initiator(gateway.push)


def delivered(initiator: Initiator, push_id: str) -> Status:
    until(lambda: initiator.status(push_id).state != "pending")
    return initiator.status(push_id)


def test_pushes_without_a_session_arrive_and_are_read(initiator: Initiator) -> None:
    phone = "127.92.3.1"
    listener = WapListener(phone, 2948)
    services: list[tuple[str, Indication | Loading]] = [
        (INDICATION_TYPE, MAIL),
        (LOADING_TYPE, Loading("http://o/x", "execute-high")),
    ]
    for kind, said in services:
        answer = initiator.push(phone, said.document(), kind, headers=[("X-Wap-Application-Id", "wml.ua")])
        assert answer.code == ACCEPTED
        push = next(listen(listener, time_s=30))
        assert parse(push.text()) == said
        assert ("X-Wap-Application-Id", "wml.ua") in push.headers
        assert initiator.status(answer.push_id)[1:3] == ("delivered", 1000)
    text = "any text"
    initiator.push(phone, text, "text/plain")
    assert next(listen(listener, time_s=30)).text() == text


def test_a_push_to_be_confirmed_makes_the_phone_open_a_session(gateway: Gateway, initiator: Initiator) -> None:
    phone = "127.92.3.2"
    sessions = gateway.number("sessions_total")
    with Receiver(phone, linger_s=5) as receiver:
        names = [initiator.push(phone, MAIL.document(), INDICATION_TYPE, method="confirmed").push_id for _ in range(3)]
        heard = [receiver.next(60) for _ in names]
        assert [push and parse(push.text()) for push in heard] == [MAIL] * 3
        assert {delivered(initiator, name)[1:3] for name in names} == {("delivered", 1000)}
        # The session is there: what need not be confirmed comes in it, too.
        initiator.push(phone, "more", "text/plain")
        push = receiver.next(60)
        assert isinstance(push, Push)
        assert (push.text(), list(receiver.complaints)) == ("more", [])
    assert gateway.number("sessions_total") == sessions + 1


def test_a_phone_opens_no_session_with_somebody_else(initiator: Initiator) -> None:
    phone = "127.92.3.3"
    with Receiver(phone) as receiver, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        # An empty list of applications, and 127.92.3.9:9201.
        stranger.sendto(bytes.fromhex("01 06 01 b4 00 00 07 44 23f1 7f5c0309"), (phone, 2948))
        initiator.push(phone, "x", "text/plain")
        assert receiver.next(60) is not None
        assert len(receiver.complaints) == 1
        assert "127.92.3.9, which is somebody else" in receiver.complaints[0]


def test_invitations_to_many_sessions_make_few_threads(initiator: Initiator) -> None:
    phone, stranger = "127.92.3.4", "127.92.3.9"
    with Receiver(phone, time_s=5) as receiver, ExitStack() as stack:
        # The stranger's own ports, where nobody answers.
        silent = [stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(100)]
        for each in silent:
            each.bind((stranger, 0))
        before = threading.active_count()
        for number in range(2_500):
            port = silent[number % 100].getsockname()[1]
            invitation = bytes.fromhex("01 06 01 b4 00 00 07 44") + port.to_bytes(2) + socket.inet_aton(stranger)
            silent[0].sendto(invitation, (phone, 2948))
            if number % 100 == 0:
                time.sleep(0.01)
        assert threading.active_count() - before <= MOST_OF_A_HOST
        # Whoever means well is heard all the same.
        initiator.push(phone, MAIL.document(), INDICATION_TYPE)
        heard = receiver.next(60)
        assert heard is not None
        assert parse(heard.text()) == MAIL
        assert any("asks for one session too many: 4 with 127.92.3.9" in said for said in receiver.complaints)
        assert len(receiver.complaints) <= 100
        assert threading.active_count() - before <= MOST_OF_A_HOST


def test_what_a_peer_wrote_does_not_reach_the_terminal_as_it_is(initiator: Initiator) -> None:
    phone = "127.92.3.5"
    listening = interpreter.airloom("wap", "push-listen", "--listen", phone, "--count", "1")
    with subprocess.Popen(listening, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        assert program.stdout
        assert program.stderr
        program.stderr.readline()
        initiator.push(phone, "\x1b]0;owned\x07\x9b31m\u202eevil", "text/plain; charset=utf-8")
        out = program.stdout.read()
    assert not any(c in out for c in "\x1b\x07\x9b\u202e")
    assert "owned" in out


def test_pushes_are_taken_back_and_expire(initiator: Initiator) -> None:
    phone = "127.92.3.4"
    now = datetime.now(UTC)
    waiting = initiator.push(phone, "x", "text/plain", after=now + timedelta(hours=1)).push_id
    assert initiator.status(waiting).state == "pending"
    assert initiator.cancel(waiting).is_taken
    assert initiator.status(waiting).state == "cancelled"
    assert initiator.cancel(waiting).code == 2008
    assert initiator.cancel("nobody's").code == 2004
    assert initiator.status("nobody's").state == "unknown"
    assert initiator.push(phone, "x", "text/plain", before=now - timedelta(hours=1)).code == 2001
    assert initiator.push(phone, "x", "text/plain", push_id=waiting).code == 2007
    in_a_moment = datetime.now(UTC) + timedelta(seconds=4)
    soon = initiator.push(phone, "x", "text/plain", method="confirmed", before=in_a_moment).push_id
    assert delivered(initiator, soon).state == "expired"


def test_what_cannot_be_pushed_has_its_code(gateway: Gateway, initiator: Initiator) -> None:
    assert initiator.push("127.92.3.4", "<si>", INDICATION_TYPE).code == 3006
    assert initiator.push("127.92.3.4", bytes(3_000), "application/octet-stream").code == 3007
    with pytest.raises(ValueError, match="one line"):
        initiator.push("127.92.3.4", "x", "text/plain", headers=[("A", "b\r\nc")])
    with pytest.raises(ValueError, match="IPv4"):
        initiator.push("phone", "x", "text/plain")
    with pytest.raises(PapError, match="413"):
        initiator.push("127.92.3.4", bytes(500_000), "application/octet-stream")
    with pytest.raises(PapError, match="405"):
        Initiator(gateway.push, time_s=30)._ask(None, "text/plain")  # type: ignore[arg-type]
    with pytest.raises(PapError, match="2000"):
        initiator._ask(b"<pap><push-message/></pap>", "application/xml")
    with pytest.raises(PapError, match=r"no answer from .*: Connection refused"):
        Initiator("http://127.92.3.9:9/").status("x")


@pytest.mark.parametrize(("path", "what"), [("no-http", "no HTTP"), ("page", "no PAP"), ("endless", "no PAP")])
def test_whoever_does_not_speak_pap_is_named(path: str, what: str) -> None:
    with Liar() as liar, pytest.raises(PapError, match=f"what {liar.url}/{path} answered is {what}"):
        Initiator(f"{liar.url}/{path}").status("x")


class Told(BaseHTTPRequestHandler):
    """Somebody who wants to know what became of a push."""

    heard: list[Status]

    def do_POST(self) -> None:
        """Takes a notification."""
        self.heard.append(notification(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(202)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def test_initiators_are_told_of_the_end(initiator: Initiator) -> None:
    heard: list[Status] = []
    server = HTTPServer(("127.0.0.1", 0), type("Handler", (Told,), {"heard": heard}))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        address = f"http://127.0.0.1:{server.server_port}/told"
        sent = initiator.push("127.92.3.5", "x", "text/plain", notify=address)
        until(lambda: heard)
        assert heard[0][:3] == (sent.push_id, "delivered", 1000)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_the_command_line(gateway: Gateway, initiator: Initiator) -> None:
    phone = "127.92.3.6"
    listening = [sys.executable, "-m", "airloom", "wap", "push-listen", "--listen", phone, "--count", "2", "--json"]
    with subprocess.Popen(listening, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        assert program.stdout
        assert program.stderr
        assert "listening on" in program.stderr.readline()
        to = ("--gateway", gateway.push)
        first = airloom("wap", "push", phone, "--si", "New mail", "--href", "http://o/1", *to, "--id", "cli-1")
        assert (first.code, first.out) == (0, "cli-1: 1001 accepted for processing\n")
        confirmed = ("--method", "confirmed", "--json")
        second = airloom("wap", "push", phone, "--sl", "--href", "http://o/2", *to, *confirmed)
        name = json.loads(second.out)["push_id"]
        heard = {line["kind"]: line for line in map(json.loads, program.stdout.read().splitlines())}
        assert (heard["indication"]["text"], heard["loading"]["href"]) == ("New mail", "http://o/2")
    until(lambda: "pending" not in airloom("wap", "push-status", name, *to).out)
    assert airloom("wap", "push-status", name, *to).out == f"{name}: delivered, 1000 the client has confirmed it\n"
    assert airloom("wap", "push-cancel", name, *to).code == 1
    assert airloom("wap", "push-status", "none", *to).code == 1
    for wrong in [(), ("--sl",), ("--si", "a", "--sl"), ("--file", "/none"), ("--si", "x", "-H", "y")]:
        done = airloom("wap", "push", phone, *to, *wrong)
        assert (done.code, done.err.count("\n")) == (2, 1), done.err
    assert airloom("wap", "push", "phone", "--si", "x", *to).code == 2
    assert airloom("wap", "push", phone, "--si", "x", "--gateway", "http://127.92.3.9:9/").code == 4


def test_listening_ends_by_ctrl_c(initiator: Initiator) -> None:
    phone = "127.92.3.10"
    listening = [sys.executable, "-m", "airloom", "wap", "push-listen", "--listen", phone]
    with subprocess.Popen(listening, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        assert program.stdout
        assert program.stderr
        program.stderr.readline()
        initiator.push(phone, "news", "text/plain")
        heard = program.stdout.readline()
        program.send_signal(signal.SIGINT)
        said = program.communicate(timeout=60)
    assert heard.endswith("news\n")
    assert (said, program.returncode) == (("", ""), 0)


def test_kannels_initiator_pushes_through_our_gateway(gateway: Gateway, tmp_path: Path) -> None:
    needs(str(TEST_PPG))
    phone = "127.92.3.7"
    listener = WapListener(phone, 2948)
    control = tmp_path / "control.xml"
    given = TEST_PPG.with_name("iptestppg.txt").read_text()
    control.write_text(given.replace("213.243.140.102", phone))
    for kind in ("si", "sl"):
        control.write_text(control.read_text().replace("9fjeo39jf084", f"{kind}-9fjeo39jf084"))
        content = TEST_PPG.with_name(f"{kind}.txt")
        command: list[str | Path] = [TEST_PPG, "-c", kind, "-q", gateway.push, content, control]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        push = next(listen(listener, time_s=30), None)
        assert push is not None, done.stderr
        assert push.content_type == f"application/vnd.wap.{kind}c"
        assert type(parse(push.text())) is {"si": Indication, "sl": Loading}[kind]


def test_a_session_and_its_pushes(gateway: Gateway, initiator: Initiator) -> None:
    phone = "127.92.3.8"
    with Client(*parse_gateway(gateway.session), local=phone) as wap:
        methods: tuple[Method, ...] = ("unconfirmed", "confirmed", "preferconfirmed")
        for method in methods:
            name = initiator.push(phone, MAIL.document(), INDICATION_TYPE, method=method).push_id
            push = wap.push(30)
            assert push is not None
            assert parse(push.text()) == MAIL
            assert delivered(initiator, name).state == "delivered"


def test_a_scenario_of_pushes_is_read_by_an_independent_dissector() -> None:
    run = al.load("wap-push").run()
    expected = {
        "initiator.delivered": 3,
        "initiator.failed": 0,
        "initiator.refused": 0,
        "gateway.session_initiations": 1,
        "gateway.pushes_confirmed": 3,
        "mobile.pushes": 3,
        "mobile.sessions": 2,
    }
    assert {name: run.summary[name] for name in expected} == expected

    assert frames(run.capture, BROKEN) == []
    assert len(frames(run.capture, "udp.dstport == 2948")) == 1
    # Confirmed pushes in the session, and the notice in each.
    assert len(frames(run.capture, "wsp.pdu_type == 0x07 && wbxml")) == 3
    assert len(frames(run.capture, 'http.request.method == "POST"')) >= 6
