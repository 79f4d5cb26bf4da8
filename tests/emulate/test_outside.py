"""`--outside`: a way to the outside world, which here is a server in a namespace of its own."""

import ipaddress
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import airloom as al
from airloom._core import DriveError
from tests.conftest import needs
from tests.emulate.conftest import ALL_CLOSED, PATIENCE_S
from tests.emulate.outside import MACHINE, MACHINE_V6, OCTETS, SERVER, SERVER_V6, Machine, world
from tests.emulate.rights import User
from tests.emulate.test_kills import KILLS, kill_at_one_blow, marked, own_processes, pids_of

pytestmark = pytest.mark.emulate

CURL = "curl -sS -m 30 -o /dev/null -w '%{size_download} %{time_total}\\n'"
FETCH = f"{CURL} http://{SERVER}/file"
FETCH_V6 = f"{CURL} -g 'http://[{SERVER_V6}]/file'"
#: What has a way out until it is ended.
UP: list[str | Path] = ["-m", "airloom", "emulate", "wireline", "--outside", "--", "sh", "-c", "echo up; sleep 1000"]


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    with world(tmp_path_factory.mktemp("served")) as made:
        yield made


@pytest.fixture
def there(user: User, machine: Machine) -> User:
    """The user, on the machine."""
    needs("curl")
    if user.name == "plain":
        needs("pasta")
    return machine.user(user)


def _with_only(program: str, there: User) -> User:
    """The user, who finds just what the tests run, and this program."""
    tools = there.folder / f"tools-{program}"
    tools.mkdir()
    for name in ("sh", "curl", "ping", "sleep", program):
        found = shutil.which(name)
        assert found, name
        (tools / name).symlink_to(found)
    return there._replace(prefix=[*there.prefix[:-1], "env", f"PATH={tools}", there.prefix[-1]])


def test_the_outside_is_reached_through_the_link_and_nothing_is_left(there: User, machine: Machine) -> None:
    before = machine.quiet()
    result = there.folder / "result-outside"
    options: list[str | Path] = ["--outside", "--set", "delay=40ms", "--out", result]
    # When the command ends so does the run: the last acknowledgement is to be part of it.
    done = there.airloom("emulate", "wireline", *options, "--", "sh", "-c", f"{FETCH}; {ALL_CLOSED}")
    assert done.returncode == 0, done.stderr
    size, seconds = done.stdout.split()
    # A handshake and at least one more round trip of 80 ms.
    assert (int(size), float(seconds) >= 0.16) == (OCTETS, True)
    rows = al.Run(result).flows.to_dicts()
    flow = next(row for row in rows if row["dst"] == f"{SERVER}:80")
    assert (flow["proto"], flow["end"]) == ("tcp", "finished")
    assert flow["app_bytes_down"] >= OCTETS
    assert machine.becomes(before)


def test_strangers_on_the_network_do_not_come_in_by_the_way_out(there: User, machine: Machine) -> None:
    if there.name == "plain":
        return  # nothing of the machine forwards for it
    before = machine.quiet()
    words = ["-m", "airloom", "emulate", "wireline", "--outside", "--loopback", "8000"]
    with there.popen([*words, "--", "sh", "-c", f"{FETCH}; exec sleep 1000"]) as process:
        assert process.stdout
        # Answers come in, and somebody listens at the exit.
        assert process.stdout.readline().split()[0] == str(OCTETS)
        lines = [line.split() for line in machine.run("ip", "-o", "address").splitlines()]
        pairs = [fields[3] for fields in lines if fields[1].startswith("airloom")]
        exits = [str(ipaddress.ip_interface(pair).ip + 1) for pair in pairs if not pair.startswith("fe80:")]
        for network, via in (("100.64.0.0/10", MACHINE), ("fd61:6972:6c6f:6f6d::/64", MACHINE_V6)):
            machine.server.run("ip", "route", "replace", network, "via", via)
        connect = "curl -sS -m 2 --connect-timeout 2 -o /dev/null -w %{time_connect} telnet://"
        tried = {}
        for address in exits:
            at = f"[{address}]" if ":" in address else address
            tried[address] = machine.server.run("sh", "-c", f"{connect}{at}:8000 < /dev/null; true")
        process.terminate()
        process.communicate(timeout=60)
    assert tried
    assert all(float(connected) == 0 for connected in tried.values()), tried
    assert machine.becomes(before)


