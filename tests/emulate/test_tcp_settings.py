"""The kernel of a real host behaves as the scenario says of its TCP."""

import json
import sys
from pathlib import Path

import pytest

import airloom as al
from airloom import _core

pytestmark = [pytest.mark.emulate, pytest.mark.usefixtures("laboratory")]

ASK = """
import json, socket, struct
with socket.create_connection(("origin", 80)) as connection:
    name = connection.getsockopt(socket.IPPROTO_TCP, 13, 16).rstrip(bytes(1)).decode()
    # struct tcp_info: options agreed on, and the congestion window.
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
    options, window = info[5], struct.unpack_from("I", info, 80)[0]
found = {"congestion": name, "timestamps": options & 1, "sack": options >> 1 & 1, "scaling": options >> 2 & 1}
for key in ("tcp_rmem", "tcp_dsack", "tcp_early_retrans", "tcp_frto", "tcp_ecn"):
    found[key] = open(f"/proc/sys/net/ipv4/{key}").read().split()
print(json.dumps(found | {"window": window}))
"""

LINK = """\
path = ["mobile", "wire", "origin"]
[hosts]
mobile = {{ real = true, transport = {transport} }}
origin = {{ app = "http-server" }}
[links]
wire = {{ bearer = "wireline", delay = "1ms" }}
"""


def asked(transport: str) -> dict[str, object]:
    Path("settings.toml").write_text(LINK.format(transport=transport))
    with al.lab("settings.toml", enter=False) as link:
        done = link.run([sys.executable, "-c", ASK], capture_output=True, text=True, check=True)
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_plain_tcp_is_cubic_whatever_the_machine_uses() -> None:
    found = asked('"tcp"')
    assert found["congestion"] == "cubic"
    assert (found["timestamps"], found["sack"], found["scaling"]) == (1, 1, 1)
    assert found["window"] == 10


def test_a_kernel_does_what_the_scenario_says() -> None:
    keys = 'congestion = "newreno", initial_window = 3, sack = false, timestamps = false, window_scaling = false'
    more = 'dsack = false, tlp = false, frto = false, ecn = "off"'
    buffers = 'receive_buffer = "2MB", initial_receive_window = "1MB"'
    found = asked(f"{{ tcp = {{ {keys}, {more}, {buffers} }} }}")
    assert found == {
        "congestion": "reno",
        "timestamps": 0,
        "sack": 0,
        "scaling": 0,
        "window": 3,
        "tcp_rmem": ["4096", "2000000", "4000000"],
        "tcp_dsack": ["0"],
        "tcp_early_retrans": ["0"],
        "tcp_frto": ["0"],
        "tcp_ecn": ["0"],
    }


def test_a_controller_that_the_kernel_lacks_ends_the_run_with_its_name() -> None:
    with pytest.raises(_core.DriveError, match=r"`mobile`.*no congestion control `tahoe`"):
        asked('{ tcp = { congestion = "tahoe" } }')
