"""`airloom gateway`: a namespace plays the phone, another one the machine, a third the provider."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import needs, until
from tests.emulate import rights
from tests.emulate.outside import MACHINE, OCTETS, SERVER, SERVER_V6, Machine, world
from tests.emulate.rights import User
from tests.emulate.test_kills import kill_at_one_blow, pids_of

pytestmark = pytest.mark.emulate

#: What a DHCP client does with what it got, instead of its own script, which changes files of the machine.
SCRIPT = """\
#!/bin/sh
case $1 in bound | renew)
    ip -4 address flush dev "$interface" scope global
    ip address add "$ip/$mask" dev "$interface"
    ip route replace default via "$router"
    echo "got $ip $router $mask ${dns:-none}"
esac
"""
TAKEN = "curl -sS -m 30 -o /dev/null -w '%{size_download} %{time_total}'"


class Phone(Machine):
    """A namespace with an interface `wlan0`, at the machine's `hotspot`."""

    def __init__(self, machine: Machine, folder: Path) -> None:
        super().__init__(machine.name.replace("al-m-", "al-p-"))
        self.machine = machine
        self.provider = machine.server
        self._script = folder / "got"
        self._script.write_text(SCRIPT)
        self._script.chmod(0o755)

    def ask_for_an_address(self) -> list[str]:
        """Address, router, prefix length and name server, by a real client."""
        client = [needs("udhcpc"), "-i", "wlan0", "-f", "-q", "-n", "-t", "20", "-T", "1", "-s", str(self._script)]
        found = re.search(r"got (\S+) (\S+) (\S+) (\S+)", self.run(*client, "-x", "hostname:a-phone"))
        assert found
        return list(found.groups())

    def tries(self, *words: str) -> str:
        """What a program prints there, which may fail."""
        command = ["ip", "netns", "exec", self.name, *words]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout

    def forget(self) -> None:
        """Without addresses, as somebody who has left."""
        self.run("ip", "-4", "address", "flush", "dev", "wlan0", "scope", "global")


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    with world(tmp_path_factory.mktemp("served")) as made:
        yield made


@pytest.fixture
def phone(machine: Machine, tmp_path: Path) -> Iterator[Phone]:
    made = Phone(machine, tmp_path)
    pair = ["link", "add", "hotspot", "type", "veth", "peer", "name", "wlan0", "netns", made.name]
    ips = [
        ["netns", "add", made.name],
        ["-n", machine.name, *pair],
        ["-n", machine.name, "link", "set", "hotspot", "up"],
    ]
    try:
        for words in (
            *ips,
            ["-n", made.name, "link", "set", "lo", "up"],
            ["-n", made.name, "link", "set", "wlan0", "up"],
        ):
            subprocess.run(["ip", *words], check=True, capture_output=True)
        yield made
    finally:
        subprocess.run(["ip", "-n", machine.name, "link", "delete", "hotspot"], check=False, capture_output=True)
        subprocess.run(["ip", "netns", "delete", made.name], check=False, capture_output=True)


@pytest.fixture
def there(machine: Machine, tmp_path: Path) -> User:
    (tmp_path / "resolv.conf").write_text(f"nameserver {SERVER}\n")
    return machine.user(rights.ourselves(tmp_path), resolv_conf=tmp_path / "resolv.conf")


@contextmanager
def gateway(there: User, *words: str) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """A gateway that serves, and what it said until then."""
    options = ["-m", "airloom", "gateway", "--in", "hotspot", "--out", "eth0", *words]
    with there.popen(options) as process:
        try:
            yield process, _until(process, "are behind")
        finally:
            process.kill()


def _until(process: subprocess.Popen[str], what: str) -> list[str]:
    assert process.stderr
    said: list[str] = []
    while what not in "".join(said):
        said.append(process.stderr.readline())
        assert said[-1], said
    return said


def _ends(process: subprocess.Popen[str]) -> str:
    """Tells it to end; what it printed."""
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out


