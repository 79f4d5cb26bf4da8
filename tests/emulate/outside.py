"""An outside world of our own: a machine in a network namespace, and a server in another one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import needs
from tests.emulate.conftest import PATIENCE_S
from tests.emulate.rights import User

#: Addresses for documentation (RFC 5737, RFC 3849): nobody has them.
SERVER = "203.0.113.1"
MACHINE = "203.0.113.2"
SERVER_V6 = "2001:db8:cb00::1"
MACHINE_V6 = "2001:db8:cb00::2"
OCTETS = 50_000

#: A device node that everybody may open, as distributions have it; in this process's own mount namespace.
TUN = 'mount -t tmpfs tun /dev/net && mknod -m {mode} /dev/net/tun c 10 200 && exec "$@"'


class Machine:
    """A namespace that stands for the machine."""

    def __init__(self, name: str) -> None:
        """Use `world`."""
        self.name = name

    @property
    def server(self) -> Machine:
        """The one that the server is on, a stranger on this one's network."""
        return Machine(self.name.replace("al-m-", "al-s-"))

    def user(self, user: User, tun: str | None = "666", **files: Path) -> User:
        """The user, on this machine; `files` are other contents of files in /etc, such as `hosts`."""
        wrapper = ["unshare", "--mount", "sh", "-c", TUN.format(mode=tun), "sh"] if tun else []
        for name, path in files.items():
            mount = f'mount --bind {path} /etc/{name.replace("_", ".")} && exec "$@"'
            wrapper = ["unshare", "--mount", "sh", "-c", mount, "sh", *wrapper]
        return user._replace(prefix=["ip", "netns", "exec", self.name, *wrapper, *user.prefix])

    def run(self, *words: str) -> str:
        """What a program prints there."""
        command = ["ip", "netns", "exec", self.name, *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def state(self) -> list[str]:
        """Devices, addresses, rules and the settings that have to do with forwarding."""
        # Whether an address has been looked for elsewhere changes by itself.
        addresses = self.run("ip", "-o", "address").replace(" tentative", "").splitlines()
        said = addresses + self.run("nft", "list", "ruleset").splitlines()
        # A device may go between the list of its settings and a look at them.
        settings = "grep -s . */conf/*/*forwarding */conf/*/accept_redirects ipv4/ip_forward; true"
        return sorted(said) + self.run("sh", "-c", f"cd /proc/sys/net && {settings}").splitlines()

    def quiet(self) -> list[str]:
        """The state in which no laboratory is left: the kernel takes devices of one that ended away by and by."""
        end = time.monotonic() + PATIENCE_S
        while "airloom" in (state := "\n".join(self.state())):
            assert time.monotonic() < end, state
            time.sleep(0.05)
        return self.state()

    def becomes(self, before: list[str]) -> bool:
        """Is it as it was, or soon?"""
        end = time.monotonic() + PATIENCE_S
        while self.state() != before and time.monotonic() < end:
            time.sleep(0.05)
        return self.state() == before

    def forwards(self, key: str = "ipv4/conf/eth0/forwarding") -> bool:
        """Does its way to the server pass on what comes back?"""
        return self.run("cat", f"/proc/sys/net/{key}") == "1\n"


@contextmanager
def world(place: Path, certificate: Path | None = None) -> Iterator[Machine]:
    """A machine with a way to a server that has a file `file`; both are gone afterwards.

    The server answers for all names, at port 53, and with a `certificate` (its key beside it) by HTTPS too.
    """
    if os.geteuid() != 0:
        pytest.skip("not root: a machine and a server of our own take two namespaces with names")
    needs("ip")
    needs("nft")
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not installed: apt-get install util-linux")
    mark = uuid.uuid4().hex[:8]
    machine, server = f"al-m-{mark}", f"al-s-{mark}"
    commands = f"""
netns add {machine}
netns add {server}
-n {machine} link add eth0 type veth peer name eth0 netns {server}
-n {machine} address add {MACHINE}/24 dev eth0
-n {server} address add {SERVER}/24 dev eth0
-n {machine} address add {MACHINE_V6}/64 dev eth0 nodad
-n {server} address add {SERVER_V6}/64 dev eth0 nodad
"""
    place.mkdir(exist_ok=True)
    (place / "file").write_bytes(bytes(OCTETS))
    try:
        for line in commands.strip().splitlines():
            subprocess.run(["ip", *line.split()], check=True, capture_output=True)
        for name in (machine, server):
            for device in ("lo", "eth0"):
                subprocess.run(["ip", "-n", name, "link", "set", device, "up"], check=True)
        # A new namespace has the settings of the machine that tests run on, and that may forward for containers.
        for key in ("ipv4/ip_forward", "ipv6/conf/all/forwarding"):
            command = ["ip", "netns", "exec", machine, "sh", "-c", f"echo 0 > /proc/sys/net/{key}"]
            subprocess.run(command, check=True)
        for via in (SERVER, SERVER_V6):
            subprocess.run(["ip", "-n", machine, "route", "add", "default", "via", via], check=True)
        serve = [sys.executable, str(Path(__file__).with_name("outside_server.py")), SERVER, str(place)]
        command = ["ip", "netns", "exec", server, *serve, *([str(certificate)] if certificate else [])]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                _wait_for_the_server(machine)
                yield Machine(machine)
            finally:
                process.kill()
    finally:
        for name in (machine, server):
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)


def _wait_for_the_server(machine: str) -> None:
    script = f"""
import socket, time
for _ in range(1000):
    try:
        socket.create_connection(("{SERVER}", 80), timeout=5).close()
        break
    except OSError:
        time.sleep(0.02)
"""
    subprocess.run(["ip", "netns", "exec", machine, sys.executable, "-c", script], check=True)
