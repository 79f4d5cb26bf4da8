"""What needs no gateway."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from airloom.wap import Reply, parse_gateway
from airloom.wap.service import Indication, Loading, parse
from tests.cli.shell import airloom
from tests.conftest import until
from tests.wap.gateway import Liar, serving


@pytest.mark.parametrize(
    ("text", "connectionless", "where"),
    [
        ("gw", False, ("gw", 9201)),
        ("gw", True, ("gw", 9200)),
        ("gw:80", True, ("gw", 80)),
        ("::1", False, ("::1", 9201)),
        ("[::1]:99", False, ("::1", 99)),
        ("[::1]", True, ("::1", 9200)),
    ],
)
def test_gateways(text: str, connectionless: bool, where: tuple[str, int]) -> None:
    assert parse_gateway(text, connectionless) == where


@pytest.mark.parametrize("text", ["", ":80", "gw:x", "gw:0", "gw:70000", "gw:-1"])
def test_what_is_no_gateway(text: str) -> None:
    with pytest.raises(ValueError, match="HOST"):
        parse_gateway(text)


def test_replies_are_text_in_their_character_set() -> None:
    assert Reply(200, "text/plain; charset=iso-8859-1", [], b"\xfc").text() == "ü"
    with pytest.raises(ValueError, match="character set"):
        Reply(200, 'text/plain; charset="none"', [], b"x").text()
    with pytest.raises(ValueError, match="utf-8"):
        Reply(200, "text/plain", [], b"\xff").text()


def test_services_are_read() -> None:
    si = '<si><indication href="http://o/" action="signal-high">New <!-- x --> mail</indication></si>'
    assert parse(si) == Indication("http://o/", "signal-high", "New mail")
    assert str(parse('<sl href="http://o/"/>')) == "service loading (execute-low): <http://o/>"
    assert parse('<sl href="/" action="cache"/>') == Loading("/", "cache")
    assert parse("<wml/>") is None
    assert parse("no document") is None


def test_failures_are_one_line_and_have_their_codes() -> None:
    def said(code: int, *words: str) -> str:
        done = airloom("wap", *words)
        assert (done.code, done.out, done.err.count("\n")) == (code, "", 1), done.err
        return done.err

    closed = "127.92.2.1:9"
    assert "there is no gateway at 127.92.2.1:9" in said(4, "get", "http://o/", "--gateway", closed)
    assert "not NAME: VALUE" in said(2, "get", "http://o/", "--gateway", closed, "--header", "x")
    assert "is not the name of a header" in said(2, "get", "http://o/", "--gateway", closed, "--header", "a b: c")
    assert "HOST" in said(2, "get", "http://o/", "--gateway", ":1")
    assert "is not an address" in said(2, "get", "", "--gateway", closed)
    assert "is not there" in said(2, "post", "http://o/", "--data", "@/no/file", "--gateway", closed)
    assert "has no address" in said(2, "get", "http://o/", "--gateway", "no.such.host.invalid")
    assert "Is a directory" in said(2, "compile", "/")
    assert "is not http://HOST:PORT/" in said(2, "push", "127.0.0.1", "--gateway", "gw", "--si", "x")
    push = ("push", "127.0.0.1", "--gateway", f"http://{closed}/")
    assert "valid: signal-none, signal-low" in said(2, *push, "--si", "x", "--action", "cache")
    assert f"no answer from http://{closed}/: Connection refused" in said(4, *push, "--si", "x")
    assert "cannot listen on 192.0.2.1:2948" in said(4, "push-listen", "--listen", "192.0.2.1")
    assert "there is no gateway" in said(4, "browse", "http://o/", "--gateway", closed)
    assert airloom("wap", "push-listen", "--listen", "127.92.2.2", "--time", "0", "--count", "1").code == 1


def test_a_document_may_come_through_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    threading.Thread(target=pipe.write_text, args=["<wml/>"], daemon=True).start()
    done = airloom("wap", "compile", pipe, "-o", tmp_path / "out")
    assert done.code == 0, done.err
    assert (tmp_path / "out").read_bytes() == bytes([1, 4, 106, 0, 0x3F])


def test_ctrl_c_stops_a_request_and_the_browser_asks_on() -> None:
    with serving("--allow-origin", "127.0.0.1") as gateway, Liar() as origin:
        command = [sys.executable, "-m", "airloom", "wap", "browse", f"{origin.url}/page", "--gateway", gateway.session]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as program:
            assert program.stdin
            program.stdin.write(f"g {origin.url}/silent\n")
            program.stdin.flush()
            until(lambda: "/silent" in origin.asked)
            program.send_signal(signal.SIGINT)
            # Longer than the program takes to raise a signal again that got lost.
            time.sleep(0.6)
            out, err = program.communicate("v\nq\n", timeout=60)
    assert f"! {origin.url}/silent: stopped" in out
    assert "  no variables" in out
    assert (err, program.returncode) == ("", 0)
