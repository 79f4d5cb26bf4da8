"""Looking up names in a laboratory that has a name server."""

import json
from pathlib import Path

import pytest

import airloom as al
from tests.conftest import needs_laboratory

pytestmark = pytest.mark.emulate

SCENARIO = """\
path = ["phone", "radio", "gateway", "lan", "names"]
[hosts]
phone = {{ real = true }}
gateway = {{}}
names = {{ app = {{ name-server = {settings} }} }}
[links]
radio = {{ bearer = "wireline", delay = "20ms" }}
lan = {{ bearer = "wireline" }}
[run]
until = "1h"
"""

#: Looks a name up in one family, and says what came of it and how long that took.
LOOK_UP = """\
import json, socket, sys, time
begun = time.monotonic()
try:
    family = socket.AF_INET6 if sys.argv[2] == "6" else socket.AF_INET
    found = socket.getaddrinfo(sys.argv[1], 80, family, socket.SOCK_STREAM)[0][4][0]
except OSError as error:
    found = error.strerror
print(json.dumps([found, time.monotonic() - begun]))
"""


def look_up(link: al.Lab, name: str, family: int = 4) -> tuple[str, float]:
    done = link.run(["python3", "-c", LOOK_UP, name, str(family)], capture_output=True, text=True, timeout=60)
    found, took_s = json.loads(done.stdout)
    return found, took_s


def laboratory(settings: str) -> al.Lab:
    needs_laboratory()
    Path("names.toml").write_text(SCENARIO.format(settings=settings))
    return al.lab("names.toml", enter=False)


def test_a_look_up_costs_the_round_trip_and_the_servers_delay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with laboratory('{ delay = "100ms", names = { "www.example.org" = ["192.0.2.7"] } }') as link:
        assert link.run(["cat", "/etc/hosts"], capture_output=True, text=True).stdout.count("gateway") == 0
        address, took_s = look_up(link, "gateway")
        assert address in link.hosts["gateway"]
        assert took_s >= 0.14
        assert look_up(link, "www.example.org")[0] == "192.0.2.7"
        assert ":" in look_up(link, "names", 6)[0]
        assert look_up(link, "nobody")[1] < 5
    assert link.summary["dns_queries"] >= 4
    assert link.summary["dns_unknown"] >= 1


def test_queries_for_ipv6_may_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with laboratory('{ aaaa = "hang" }') as link:
        # As a resolver does that gives up after one try of a second.
        wait = 'export RES_OPTIONS="timeout:1 attempts:1"; exec python3 -c "$0" "$@"'
        done = link.run(["sh", "-c", wait, LOOK_UP, "gateway", "6"], capture_output=True, text=True, timeout=60)
        assert json.loads(done.stdout)[1] >= 1
        assert look_up(link, "gateway")[1] < 1
    assert link.summary["dns_not_answered"] >= 1
