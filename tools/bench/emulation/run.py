"""Measures the emulator: throughput, cost, delay and rate errors, beside a bare pair of devices.

Each measurement is a scenario of two real hosts on one link, run by the native program: a server in the one, a client
in the other. What the engine used of the processor it says itself.
"""

import json
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OWD = str(Path(__file__).with_name("owd.py"))
SERVER = "10.77.0.1"
#: A user without rights.
NOBODY = "65534"
#: Longest a measurement may take, in seconds.
PATIENCE = 120
PROBES = 1000
#: Mean time between two of them.
GAP_MS = 2.0


@dataclass
class Ran:
    """What a command printed, and the engine's figures (none on a bare pair)."""

    output: str
    engine: dict[str, float]


Run = Callable[[list[str], list[str]], Ran]


def emulate(program: str, link: str) -> Run:
    """Runs a server and a client at the ends of `link`."""

    def run(server: list[str], client: list[str]) -> Ran:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "scenario.toml"
            file.write_text(
                'path = ["client", "link", "server"]\n'
                f"hosts.client = {{ real = true }}\nhosts.server = {{ real = true, command = {json.dumps(server)} }}\n"
                f'links.link = {{ {link} }}\nrun = {{ record = "none" }}\n'
            )
            done = subprocess.run(
                [program, str(file), *client], capture_output=True, text=True, timeout=PATIENCE, check=False
            )
        figures = {key: float(value) for key, value in re.findall(r"^(\S+) +(-?[0-9.]+)$", done.stderr, re.MULTILINE)}
        if "engine_cpu_s" not in figures:
            raise RuntimeError(f"{' '.join(client)}: {done.stderr.strip()[-300:]}")
        return Ran(done.stdout, figures)

    return run


@contextmanager
def bare_pair() -> Iterator[Run]:
    """The same on a pair of devices with nothing in between: what the machine can do."""
    names = [f"airloom-bench-{os.getpid()}-{end}" for end in "ab"]

    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True, capture_output=True)

    def run(server: list[str], client: list[str]) -> Ran:
        serving = subprocess.Popen(
            ["ip", "netns", "exec", names[1], *server], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(0.5)
        try:
            command = ["ip", "netns", "exec", names[0], *client]
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
            if serving.args[-3:-2] == ["recv"]:  # type: ignore[index]
                serving.wait(timeout=30)
        finally:
            serving.terminate()
            serving.wait()
        return Ran(done.stdout, {})

    try:
        for name in names:
            ip("netns", "add", name)
        ip("link", "add", "one", "netns", names[0], "type", "veth", "peer", "name", "other", "netns", names[1])
        for name, device, address in ((names[0], "one", "10.77.0.2"), (names[1], "other", SERVER)):
            ip("-n", name, "address", "add", f"{address}/24", "dev", device)
            ip("-n", name, "link", "set", device, "up")
        yield run
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


@contextmanager
def mahimahi() -> Iterator[Run]:
    """The same through Mahimahi's mm-delay without any delay, as an ordinary user: it refuses to run as root."""
    name = f"airloom-bench-{os.getpid()}-mahimahi"
    inside = ["ip", "netns", "exec", name]

    def run(server: list[str], client: list[str]) -> Ran:
        serving = subprocess.Popen([*inside, *server], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.5)
        try:
            # The other end has an address that only the shell inside knows.
            line = " ".join("$MAHIMAHI_BASE" if word == SERVER else shlex.quote(word) for word in client)
            user = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]
            command = [*inside, *user, "mm-delay", "0", "sh", "-c", line]
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        finally:
            serving.terminate()
            serving.wait()
        return Ran(done.stdout, {})

    try:
        subprocess.run(["ip", "netns", "add", name], check=True, capture_output=True)
        subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True, capture_output=True)
        yield run
    finally:
        subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


def iperf(run: Run, *words: str) -> tuple[dict[str, Any], Ran]:
    """One run of iperf3, and what its end says."""
    ran = run(["iperf3", "-s"], ["iperf3", "-c", SERVER, "-J", *words])
    said = json.loads(ran.output)
    if "error" in said:
        raise RuntimeError(f"iperf3: {said['error']}")
    return said["end"], ran


def tcp(run: Run, seconds: int) -> tuple[float, float | None]:
    """Gigabits of goodput a second of one flow, and the engine's CPU seconds for a gigabyte."""
    end, ran = iperf(run, "-t", str(seconds))
    received = end["sum_received"]
    cpu = ran.engine.get("engine_cpu_s")
    return received["bits_per_second"] / 1e9, cpu and cpu / (received["bytes"] / 1e9)


def udp(run: Run, seconds: int) -> tuple[float, float | None]:
    """Thousands of 100-octet datagrams a second that arrive, and the engine's CPU microseconds for one."""
    end, ran = iperf(run, "-u", "-b", "0", "-l", "100", "-t", str(seconds))
    arrived = end["sum"]["packets"] - end["sum"]["lost_packets"]
    cpu = ran.engine.get("engine_cpu_s")
    return arrived / end["sum"]["seconds"] / 1e3, cpu and cpu / arrived * 1e6


def probes(run: Run, count: int, gap_ms: float, size: int, how: str) -> dict[str, Any]:
    """What the receiver of probes wrote."""
    prefix = ["chrt", "-f", "20"] if how == "poisson" and os.geteuid() == 0 and shutil.which("chrt") else []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "delays.json"
        sender = [*prefix, sys.executable, OWD, "send", SERVER, str(count), str(gap_ms), str(size), how]
        # The receiver writes when the last has come: the client waits for that.
        wait = f'"$@"; for i in $(seq 100); do [ -s {file} ] && exit; sleep 0.1; done'
        run([*prefix, sys.executable, OWD, "recv", str(file), str(count)], ["sh", "-c", wait, "sh", *sender])
        found: dict[str, Any] = json.loads(file.read_text())
    return found


