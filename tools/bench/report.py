"""The numbers as tables."""

import math

# What other simulators took on the machine for which the goals in CPU seconds were set (medians of 3 to 7 runs, the
# Debian packages of ns-3 3.37 and ns-2 2.35). Measured again beside ours they say how fast this machine is: a goal of
# 0.020 s for a means 2.6 times as fast as ns-2, on whatever machine.
REFERENCE = {
    "ns2.a.cpu_s": 0.052,
    "ns2.b.cpu_s": 0.037,
    "ns2.c.cpu_s": 0.703,
    "ns3.a.cpu_s": 0.669,
    "ns3.b.cpu_s": 0.042,
    "ns3.c.cpu_s": 3.721,
}

# (name of the number, what it is, must, aim, is less better?)
GOALS: list[tuple[str, str, float, float, bool]] = [
    ("sim.a.cpu_s", "a: 100 MB, one flow, CPU s", 0.020, 0.012, True),
    ("sim.b1000.cpu_s", "b: 5 MB, 1 % loss, 1,000 seeds in one process, CPU s", 1.2, 0.7, True),
    ("sim.b.instructions", "b: instructions of one run, start-up subtracted", 12e6, 9e6, True),
    ("sim.c.cpu_s", "c: 100 flows, CPU s", 0.070, 0.045, True),
    ("sim.d.cpu_s", "d: 1,000 clients x 20 objects, CPU s", 0.50, 0.25, True),
    ("sim.d.peak_mib", "d: peak MiB", 32, 16, True),
    (
        "sim.rlc384.realtime_factor",
        "RLC AM, 384 kbit/s saturated, 5 % errors, simulated s per CPU s",
        6000,
        15000,
        False,
    ),
    ("sim.idle50.realtime_factor", "50 idle mobiles on umts-dch, simulated s per CPU s", 1000, 1000, False),
    ("sim.sctp.packets_per_s", "one SCTP association on a wire, packets per CPU s", 1e6, 3e6, False),
    (
        "sim.egprs4.realtime_factor",
        "EGPRS cell, 4 mobiles, web pages over SCTP, simulated s per CPU s",
        500,
        5000,
        False,
    ),
]

# The same of real time.
EMULATION: list[tuple[str, str, float, float, bool]] = [
    ("emu.tcp_gbps", "Linux TCP through rate, delay and loss, Gbit/s", 2.5, 4, False),
    ("emu.cpu_s_per_gb", "the same, CPU s of the engine per GB", 1.6, 1.6, True),
    ("emu.transparent_gbps", "delay only, super-packets whole, Gbit/s", 6, 9, False),
    ("emu.udp_kpps", "100-octet UDP through rate, delay and loss, 1000 packets/s", 150, 200, False),
    ("emu.delay_p50_us", "error of the one-way delay, idle link, median, us", 30, 15, True),
    ("emu.delay_p99_us", "the same, 99th percentile, us", 200, 60, True),
    ("emu.early", "packets before their time", 0, 0, True),
    ("emu.rate_error.384k", "error of 384 kbit/s", 0.001, 0.0005, True),
    ("emu.rate_error.2M", "error of 2 Mbit/s", 0.001, 0.0005, True),
    ("emu.rate_error.20M", "error of 20 Mbit/s", 0.001, 0.0005, True),
    ("emu.rate_error.100M", "error of 100 Mbit/s", 0.001, 0.0005, True),
    ("emu.radio_core", "`umts-dch` 384/64 full both ways, share of a core", 0.02, 0.005, True),
    ("emu.idle_core", "the same, idle", 0.002, 0.0001, True),
    ("emu.start_ms", "from nothing to an engine that takes packets, ms", 150, 50, True),
]

# And of sweeps: share of simulation in what a session spends, in CPU seconds and on the clock of its workers.
SWEEPS: list[tuple[str, str, float, float, bool]] = [
    (
        "sweep.2000.share_of_cpu",
        "2,000 runs of 20 kB over `umts-dch`, simulation, share of all CPU s",
        0.9,
        0.95,
        False,
    ),
    ("sweep.2000.share_of_workers", "the same, share of the time that two workers are there", 0.9, 0.95, False),
    ("sweep.20000.share_of_cpu", "20,000 such runs, share of all CPU s", 0.9, 0.95, False),
    ("sweep.20000.share_of_workers", "the same, share of the time that two workers are there", 0.9, 0.95, False),
    ("dask.overhead", "gap between two tasks of 0.5 s at a Dask worker, share of the task", 0.01, 0.005, True),
    ("report.2000.wall_s", "report of 2,000 runs, the whole command, s", 5, 2, True),
    ("report.2000.octets", "the same, octets of the file", 5e6, 2e6, True),
]

