"""Cases of the interop runner between real endpoints, and the network in the place of its container."""

import json
import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airloom.errors import RunError, UsageError
from airloom.interop import sim
from airloom.interop.cases import CASES
from airloom.interop.traces import Trace
from tests.cli.shell import airloom
from tests.conftest import needs, needs_laboratory
from tests.emulate.rights import User

pytestmark = pytest.mark.emulate

WIRE = "--delay=15ms --bandwidth=10Mbps --queue=25"


@pytest.fixture(autouse=True)
def _possible_here() -> None:
    needs_laboratory()
    needs("tshark")
    needs("openssl")


def played(*arguments: str) -> dict[str, Any]:
    """The result document of `airloom interop run` into `out`."""
    done = airloom("interop", "run", "-c", "aioquic", "-s", "aioquic", "--out", "out", "--json", *arguments)
    assert done.code == 0, done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


def traces(case: Path) -> tuple[Trace, Trace]:
    """The captures on both sides."""
    keys = case / "client" / "keys.log"
    left, right = (Trace(case / "sim" / f"trace_node_{side}.pcap", keys) for side in ("left", "right"))
    return left, right


def results(found: dict[str, Any]) -> dict[str, str]:
    return {row["name"]: row["result"] for row in found["results"][0]}


def test_aioquic_talks_to_itself_and_each_case_can_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = dict.fromkeys(("handshake", "retry", "http3"), "succeeded")
    assert results(played("-t", "handshake,retry,http3,ecn")) == {**done, "ecn": "unsupported"}
    logs = Path("out/aioquic_aioquic")
    sim_files = {file.name for file in (logs / "http3" / "sim").iterdir()}
    assert sim_files == {"summary.json", "trace_node_left.pcap", "trace_node_right.pcap"}
    assert 'class="succeeded" href="aioquic_aioquic/http3/"' in Path("out/matrix.html").read_text()
    # What one case shows is not what the others ask for.
    left, right = traces(logs / "http3")
    satisfied = {case.name for case in CASES if case.check(left, right) is None}
    # Those that only ask for one handshake; a repeated ClientHello may be there or not.
    same = {"transfer", "http3", "blackhole", "transferloss", "transfercorruption", "handshake", "multiplexing"}
    assert satisfied - {"longrtt"} == same


def test_our_own_endpoint_passes_cases_with_another_on_either_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    both = "airloom,aioquic"
    done = airloom("interop", "run", "-c", both, "-s", both, "-t", "http3,handshake", "--out", "out", "--json")
    assert done.code == 0, done.err
    pairs = [[row["result"] for row in rows] for rows in json.loads(done.out)["results"]]
    assert pairs == [["succeeded", "succeeded"]] * 4
    assert "| `handshake` | ✅ | ✅ | ✅ | ✅ |" in Path("out/matrix.md").read_text()


def test_our_own_endpoint_marks_datagrams_sends_early_and_says_what_it_has_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("interop", "run", "-c", "airloom", "-s", "airloom", "-t", "ecn,zerortt,v2", "--out", "out", "--json")
    done = airloom(*words)
    assert done.code == 0, done.err
    assert results(json.loads(done.out)) == {"ecn": "succeeded", "zerortt": "succeeded", "v2": "unsupported"}
    why = json.loads(done.out)["results"][0][2]["why"]
    assert why == "airloom does not support it: QUIC version 2 (RFC 9369)"
    # What one end counts is what the other marked.
    left, _ = traces(Path("out/airloom_airloom/ecn"))
    assert left.ecn("server")[0] == left.ecn("client")[0] == {"2"}


