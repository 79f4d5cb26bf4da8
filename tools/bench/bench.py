"""Runs the yardstick scenarios: ours, ns-3 and ns-2 (where installed) side by side.

Writes bench.json (flat name -> number) and docs/reference/benchmarks.md. CPU seconds are medians of whole processes,
user and system together; instructions are counted by callgrind and have the start-up subtracted.
"""

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tools.bench.emulation import run as emulation
from tools.bench.measure import Cost, Failed, cost, instructions
from tools.bench.proxies import measure as measure_proxies
from tools.bench.quic import measure as measure_quic
from tools.bench.report import page, table
from tools.bench.sweeps import measure as measure_sweeps
from tools.bench.wap import measure as measure_wap
from tools.bench.wwp import measure as measure_wwp

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / "tools" / "bench" / "peers"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
NS3_MODULES = "applications internet traffic-control point-to-point bridge stats network core"
NS3_LIBRARIES = [f"-lns3-{name}" for name in NS3_MODULES.split()]


#: Programs of ours that nothing else does.
ALONE = {
    "sim.rlc384": ["rlc", "2000"],
    "sim.idle50": ["cell", "36000"],
    "sim.sctp": ["sctp", "500"],
    "sim.egprs4": ["egprs", "36000"],
}
#: Those of which packets count, and not simulated time.
PACKETS = ("sim.sctp",)


@dataclass
class Results:
    """Numbers by name, and what the programs said; what fails is said and counted, and the others go on."""

    numbers: dict[str, float] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)
    failures: int = 0

    def run_in_turns(self, commands: dict[str, tuple[list[str], int]]) -> None:
        """Measures several commands, each as often as it says, in turns: what else the machine does meets all alike."""
        runs: dict[str, list[Cost]] = {name: [] for name in commands}
        for turn in range(max(count for _, count in commands.values())):
            for name, (command, count) in commands.items():
                if turn >= count or len(runs[name]) < turn:
                    continue
                try:
                    runs[name].append(cost(command, 1, with_peak=turn == 0))
                except Failed as e:
                    self.failures += 1
                    print(f"  {name:<12} failed: {e}", flush=True)
        for name, costs in runs.items():
            if costs:
                self.add(name, Cost([c for one in costs for c in one.cpu_s], costs[0].peak_mib, costs[-1].output))

    def add(self, name: str, measured: Cost) -> None:
        self.numbers[f"{name}.cpu_s"] = measured.median
        if measured.peak_mib is not None:
            self.numbers[f"{name}.peak_mib"] = measured.peak_mib
        self.said[name] = measured.output
        spread = f"{min(measured.cpu_s):.4f}..{max(measured.cpu_s):.4f}, {len(measured.cpu_s)}"
        peak = "" if measured.peak_mib is None else f", {measured.peak_mib:.1f} MiB"
        print(f"  {name:<12} {measured.median:.4f} s ({spread}){peak}", flush=True)


def build_ours() -> Path:
    """The native program, built for release."""
    command = ["cargo", "build", "--quiet", "--release", "-p", "airloom-drive", "--example", "yardsticks"]
    subprocess.run(command, cwd=ROOT, check=True)
    return TARGET / "release" / "examples" / "yardsticks"


def build_emulator() -> str:
    """The native program that emulates a scenario."""
    command = ["cargo", "build", "--quiet", "--release", "-p", "airloom-drive", "--example", "emulate"]
    subprocess.run(command, cwd=ROOT, check=True)
    return str(TARGET / "release" / "examples" / "emulate")


def build_ns3() -> Path | None:
    """The program for ns-3, if ns-3 and a compiler are there."""
    compiler = shutil.which("g++")
    if compiler is None or not Path("/usr/include/ns3").exists():
        return None
    source, program = PEERS / "ns3_anchor.cc", TARGET / "bench" / "ns3_anchor"
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        program.parent.mkdir(parents=True, exist_ok=True)
        flags = ["-O3", "-march=native", "-DNDEBUG", "-std=gnu++17"]
        subprocess.run([compiler, *flags, str(source), "-o", str(program), *NS3_LIBRARIES], check=True)
    return program