# And of QUIC.
QUIC: list[tuple[str, str, float, float, bool]] = [
    (
        "quic.share_of_library",
        "100 MB over QUIC and the link of a, packets per CPU s, share of the library alone",
        0.7,
        0.85,
        False,
    ),
    ("quic.seeded_ratio", "the same with packets protected (AES-128-GCM), times the CPU s", 1.6, 1.4, True),
    (
        "quic.h3_ratio",
        "the clients and objects of d over HTTP/3, a connection for each client, times the CPU s of d",
        4,
        2,
        True,
    ),
]

# And of WWP.
WWP: list[tuple[str, str, float, float, bool]] = [
    ("wwp.share_of_link", "file of 100 MB over 100 Mbit/s and 1 ms in real time, share of the link", 0.9, 0.93, False),
    ("wwp.realtime_factor", "5 MB, a third dropped in on-phases, simulated s per CPU s", 1000, 5000, False),
    ("wwp.short_queue_s", "20 MB over 20 Mbit/s and 10 ms, queue of 50 packets, simulated s", 45, 20, True),
]

SCENARIOS = {
    "a": "1 flow of 100 MB, 100 Mbit/s, 20 ms, no loss",
    "b": "1 flow of 5 MB, 384/64 kbit/s, 300 ms, 1 % loss towards the client",
    "c": "100 flows of 1 MB through 100 Mbit/s, 50 ms, drop-tail queue of 417 packets",
    "d": "1,000 clients, 20 objects of 10,240 B each one after another, a connection for each",
}


def number(value: float | None) -> str:
    """Four figures, no more."""
    if value is None:
        return "-"
    if value >= 1e6:
        return f"{value / 1e6:.2f} M"
    if value >= 1000:
        return f"{value:,.0f}"
    if 0 < value < 0.001:
        return f"{value:.1e}"
    return f"{value:.4f}" if value < 1 else f"{value:.2f}"


def verdict(value: float | None, must: float, aim: float, less: bool) -> str:
    """Is the goal reached?"""
    if value is None:
        return "not measured"
    for goal, word in ((aim, "aim reached"), (must, "must reached")):
        if value <= goal if less else value >= goal:
            return word
    return "**missed**"


def slowness(numbers: dict[str, float]) -> float | None:
    """How many times longer than on the reference machine the others took here; None if none of them was run."""
    ratios = [numbers[name] / theirs for name, theirs in REFERENCE.items() if numbers.get(name)]
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios)) if ratios else None


def scaled(name: str, value: float | None, factor: float | None) -> float | None:
    """`value` as it would be on the reference machine; counts and sizes are the same on any, rates are not."""
    if value is None:
        return None
    if name.endswith((".realtime_factor", ".packets_per_s")):
        return value * factor if factor else None
    if name.endswith(".cpu_s"):
        return value / factor if factor else None
    return value


def simulation(numbers: dict[str, float]) -> str:
    """The goals of virtual time: as measured, and as on the machine for which they were set."""
    factor = slowness(numbers)
    lines = ["| what | measured | must | aim | | on the reference machine | |", "|---|---|---|---|---|---|---|"]
    for name, what, must, aim, less in GOALS:
        value = numbers.get(name)
        there = scaled(name, value, factor)
        cells = [what, number(value), number(must), number(aim), verdict(value, must, aim, less)]
        lines.append(f"| {' | '.join([*cells, number(there), verdict(there, must, aim, less)])} |")
    return "\n".join(lines)


def reference(numbers: dict[str, float]) -> str:
    """What the last columns of `simulation` rest on."""
    factor = slowness(numbers)
    if factor is None:
        return "Neither ns-3 nor ns-2 was run, so nothing is known of the speed of this machine."
    each = ", ".join(
        f"{name.removesuffix('.cpu_s')} {numbers[name] / theirs:.2f}"
        for name, theirs in REFERENCE.items()
        if numbers.get(name)
    )
    return f"""The goals in seconds were set on a machine where ns-2 takes 0.052 s for a and
Debian's ns-3 0.669 s: 0.020 s for a means 2.6 and 33 times as fast as those. This machine took
**{factor:.2f} times** as long for the same programs, run in turns with ours (geometric mean of
{each}).
The last two columns are the seconds divided by that, and what is done in one of them times that; instructions and
memory are what they are."""


