"""`airloom serve split-tcp` between real programs."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.shell import airloom
from tests.conftest import needs
from tests.proxies.running import Server, connect, receive, reset, serving, stop


def echo(connection: socket.socket) -> None:
    """Says everything back once its peer has finished: the half-closed connection carries the answer."""
    connection.sendall(receive(connection))


def test_octets_and_half_closed_connections_pass(tmp_path: Path) -> None:
    said = random.Random(1).randbytes(3_000_000)
    with Server(echo) as origin, serving("split-tcp", "--to", f"127.0.0.1:{origin.port}") as proxy:
        with connect(proxy.address) as client:

            def send() -> None:
                client.sendall(said)
                client.shutdown(socket.SHUT_WR)

            sender = threading.Thread(target=send)
            sender.start()
            assert hashlib.sha256(receive(client)).digest() == hashlib.sha256(said).digest()
            sender.join()
        assert proxy.number('airloom_split_tcp_octets_total{direction="up"}') == len(said)
        assert proxy.number('airloom_split_tcp_octets_total{direction="down"}') == len(said)
        assert proxy.number("airloom_split_tcp_buffered_peak_octets") <= 65_536


def test_curl_and_nginx_talk_through_it(tmp_path: Path) -> None:
    nginx, curl = needs("nginx"), needs("curl")
    page = random.Random(2).randbytes(2_000_000)
    (tmp_path / "www").mkdir()
    (tmp_path / "www" / "page").write_bytes(page)
    tmp_path.chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    temporary = "".join(
        f"{name}_temp_path {tmp_path}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (tmp_path / "nginx.conf").write_text(
        f"daemon off; user root; pid {tmp_path}/pid; error_log {tmp_path}/error; events {{}}"
        f"http {{ access_log off; {temporary} server {{ listen 127.0.0.1:{port}; root {tmp_path}/www; }} }}"
    )
    with subprocess.Popen([nginx, "-c", str(tmp_path / "nginx.conf")]) as origin:
        try:
            with serving("split-tcp", "--to", f"127.0.0.1:{port}") as proxy:
                command = [curl, "-sSf", "--retry", "20", "--retry-all-errors", "--retry-delay", "1"]
                url = f"http://127.0.0.1:{proxy.port}/page"
                got = subprocess.run([*command, url], capture_output=True, check=True, timeout=120).stdout
                assert got == page
        finally:
            origin.terminate()


def test_a_reset_is_passed_on_both_ways() -> None:
    heard = threading.Event()

    def listen(connection: socket.socket) -> None:
        first = connection.recv(10)
        if first == b"reset me":
            return reset(connection)
        try:
            connection.recv(10)
        except ConnectionResetError:
            heard.set()
        return None

    with Server(listen) as origin, serving("split-tcp", "--to", f"127.0.0.1:{origin.port}") as proxy:
        with connect(proxy.address) as client:
            client.sendall(b"reset me")
            with pytest.raises(ConnectionResetError):
                client.recv(10)
        client = connect(proxy.address)
        client.sendall(b"hello")
        while proxy.number('airloom_split_tcp_octets_total{direction="up"}') < 13:
            pass
        reset(client)
        assert heard.wait(30)


def test_a_server_that_is_not_there_is_heard_of_as_a_reset() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with serving("split-tcp", "--to", f"127.0.0.1:{port}") as proxy:
        # It may come before the client has seen that it was let in.
        with pytest.raises(ConnectionResetError), connect(proxy.address) as client:
            client.recv(10)
        assert proxy.number('airloom_split_tcp_onward_total{outcome="failed"}') == 1


def test_what_the_client_does_not_take_is_not_read_from_the_server() -> None:
    sent = []

    def pour(connection: socket.socket) -> None:
        connection.setblocking(True)
        for _ in range(4_000):
            sent.append(connection.send(bytes(10_000)))

    with (
        Server(pour) as origin,
        serving("split-tcp", "--to", f"127.0.0.1:{origin.port}") as proxy,
        connect(proxy.address) as client,
    ):
        # The kernel's buffers fill, and then nothing moves: two looks at a still count.
        before, now = -1, 0
        while before != now or now == 0:
            before, now = now, sum(sent)
            client.settimeout(0.5)
            threading.Event().wait(0.5)
        assert now < 40_000_000
        assert proxy.number("airloom_split_tcp_buffered_peak_octets") <= 65_536
        client.settimeout(30)
        assert len(receive(client)) == 40_000_000


def test_pairs_on_which_nothing_moves_end() -> None:
    with Server(receive_and_forget) as origin:
        words = ("--to", f"127.0.0.1:{origin.port}", "--set", "idle=300ms")
        with serving("split-tcp", *words) as proxy, connect(proxy.address) as client:
            with pytest.raises(ConnectionResetError):
                client.recv(10)
            assert proxy.number("airloom_split_tcp_idle_total") == 1
            assert proxy.number("airloom_split_tcp_pairs") == 0


def receive_and_forget(connection: socket.socket) -> None:
    receive(connection)


def test_a_thousand_idle_pairs_are_small_and_hinder_nobody() -> None:
    with Server(echo) as origin, serving("split-tcp", "--to", f"127.0.0.1:{origin.port}") as proxy:
        before = memory(proxy.process.pid)
        clients = [connect(proxy.address) for _ in range(1000)]
        try:
            while proxy.number('airloom_split_tcp_onward_total{outcome="opened"}') < len(clients):
                pass
            with connect(proxy.address) as client:
                client.sendall(b"hello")
                client.shutdown(socket.SHUT_WR)
                assert receive(client) == b"hello"
            assert (memory(proxy.process.pid) - before) / len(clients) < 64 * 1024
        finally:
            for client in clients:
                client.close()


def memory(pid: int) -> int:
    """Octets of memory that a process has."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_who_may_come_and_where_it_leads() -> None:
    with Server(echo) as origin:
        words = ("--to", f"127.0.0.1:{origin.port}", "--allow-client", "127.0.0.2", "--allow-client", "10.0.0.0/8")
        with serving("split-tcp", *words) as proxy:
            # An end is as good as a reset.
            with suppress(ConnectionResetError), connect(proxy.address) as client:
                client.sendall(b"x")
                assert client.recv(10) == b""
            assert origin.connections == 0
        done = airloom("serve", "split-tcp", "--to", f"localhost:{origin.port}")
        assert done.code != 0
        assert "--allow-origin localhost" in done.err
    for wrong in (
        ["--listen", "0.0.0.0:0", "--to", "127.0.0.1:1"],
        ["--listen", "127.0.0.1:0"],
        ["--to", "127.0.0.1:1", "--transparent"],
        ["--to", "127.0.0.1:1", "--set", "connects=before-answering"],
        ["--to", "127.0.0.1:1", "--set", "server=x"],
        ["--to", "127.0.0.1:1", "--set", "idle=0s"],
        ["--to", "127.0.0.1:1", "--allow-client", "everybody"],
        # Itself, by whatever address.
        ["--listen", "127.0.0.1:8991", "--to", "127.0.0.1:8991"],
        ["--listen", "127.0.0.1:8991", "--to", "0.0.0.0:8991"],
        ["--listen", "127.0.0.1:8991", "--to", "localhost:8991", "--allow-origin", "localhost"],
        ["--listen", "0.0.0.0:8991", "--allow-client", "127.0.0.1", "--to", "127.0.0.3:8991"],
    ):
        done = airloom("serve", "split-tcp", *wrong)
        assert done.code == 2, (wrong, done)