def test_a_phone_gets_addresses_and_reaches_the_world_through_the_link_and_nothing_is_left(
    phone: Phone, there: User, machine: Machine
) -> None:
    before = machine.quiet()
    with gateway(there, "wireline", "--set", "delay=40ms", "--json") as (process, _):
        address, router, bits, server = phone.ask_for_an_address()
        assert (address.rpartition(".")[0], router, bits, server) == ("10.78.0", "10.78.0.1", "24", SERVER)
        assert f"device a-phone: {address}\n" in _until(process, "device")
        # A handshake and at least one more round trip of 80 ms.
        for url in (f"http://{SERVER}/file", f"http://[{SERVER_V6}]/file"):
            until(lambda: re.search(r"inet6 fd61\S+ scope global (?!tentative)", phone.run("ip", "-6", "address")))
            size, seconds = phone.run("sh", "-c", f"{TAKEN} -g '{url}'").split()
            assert (int(size), float(seconds) >= 0.16) == (OCTETS, True)
        trip = re.search(r"time=([0-9.]+) ms", phone.run("ping", "-n", "-c", "1", SERVER))
        assert trip
        assert float(trip[1]) >= 80
        (stretch,) = json.loads(_ends(process))
    assert stretch["preset"] == "wireline"
    assert stretch["summary"]["packets"] > 2 * OCTETS / 1500
    assert machine.becomes(before)
    # It has said that it is a router no more.
    assert "default" not in phone.run("ip", "-6", "route")


#: Counts datagrams until none has come for a while.
COUNTS = f"""
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("{SERVER}", 5000))
print("counting", flush=True)
count = 0
while s.recv(2000) != b"last":
    count += 1
print(count)
"""
SENDS = f"""
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range({{count}}):
    s.sendto(bytes(100), ("{SERVER}", 5000))
    time.sleep(0.001)
time.sleep(0.5)
"""


def test_what_the_provider_counts_is_what_the_model_let_through(phone: Phone, there: User) -> None:
    with gateway(there, "wireline", "--set", "loss.uplink=0.25", "--json", "--seed", "5") as (process, _):
        phone.ask_for_an_address()
        phone.run("ip", "link", "set", "wlan0", "down")
        # Without IPv6, whose neighbours talk to each other.
        phone.run("sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1")
        phone.run("ip", "link", "set", "wlan0", "up")
        phone.ask_for_an_address()
        count = ["ip", "netns", "exec", phone.provider.name, sys.executable, "-c", COUNTS]
        with subprocess.Popen(count, stdout=subprocess.PIPE, text=True) as counting:
            assert counting.stdout
            assert counting.stdout.readline() == "counting\n"
            phone.run(sys.executable, "-c", SENDS.format(count=400))
            last = f"import socket; socket.socket(type=2).sendto(b'last', ('{SERVER}', 5000))"
            subprocess.run(["ip", "netns", "exec", there.prefix[3], sys.executable, "-c", last], check=True)
            came = int(counting.stdout.read())
        (stretch,) = json.loads(_ends(process))
    summary = stretch["summary"]
    assert (summary["packets"], summary["lost"]) == (400, 400 - came)
    assert 0 < summary["lost"] < 200


def test_no_packet_passes_beside_the_model(phone: Phone, there: User, machine: Machine) -> None:
    """On a machine that would pass packets on by itself, by another way than the gateway's."""
    provider, net = phone.provider, "192.0.2"
    machine.run("sysctl", "-qw", "net.ipv4.conf.hotspot.forwarding=1", "net.ipv4.conf.eth0.forwarding=1")
    machine.run("ip", "address", "add", f"{net}.1/24", "dev", "hotspot")
    provider.run("ip", "route", "add", f"{net}.0/24", "via", MACHINE)
    ping = ["ping", "-n", "-q", "-c", "3", "-i", "0.2", "-W", "1", SERVER]
    try:
        phone.run("ip", "address", "add", f"{net}.2/24", "dev", "wlan0")
        phone.run("ip", "route", "add", "default", "via", f"{net}.1")
        assert "3 received" in phone.tries(*ping)
        with gateway(there, "wireline", "--json") as (process, _):
            assert " 0 received" in phone.tries(*ping)
            assert " 0 received" in phone.tries(*ping[:-1], f"{net}.1")
            # With an address of the gateway's it goes through the link, and no further when that is down.
            phone.forget()
            phone.ask_for_an_address()
            assert "3 received" in phone.tries(*ping)
            _ends(process)
        phone.forget()
        phone.run("ip", "address", "add", f"{net}.2/24", "dev", "wlan0")
        phone.run("ip", "route", "replace", "default", "via", f"{net}.1")
        assert "3 received" in phone.tries(*ping), "the machine is as it was"
    finally:
        provider.run("ip", "route", "delete", f"{net}.0/24")
        machine.run("sysctl", "-qw", "net.ipv4.conf.eth0.forwarding=0")


