"""E-mail for phones: a letter goes out by a form through the gateway, and a new one is told of by a push."""

from __future__ import annotations

import http.client
import mailbox
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest
from aiosmtpd.controller import Controller

from airloom.wap import Client, parse_gateway
from airloom.wap.context import Context, Fetch
from airloom.wap.mail import Letter, Letters, MailServer, Noticer, Post
from airloom.wap.mail.decks import inbox, letter, write
from airloom.wap.pap import Answer, Initiator
from airloom.wap.receiver import Receiver
from airloom.wap.service import Indication, parse
from tests.wap.gateway import serving
from tests.wap.kannel import free_port

PHONE = "127.92.4.1"


class Taken(NamedTuple):
    """A letter that the mail server took."""

    sender: str
    to: list[str]
    octets: bytes


class Keeper:
    """A mail server's handler: keeps letters, but for those to nobody@."""

    def __init__(self) -> None:
        """With none."""
        self.taken: list[Taken] = []

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        """Takes a letter."""
        if "nobody@example.org" in envelope.rcpt_tos:
            return "550 there is nobody"
        self.taken.append(Taken(envelope.mail_from, envelope.rcpt_tos, envelope.content))
        return "250 taken"


@pytest.fixture
def smtp() -> Iterator[tuple[Keeper, int]]:
    keeper = Keeper()
    controller = Controller(keeper, hostname="127.0.0.1", port=free_port())
    controller.start()
    yield keeper, controller.port
    controller.stop()


def deliver(folder: Path, subject: str, text: str, sender: str = "Änne <a@example.org>") -> str:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = sender, "me@example.org", subject
    message["Date"] = "Fri, 01 Mar 2002 10:00:00 +0100"
    message.set_content(text)
    return mailbox.Maildir(folder).add(message)


def field(form: dict[str, str]) -> bytes:
    return urlencode(form).encode()


def test_mail_from_the_phone_and_to_it(smtp: tuple[Keeper, int], tmp_path: Path) -> None:
    keeper, port = smtp
    box = tmp_path / "mail"
    with serving("--allow-origin", "127.0.0.1", "--push", "127.0.0.1:0") as gateway, Receiver(PHONE) as receiver:
        command = [
            sys.executable,
            "-m",
            "airloom",
            "serve",
            "wap-mail",
            "--maildir",
            str(box),
            "--listen",
            "127.0.0.1:0",
        ]
        command += [
            "--smtp",
            f"127.0.0.1:{port}",
            "--from",
            "me@example.org",
            "--phone",
            PHONE,
            "--gateway",
            gateway.push,
        ]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as mail:
            try:
                assert mail.stdout
                found = re.fullmatch(r"listening on (\S+)/\n", mail.stdout.readline())
                assert found
                name = deliver(box, "Prices in $", "Hello,\nthis costs $(money).")
                push = receiver.next(60)
                assert push is not None
                notice = parse(push.text())
                assert isinstance(notice, Indication)
                assert (notice.href, notice.text) == (f"{found[1]}/letter/{name}", "Änne <a@example.org>: Prices in $")
                with Client(*parse_gateway(gateway.session)) as wap:
                    assert "Inbox (1 new of 1)" in wap.get(f"{found[1]}/").text()
                    shown = wap.get(notice.href)
                    assert shown.content_type == "application/vnd.wap.wmlc"
                    assert "this costs $$(money)." in shown.text()
                    assert "Inbox (0 new of 1)" in wap.get(f"{found[1]}/").text()
                    assert "$(subject)" in wap.get(f"{found[1]}/write").text()
                    form = {"to": "b@example.org", "subject": "Grüße", "text": "from\r\nthe phone"}
                    assert "Sent to b@example.org" in wap.post(f"{found[1]}/send", field(form)).text()
                    refused = wap.post(f"{found[1]}/send", field({**form, "to": "nobody@example.org"}))
                    assert "there is nobody" in refused.text()
            finally:
                mail.send_signal(signal.SIGTERM)
                assert mail.wait(60) == 0
    (sent,) = keeper.taken
    assert (sent.sender, sent.to) == ("me@example.org", ["b@example.org"])
    assert b"from\r\nthe phone" in sent.octets
    assert b"Subject: =?utf-8?" in sent.octets