def test_without_the_option_there_is_no_way_out(there: User) -> None:
    hurried = FETCH.replace("-m 30", "-m 3")
    done = there.airloom("emulate", "wireline", "--", "sh", "-c", f"ping -n -c 1 -W 1 {SERVER}; {hurried}")
    assert done.returncode != 0
    assert str(OCTETS) not in done.stdout
    assert "0 received" in done.stdout


def _can_forward_v6(there: User) -> bool:
    """A machine that is no router forwards IPv6 by single devices since Linux 6.17; a plain user needs none of that."""
    return there.name == "plain" or Path("/proc/sys/net/ipv6/conf/lo/force_forwarding").exists()


def test_the_outside_has_ipv6_too(there: User, machine: Machine) -> None:
    before = machine.quiet()
    done = there.airloom("emulate", "wireline", "--outside", "--set", "delay=10ms", "--", "sh", "-c", FETCH_V6)
    if _can_forward_v6(there):
        assert done.returncode == 0, done.stderr
        assert done.stdout.split()[0] == str(OCTETS)
    else:
        assert done.returncode != 0
    assert machine.becomes(before)


@pytest.mark.parametrize("program", ["pasta", "slirp4netns"])
def test_a_plain_users_way_out_is_either_program(there: User, program: str) -> None:
    if there.name != "plain":
        return
    found = needs(program)
    there = _with_only(program, there)
    # It says more than a pipe holds, and nobody reads it.
    wordy = there.folder / f"tools-{program}" / program
    wordy.unlink()
    wordy.write_text(f'#!/bin/sh\nyes | head -c 200000 >&2\nexec {found} "$@"\n')
    wordy.chmod(0o755)
    done = there.airloom("emulate", "wireline", "--outside", "--", "sh", "-c", f"{FETCH}; {FETCH_V6}")
    sizes = [line.split()[0] for line in done.stdout.splitlines()]
    assert sizes == [str(OCTETS), str(OCTETS) if program == "pasta" else "0"], done.stderr


def test_the_next_laboratory_puts_back_what_was_left_on_when_all_were_killed_at_one_blow(
    user: User, machine: Machine
) -> None:
    if user.name != "root":
        # Others may not write down what they have changed where the next one would look for it.
        return
    before = machine.quiet()
    there = machine.user(user)
    mark = 8_760_000 + random.Random("one blow").randrange(100_000)
    some = there._replace(environment={**there.environment, "AIRLOOM_TEST_MARK": str(mark)})
    with some.begun(UP) as process:
        assert machine.forwards()
        kill_at_one_blow(process, pids_of(mark), mark)
    assert machine.forwards(), "nobody was left to put it back"
    done = there.airloom("emulate", "wireline", "--", "true")
    assert done.returncode == 0, done.stderr
    assert machine.becomes(before)


def test_a_warden_that_is_killed_alone_leaves_no_forwarding_on(there: User, machine: Machine) -> None:
    before = machine.quiet()
    with there.begun(UP) as process:
        was_on = machine.forwards()
        os.kill(own_processes(process.pid)["warden"], signal.SIGKILL)
        _, err = process.communicate(timeout=60)
    assert was_on == (there.name != "plain"), "a plain user's program needs none"
    assert process.returncode == 125, err
    assert machine.becomes(before)


def test_forwarding_stays_on_for_a_laboratory_that_needs_it_when_anothers_warden_is_killed(
    user: User, machine: Machine
) -> None:
    if user.name != "root":
        return
    before = machine.quiet()
    there = machine.user(user)
    first, second = ([*UP[:4], "--out", there.folder / f"of-two-{n}", *UP[4:]] for n in range(2))
    with there.begun(first) as killed, there.begun(second) as other:
        os.kill(own_processes(killed.pid)["warden"], signal.SIGKILL)
        killed.communicate(timeout=60)
        stays_on = machine.forwards()
        # The one that found it on by the other is the last now: it puts back what it never switched on itself.
        os.kill(own_processes(other.pid)["warden"], signal.SIGKILL)
        other.communicate(timeout=60)
    assert stays_on, "the other one needed it"
    assert machine.becomes(before)