def side_by_side(results: Results, program: str, with_others: bool, count: int, quick: bool) -> None:
    """Our own program, plain and with the profile `linux`, and ns-3 and ns-2 where installed."""
    ns3, ns2 = (build_ns3(), shutil.which("ns")) if with_others else (None, None)
    if with_others:
        for tool, found in (("ns-3", ns3), ("ns-2", ns2)):
            if found is None:
                print(f"  {tool}: not installed (tools/peers bench)")
    few = 1 if quick else min(count, 3)
    for name in "abcd":
        commands = {f"sim.{name}": ([program, name], count), f"sim.linux.{name}": ([program, name, "linux"], count)}
        times = {"c": min(count, 3), "d": 1}.get(name, count)
        if ns3 is not None and not (quick and name in "cd"):
            extra = ["--msl=1"] if name == "d" else []
            commands[f"ns3.{name}"] = ([str(ns3), f"--scen={name}", *extra], times)
        if ns2 is not None and not (quick and name in "cd"):
            commands[f"ns2.{name}"] = ([ns2, str(PEERS / "ns2_anchor.tcl"), name], times)
        # What has no counterpart takes its turn beside what is like it: else it meets a machine of another speed.
        if name == "b":
            commands["sim.b1000"] = ([program, "b", "1000"], few)
        if name == "c":
            commands |= {other: ([program, *words], few) for other, words in ALONE.items()}
        if name == "d":
            # Twice the connections: the time should double.
            commands["sim.d40"] = ([program, "d", "40"], few)
        results.run_in_turns(commands)
    for other in PACKETS:
        packets = re.search(r"packets=([0-9.]+)", results.said.get(other, ""))
        if packets:
            rate = float(packets[1]) / results.numbers[f"{other}.cpu_s"]
            results.numbers[f"{other}.packets_per_s"] = rate
            print(f"  {other:<12} {rate:.0f} packets per CPU s", flush=True)
    for other in [name for name in ALONE if name not in PACKETS]:
        simulated = re.search(r"simulated=([0-9.]+)", results.said.get(other, ""))
        if simulated:
            factor = float(simulated[1]) / results.numbers[f"{other}.cpu_s"]
            results.numbers[f"{other}.realtime_factor"] = factor
            print(f"  {other:<12} {factor:.0f} simulated s per CPU s", flush=True)


def counted(results: Results, program: str, quick: bool) -> None:
    """Instructions of our own program, and the profile `linux` beside the plain one."""
    for name in "ab" if quick else "abcd":
        count_instructions(results, f"sim.{name}", [program, name], [program, "idle"])
        count_instructions(results, f"sim.linux.{name}", [program, name, "linux"], [program, "idle", "linux"])
    for name in "abcd":
        for what, by in (("cpu_s", "ratio"), ("instructions", "instructions_ratio")):
            plain, linux = (results.numbers.get(f"{prefix}.{name}.{what}") for prefix in ("sim", "sim.linux"))
            if plain and linux:
                results.numbers[f"sim.linux.{name}.{by}"] = linux / plain
                print(f"  sim.linux.{name}: {linux / plain:.2f} times the {what} of plain TCP", flush=True)
        for prefix in (f"sim.{name}", f"sim.linux.{name}"):
            sent = re.search(r"packets=([0-9]+)", results.said.get(prefix, ""))
            if sent:
                results.numbers[f"{prefix}.packets"] = float(sent[1])


def count_instructions(results: Results, name: str, command: list[str], nothing: list[str]) -> None:
    """What callgrind counts for `command`, less that of `nothing`."""
    counted, start = instructions(command), instructions(nothing)
    if counted is not None and start is not None:
        results.numbers[f"{name}.instructions"] = counted - start
        print(f"  {name:<12} {(counted - start) / 1e6:.2f} million instructions", flush=True)


def machine() -> str:
    """The machine in a line."""
    names = [
        line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line
    ]
    name = names[0] if names else platform.machine()
    return f"{name}, {os.cpu_count()} virtual cores, {platform.system()} {platform.release().split('-')[0]}"


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="tools/bench/run", description=__doc__)
    parser.add_argument("--count", type=int, default=7, help="runs of each scenario (default 7)")
    parser.add_argument("--quick", action="store_true", help="few runs, no c and d of the others; writes no page")
    parser.add_argument("--only-emulation", action="store_true", help="real time only; writes no page")
    parser.add_argument("--only-quic", action="store_true", help="QUIC and HTTP/3 only; writes no page")
    parser.add_argument("--only-ours", action="store_true", help="do not run the others; writes no page")
    chosen = parser.parse_args()
    count = 3 if chosen.quick else max(chosen.count, 1)
    results = Results()
    try:
        if chosen.only_quic:
            print("quic")
            measure_quic(str(build_ours()), count)
            return 0
        if not chosen.only_emulation:
            print("simulation")
            program = str(build_ours())
            side_by_side(results, program, not chosen.only_ours, count, chosen.quick)
            counted(results, program, chosen.quick)
            print("quic")
            results.numbers.update(measure_quic(program, 1 if chosen.quick else min(count, 3)))
        print("emulation")
        load = os.getloadavg()[0]
        results.numbers.update(emulation.measure(build_emulator(), chosen.quick))
        results.numbers["emu.load_before"] = load
        if not chosen.only_emulation:
            print("wap")
            results.numbers.update(measure_wap(3.0 if chosen.quick else 10.0))
            print("proxies")
            results.numbers.update(measure_proxies(3.0 if chosen.quick else 10.0))
            print("wwp")
            results.numbers.update(measure_wwp(chosen.quick))
            print("sweeps")
            results.numbers.update(measure_sweeps(chosen.quick))
    except (Failed, subprocess.CalledProcessError) as e:
        print(e, file=sys.stderr)
        return 1
    print()
    print(table(results.numbers))
    numbers = json.dumps(dict(sorted(results.numbers.items())), indent=2)
    (ROOT / "bench.json").write_text(numbers + "\n")
    print("bench.json")
    if not (chosen.quick or chosen.only_ours or chosen.only_emulation):
        path = ROOT / "docs" / "reference" / "benchmarks.md"
        path.write_text(page(results.numbers, results.said, machine(), count))
        print(path.relative_to(ROOT))
    return 1 if results.failures else 0


if __name__ == "__main__":
    sys.exit(main())
