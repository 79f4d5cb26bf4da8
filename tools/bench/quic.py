"""QUIC beside its library alone: packets per CPU second, what protection costs, and a thousand clients over HTTP/3."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from tools.bench.measure import once

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))

#: What cargo is told for the program that is a library alone.
LIBRARIES = {"bare": [], "quinn": ["--features", "quinn"]}


def build(name: str) -> str:
    """The program that is a library and nothing else, built for release."""
    command = ["cargo", "build", "--quiet", "--release", "-p", "airloom-quic", "--example", "bare", *LIBRARIES[name]]
    subprocess.run(command, cwd=ROOT, check=True)
    program = TARGET / "bench" / f"quic_{name}"
    program.parent.mkdir(parents=True, exist_ok=True)
    # The next one is built at the same place.
    shutil.copy2(TARGET / "release" / "examples" / "bare", program)
    return str(program)


def measure(program: str, count: int) -> dict[str, float]:
    """All of them in turns, `count` times each: the least CPU seconds, what else the machine does only adds."""
    bare, quinn = build("bare"), build("quinn")
    commands = {
        "bare": [bare, "100"],
        "quinn": [quinn, "100"],
        "model": [program, "quic", "100"],
        "seeded": [program, "quic", "100", "seeded"],
        "bare_pages": [bare, "pages"],
        "quinn_pages": [quinn, "pages"],
        "h3": [program, "h3"],
        "d": [program, "d"],
    }
    runs: dict[str, list[float]] = {name: [] for name in commands}
    said = dict.fromkeys(commands, "")
    for _ in range(count):
        for name, command in commands.items():
            cpu, said[name] = once(command)
            runs[name].append(cpu)
    cpu_s = {name: min(costs) for name, costs in runs.items()}
    found = {f"quic.{name}.cpu_s": cost for name, cost in cpu_s.items()}
    for name in ("bare", "quinn", "model", "seeded"):
        packets = re.search(r"segments=([0-9.]+)", said[name])
        assert packets is not None, said[name]
        found[f"quic.{name}.packets_per_s"] = float(packets[1]) / cpu_s[name]
    found["quic.share_of_library"] = found["quic.model.packets_per_s"] / found["quic.bare.packets_per_s"]
    found["quic.seeded_ratio"] = cpu_s["seeded"] / cpu_s["model"]
    found["quic.h3_ratio"] = cpu_s["h3"] / cpu_s["d"]
    found["quic.pages_ratio"] = cpu_s["bare_pages"] / cpu_s["d"]
    for name, number in found.items():
        print(f"  {name:<28} {number:.4g}", flush=True)
    return found
