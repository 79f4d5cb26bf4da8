"""Wireshark's own dissectors read what a simulated phone and its gateway say."""

from __future__ import annotations

import subprocess

import pytest

import airloom as al
from tests.conftest import needs


@pytest.mark.parametrize("mode", ["session", "connectionless"])
def test_wtp_wsp_and_wbxml_of_a_run_are_dissected_without_a_complaint(mode: str) -> None:
    tshark = needs("tshark")
    # Requests of a datagram are padded: a gateway answers a stranger with no more than three times as much.
    sizes = {"session": [["/", "/5kB"], ["/40kB"]], "connectionless": [["/100"], ["/900"]]}
    padding = {"hosts.mobile.app.wap-browser.request_headers_size": "400B"} if mode == "connectionless" else {}
    app = {"hosts.mobile.app.wap-browser.mode": mode, "hosts.mobile.app.wap-browser.pages": sizes[mode]}
    run = al.load("wap-page", {**app, **padding}).run()
    assert run.summary["pages_failed"] == 0
    assert run.summary["objects"] == sum(map(len, sizes[mode]))

    def frames(display_filter: str, *fields: str) -> list[str]:
        named = [word for field in fields for word in ("-e", field)]
        command = [tshark, "-r", str(run.capture), "-Y", display_filter, *(["-T", "fields", *named] if named else [])]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
        return done.stdout.splitlines()

    assert frames("_ws.malformed || _ws.expert.severity == error") == []
    if mode == "session":
        assert len(frames("wtp.pdu_type == 1 && wsp.pdu_type == 0x40")) >= 3
        # Groups: more than one packet of a Result, and acknowledgements that name a packet.
        assert len(frames("wtp.pdu_type == 6")) > 28
        assert frames("wtp.header.TIDNew == 1") == []
        assert len(frames("wsp.pdu_type == 1")) == 1
        assert any("airloom" in line for line in frames("wsp.pdu_type == 1", "wsp.header.user_agent"))
        # The deck that the gateway made.
        assert len(frames("wbxml")) == 1
    else:
        asked = frames("udp.dstport == 9200", "wsp.uri")
        assert [line for line in asked if line] == asked
        assert {line.rpartition("/")[2] for line in asked} == {"100", "900"}
        assert frames("wtp") == []
