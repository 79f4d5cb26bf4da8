"""Kannel's client against our gateway through a wire that repeats and reorders, in a laboratory."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import needs
from tests.wap.gateway import text_of
from tests.wap.test_gateway import FAKEWAP
from tests.wap.wire import gateway_behind

# This client takes a second copy of an answer for the next one, and never repeats a request: answers come once here,
# it is sent as much as it takes, and what is lost is what it throws away itself (-l). Where the machine stood still
# for longer than the gateway waits for an acknowledgement (3 s) one comes twice all the same, and pages are missing:
# then it asks for all of them again.
DISORDER = {
    "duplication": {"probability": {"uplink": 0.05, "downlink": 0}, "delay": "10ms"},
    "reordering": {"probability": 0.05, "delay": "30ms"},
}

GATEWAY = """
import subprocess, sys
from tests.wap.gateway import Liar
liar = Liar()
command = [sys.executable, "-m", "airloom", "serve", "wap-gateway", "--listen", "0.0.0.0:9201", "--no-log"]
command += ["--allow-origin", "127.0.0.1", "--set", "amplification=0"]
with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as gateway:
    gateway.stdout.readline()
    print(liar.url, flush=True)
    gateway.wait()
"""


@pytest.mark.emulate
def test_kannels_client_gets_through_a_wire_that_repeats_and_reorders(tmp_path: Path) -> None:
    needs(str(FAKEWAP))
    said, saved = tmp_path / "said", tmp_path / "saved"
    script = tmp_path / "gateway.py"
    script.write_text(GATEWAY)
    fakewap = f"timeout 120 {FAKEWAP} -g $(getent ahostsv4 gateway | head -1 | cut -d' ' -f1) -p 9201 -F -i 0 -c 1 -D 1"
    with gateway_behind(tmp_path, script, seed=3, wire=DISORDER) as link:
        wait = f"until [ -s {said} ]; do sleep 0.1; done; url=$(cat {said})"

        def answers(asked: str) -> int:
            words = ["sh", "-c", f"exec 2>&1; {wait}; {fakewap} {asked}"]
            done = link.run(words, capture_output=True, text=True, timeout=140)
            assert done.returncode == 0, done.stdout[-2_000:]
            return str(done.stdout).count("status code 200OK")

        assert answers(f"-m 1 -l 5 -w {saved} $url/size/100000") == 1
        assert saved.read_bytes() == text_of(100_000)
        assert any(answers("-m 30 $url/size/900") == 30 for _ in range(4))
