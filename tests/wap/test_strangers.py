"""Strangers at the gateway's daemon: other hosts, and pages of other sites in a browser of this one."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator

import pytest

from airloom.wap import Client, parse_gateway
from tests.wap.attacks import Stranger, acknowledgement, get, invoke, nameless, nothing, reflected
from tests.wap.gateway import Gateway, Liar, serving, text_of

#: WSP's Abort of a user of WTP, and the reason DISCONNECT: there is no such session.
NO_SUCH_SESSION = b"\x21\xe1"

PUSH = b"""\
--end\r
Content-Type: application/xml\r
\r
<?xml version="1.0"?><pap><push-message push-id="p1"><address address-value="WAPPUSH=127.0.0.9/TYPE=IPv4@x"/>\
</push-message></pap>\r
--end\r
Content-Type: text/plain\r
\r
you won\r
--end--\r
"""


@pytest.fixture(scope="module")
def origin() -> Iterator[Liar]:
    with Liar() as liar:
        yield liar


@pytest.fixture(scope="module")
def gateway() -> Iterator[Gateway]:
    with serving("--allow-origin", "127.0.0.1", "--push", "127.0.0.1:0", "--name", "gw.example") as running:
        yield running


def test_nobody_elsewhere_takes_over_a_session(gateway: Gateway, origin: Liar) -> None:
    with Stranger("127.0.0.5", gateway.session) as victim, Stranger("127.0.0.66", gateway.session) as thief:
        session = victim.open_session()
        for tid, name in enumerate([session, session ^ 1, *range(1, 50)], 1):
            assert thief.resume(tid, name) == NO_SUCH_SESSION, name
        # It is the victim's as before.
        assert victim.ask(invoke(2, get(f"{origin.url}/size/5"))).endswith(b"abcde")
        victim.send(acknowledgement(2))
        # From another port of its own it goes on: a Reply with the status 200.
        with Stranger("127.0.0.5", gateway.session) as elsewhere:
            assert elsewhere.resume(3, session)[1:3] == b"\x04\x20"


def test_names_of_sessions_are_random_numbers_of_the_machine(gateway: Gateway) -> None:
    names = []
    for _ in range(20):
        with Stranger("127.0.0.5", gateway.session) as client:
            names.append(client.open_session())
    with serving() as another, Stranger("127.0.0.5", another.session) as client:
        assert client.open_session() not in names
    assert all(2**28 <= name < 2**32 for name in names)
    assert min(abs(one - other) for one in names for other in names if one is not other) > 10


def test_a_port_that_had_a_session_opens_another_one_once_it_is_verified(gateway: Gateway) -> None:
    names, port = set(), 0
    for _ in range(3):
        with Stranger("127.0.0.6", gateway.session, port) as client:
            names.add(client.open_session())
            port = client.getsockname()[1]
    assert len(names) == 3


@pytest.mark.parametrize("behind", [nothing, nameless])
def test_a_victim_that_says_nothing_is_sent_three_times_what_came_in_its_name(
    gateway: Gateway, origin: Liar, behind: Callable[[int], Iterator[bytes]]
) -> None:
    worth = reflected(gateway.session, "127.0.0.77", f"{origin.url}/size/300000", behind)
    assert 0 < worth.went <= 3 * worth.came
    # Who is there gets everything.
    with Client(*parse_gateway(gateway.session)) as wap:
        assert len(wap.get(f"{origin.url}/size/300000").body) == 300_000


def test_an_acknowledgement_that_names_no_packet_of_a_group_is_no_wrong_guess(gateway: Gateway, origin: Liar) -> None:
    # Kannel's client says so of a packet that came after others of its group. How long groups are is luck.
    for _ in range(20):
        with Stranger("127.0.0.78", gateway.session) as client:
            client.open_session()
            assert client.fetch(2, f"{origin.url}/size/900").endswith(text_of(900))


def said(where: str, method: str, headers: dict[str, str], body: bytes = b"") -> int:
    """The status of a request with exactly these headers."""
    place = where.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(place[0], timeout=30)
    connection.putrequest(method, f"/{place[2]}", skip_host=True, skip_accept_encoding=True)
    for name, value in ({"Host": place[0]} | headers).items():
        connection.putheader(name, value)
    if body:
        connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body)
    status = connection.getresponse().status
    connection.close()
    return status


#: What a browser says of a request that a page of another site makes, and of one by a name that was rebound to here.
OTHERS = [
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Host": "evil.example"},
    {"Host": "127.0.0.1.evil.example:80"},
]


@pytest.mark.parametrize("headers", OTHERS)
def test_pages_of_others_reach_neither_pushes_nor_numbers(gateway: Gateway, headers: dict[str, str]) -> None:
    related = {"Content-Type": 'multipart/related; boundary=end; type="application/xml"'}
    assert said(gateway.push, "POST", related | headers, PUSH) == 403
    assert said(gateway.metrics, "GET", headers) == 403


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("multipart/related", 202),
        ("Multipart/Related", 202),
        ("multipart/form-data", 400),
        ("multipart/mixed", 400),
        ("text/plain", 400),
        ("application/x-www-form-urlencoded", 400),
    ],
)
def test_pushes_are_of_related_parts_alone(gateway: Gateway, kind: str, status: int) -> None:
    assert said(gateway.push, "POST", {"Content-Type": f"{kind}; boundary=end"}, PUSH) == status


def test_programs_that_mean_this_host_are_answered(gateway: Gateway) -> None:
    for host in ("127.0.0.1", "localhost:9", "[::1]", "gw.example:9464"):
        assert said(gateway.metrics, "GET", {"Host": host}) == 200, host
    assert said(gateway.metrics, "GET", {"Sec-Fetch-Site": "none"}) == 200
