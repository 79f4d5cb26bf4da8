"""Programs that other people wrote, through a laboratory."""

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import airloom as al
from tests.conftest import needs

pytestmark = [pytest.mark.emulate, pytest.mark.usefixtures("laboratory")]

LINK = """\
title = "peers"
path = ["mobile", "radio", "origin"]
[hosts]
mobile = {{ real = true }}
origin = {{ real = true, command = {command} }}
[links]
radio = {{ bearer = "umts-dch", loss = {{ downlink = 0.05, uplink = 0.05 }} }}
"""


def serve(*command: str | Path) -> al.Lab:
    """A laboratory whose origin runs a server; `enter=False`."""
    words = json.dumps([str(word) for word in command])
    Path("peers.toml").write_text(LINK.format(command=words))
    return al.lab("peers.toml", seed=3, enter=False)


def nginx(folder: Path, listen: str) -> list[str | Path]:
    """An nginx that needs nothing outside `folder`."""
    program = needs("nginx")
    (folder / "www").mkdir()
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = "".join(f"{kind}_temp_path {folder / kind};" for kind in kinds)
    (folder / "nginx.conf").write_text(
        f"daemon off; worker_processes 1; user root; pid {folder / 'pid'}; events {{}}\n"
        f"http {{ access_log off; {places} types {{ text/html html; image/png png; }}\n"
        f"server {{ {listen} root {folder / 'www'}; }} }}"
    )
    return [program, "-e", "stderr", "-c", folder / "nginx.conf"]


def test_curl_speaks_http_1_and_http_2_with_nginx(tmp_path: Path) -> None:
    needs("curl")
    command = nginx(tmp_path, "listen 80; listen 81 http2;")
    (tmp_path / "www" / "object").write_bytes(os.urandom(60_000))
    with serve(*command) as link:
        for options, version in (
            ("http://origin/object", "1.1"),
            ("--http2-prior-knowledge http://origin:81/object", "2"),
        ):
            form = "%{http_version} %{size_download} %{http_code}"
            done = link.run(f"curl -s -o got -w '{form}' {options}", capture_output=True, text=True)
            assert done.stdout == f"{version} 60000 200", done.stderr
            assert Path("got").read_bytes() == (tmp_path / "www" / "object").read_bytes()
    assert link.summary["rlc_resent"] > 0