def test_letters_that_cannot_be_sent(smtp: tuple[Keeper, int], tmp_path: Path) -> None:
    keeper, port = smtp
    with MailServer(Letters(tmp_path / "m"), Post("127.0.0.1", port, "me@example.org")) as server:
        for to, why in [
            ("", "nobody"),
            ("b@example.org\nBcc: c@example.org", "cannot be sent"),
            ("b", "nobody"),
            ("<@", "cannot be sent"),
            ("a@[", "cannot be sent"),
        ]:
            answer = server.posted("/send", field({"to": to, "subject": "s", "text": "t"}))
            assert (answer.status, why in answer.deck) == (200, True), answer.deck
        assert server.posted("/other", b"").status == 404
        assert server.get("/letter/none").status == 404
        assert server.get("/letter/../../etc/passwd").status == 404
        assert server.get(f"/inbox?from={'9' * 5_000}").status == 200
    assert keeper.taken == []
    with MailServer(Letters(tmp_path / "m"), Post("127.0.0.1", 9, "me@example.org")) as server:
        assert "did not take it" in server.posted("/send", field({"to": "b@example.org"})).deck


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("GET", {"Host": "127.0.0.1"}, 200),
        ("GET", {"Host": "localhost:80"}, 200),
        ("GET", {"Host": "mail.example"}, 200),
        # A name of somebody else's that leads here.
        ("GET", {"Host": "rebound.example"}, 403),
        # A form that a page of somebody else's sent by itself.
        ("POST", {"Origin": "http://evil.example"}, 403),
        ("POST", {"Origin": "null"}, 403),
        ("POST", {"Sec-Fetch-Site": "cross-site"}, 403),
        ("POST", {"Sec-Fetch-Site": "same-site"}, 403),
        ("POST", {}, 200),
    ],
)
def test_pages_of_others_neither_read_nor_send(
    method: str, headers: dict[str, str], status: int, smtp: tuple[Keeper, int], tmp_path: Path
) -> None:
    keeper, port = smtp
    post = Post("127.0.0.1", port, "me@example.org")
    with MailServer(Letters(tmp_path / "m"), post, names=["mail.example"]) as server:
        connection = http.client.HTTPConnection(*server.address, timeout=30)
        body = "to=you%40example.org&subject=s&text=t" if method == "POST" else None
        connection.request(method, "/send" if body else "/inbox", body, headers)
        assert connection.getresponse().status == status
        connection.close()
    assert len(keeper.taken) == (method == "POST" and status == 200)


def test_a_folder_becomes_a_maildir_and_a_file_does_not(tmp_path: Path) -> None:
    assert Letters(tmp_path).all() == []
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        Letters(tmp_path / "file")


@pytest.mark.parametrize(
    "head",
    [
        b"From: <@",
        b"From: a@[",
        b"Date: Fri, 01 Mar 99999999999999999999 10:00:00 +0100",
        b"From: a@[\xff",
        b"Content-Type: text/plain; charset*=x'y'z%",
        b"Content-Type: multipart/mixed; boundary",
        b"Content-Disposition: ;;;\nContent-Transfer-Encoding: base64",
    ],
)
def test_a_letter_that_cannot_be_read_hides_no_other(tmp_path: Path, head: bytes) -> None:
    letters = Letters(tmp_path / "m")
    mailbox.Maildir(tmp_path / "m").add(head + b"\nSubject: odd\n\nHello\n")
    deliver(tmp_path / "m", "even", "t")
    assert sorted(one.subject for one in letters.all()) == ["even", "odd"]
    assert len(letters.fresh()) == 2
    (odd,) = [one for one in letters.all() if one.subject == "odd"]
    name, _, value = head.decode("utf-8", "replace").partition(": ")
    assert {"From": odd.sender, "Date": odd.date}.get(name, value) == value
    assert "odd" in letter(odd, 0)
    letters.told(odd.name)
    assert [one.subject for one in letters.fresh()] == ["even"]


