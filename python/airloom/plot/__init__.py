"""Plots: each takes a table and returns a figure. Importing this imports matplotlib."""

from airloom.plot.distribution import cdf
from airloom.plot.figure import save, save_as, save_pdf, save_svg
from airloom.plot.over_time import backlog, congestion_window, throughput
from airloom.plot.quic_trace import quic_trace
from airloom.plot.response import paired_difference, response
from airloom.plot.sequence_trace import sequence_trace
from airloom.plot.time_sequence import time_sequence
from airloom.plot.topology import topology
from airloom.plot.whole_run import Picture, picture

__all__ = [
    "Picture",
    "backlog",
    "cdf",
    "congestion_window",
    "paired_difference",
    "picture",
    "quic_trace",
    "response",
    "save",
    "save_as",
    "save_pdf",
    "save_svg",
    "sequence_trace",
    "throughput",
    "time_sequence",
    "topology",
]