def test_what_the_droplist_names_is_lost_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = f"droplist {WIRE} --drops_to_client=2,4 --drops_to_server=1,3,5"
    assert results(played("-t", "handshake", "--scenario", words)) == {"handshake": "succeeded"}
    case = Path("out/aioquic_aioquic/handshake")
    counted = json.loads((case / "sim" / "summary.json").read_text())
    lost = [counted[f"middle.{way}.dropped_by_list"] for way in ("uplink", "downlink")]
    left, right = traces(case)
    to_server, to_client = "udp.dstport==443 && !icmp", "udp.srcport==443 && !icmp"
    # The numbers of the list that there are so many datagrams for.
    sent = left.counts(to_server), right.counts(to_client)
    assert lost == [sum(n <= sent[0] for n in (1, 3, 5)), sum(n <= sent[1] for n in (2, 4))]
    assert [sent[0] - right.counts(to_server), sent[1] - left.counts(to_client)] == lost
    assert sum(lost) >= 4


def test_a_rebound_client_is_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # In the middle of a transfer that takes more than eight seconds, and begins later where the machine is busy.
    words = f"rebind {WIRE} --first-rebind=6s --rebind-addr"
    assert results(played("-t", "transfer", "--scenario", words)) == {"transfer": "succeeded"}
    case = Path("out/aioquic_aioquic/transfer")
    assert json.loads((case / "sim" / "summary.json").read_text())["middle.nat_rebindings"] == 1
    assert len({path.split()[0] for path, _ in traces(case)[1].paths()}) == 2


def test_a_client_does_not_move_during_its_handshake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = f"rebind {WIRE} --first-rebind=1s --rebind-freq=5s"
    assert results(played("-t", "handshake", "--scenario", words)) == {"handshake": "succeeded"}
    octets = Path("out/aioquic_aioquic/handshake/sim/trace_node_left.pcap").read_bytes()
    # The second of the first packet, since the run began.
    assert int.from_bytes(octets[24:28], "little") >= 1


def test_an_endpoint_that_fails_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    roles = (f'[{role}]\ncommand = ["sh", "-c", "exit {code}"]\n' for role, code in (("client", 3), ("server", 5)))
    Path("broken.toml").write_text("".join(roles))
    words = ("interop", "run", "-c", "broken.toml", "-t", "handshake", "--out", "out")
    done = airloom(*words, "-s", "aioquic,broken.toml", "--json")
    assert done.code == 1
    why = [row["why"] for rows in json.loads(done.out)["results"] for row in rows]
    assert why == ["broken ended with 3", "broken ended with 5"]
    again = airloom(*words, "-s", "aioquic")
    assert (again.code, again.err.count("\n")) == (2, 1)


def test_what_failed_is_tried_again_with_another_seed_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # The first time it leaves something and fails; then it has nothing to say about the case.
    script = f"test -e {tmp_path}/been && exit 127; touch {tmp_path}/been; exit 3"
    Path("once.toml").write_text(f'[client]\ncommand = ["sh", "-c", "{script}"]\n')
    words = ("interop", "run", "-c", "once.toml", "-s", "aioquic", "-t", "handshake", "--json", "--out")
    done = airloom(*words, "out", "--tries", "3")
    assert done.code == 0
    (row,) = json.loads(done.out)["results"][0]
    assert (row["result"], row["why"]) == ("unsupported", "try 1: once ended with 3; once does not support it")
    assert 'class="unsupported" href="aioquic_once/handshake-2/"' in Path("out/matrix.html").read_text()
    seeds = [
        tomllib.loads(Path(f"out/aioquic_once/{case}/network.toml").read_text())["run"]["seed"]
        for case in ("handshake", "handshake-2")
    ]
    assert seeds == [1, 2]
    Path("been").unlink()
    (row,) = json.loads(airloom(*words, "again").out)["results"][0]
    assert (row["result"], row["why"]) == ("failed", "once ended with 3")


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


