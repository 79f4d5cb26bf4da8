"""`airloom serve wap-gateway`: phones of our own and of others, origins that lie, strangers that send anything."""

from __future__ import annotations

import random
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from airloom.wap import Client, parse_gateway
from tests.cli.shell import airloom
from tests.conftest import needs
from tests.wap.gateway import Gateway, Liar, serving, text_of

#: Kannel's client, which no PATH has.
FAKEWAP = Path("/usr/lib/kannel/test/fakewap")

#: A label that no name can have: no resolver need be asked.
NO_NAME = "x" * 64


@pytest.fixture(scope="module")
def origin() -> Iterator[Liar]:
    with Liar() as liar:
        yield liar


@pytest.fixture(scope="module")
def gateway() -> Iterator[Gateway]:
    limits = ["max_body=300kB", "origin_timeout=5s", "max_redirects=3"]
    settings = [word for limit in limits for word in ("--set", limit)]
    with serving("--allow-origin", "127.0.0.1", *settings) as running:
        yield running


def client(gateway: Gateway, *, connectionless: bool = False) -> Client:
    host, port = parse_gateway(gateway.connectionless if connectionless else gateway.session)
    return Client(host, port, connectionless=connectionless)


def test_pages_become_decks_and_other_things_pass(gateway: Gateway, origin: Liar) -> None:
    with client(gateway) as wap:
        page = wap.get(f"{origin.url}/page")
        assert (page.status, page.content_type) == (200, "application/vnd.wap.wmlc")
        assert "Head" in page.text()
        assert f'href="{origin.url}/x"' in page.text() or 'href="/x"' in page.text()
        assert wap.get(f"{origin.url}/size/100000").body == text_of(100_000)
        assert wap.get(f"{origin.url}/none").status == 404
    with client(gateway, connectionless=True) as wap:
        assert wap.get(f"{origin.url}/size/50").body == text_of(50)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("short", 502),
        ("endless", 502),
        ("bomb", 502),
        ("broken-gzip", 502),
        ("no-http", 502),
        ("silent", 504),
        ("away", 403),
    ],
)
def test_an_origin_that_lies_gives_the_client_a_status(gateway: Gateway, origin: Liar, path: str, status: int) -> None:
    with client(gateway) as wap:
        assert wap.get(f"{origin.url}/{path}").status == status
        assert wap.get(f"{origin.url}/size/5").body == b"abcde", "the gateway goes on"


def test_redirections_end_and_text_that_is_no_deck_is_passed_on(gateway: Gateway, origin: Liar) -> None:
    with client(gateway) as wap:
        before = origin.asked.count("/loop")
        assert wap.get(f"{origin.url}/loop").status == 302
        assert origin.asked.count("/loop") - before == 4
        odd = wap.get(f"{origin.url}/no-wml")
        assert (odd.status, odd.body) == (200, b"<wml><card><p>never closed")


def test_addresses_of_the_inside_are_refused_unless_allowed(origin: Liar) -> None:
    port = origin.url.rpartition(":")[2]
    with serving() as closed, client(closed) as wap:
        asked = len(origin.asked)
        for host in (
            "127.0.0.1",
            "localhost",
            "2130706433",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "169.254.169.254",
            "10.0.0.1",
        ):
            assert wap.get(f"http://{host}:{port}/size/5").status == 403, host
        assert len(origin.asked) == asked


def test_an_origin_that_is_not_there_is_a_bad_gateway(gateway: Gateway) -> None:
    with client(gateway) as wap:
        assert wap.get("http://127.0.0.1:1/").status == 502
        assert wap.get(f"http://{NO_NAME}.invalid/").status == 502
        assert wap.get("ftp://127.0.0.1/").status == 400


def test_nothing_that_strangers_send_takes_it_down(gateway: Gateway, origin: Liar) -> None:
    chance = random.Random(7)
    targets = [parse_gateway(where) for where in (gateway.session, gateway.connectionless)]
    sent = received = 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.bind(("127.0.0.1", 0))
        stranger.setblocking(False)
        for number in range(4_000):
            datagram = chance.randbytes(chance.choice([0, 1, 3, 4, 5, 20, 200, 1_400]))
            if number % 2:
                # What looks like an Invoke of a session gets further in.
                datagram = (
                    bytes([0x0A, chance.randrange(128), chance.randrange(256), 0x12, chance.choice([1, 9, 0x40, 0x60])])
                    + datagram
                )
            stranger.sendto(datagram, targets[chance.random() < 0.3])
            sent += len(datagram)
        end = time.monotonic() + 1
        while time.monotonic() < end:
            try:
                received += len(stranger.recv(65_535))
            except BlockingIOError:
                time.sleep(0.01)
    # Less than it sent: most of it means nothing, and what does is not answered with more than three times its size.
    assert received <= 3 * sent
    with client(gateway) as wap:
        assert wap.get(f"{origin.url}/size/5").body == b"abcde"
    assert gateway.process.poll() is None
    assert gateway.number("held_octets") == 0


