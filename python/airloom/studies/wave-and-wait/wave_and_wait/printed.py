"""The paper's two tables as printed."""

from __future__ import annotations

from typing import NamedTuple


class PaperRow(NamedTuple):
    """A row of Table 1 as printed."""

    #: Connection time, s: to 0.1 s from the goodput, which is printed more precisely than it.
    seconds: float
    printed_s: float
    total: int
    #: Beyond the same protocol's time without errors, s.
    time_over: float | None
    byte_over: int
    #: Octets a second.
    goodput: int


TABLE_1 = {
    0: {
        "tcp": PaperRow(69.0, 69, 5_319_120, None, 76_240, 75_983),
        "wwp": PaperRow(40.5, 40.5, 5_268_495, None, 25_615, 129_453),
    },
    5: {
        "tcp": PaperRow(117.3, 117, 5_395_782, 48.4, 152_902, 44_685),
        "wwp": PaperRow(71.0, 71, 5_290_519, 30.5, 47_639, 73_843),
    },
    10: {
        "tcp": PaperRow(132.9, 133, 5_409_384, 63.9, 166_504, 39_449),
        "wwp": PaperRow(81.9, 81.9, 5_295_859, 41.4, 52_979, 64_015),
    },
    20: {
        "tcp": PaperRow(136.6, 136, 5_410_822, 67.63, 167_942, 38_372),
        "wwp": PaperRow(84.1, 84, 5_319_556, 43.58, 76_676, 62_355),
    },
    33: {
        "tcp": PaperRow(258.9, 258, 5_392_682, 189.8, 149_802, 20_251),
        "wwp": PaperRow(85.9, 85.9, 5_324_601, 45.4, 81_721, 61_034),
    },
    50: {
        "tcp": PaperRow(259.4, 259, 5_388_348, 190.3, 145_468, 20_213),
        "wwp": PaperRow(86.7, 86.7, 5_275_294, 46.2, 32_414, 60_471),
    },
}


class PaperRange(NamedTuple):
    """A pair of rows of Table 2 as printed: from the least to the largest over phases of 4 to 10 s."""

    tcp_s: str
    wwp_s: str
    overhead_ratio: str
    goodput_ratio: str
    time_ratio: str


#: By drop rate, per cent.
TABLE_2 = {
    0: PaperRange("69", "40.5", "2.97/1", "58.6%", "1.70/1"),
    10: PaperRange("132-135", "81.3-81.9", "2.62-3.14/1", "59-60%", "1.62-1.64/1"),
    33: PaperRange("258-368", "85.9-87.6", "1.83-2.56/1", "23-32%", "3.0-4.2/1"),
    50: PaperRange("259-385", "86.7-93.7", "2.0-4.48/1", "24-33%", "2.98-4.1/1"),
}
