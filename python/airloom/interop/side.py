"""One side of `airloom interop sim`, a program in the laboratory: `side.py DEVICE ADDRESS/BITS...`.

Takes DEVICE out of the network namespace that is standard input, gives it the addresses, opens the port by which the
runner's endpoints see that the network is there, and says so. Gives the device back when it is told to end.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time

#: What the runner's endpoints wait for.
READY_PORT = 57832


def _ip(*words: str, outside: bool = False) -> None:
    prefix = ["nsenter", "--net=/proc/self/fd/0"] if outside else []
    subprocess.run([*prefix, "ip", *words], check=True, pass_fds=[_HERE])


_HERE = os.open("/proc/self/ns/net", os.O_RDONLY)


def _wait_for_carrier(device: str) -> None:
    """Waits until the kernel has told a bridge at the other end that this port works: up to a second (`linkwatch`).

    Who asks for an address before that is not heard, and waits for a second itself.
    """
    end = time.monotonic() + 2
    while time.monotonic() < end:
        said = subprocess.run(["ip", "-j", "link", "show", "dev", device], check=True, capture_output=True)
        if b'"operstate":"UP"' in said.stdout:
            return
        time.sleep(0.02)


if __name__ == "__main__":
    device, *addresses = sys.argv[1:]
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    _ip("link", "set", device, "netns", f"/proc/self/fd/{_HERE}", outside=True)
    try:
        for address in addresses:
            _ip("address", "add", address, "dev", device, *(["nodad"] if ":" in address else []))
        _ip("link", "set", device, "up")
        _wait_for_carrier(device)
        with socket.create_server(("", READY_PORT), family=socket.AF_INET6, dualstack_ipv6=True) as port:
            print("ready", flush=True)
            while True:
                with contextlib.suppress(ConnectionError):
                    port.accept()[0].close()
    finally:
        _ip("link", "set", device, "netns", "/proc/self/fd/0")
        for address in addresses:
            _ip("address", "add", address, "dev", device, *(["nodad"] if ":" in address else []), outside=True)
        _ip("link", "set", device, "up", outside=True)