def test_it_stops_when_told_to_and_lets_what_is_under_way_end() -> None:
    with Server(echo) as origin, serving("split-tcp", "--to", f"127.0.0.1:{origin.port}", "--grace", "60") as proxy:
        with connect(proxy.address) as client:
            client.sendall(b"one ")
            while proxy.number('airloom_split_tcp_octets_total{direction="up"}') < 4:
                pass
            stop(proxy)
            client.sendall(b"two")
            client.shutdown(socket.SHUT_WR)
            assert receive(client) == b"one two"
        assert proxy.process.wait(30) == 0


@pytest.mark.parametrize("listen", ["127.0.0.1:9999", "[::]:9999"])
def test_connections_that_the_kernel_turned_aside_go_where_they_meant_to(tmp_path: Path, listen: str) -> None:
    nft, unshare = needs("nft"), shutil.which("unshare")
    if os.geteuid() != 0 or unshare is None:
        pytest.skip("needs root for a network namespace of its own")
    rules = tmp_path / "rules"
    # What the proxy itself opens (it runs as another group) is left alone.
    rules.write_text(
        "add table ip t\nadd chain ip t o { type nat hook output priority -100 ; }\n"
        "add rule ip t o ip daddr 127.0.0.9 tcp dport 7777 meta skgid != 4242 redirect to :9999\n"
    )
    script = tmp_path / "inside.py"
    script.write_text(INSIDE)
    command = [unshare, "--net", sys.executable, str(script), nft, str(rules), listen]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "meant 127.0.0.9\n"), done


#: Runs in a network namespace: a server at 127.0.0.9, a rule that turns its clients aside, the proxy, a client.
INSIDE = """
import os, signal, socket, subprocess, sys, threading
nft, rules, listen = sys.argv[1:]
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
subprocess.run([nft, "-f", rules], check=True)
listener = socket.create_server(("127.0.0.9", 7777))
def serve():
    connection, _ = listener.accept()
    connection.sendall(b"meant " + connection.getsockname()[0].encode())
    connection.close()
threading.Thread(target=serve, daemon=True).start()
command = [sys.executable, "-m", "airloom", "serve", "split-tcp", "--listen", listen, "--transparent"]
command += ["--allow-origin", "127.0.0.9", "--allow-client", "127.0.0.0/8"]
proxy = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, group=4242)
proxy.stdout.readline()
with socket.create_connection(("127.0.0.9", 7777), timeout=30) as client:
    print(client.recv(100).decode())
proxy.send_signal(signal.SIGINT)
sys.exit(proxy.wait(30))
"""