def sctp_peer(name: str, folder: Path) -> str:
    """A program that the tests of our SCTP run against, compiled; it speaks over UDP (RFC 6951)."""
    sources = Path(__file__).parents[2] / "crates" / "drive" / "tests"
    program = str(folder / name)
    if name == "usrsctp":
        if not Path("/usr/include/usrsctp.h").is_file():
            pytest.skip("usrsctp is not installed (tools/peers test)")
        command = [needs("cc"), "-O2", "-o", program, str(sources / "usrsctp/peer.c"), "-lusrsctp", "-lpthread"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    else:
        packages = "/usr/share/gocode"
        if not Path(packages, "src/github.com/pion/sctp").is_dir():
            pytest.skip("pion is not installed (tools/peers test)")
        command = [needs("go"), "build", "-o", program, str(sources / "pion/peer.go")]
        quiet = {"GO111MODULE": "off", "GOPATH": packages, "GOTOOLCHAIN": "local", "GOFLAGS": ""}
        # What the Rust tests compile of it, too.
        environment = os.environ | quiet | {"GOCACHE": str(sources.parents[2] / "target" / "tmp" / "go")}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return program


@pytest.mark.parametrize("name", ["usrsctp", "pion"])
def test_messages_on_eight_streams_of_sctp_cross_the_radio_and_come_back(name: str, tmp_path: Path) -> None:
    peer = sctp_peer(name, tmp_path)
    with serve(peer, "serve", "10.77.0.1", "5001", "9899", "9899", "echo") as link:
        words = f"{peer} send 10.77.0.2 5001 9899 9899 echo 10.77.0.1 60000 8 1200"
        done = link.run(words, capture_output=True, text=True)
    said = json.loads(done.stdout)
    assert (said["messages"], said["octets"], said["streams"], said["wrong"]) == (50, 60_000, 8, 0), done.stderr
    assert link.summary["rlc_resent"] > 0


def test_iperf3_measures_what_the_channel_carries() -> None:
    def measured(rate: str, port: int) -> Any:
        words = f"iperf3 -u -J -c origin -p {port} -b {rate} -t 3 -l 500 -R"
        answer = json.loads(link.run(words, capture_output=True, text=True).stdout)
        # It is there with exit code 0 all the same (iperf 3.12).
        assert "error" not in answer, answer["error"]
        return answer

    # A server for each: between two tests one refuses or resets who comes, while the radio still carries the first.
    iperf3 = needs("iperf3")
    with serve("sh", "-c", f"{iperf3} -s -p 5202 & exec {iperf3} -s -p 5201") as link:
        # The host is ready when one of them listens.
        link.run("until [ $(grep -c ' 0A ' /proc/net/tcp6) -ge 2 ]; do sleep 0.05; done", host="origin", timeout=60)
        within, beyond = measured("100k", 5201), measured("1M", 5202)
    # Over a channel of 384 kbit/s that repeats what it loses, 100 kbit/s arrive. The origin sends until it is told to
    # stop, which takes a way over the radio: by its own seconds.
    sent = within["end"]["sum_sent"]
    assert within["end"]["sum"]["lost_percent"] < 5
    assert sent["seconds"] >= 3
    assert sent["packets"] * 500 * 8 == pytest.approx(100_000 * sent["seconds"], rel=0.1)
    # Of 1 Mbit/s no more arrives than it carries: what the receiving end counted, second by second.
    counted = [interval["sum"] for interval in beyond["intervals"]]
    arrived = sum(c["bytes"] for c in counted) * 8 / sum(c["seconds"] for c in counted)
    assert 200_000 < arrived < 384_000
    assert link.summary["rlc_resent"] > 0


def test_ssh_opens_a_session_and_ping6_answers(tmp_path: Path) -> None:
    for program in ("ssh", "ping", "ssh-keygen", "mount"):
        needs(program)
    sshd = needs("sshd")
    if os.geteuid() != 0:
        pytest.skip("sshd wants to be root")
    keys = f"ssh-keygen -q -t ed25519 -N '' -f {tmp_path}/host && ssh-keygen -q -t ed25519 -N '' -f {tmp_path}/user"
    assert os.system(keys) == 0
    # It insists on a folder below /run: in the program's own mount namespace that is nobody else's.
    start = f"mount -t tmpfs run /run && mkdir /run/sshd && exec {sshd} -D -e -p 2222 -h {tmp_path}/host"
    options = ["UsePAM=no", "StrictModes=no", f"AuthorizedKeysFile={tmp_path}/user.pub", "PidFile=none"]
    shell = " ".join([start, "-f /dev/null", *(f"-o {o}" for o in options)])
    with serve("sh", "-c", shell) as link:
        trusting = "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
        client = f"ssh -n -p 2222 -i {tmp_path}/user {trusting}"
        done = link.run(f"{client} root@origin 'echo $SSH_CONNECTION'", capture_output=True, text=True, timeout=60)
        assert "2222" in done.stdout, done.stderr
        # One at a time: ping waits for a last answer no longer than twice the round trip, RLC may take more.
        ping = link.run("ping -6 -n -c 1 -W 20 origin", capture_output=True, text=True)
    assert "1 received" in ping.stdout
    # Radio and core network take 50 ms each way, and nobody is there sooner.
    assert float(ping.stdout.partition("time=")[2].split()[0]) > 100
    # The session's keys alone are more than this.
    assert link.summary["uplink.delivered_bytes"] > 2000


QUIC_SERVER = """
import asyncio, sys
from aioquic.asyncio import serve, QuicConnectionProtocol
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import StreamDataReceived
class Answer(QuicConnectionProtocol):
    def quic_event_received(self, event):
        if isinstance(event, StreamDataReceived) and event.end_stream:
            self._quic.send_stream_data(event.stream_id, event.data * 1000, end_stream=True)
            self.transmit()
async def main():
    configuration = QuicConfiguration(is_client=False, alpn_protocols=["test"])
    configuration.load_cert_chain(sys.argv[1], sys.argv[2])
    await serve("0.0.0.0", 4433, configuration=configuration, create_protocol=Answer)
    await asyncio.Event().wait()
asyncio.run(main())
"""
QUIC_CLIENT = """
import asyncio, ssl
from aioquic.asyncio import connect
from aioquic.quic.configuration import QuicConfiguration
async def main():
    configuration = QuicConfiguration(is_client=True, alpn_protocols=["test"], verify_mode=ssl.CERT_NONE)
    async with connect("10.77.0.1", 4433, configuration=configuration) as client:
        reader, writer = await client.create_stream()
        writer.write(b"0123456789")
        writer.write_eof()
        print(len(await reader.read()))
asyncio.run(main())
"""


def test_quic_carries_a_stream_between_two_real_hosts(tmp_path: Path) -> None:
    needs("openssl")
    make = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=origin"
    assert os.system(f"{make} -keyout {tmp_path}/key -out {tmp_path}/cert 2>/dev/null") == 0
    with serve(sys.executable, "-c", QUIC_SERVER, tmp_path / "cert", tmp_path / "key") as link:
        done = link.run([sys.executable, "-c", QUIC_CLIENT], capture_output=True, text=True, timeout=60)
    assert done.stdout == "10000\n", done.stderr
    assert link.summary["downlink.delivered_bytes"] > 10_000


@pytest.mark.slow
def test_chromium_loads_and_shows_a_page_over_umts(tmp_path: Path) -> None:
    import numpy as np
    from PIL import Image

    chromium = needs("chromium")
    command = nginx(tmp_path, "listen 80;")
    page = "<html><body style='margin:0;background:#0a0'><h1 style='font-size:80px'>over the air</h1>{}</body></html>"
    (tmp_path / "www" / "index.html").write_text(page.format("".join(f"<img src='{n}.png'>" for n in range(3))))
    for n in range(3):
        # Red with noise, so that it does not become small.
        reds = random.Random(n).choices(range(200, 256), k=100 * 100)
        picture = Image.new("RGB", (100, 100))
        picture.putdata([(red, 0, 0) for red in reds])
        picture.save(tmp_path / "www" / f"{n}.png")
    size = sum(file.stat().st_size for file in (tmp_path / "www").iterdir())
    shot = Path(os.environ.get("AIRLOOM_SHOT", tmp_path / "shot.png"))
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile"]
    options += ["--window-size=800,600", "--hide-scrollbars", f"--screenshot={shot}", "--disable-dev-shm-usage"]
    with serve(*command) as link:
        done = link.run([chromium, *options, "http://origin/"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    # Everything came over the channel, and was painted: the page is green, the pictures are red.
    assert link.summary["downlink.delivered_bytes"] > size
    with Image.open(shot) as shown:
        assert shown.size == (800, 600)
        red, green, blue = np.asarray(shown.convert("RGB")).transpose(2, 0, 1)
    assert ((red == 0) & (green == 170) & (blue == 0)).sum() > 800 * 600 / 2
    assert ((red >= 200) & (green == 0)).sum() == 3 * 100 * 100
    shutil.rmtree(tmp_path / "profile", ignore_errors=True)
