"""Wireshark's own dissectors read what a simulated phone and its gateway say."""

from __future__ import annotations

import pytest

import airloom as al
from tests.wireshark import BROKEN, fields, frames


@pytest.mark.parametrize("mode", ["session", "connectionless"])
def test_wtp_wsp_and_wbxml_of_a_run_are_dissected_without_a_complaint(mode: str) -> None:
    # Requests of a datagram are padded: a gateway answers a stranger with no more than three times as much.
    sizes = {"session": [["/", "/5kB"], ["/40kB"]], "connectionless": [["/100"], ["/900"]]}
    padding = {"hosts.mobile.app.wap-browser.request_headers_size": "400B"} if mode == "connectionless" else {}
    app = {"hosts.mobile.app.wap-browser.mode": mode, "hosts.mobile.app.wap-browser.pages": sizes[mode]}
    run = al.load("wap-page", {**app, **padding}).run()
    assert run.summary["pages_failed"] == 0
    assert run.summary["objects"] == sum(map(len, sizes[mode]))

    assert frames(run.capture, BROKEN) == []
    if mode == "session":
        assert len(frames(run.capture, "wtp.pdu_type == 1 && wsp.pdu_type == 0x40")) >= 3
        # Groups: more than one packet of a Result, and acknowledgements that name a packet.
        assert len(frames(run.capture, "wtp.pdu_type == 6")) > 28
        assert frames(run.capture, "wtp.header.TIDNew == 1") == []
        assert len(frames(run.capture, "wsp.pdu_type == 1")) == 1
        assert any(
            "airloom" in name for (name,) in fields(run.capture, "wsp.header.user_agent", shown="wsp.pdu_type == 1")
        )
        # The deck that the gateway made.
        assert len(frames(run.capture, "wbxml")) == 1
    else:
        asked = [uri for (uri,) in fields(run.capture, "wsp.uri", shown="udp.dstport == 9200")]
        assert [line for line in asked if line] == asked
        assert {line.rpartition("/")[2] for line in asked} == {"100", "900"}
        assert frames(run.capture, "wtp") == []