def goals(numbers: dict[str, float], wanted: list[tuple[str, str, float, float, bool]]) -> str:
    """The goals and what was reached."""
    lines = ["| what | measured | must | aim | |", "|---|---|---|---|---|"]
    for name, what, must, aim, less in wanted:
        value = numbers.get(name)
        lines.append(
            f"| {what} | {number(value)} | {number(must)} | {number(aim)} | {verdict(value, must, aim, less)} |"
        )
    return "\n".join(lines)


def side_by_side(numbers: dict[str, float]) -> str:
    """Ours and the others."""
    lines = [
        "| | airloom CPU s | ns-3 CPU s | ratio | ns-2 CPU s | ratio | peak MiB (airloom, ns-3, ns-2) |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in SCENARIOS:
        own = numbers.get(f"sim.{name}.cpu_s")
        cells = [number(own)]
        for other in ("ns3", "ns2"):
            theirs = numbers.get(f"{other}.{name}.cpu_s")
            cells.append(number(theirs))
            cells.append(f"{theirs / own:.1f}" if theirs is not None and own else "-")
        peaks = ", ".join(
            "-" if peak is None else f"{peak:.1f}"
            for peak in (numbers.get(f"{tool}.{name}.peak_mib") for tool in ("sim", "ns3", "ns2"))
        )
        lines.append(f"| {name} | {' | '.join(cells)} | {peaks} |")
    return "\n".join(lines)


# What stands beside a number of real time: a bare pair of devices, and mm-delay without delay.
BESIDE = {
    "emu.tcp_gbps": ("emu.veth_gbps", "emu.mahimahi_gbps"),
    "emu.transparent_gbps": ("emu.veth_gbps", "emu.mahimahi_gbps"),
    "emu.udp_kpps": ("emu.veth_udp_kpps", "emu.mahimahi_udp_kpps"),
    "emu.delay_p50_us": ("emu.veth_delay_p50_us", ""),
    "emu.delay_p99_us": ("emu.veth_delay_p99_us", ""),
}


def beside(numbers: dict[str, float]) -> str:
    """The goals of real time with the others beside them."""
    with_mahimahi = "emu.mahimahi_gbps" in numbers
    lines = [
        f"| what | airloom | bare veth |{' Mahimahi |' if with_mahimahi else ''} must | aim | |",
        f"|---|---|---|{'---|' if with_mahimahi else ''}---|---|---|",
    ]
    for name, what, must, aim, less in EMULATION:
        veth, mahimahi = BESIDE.get(name, ("", ""))
        cells = [what, number(numbers.get(name)), number(numbers.get(veth)) if veth else ""]
        if with_mahimahi:
            cells.append(number(numbers.get(mahimahi)) if mahimahi else "")
        cells += [number(must), number(aim), verdict(numbers.get(name), must, aim, less)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def profiles(numbers: dict[str, float]) -> str:
    """What the profile `linux` costs beside plain TCP: for the same octets, and for a packet."""
    lines = [
        "| | plain CPU s | `linux` CPU s | ratio | plain, million instructions | `linux` | ratio "
        "| plain packets | `linux` | ratio | ratio of instructions for a packet |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in SCENARIOS:
        cells = []
        for what, by, scale in (("cpu_s", "ratio", 1.0), ("instructions", "instructions_ratio", 1e-6)):
            for prefix in ("sim", "sim.linux"):
                value = numbers.get(f"{prefix}.{name}.{what}")
                cells.append(number(value if value is None else value * scale))
            cells.append(number(numbers.get(f"sim.linux.{name}.{by}")))
        plain, linux = (numbers.get(f"{prefix}.{name}.packets") for prefix in ("sim", "sim.linux"))
        more = linux / plain if plain and linux else None
        whole = numbers.get(f"sim.linux.{name}.instructions_ratio")
        each = whole / more if whole and more else None
        cells += [*(("-" if n is None else f"{n:,.0f}") for n in (plain, linux)), number(more), number(each)]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def emulation(numbers: dict[str, float]) -> str:
    """Goals of real time, and what a bare pair of devices gave at the same time."""

    def of(name: str) -> str:
        return number(numbers.get(name))

    return f"""{beside(numbers)}

The delay of a bare pair is the bias of the tool; it is not subtracted. Its largest was
{of("emu.veth_delay_max_us")} us, the largest delay error {of("emu.delay_max_us")} us. Cost:
{of("emu.transparent_cpu_s_per_gb")} CPU s/GB with super-packets whole, {of("emu.udp_us_per_packet")} us for a small
packet. The load average was {of("emu.load_before")} before it began."""


def wap(numbers: dict[str, float]) -> str:
    """The WAP gateway and Kannel's under the same load."""
    lines = ["| | airloom | Kannel |", "|---|---|---|"]
    for name, what in (
        ("per_cpu_s", "requests per CPU s"),
        ("per_s", "requests per s"),
        ("p50_us", "delay p50, us"),
        ("p99_us", "delay p99, us"),
    ):
        own, theirs = (number(numbers.get(f"{prefix}.{name}")) for prefix in ("wap", "wap.kannel"))
        lines.append(f"| {what} | {own} | {theirs} |")
    ratio = [("wap.ratio", "requests per CPU s, times Kannel's", 5.0, 5.0, False)]
    return "\n".join(lines) + "\n\n" + goals(numbers, ratio)


def proxies(numbers: dict[str, float]) -> str:
    """Our proxies, HAProxy and Squid under the same load."""
    lines = ["| | airloom | the other |", "|---|---|---|"]
    for name, what, own, other in (
        ("gbps", "TCP through split-tcp and HAProxy, Gbit/s", "split_tcp", "haproxy"),
        ("cpu_s_per_gb", "the same, CPU s/GB", "split_tcp", "haproxy"),
        ("idle_pair_octets", "octets an idle pair", "split_tcp", "haproxy"),
        ("hits_per_cpu_s", "answers from http-cache's and Squid's memory per CPU s", "http_cache", "squid"),
        ("hits_per_s", "the same per s", "http_cache", "squid"),
        ("misses_per_cpu_s", "forwarded requests per CPU s", "http_cache", "squid"),
        ("misses_per_s", "the same per s", "http_cache", "squid"),
    ):
        ours, theirs = (number(numbers.get(f"proxies.{who}.{name}")) for who in (own, other))
        lines.append(f"| {what} | {ours} | {theirs} |")
    wanted = [
        ("proxies.tcp_ratio", "throughput of split-tcp, times HAProxy's", 0.7, 1.0, False),
        ("proxies.split_tcp.idle_pair_octets", "octets an idle pair of split-tcp", 65_536, 16_384, True),
        ("proxies.hit_ratio", "hits per CPU s, times Squid's", 2.0, 2.0, False),
        ("proxies.miss_ratio", "forwarded requests per CPU s, times Squid's", 1.0, 1.0, False),
    ]
    return "\n".join(lines) + "\n\n" + goals(numbers, wanted)


def quic(numbers: dict[str, float]) -> str:
    """QUIC and HTTP/3 beside the library alone."""
    rates = ", ".join(
        f"{name} {number(numbers.get(f'quic.{key}.packets_per_s'))}"
        for key, name in (("bare", "the library alone"), ("model", "in the network"), ("seeded", "protected"))
    )
    return f"{goals(numbers, QUIC)}\n\nPackets per CPU s: {rates}."


def wwp(numbers: dict[str, float]) -> str:
    """WWP in both clocks."""
    load = number(numbers.get("wwp.load"))
    return f"{goals(numbers, WWP)}\n\nThe load average was {load} after the transfers in real time."


def sweeps(numbers: dict[str, float]) -> str:
    """Sweeps, and what their sessions took."""
    took = "; ".join(
        f"{runs:,} runs took {number(numbers.get(f'sweep.{runs}.wall_s'))} s"
        f" and {number(numbers.get(f'sweep.{runs}.cpu_s'))} CPU s"
        for runs in (2_000, 20_000)
    )
    cpu, idle = number(numbers.get("dask.task_cpu_ms")), number(numbers.get("dask.idle_core"))
    dask = f"A task costs Dask {cpu} CPU ms in scheduler, client and workers together, which use {idle} of a core idle"
    return f"{goals(numbers, SWEEPS)}\n\n{took}. {dask}."


def table(numbers: dict[str, float]) -> str:
    """All tables, for the terminal."""
    parts = [
        simulation(numbers),
        reference(numbers),
        side_by_side(numbers),
        profiles(numbers),
        emulation(numbers),
        wap(numbers),
        proxies(numbers),
        quic(numbers),
        wwp(numbers),
        sweeps(numbers),
    ]
    return "\n\n".join(parts) + "\n"


def page(numbers: dict[str, float], said: dict[str, str], machine: str, count: int) -> str:
    """The reference page."""
    scenarios = "\n".join(f"- **{name}**: {what}" for name, what in SCENARIOS.items())
    words = "\n".join(f"{name}: {' '.join(text.split())}" for name, text in sorted(said.items()))
    twice = ""
    if (once := numbers.get("sim.d.cpu_s")) and (double := numbers.get("sim.d40.cpu_s")):
        twice = f"\nTwice as many objects in d take {double / once:.2f} times as long.\n"
    return f"""# Benchmarks

<!-- Generated by `make bench` (tools/bench/run). -->

Measured on {machine}.
CPU seconds (user and system) of whole processes, start-up included, median of up to
{count} runs; one core. Instructions are counted by callgrind and do not depend on the load of the machine.

## Goals

{simulation(numbers)}

{reference(numbers)}
{twice}
## Side by side

{scenarios}

Segments of 1460 B, no timestamps, delayed ACKs, 1 s minimum RTO, initial window of 10 segments everywhere. The native
program is `crates/drive/examples/yardsticks.rs`, those for the others are in `tools/bench/peers`. ns-3 runs d with a
TIME-WAIT of 2 s; ns-2's agents have no handshake, and in d no request.

{side_by_side(numbers)}

The same with the profile `linux` on all hosts and the same buffers (`yardsticks a linux`): the same octets over the
same links, but not the same packets. Timestamps make segments 12 octets smaller, the beginning of each connection is
acknowledged segment by segment (a quarter more packets where, as in d, a connection is nothing but a beginning), and
CUBIC's larger windows make more segments wait behind a loss, each of which is acknowledged at once. The last columns
tell that from what a packet costs.

{profiles(numbers)}

## Real time

Real programs in namespaces, the engine between them. TCP and UDP by iperf3, delays by 1,000 probes of 64 octets in a
Poisson process of 2 ms, rates by datagrams of 1,500 octets offered 1.2 times as fast as they fit, everything as
`tools/bench/emulation` says. Rate, delay and loss are 10 Gbit/s, 100 us and 1e-5: the machine is the limit, not the
link.

{emulation(numbers)}

## WAP gateway

`airloom serve wap-gateway` and Kannel's gateway on real sockets, one after the other: eight sessions that each ask for
the same small deck again and again (`crates/drive/examples/wap_load.rs`), nginx as the origin, everything on the
loopback interface of one network namespace.

{wap(numbers)}

## Proxies

`airloom serve split-tcp` beside HAProxy, `airloom serve http-cache` beside Squid, one after the other on loopback:
iperf3 with two streams and a thousand idle pairs; sixteen clients that ask nginx's object of 10 kB again and again,
kept and not to be kept.

{proxies(numbers)}

## QUIC and HTTP/3

Two endpoints of noq-proto with a wire of a few lines between them (`crates/quic/examples/bare.rs`), and the same
packets through hosts, streams and a `wireline` (`yardsticks quic`): windows of 400 kB, NewReno, nothing is lost, one
model of handshake and protection. The least of three runs each, in turns.

{quic(numbers)}

## Files over WWP

`airloom wwp send` and `receive` in two namespaces, the file in memory, from the first datagram to the verdict on its
hash; headers count as lost. The simulated transfers are those of the study `wave-and-wait`, and one with the settings
of `airloom wwp` (`tools/bench/wwp.py`).

{wwp(numbers)}

## Sweeps

A session of `Sweep.run` from its folder to its finished tables, two workers, medians; a Dask scheduler and two
workers of this machine with tasks that sleep (`tools/bench/sweeps.py`).

{sweeps(numbers)}

What the programs printed, to see that they did the same work:

```text
{words}
```
"""