def test_a_letter_that_somebody_else_takes_away_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    letters = Letters(tmp_path / "m")
    name = deliver(tmp_path / "m", "s", "t")
    files = letters._files
    monkeypatch.setattr(letters, "_files", lambda: {**files(), "gone": tmp_path / "m" / "new" / "gone"})
    assert [one.name for one in letters.fresh()] == [name]
    letters.told("gone")
    assert letters.find("gone") is None


ODD = [
    b'Content-Type: multipart/mixed; boundary="\xff"\nSubject: odd\n\nHello\n',
    b"Subject: odd a\x0bb\r\n\r\nHello\r\n",
]


@pytest.mark.parametrize("odd", ODD)
def test_each_letter_is_told_of_once_and_stays_as_it_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, odd: bytes
) -> None:
    pushed: list[str] = []

    def push(client: str, content: str, content_type: str, *, method: str) -> Answer:
        pushed.append(content)
        return Answer("id", 1001, "accepted")

    letters = Letters(tmp_path / "m")
    (tmp_path / "m" / "new" / "1.odd").write_bytes(odd)
    (tmp_path / "m" / "new" / "2.even").write_bytes(b"Subject: even\n\nHello\n")
    initiator = Initiator("http://127.92.4.9:9/")
    monkeypatch.setattr(initiator, "push", push)
    with Noticer(letters, initiator, PHONE, "http://o/", every_s=3600) as noticer:
        noticer.look()
        noticer.look()
    assert ["odd" in pushed[0], "even" in pushed[1], len(pushed)] == [True, True, 2]
    found = letters.find("1.odd")
    assert found is not None
    assert not found.is_seen
    assert [one.is_seen for one in letters.all()] == [False, True]
    assert (tmp_path / "m" / "cur" / "1.odd:2,S").read_bytes() == odd
    assert {file.name for file in (tmp_path / "m" / "cur").iterdir()} == {"1.odd:2,S", "2.even:2,"}


def test_a_letter_that_cannot_be_moved_is_told_of_once(tmp_path: Path) -> None:
    letters = Letters(tmp_path / "m")
    name = deliver(tmp_path / "m", "s", "t")
    # Somebody else's folder is in its way.
    (tmp_path / "m" / "cur" / f"{name}:2," / "x").mkdir(parents=True)
    letters.told(name)
    assert (tmp_path / "m" / "new" / name).exists()
    assert not letters.fresh()


def test_a_noticer_goes_on_after_what_nobody_foresaw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    letters = Letters(tmp_path / "m")
    looked = threading.Semaphore(0)

    def broken() -> list[Letter]:
        looked.release()
        raise RuntimeError("odd")

    monkeypatch.setattr(letters, "fresh", broken)
    with Noticer(letters, Initiator("http://127.92.4.9:9/"), PHONE, "http://o/", every_s=0.01) as noticer:
        for _ in range(2):
            assert looked.acquire(timeout=60)
        assert noticer.failure == "RuntimeError: odd"


def test_long_lists_and_letters_are_cut() -> None:
    from airloom._core import wap_compile

    many = [Letter(f"{n:03}", "a@example.org", f"<{n}> & $x", "", "", n % 2 == 0) for n in range(20)]
    first, last = inbox(many, 0), inbox(many, 18)
    assert ("/inbox?from=9" in first, "older" in last) == (True, False)
    long = Letter("n", "a@example.org", "Re: x", "today", "0123456789\x00\x1b" * 200, False)
    for deck in (first, last, letter(long, 0), letter(long, 700), inbox([], 0)):
        assert len(wap_compile(deck.encode())[0]) < 1_400
    assert "from=700" in letter(long, 0)
    assert "Re: Re:" not in letter(long, 0)


