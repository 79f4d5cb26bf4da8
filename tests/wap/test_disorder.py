"""Kannel's client against our gateway through a wire that repeats and reorders, in a laboratory."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import airloom as al
from airloom.doctor import examine
from tests.conftest import needs
from tests.wap.test_gateway import FAKEWAP, text_of

SCENARIO = """\
title = "a bad wire"
path = ["mobile", "wire", "gateway"]
[hosts]
mobile = {{ real = true }}
gateway = {{ real = true, command = {command} }}
[links.wire]
bearer = "wireline"
rate = "2Mbit/s"
delay = "20ms"
# This client takes a second copy of an answer for the next one, and never repeats a request: answers come once here,
# and what is lost is what it throws away itself (-l).
duplication = {{ probability = {{ uplink = 0.05, downlink = 0 }}, delay = "10ms" }}
reordering = {{ probability = 0.05, delay = "30ms" }}
"""

GATEWAY = """
import subprocess, sys
from tests.wap.gateway import Liar
liar = Liar()
command = [sys.executable, "-m", "airloom", "serve", "wap-gateway", "--listen", "0.0.0.0:9201", "--no-log"]
with subprocess.Popen(command + ["--allow-origin", "127.0.0.1"], stdout=subprocess.PIPE, text=True) as gateway:
    gateway.stdout.readline()
    with open(sys.argv[1], "w") as ready:
        ready.write(liar.url)
    gateway.wait()
"""


@pytest.mark.emulate
def test_kannels_client_gets_through_a_wire_that_repeats_and_reorders(tmp_path: Path) -> None:
    needs(str(FAKEWAP))
    if broken := [f"{f.what}: {f.says}" for f in examine() if f.needed and not f.ok]:
        pytest.skip(broken[0])
    ready, saved = tmp_path / "ready", tmp_path / "saved"
    script = tmp_path / "gateway.py"
    script.write_text(GATEWAY)
    start = f"cd {Path(__file__).parents[2]} && PYTHONPATH=. exec {sys.executable} {script} {ready}"
    scenario = tmp_path / "disorder.toml"
    scenario.write_text(SCENARIO.format(command=json.dumps(["sh", "-c", start])))
    fakewap = f"timeout 120 {FAKEWAP} -g $(getent ahostsv4 gateway | head -1 | cut -d' ' -f1) -p 9201 -F -i 0 -c 1 -D 1"
    with al.lab(str(scenario), seed=3, enter=False) as link:
        wait = f"until [ -s {ready} ]; do sleep 0.1; done; url=$(cat {ready})"
        asked = f"{fakewap} -m 1 -l 5 -w {saved} $url/size/100000 && {fakewap} -m 30 $url/size/900"
        done = link.run(["sh", "-c", f"{wait}; {asked}"], capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, (done.stdout + done.stderr)[-2_000:]
    assert saved.read_bytes() == text_of(100_000)
    assert (done.stdout + done.stderr).count("status code 200OK") == 31