@pytest.fixture
def container() -> Iterator[str]:
    """Three namespaces, as the runner's containers: client, `sim` with eth0 and eth1, server."""
    if os.geteuid() != 0:
        pytest.skip("named namespaces take root")
    mark = f"airloom-{os.getpid()}"
    names = {part: f"{mark}-{part}" for part in ("c", "s", "sim")}
    try:
        for name in names.values():
            ip("netns", "add", name)
        for part, device, network in (("c", "eth0", 0), ("s", "eth1", 100)):
            other = ("peer", "name", device, "netns", names["sim"])
            ip("link", "add", "eth0", "netns", names[part], "type", "veth", *other)
            for name, own, host in ((names[part], "eth0", 100), (names["sim"], device, 2)):
                ip("-n", name, "address", "add", f"193.167.{network}.{host}/24", "dev", own)
                ip("-n", name, "link", "set", own, "up")
            ip("-n", names[part], "route", "add", "default", "via", f"193.167.{network}.2")
        yield mark
    finally:
        for name in names.values():
            subprocess.run(["ip", "netns", "del", name], check=False, stderr=subprocess.DEVNULL)


#: Prints what two datagrams to port 443 hold.
SERVER = """\
import socket
own = socket.socket(type=socket.SOCK_DGRAM)
own.bind(("", 443))
own.settimeout(20)
print("open", flush=True)
for _ in range(2):
    print(own.recv(9).decode(), flush=True)
"""
#: Waits for the network, then sends three.
CLIENT = """\
import socket, time
for _ in range(200):
    try:
        socket.create_connection(("193.167.0.2", 57832), 1).close()
        break
    except OSError:
        time.sleep(0.1)
own = socket.socket(type=socket.SOCK_DGRAM)
for octet in b"123":
    own.sendto(bytes([octet]), ("193.167.100.100", 443))
"""


def test_it_stands_where_the_runners_container_stands(container: str, tmp_path: Path) -> None:
    def inside(part: str, *words: str) -> list[str]:
        return ["ip", "netns", "exec", f"{container}-{part}", *words]

    def python(part: str, text: str) -> list[str]:
        return inside(part, sys.executable, "-c", text)

    env = {**os.environ, "SCENARIO": f"droplist {WIRE} --drops_to_server=2"}
    words = inside("sim", sys.executable, "-m", "airloom", "interop", "sim", "--logs", str(tmp_path))
    with (
        subprocess.Popen(python("s", SERVER), stdout=subprocess.PIPE, text=True) as server,
        subprocess.Popen(words, env=env, stderr=subprocess.PIPE, text=True) as network,
    ):
        try:
            assert server.stdout
            assert server.stdout.readline() == "open\n"
            subprocess.run(python("c", CLIENT), check=True)
            assert server.communicate(timeout=30)[0].split() == ["1", "3"]
        finally:
            network.send_signal(signal.SIGTERM)
            said = network.communicate(timeout=30)[1]
    assert network.returncode == 128 + signal.SIGTERM, said
    left, right = (Trace(tmp_path / f"trace_node_{side}.pcap", None) for side in ("left", "right"))
    assert [trace.counts("udp.dstport==443 && !icmp") for trace in (left, right)] == [3, 2]
    # The devices are back where they were.
    shown = subprocess.run(inside("sim", "ip", "-br", "address"), capture_output=True, text=True, check=True).stdout
    assert "193.167.0.2/24" in shown
    assert "193.167.100.2/24" in shown


def test_a_server_that_does_not_come_is_not_waited_for_for_ever() -> None:
    with pytest.raises(RunError, match="nobody answers"):
        sim.wait_for("127.0.0.1:9", within_s=0.3)
    for wrong in ("server", "server:0", "server:99999", "$(id):443 x"):
        with pytest.raises((UsageError, RunError), match="WAITFORSERVER"):
            sim.wait_for(wrong, within_s=0.1)


def test_every_kind_of_user_may(user: User) -> None:
    words = ("-c", "aioquic", "-s", "aioquic", "-t", "handshake", "--out", f"out-{user.name}", "--json")
    done = user.airloom("interop", "run", *words)
    assert done.returncode == 0, done.stderr
    assert results(json.loads(done.stdout)) == {"handshake": "succeeded"}