@pytest.mark.parametrize("all_of_it", [False, True], ids=["the command", "everything"])
def test_nothing_remains_after_sigkill(phone: Phone, there: User, machine: Machine, all_of_it: bool) -> None:
    before = machine.quiet()
    mark = 8_780_000 + all_of_it
    some = there._replace(environment={**there.environment, "AIRLOOM_TEST_MARK": str(mark)})
    with gateway(some, "wireline") as (process, _):
        phone.ask_for_an_address()
        assert machine.state() != before
        kill_at_one_blow(process, pids_of(mark) if all_of_it else [process.pid], mark)
    if all_of_it:
        # Nobody was left to switch forwarding off again; the next laboratory does.
        assert there.airloom("emulate", "wireline", "--", "true").returncode == 0
    assert machine.becomes(before)


def test_a_page_switches_presets_here_and_on_the_phone(phone: Phone, there: User, machine: Machine) -> None:
    ping = ["ping", "-n", "-c", "1", "-W", "5", SERVER]
    with gateway(there, "wireline", "--page-for-devices", "--json") as (process, said):
        said += _until(process, "for devices")
        here, on_the_phone = (re.search(rf"{what}: (http://\S+)#(\S+)", "".join(said)) for what in ("page", "devices"))
        assert here
        assert on_the_phone
        address, *_ = phone.ask_for_an_address()
        assert "<title>" in phone.run("curl", "-sS", on_the_phone[1])
        # Of the machine's loopback, and of the devices' side: each by its own token.
        for who, (page, token), preset in (
            (machine, here.groups(), "wpt/2g"),
            (phone, on_the_phone.groups(), "nonesuch"),
            (phone, on_the_phone.groups(), "wpt/3g"),
        ):
            ask = ["curl", "-sS", "-m", "20", "-H", f"X-Airloom-Token: {token}", "--json"]
            ask = [*ask[:-1], "-H", "Content-Type: application/json", "-d"]
            answer = json.loads(who.run(*ask, json.dumps({"preset": preset}), f"{page}preset"))
            if preset == "nonesuch":
                assert "nothing called 'nonesuch'" in answer["said"]
                continue
            # The phone's page is where it was.
            more = [*_until(process, f"are behind {preset}"), *_until(process, "for devices")]
            assert on_the_phone[0] in "".join(more)
            assert "1 received" in phone.run(*ping)
            assert phone.ask_for_an_address()[0] == address
        assert "403" in phone.run("curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", f"{on_the_phone[1]}state")
        stretches = json.loads(_ends(process))
    assert [stretch["preset"] for stretch in stretches] == ["wireline", "wpt/2g", "wpt/3g"]


def test_a_second_gateway_on_the_same_interface_is_refused(phone: Phone, there: User) -> None:
    with gateway(there, "wireline") as (process, _):
        second = there.airloom("gateway", "--in", "hotspot", "--out", "eth0", "wireline")
        assert (second.returncode, second.stderr.count("\n")) == (3, 2)
        assert "already" in second.stderr
        _ends(process)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ["--in", "hotspto", "--out", "eth0", "wireline"],
            "no such interface (did you mean hotspot?); valid: eth0, hotspot",
        ),
        (["--in", "lo", "--out", "eth0", "wireline"], "no Ethernet or Wi-Fi"),
        (["--in", "hotspot", "--out", "nothing", "wireline"], "valid: eth0, hotspot"),
        (["--in", "hotspot", "--out", "hotspot", "wireline"], "are both hotspot"),
        (["--in", "eth0", "--out", "hotspot", "wireline"], "leaves by eth0"),
        (["--in", "hotspot", "--out", "eth0", "wpt/3gg"], "nothing called 'wpt/3gg'"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(phone: Phone, there: User, words: list[str], says: str) -> None:
    done = there.airloom("gateway", *words)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert says in done.stderr


def test_an_interface_that_leads_out_is_taken_only_when_that_is_said(
    phone: Phone, there: User, machine: Machine
) -> None:
    machine.run("ip", "address", "add", "192.0.2.1/24", "dev", "hotspot")
    machine.run("ip", "route", "add", "default", "via", "192.0.2.2", "dev", "hotspot", "metric", "500")
    done = there.airloom("gateway", "--in", "hotspot", "--out", "eth0", "wireline")
    assert done.returncode == 2
    assert "--force" in done.stderr
    with gateway(there, "wireline", "--force") as (process, _):
        assert phone.ask_for_an_address()
        _ends(process)


def test_without_root_it_says_so(phone: Phone, machine: Machine, copies: Path) -> None:
    done = machine.user(rights.plain(copies)).airloom("gateway", "--in", "hotspot", "--out", "eth0", "wireline")
    assert (done.returncode, done.stderr.count("\n")) == (3, 1), done.stderr
    assert "needs root" in done.stderr
