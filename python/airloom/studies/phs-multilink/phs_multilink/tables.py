"""The tables of the study: the paper's two with ours beside, then ours."""

from __future__ import annotations

from airloom.piafs import Frame, read
from airloom.study import Data, StudyTable
from airloom.study.drawing import interval

from .bursts import five, member
from .monitor import burst
from .release import BAD, PAPER, PAPER_STATIC, rates, with_remedies
from .transfers import CROSSED, POINTS, TABLE_1, TIMES_1, fields, rate_of_all, seconds, static_of_all, times_of_table_1

Cells = tuple[list[str], list[list[str]]]


def table_1(data: Data) -> Cells:
    """Table 1: time and throughput as printed, ours below the paper's."""
    rows = []
    for way, name in (("get", "FTP Get"), ("put", "FTP Put")):
        times = [times_of_table_1(data, way, distance) for distance in POINTS]
        rows.append([name, "time (s)", "paper", *(f"{t:.2f}" for t in TIMES_1[way])])
        rows.append([name, "time (s)", "ours", *(interval(t, 4) for t in times)])
        rows.append([name, "throughput (kbit/s)", "paper", *(f"{r:.2f}" for r in TABLE_1[way])])
        rows.append([name, "throughput (kbit/s)", "ours", *(interval(rate_of_all(t), 4) for t in times)])
        crossed = [seconds(data, "people", way=way) if CROSSED[way] == distance else None for distance in POINTS]
        rows.append([name, "one run with people (s)", "ours", *("" if t is None else interval(t, 4) for t in crossed)])
    rows.append(["field strength", "dBµV", "paper", *(f"{f:.1f}" for f in POINTS.values())])
    rows.append(["field strength", "dBµV", "ours", *(interval(fields(data, distance), 3) for distance in POINTS)])
    return ["", "", "", *(f"{distance:g} m" for distance in POINTS)], rows


def table_2(data: Data) -> Cells:
    """Table 2, row by row, and below it what our runs with a release are like."""
    rows = []

    def add(label: str, paper: list[str], ours: list[str]) -> None:
        rows.append([label, paper[0], ours[0], paper[1], ours[1]])

    def average(circuits: int) -> None:
        ours = [interval(static_of_all(data, way, circuits), 4) for way in PAPER]
        add(f"Avg. {circuits}CH", [f"{PAPER_STATIC[way, circuits]:.2f}" for way in PAPER], ours)

    average(5)
    found = {way: rates(data, way) for way in PAPER}
    for n, label in enumerate(("First", "Second", "Third")):
        add(label, [f"{PAPER[way][n]:.2f}" for way in PAPER], [f"{found[way].flat[n]:.2f}" for way in PAPER])
    average(6)
    paper = [f"{sum(PAPER[way]) / len(PAPER[way]):.2f}" for way in PAPER]
    add("mean with a release", paper, [interval(found[way].mean(axis=1), 4) for way in PAPER])
    ranges = [f"{min(PAPER[way]):.0f} to {max(PAPER[way]):.0f}" for way in PAPER]
    add("range with a release", ranges, [f"{found[way].min():.0f} to {found[way].max():.0f}" for way in PAPER])
    columns = ["", "FTP Get, paper (kbit/s)", "FTP Get, ours", "FTP Put, paper (kbit/s)", "FTP Put, ours"]
    return columns, rows


def log(data: Data) -> Cells:
    """The log of the monitor over [A], in the columns of Fig. 2; a row for each slot of 10 ms."""
    run = data.run("shown")
    shown = burst(run)
    begin, end = shown.begin_s - 0.08, shown.end_s + 0.12
    captured, _ = read(run.folder / "trace.pcapng")
    slots: dict[int, dict[str, Frame]] = {}
    for frame in captured:
        if begin <= frame.at_s <= end:
            slots.setdefault(round(frame.at_s * 100), {})[frame.direction] = frame
    rows = [
        [f"{slot:07}", *_columns(both.get("ul")), *_columns(both.get("dl"))] for slot, both in sorted(slots.items())
    ]
    return ["TIME", "UP: NUM", "REQ", "ACK", "DOWN: NUM", "REQ", "ACK"], rows


def _columns(frame: Frame | None) -> list[str]:
    if frame is None:
        return ["", "", ""]
    if frame.is_error:
        return ["CRC ERR", "", ""]
    return [f"{frame.number:03}", f"{frame.request:03}", f"{frame.flag} {frame.acknowledged:03}"]


def members(data: Data) -> Cells:
    """K26: one circuit worse than the others."""
    alone = five(data).mean()
    shares = (0.0, 0.02, 0.1, 0.2, 0.5)
    rows = [
        [f"{errors:.0%}", interval(member(data, errors), 4), f"{member(data, errors).mean() / alone:.2f}"]
        for errors in shares
    ]
    return ["frames of one circuit in error", "rate (kbit/s)", "in that of the five others alone"], rows


def remedies(data: Data) -> Cells:
    """K29: which remedy helps how much."""
    found = {bad: with_remedies(data, bad) for bad in BAD}
    rows = []
    for label in next(iter(found.values())):
        cells = [label]
        for times in found.values():
            base = next(iter(times.values())).mean()
            cells += [interval(times[label], 3), f"{base / times[label].mean():.2f}"]
        rows.append(cells)
    columns = ["remedy"]
    for what, _ in BAD.values():
        columns += [f"{what}: time (s)", "faster by"]
    return columns, rows


TABLES = {
    "table-1": StudyTable(
        "Table 1. Throughput measurement result (indoor environment)",
        table_1,
        "Ours with 95 % intervals. As in the paper, get at 10 m and put at 31.6 m are means of three runs, one of them "
        "with people in the path; the rate is the size over the mean time. Puts without the slowness of the notebook.",
    ),
    "table-2": StudyTable(
        "Table 2. Throughput measurement result (PHS connections dynamically changed)",
        table_2,
        "Ours: averages with 95 % intervals. First to Third are three of our runs, released at 4.2, 4.6 and 5.0 s; "
        "mean and range are of all.",
    ),
    "monitor": StudyTable(
        "Fig. 2, right: the log of the PIAFS monitor",
        log,
        "Circuit 0 over [A] of Fig. 2. TIME counts slots of 10 ms. Both directions as they leave; CRC ERR is what the "
        "other end cannot read.",
    ),
    "members": StudyTable("Ours: one bad circuit in six", members, "A get of 300 kB."),
    "remedies": StudyTable(
        "Ours: what would have helped", remedies, "A get of 1 MB; factors are those of the mean times."
    ),
}