def test_senders_and_subjects_of_any_length_fit_into_a_phone(tmp_path: Path) -> None:
    from airloom._core import wap_compile

    letters = Letters(tmp_path / "m")
    long = b"y" * 5_000
    for n, sender in enumerate([long + b" <a@example.org>"] * 8 + [long + b"@example.org"]):
        head = b"From: " + sender + b"\nSubject: " + long + b"\nDate: " + long
        (tmp_path / "m" / "new" / f"{n}.x").write_bytes(head + b"\n\nHello\n")
    found = letters.all()
    assert [one.sender for one in found] == ["", *["a@example.org"] * 8]
    for deck in (inbox(found, 0), letter(found[0], 0), letter(found[8], 0)):
        assert len(wap_compile(deck.encode())[0]) < 1_400


def test_an_answer_begins_with_nothing_of_the_one_before() -> None:
    from airloom._core import wap_compile, wap_decompile

    context = Context()
    shown = []
    context.open("http://m/write")
    for to, subject in [("a@example.org", "Re: costs $(much)"), ("b@example.org", "Re: <2> & $x"), ("", "")]:
        # As a phone has it: compiled by a gateway.
        deck = wap_decompile(wap_compile(write(to, subject).encode(), None, None)[0])
        assert context.fetched(deck) is None
        values = context.variables
        shown.append((values.get("to"), values.get("subject"), values.get("text", "")))
        context.enter(3, "Dear A")
        assert isinstance(context.reload(), Fetch)
        assert context.fetched(deck) is None
        assert context.variables["text"] == "Dear A"
        context.open("http://m/write") if not to else context._go("/write?to=x")
    assert shown == [("a@example.org", "Re: costs $(much)", ""), ("b@example.org", "Re: <2> & $x", ""), ("", "", "")]


def test_a_notice_is_said_again_until_a_gateway_takes_it(tmp_path: Path) -> None:
    letters = Letters(tmp_path / "m")
    deliver(tmp_path / "m", "s", "t")
    with Noticer(letters, Initiator("http://127.92.4.9:9/"), PHONE, "http://o/", every_s=3600) as noticer:
        noticer.look()
        assert noticer.failure is not None
        assert "no answer from http://127.92.4.9:9/" in noticer.failure
        assert (len(letters.fresh()), noticer.told) == (1, [])
        with serving("--push", "127.0.0.1:0") as gateway, Receiver(PHONE) as receiver:
            noticer._initiator = Initiator(gateway.push)
            noticer.look()
            assert receiver.next(60) is not None
        assert len(noticer.told) == 1
        assert not noticer.failure
        assert not letters.fresh()
        noticer.look()
        assert len(noticer.told) == 1


def test_a_letter_is_written_in_the_browser(smtp: tuple[Keeper, int], tmp_path: Path) -> None:
    keeper, port = smtp
    letters = Letters(tmp_path / "m")
    deliver(tmp_path / "m", "Lunch?", "At twelve.", "b@example.org")
    post = Post("127.0.0.1", port, "me@example.org")
    with serving("--allow-origin", "127.0.0.1") as gateway, MailServer(letters, post) as server:
        url = f"http://127.0.0.1:{server.address[1]}/"
        # The inbox, the letter, its answer: the text and "Send"; then the way back, the source, and the end.
        typed = "1\n1\n1\n3 Yes, at twelve\n4\n1\ns\nx\nq\n"
        command = [sys.executable, "-m", "airloom", "wap", "browse", url, "--gateway", gateway.session]
        done = subprocess.run(command, input=typed, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    for seen in ("== Mail", "* [1]Lunch?", "At twelve.", "To: [1]<b@example.org>", "Sent to b@example.org.", "<card"):
        assert seen in done.stdout, done.stdout
    (sent,) = keeper.taken
    assert sent.to == ["b@example.org"]
    assert b"Subject: Re: Lunch?" in sent.octets
    assert b"Yes, at twelve" in sent.octets