def fakewap_command(gateway: Gateway, *words: str | Path) -> list[str]:
    """Kannel's client; it waits for ever for some lost answers, hence the time limit."""
    if not FAKEWAP.exists():
        needs("fakewap")
    host, port = parse_gateway(gateway.session)
    command = ["timeout", "120", FAKEWAP, "-g", host, "-p", port, "-F", "-i", 0, "-D", 1, *words]
    return [str(word) for word in command]


def fakewap(gateway: Gateway, *words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(fakewap_command(gateway, *words), capture_output=True, text=True, check=False)


@pytest.mark.parametrize("loss", [0, 5])
def test_kannels_clients_get_what_they_ask_for(gateway: Gateway, origin: Liar, loss: int) -> None:
    # Four processes, not `-c 4`: its threads count transactions in one variable without a lock, and a thread that is
    # held up sets it back, so that another one asks with a TID it has used before. That is no new request.
    with ExitStack() as stack:
        if loss:
            # This client answers no question whether it is there, and does not ask for packets of several that it lost.
            words = ("--allow-origin", "127.0.0.1", "--set", "amplification=0")
            gateway = stack.enter_context(serving(*words))
        before = gateway.number('replies_total{status="2xx"}')
        asks = ["-m", "5", "-c", "1", *(["-l", str(loss)] if loss else []), f"{origin.url}/size/900"]
        command = fakewap_command(gateway, *asks)
        clients = [
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for _ in range(4)
        ]
        for process in clients:
            said, _ = process.communicate()
            assert process.returncode == 0, said
        assert gateway.number('replies_total{status="2xx"}') - before == 20


def test_kannels_client_reassembles_a_large_reply(gateway: Gateway, origin: Liar, tmp_path: Path) -> None:
    saved = tmp_path / "body"
    done = fakewap(gateway, "-m", "1", "-c", "1", "-w", saved, f"{origin.url}/size/100000")
    assert done.returncode == 0, done.stdout + done.stderr
    assert saved.read_bytes() == text_of(100_000)


def test_kannels_client_posts(gateway: Gateway, origin: Liar, tmp_path: Path) -> None:
    # One packet: behind a body of several groups this client looks for the reply without taking what it looks at. The
    # acknowledgement of the last group, which stands before the reply, is looked at and answered for ever. (Kannel's
    # gateway does not acknowledge that group. WTP asks for it.)
    body = tmp_path / "body"
    body.write_bytes(text_of(900))
    done = fakewap(gateway, "-m", "1", "-c", "1", "-P", body, "-C", "text", f"{origin.url}/sum")
    assert done.returncode == 0, done.stdout + done.stderr
    assert origin.posted[-1] == text_of(900)


def test_it_ends_by_a_signal_and_lets_requests_end(origin: Liar) -> None:
    with serving("--allow-origin", "127.0.0.1", "--set", "origin_timeout=1s", "--grace", "30") as running:
        with client(running) as wap:
            assert wap.get(f"{origin.url}/size/5").status == 200
        running.process.send_signal(signal.SIGTERM)
        assert running.process.wait(60) == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--listen", "nowhere"], "--listen nowhere: expected ADDRESS:PORT"),
        (["--listen", "127.0.0.1:0", "--set", "idle=0s"], "--set idle=0s: must be longer than nothing"),
        (["--listen", "127.0.0.1:0", "--set", "idel=1s"], "idel"),
        (["--listen", "127.0.0.1:0", "--allow-origin", "http://x"], "no host name, address or network"),
        (["--listen", "127.0.0.1:0", "--set", "idle"], "expected KEY=VALUE"),
    ],
)
def test_what_cannot_be_used_is_one_line(words: list[str], said: str) -> None:
    done = airloom("serve", "wap-gateway", *words)
    assert (done.code, done.out) == (2, "")
    (line,) = done.err.splitlines()
    assert said in line


def test_a_port_that_somebody_has_is_said(gateway: Gateway) -> None:
    done = airloom("serve", "wap-gateway", "--listen", gateway.session)
    assert (done.code, done.out) == (4, "")
    assert f"cannot listen on {gateway.session}" in done.err