def test_names_that_anybody_may_take_neither_hinder_a_way_out_nor_keep_forwarding_on(
    user: User, machine: Machine
) -> None:
    if user.name == "plain":
        return
    before = machine.quiet()
    script = (
        "import socket, sys\n"
        "held = [socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(2)]\n"
        "held[0].bind('\\0airloom/forwarding')\n"
        "held[1].bind('\\0airloom/was-off/ipv4/conf/eth0/forwarding/1')\n"
        "print('held', flush=True)\n"
        "sys.stdin.read()\n"
    )
    words = ["ip", "netns", "exec", machine.name, sys.executable, "-c", script]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as stranger:
        assert stranger.stdout
        assert stranger.stdout.readline() == "held\n"
        done = machine.user(user).airloom("emulate", "wireline", "--outside", "--", "true")
        is_as_before = machine.becomes(before)
        stranger.communicate(timeout=60)
    assert done.returncode == 0, done.stderr
    assert is_as_before


@pytest.mark.parametrize("how", ["it ends", "its warden is killed"])
def test_a_machine_that_became_a_router_meanwhile_remains_one(user: User, machine: Machine, how: str) -> None:
    if user.name != "root":
        return
    before = machine.quiet()
    router = "/proc/sys/net/ipv4/ip_forward"
    with machine.user(user).begun(UP) as process:
        machine.run("sh", "-c", f"echo 1 > {router}")
        ends = {"it ends": process.pid, "its warden is killed": own_processes(process.pid)["warden"]}
        os.kill(ends[how], signal.SIGTERM if how == "it ends" else signal.SIGKILL)
        process.communicate(timeout=60)
    try:
        assert machine.forwards()
        done = machine.user(user).airloom("emulate", "wireline", "--", "true")
        assert done.returncode == 0, done.stderr
        assert machine.forwards(), "nothing was noted any more"
    finally:
        machine.run("sh", "-c", f"echo 0 > {router}")
    assert machine.becomes(before)


def test_an_inner_laboratory_passes_through_the_outer_link(there: User) -> None:
    inner = [there.prefix[-1], "-m", "airloom", "emulate", "wireline", "--outside", "--set", "delay=30ms", "--"]
    words = ["sh", "-c", FETCH]
    done = there.airloom("emulate", "wireline", "--outside", "--set", "delay=40ms", "--", *inner, *words)
    assert done.returncode == 0, done.stderr
    size, seconds = done.stdout.split()
    # A handshake and at least one more round trip, of 60 ms in the inner link and 80 ms in the outer one.
    assert (int(size), float(seconds) >= 0.28) == (OCTETS, True)


def test_a_script_enters_a_laboratory_with_a_way_out(machine: Machine, user: User) -> None:
    if user.name != "root":
        # Those have a network of their own before they can enter anything, and nothing leads out of that.
        return
    script = (
        "import urllib.request, airloom\n"
        "with airloom.lab('wireline', outside=True, overrides={'delay': '10ms'}) as link:\n"
        f"    print(len(urllib.request.urlopen('http://{SERVER}/file', timeout=30).read()))\n"
        "    print(sorted(link.hosts))\n"
    )
    done = machine.user(user).python("-c", script)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{OCTETS}\n['mobile', 'origin', 'outside']\n"