def delay(run: Run, want_ms: float, results: dict[str, float], name: str) -> None:
    """Error of the one-way delay of small datagrams on an idle link."""
    found = probes(run, PROBES, GAP_MS, 64, "poisson")
    errors = sorted(d / 1e3 - want_ms * 1e3 for d in found["delays_ns"])
    results[f"{name}_p50_us"] = statistics.median(errors)
    results[f"{name}_p99_us"] = errors[int(len(errors) * 0.99)]
    results[f"{name}_max_us"] = errors[-1]
    results[f"{name}_lost"] = PROBES - len(errors)
    if want_ms:
        results["emu.early"] = sum(e < -1 for e in errors)


def rate(program: str, text: str, bits: float, seconds: float) -> float:
    """Error of a link's rate, as a share of it: datagrams of 1500 octets, 1.2 times as many as fit."""
    gap_ms = 12000 / bits / 1.2 * 1e3
    run = emulate(program, f'bearer = "wireline", rate = "{text}", delay = "10ms"')
    found = probes(run, max(20, int(seconds * 1e3 / gap_ms)), gap_ms, 1472, "paced")
    return float(abs(found["octets"] * 8e9 / found["span_ns"] / bits - 1))


def radio(program: str, results: dict[str, float]) -> None:
    """What a dedicated channel costs, full in both directions and idle."""
    full = emulate(program, 'bearer = "umts-dch", rate = { downlink = "384kbit/s", uplink = "64kbit/s" }')
    _, ran = iperf(full, "-t", "10", "--bidir")
    # Looking at the clock gives way to others.
    results["emu.radio_core"] = ran.engine["engine_cpu_share"] - ran.engine["engine_clock_share"]
    idle = emulate(program, 'bearer = "umts-dch"')
    listen = [sys.executable, "-c", "import socket, time; s = socket.create_server(('', 1)); time.sleep(60)"]
    results["emu.idle_core"] = idle(listen, ["sleep", "5"]).engine["engine_cpu_share"]


def start(program: str) -> float:
    """Milliseconds from nothing to an engine that takes packets: two hosts, the median of five."""
    text = 'path = ["a", "link", "b"]\nhosts.a = { real = true }\nhosts.b = { real = true }\nlinks.link = "wireline"\n'
    taken = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scenario.toml"
        file.write_text(text)
        for _ in range(5):
            done = subprocess.run([program, str(file), "true"], capture_output=True, text=True, check=False)
            if found := re.search(r"^engine_start_ms +([0-9.]+)$", done.stderr, re.MULTILINE):
                taken.append(float(found[1]))
    return statistics.median(taken)


def measure(program: str, quick: bool) -> dict[str, float]:
    """All of it: name -> number. What cannot be measured here is said and left out."""
    results: dict[str, float] = {}
    seconds = 2 if quick else 5

    def attempt(what: str, work: Callable[[], None]) -> None:
        before = dict(results)
        try:
            work()
        except (OSError, RuntimeError, ValueError, KeyError, subprocess.SubprocessError) as e:
            print(f"  {what}: {e}", flush=True)
            return
        found = ", ".join(f"{k} {v:.4g}" for k, v in results.items() if before.get(k) != v)
        print(f"  {what:<14} {found}", flush=True)

    def both(name: str, cost: str | None, pair: tuple[float, float | None]) -> None:
        results[name] = pair[0]
        if cost and pair[1] is not None:
            results[cost] = pair[1]

    if shutil.which("iperf3") is None:
        print("  iperf3 is not installed (tools/peers bench): nothing to measure with")
        return results

    def veth() -> None:
        with bare_pair() as run:
            both("emu.veth_gbps", None, tcp(run, seconds))
            both("emu.veth_udp_kpps", None, udp(run, seconds))
            delay(run, 0, results, "emu.veth_delay")

    attempt("bare veth", veth)

    def mm_delay() -> None:
        with mahimahi() as run:
            both("emu.mahimahi_gbps", None, tcp(run, seconds))
            both("emu.mahimahi_udp_kpps", None, udp(run, seconds))

    if shutil.which("mm-delay"):
        attempt("Mahimahi", mm_delay)
    else:
        print("  Mahimahi       mm-delay is not installed")
    plain = emulate(program, 'bearer = "wireline"')
    shaped = 'bearer = "wireline", rate = "10Gbit/s", delay = "100us", loss = { downlink = 1e-5, uplink = 1e-5 }'
    attempt("transparent", lambda: both("emu.transparent_gbps", "emu.transparent_cpu_s_per_gb", tcp(plain, seconds)))
    attempt("packet", lambda: both("emu.tcp_gbps", "emu.cpu_s_per_gb", tcp(emulate(program, shaped), seconds)))
    attempt(
        "100-octet UDP", lambda: both("emu.udp_kpps", "emu.udp_us_per_packet", udp(emulate(program, shaped), seconds))
    )
    attempt("delay", lambda: delay(emulate(program, 'bearer = "wireline", delay = "10ms"'), 10, results, "emu.delay"))
    rates = [("384kbit/s", 384e3, 8.0), ("2Mbit/s", 2e6, 5.0), ("20Mbit/s", 20e6, 3.0), ("100Mbit/s", 100e6, 2.0)]
    for text, bits, took in rates[:2] if quick else rates:
        name = f"emu.rate_error.{text.removesuffix('bit/s')}"
        attempt(f"rate {text}", lambda: results.update({name: rate(program, text, bits, took)}))  # noqa: B023
    attempt("radio", lambda: radio(program, results))
    attempt("start", lambda: results.update({"emu.start_ms": start(program)}))
    return results
