"""`airloom validate http-shapes`: messages that two parsers may understand differently."""

from __future__ import annotations

import json
import re
import socket
import threading
from contextlib import suppress

import pytest

from airloom.validate.http_shapes import Found, chosen, judge_all, proxies
from airloom.validate.http_shapes.strict import Ambiguous, Incomplete, requests, responses
from tests.cli.shell import airloom
from tests.conftest import needs
from tests.proxies.running import Server, connect


def faults(found: list[Found], name: str) -> dict[str, str]:
    return {one.name: one.seen[name].fault for one in found if one.seen[name].fault}


def test_our_proxy_is_safe_with_all_of_them() -> None:
    with proxies.ours() as port:
        found = judge_all(chosen(), {"airloom": port})
        # An end that is held up looks as if it had said nothing more; what is a fault is one each time.
        suspects = [shape for shape in chosen() if shape[1].name in faults(found, "airloom")]
        again = [[faults(judge_all([one], {"airloom": port}), "airloom") for _ in range(2)] for one in suspects]
    assert len(found) >= 70
    assert [twice for twice in again if all(twice)] == []
    # Not because it refuses everything.
    fine = {one.name for one in found if one.seen["airloom"].heard == "200"}
    assert {"body of a GET", "empty lines first", "more than the length says"} <= fine


def test_squid_is_judged_beside_it() -> None:
    needs("squid")
    done = airloom("validate", "http-shapes", "--only", "204*", "--json")
    assert done.code == 0, done
    (shape,) = json.loads(done.out)["shapes"]
    assert shape["seen"]["airloom"] == {"heard": "204", "passed": "whole", "fault": ""}
    assert shape["seen"]["squid"]["heard"].startswith("204")
    done = airloom("validate", "http-shapes", "--only", "nothing like this")
    assert done.code == 2
    assert "no shape is called" in done.err


def test_a_proxy_that_passes_everything_on_is_not_safe() -> None:
    def pass_on(client: socket.socket) -> None:
        first = client.recv(65_536)
        port = re.search(rb"127\.0\.0\.1:(\d+)", first)
        assert port
        with connect(("127.0.0.1", int(port[1]))) as origin:
            origin.sendall(first)
            threading.Thread(target=relay, args=(client, origin), daemon=True).start()
            relay(origin, client)

    with Server(pass_on) as naive:
        shapes = [shape for shape in chosen() if "kB" not in shape[1].name]
        found = faults(judge_all(shapes, {"naive": naive.port}), "naive")
    assert "transfer coding" in found["length and chunked"]
    assert "length" in found["two lengths"]
    assert "reaches it as one for other" in found["another host than the target"]
    assert found["204 with a body"] == "2 answers to one request"
    assert len(found) > 40


def relay(source: socket.socket, to: socket.socket) -> None:
    with suppress(OSError):
        while octets := source.recv(65_536):
            to.sendall(octets)


@pytest.mark.parametrize(
    "octets",
    [
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET / HTTP/1.1\nHost: a\n\r\n\r\n",
        b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX : y\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n z\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;x\r\na\r\n0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n",
    ],
)
def test_the_parser_sees_what_is_ambiguous(octets: bytes) -> None:
    with pytest.raises(Ambiguous) as caught:
        list(requests(octets))
    assert not isinstance(caught.value, Incomplete)


def test_the_parser_reads_what_is_clear() -> None:
    post = b"POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    get = b"GET http://a/b HTTP/1.1\r\nHost: a\r\n\r\n"
    first, second = requests(post + get)
    assert (first.what, first.body, second.target, second.host) == ("POST", b"hello", "http://a/b", "a")
    for end in range(1, len(post)):
        with pytest.raises(Incomplete):
            list(requests(post[:end]))
    answers = list(responses(b"HTTP/1.1 103 Hints\r\n\r\nHTTP/1.1 304 No\r\n\r\nHTTP/1.1 200 OK\r\n\r\nto the end"))
    assert [(a.what, a.body, a.to_the_end) for a in answers] == [("304", b"", False), ("200", b"to the end", True)]