def test_the_last_of_several_laboratories_puts_the_setting_back(machine: Machine, user: User) -> None:
    if user.name != "root":
        return
    before = machine.quiet()
    there = machine.user(user)
    words: list[str | Path] = ["-m", "airloom", "emulate", "wireline", "--outside", "--", "sh", "-c", "echo up; cat"]
    running: list[subprocess.Popen[str]] = []
    try:
        for number in range(2):
            name = there.folder / f"two-{number}"
            process = subprocess.Popen(
                [*there.prefix, *map(str, [*words[:4], "--out", name, *words[4:]])],
                cwd=there.folder,
                env=there.environment,
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            running.append(process)
            assert process.stdout
            assert process.stdout.readline() == "up\n"
        assert machine.run("nft", "list", "tables", "ip").count("airloom") == 2
        running[0].communicate(timeout=60)
        assert machine.forwards(), "the other one needs it"
        assert not machine.forwards("ipv4/ip_forward"), "other devices are none of our business"
        running[1].communicate(timeout=60)
    finally:
        for process in running:
            process.kill()
            process.communicate()
    assert machine.becomes(before)


@pytest.mark.parametrize("how", ["SIGKILL", "SIGTERM", "SIGINT"])
def test_nothing_of_the_way_out_is_left_after_a_kill(there: User, machine: Machine, how: str) -> None:
    if there.name == "capable" and how != "SIGKILL":
        return
    rng = random.Random(f"outside {there.name} {how}")
    before = machine.quiet()
    for number in range(KILLS):
        mark = 8_740_000 + rng.randrange(100_000)
        # The mark is in the environment of all that the laboratory starts: the program of the way out, too.
        some = there._replace(environment={**there.environment, "AIRLOOM_TEST_MARK": str(mark)})
        with some.popen(["-m", "airloom", "emulate", "wireline", "--outside", "--", "sleep", "1000"]) as process:
            time.sleep(rng.uniform(0.2, 2.0))
            assert marked(mark), "the mark is not to be seen"
            process.send_signal(getattr(signal, how))
            process.communicate(timeout=60)
        end = time.monotonic() + PATIENCE_S
        while (left := machine.state() + marked(mark)) != before and time.monotonic() < end:
            time.sleep(0.05)
        assert left == before, f"kill {number} by {how}"


def test_a_plain_user_is_told_what_is_missing(user: User, machine: Machine) -> None:
    if user.name != "plain":
        return
    words = ["emulate", "wireline", "--outside", "--", "true"]
    without = machine.user(user)
    without = without._replace(environment={**without.environment, "PATH": "/usr/bin/no-such-folder"})
    # The wrapper still has to be found.
    path = ["env", "PATH=/nowhere", *user.prefix[-1:]]
    done = without._replace(prefix=[*without.prefix[:-1], *path], environment=machine.user(user).environment).airloom(
        *words
    )
    assert done.returncode == 3, done.stderr
    assert done.stderr.count("\n") == 1
    assert "slirp4netns" in done.stderr
    needs("pasta")
    done = machine.user(user, tun="600").airloom(*words)
    assert done.returncode == 3, done.stderr
    assert "/dev/net/tun" in done.stderr


def test_a_run_whose_way_out_breaks_has_no_result(there: User, machine: Machine) -> None:
    if there.name != "plain":
        return
    before = machine.quiet()
    with there.begun(UP) as process:
        warden, keeper = own_processes(process.pid).values()
        children = Path(f"/proc/{warden}/task/{warden}/children").read_text().split()
        (program,) = set(map(int, children)) - {keeper}
        os.kill(program, signal.SIGKILL)
        try:
            _, err = process.communicate(timeout=60)
        finally:
            process.terminate()
    assert process.returncode == 125, err
    assert machine.becomes(before)


def test_a_process_without_a_network_is_told_so(user: User) -> None:
    alone = user._replace(prefix=["unshare", "--net", *user.prefix])
    done = alone.airloom("emulate", "wireline", "--outside", "--", "true")
    assert done.returncode == 3, done.stderr
    assert "loopback" in done.stderr


def test_name_servers_are_the_machines_where_there_is_a_way_out(user: User, machine: Machine) -> None:
    if user.name != "root":
        return
    there = machine.user(user)
    file = there.folder / "resolv.conf"
    file.write_text(f"nameserver 127.0.0.53\nnameserver {MACHINE}\n")
    there = machine.user(user, resolv_conf=file)
    said = there.airloom("emulate", "wireline", "--outside", "--", "cat", "/etc/resolv.conf")
    assert said.stdout == f"nameserver {MACHINE}\n", said.stderr
    assert there.airloom("emulate", "wireline", "--", "cat", "/etc/resolv.conf").stdout == ""


def test_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(al.ScenarioError, match="way-out"):
        al.load(_scenario(tmp_path, 'way-out = "wireline"', "way-out"), outside=True)
    two = _scenario(tmp_path, 'cable = "wireline"', "cable", outside="real = true, outside = true")
    with pytest.raises(al.ScenarioError, match="another host is the way"):
        al.load(two)
    only = _scenario(tmp_path, 'cable = "wireline"', "cable", real="false")
    with pytest.raises(DriveError, match="no host is real"):
        al.load(only, outside=True).emulate(["true"])


def _scenario(folder: Path, link: str, name: str, real: str = "true", outside: str = "") -> Path:
    path = folder / "scenario.toml"
    path.write_text(
        f'title = "t"\npath = ["a", "{name}", "b"]\n[hosts]\n'
        f"a = {{ real = {real}{', outside = true' if outside else ''} }}\nb = {{ {outside} }}\n[links]\n{link}\n"
    )
    return path


def test_the_exit_is_part_of_the_scenario_as_understood() -> None:
    scenario = al.load("umts-page", outside=True)
    understood = scenario.understood
    assert understood["hosts"]["outside"]["outside"] is True
    assert understood["links"]["way-out"]["addresses"].keys() >= {"outside"}
    assert json.loads(json.dumps(understood)) == understood
