"""Sequence charts: what is drawn where."""

from matplotlib.figure import Figure
from matplotlib.text import Annotation

from airloom.plot.sequence_chart import Arrow, draw_sequence


def test_messages_stand_at_their_times_and_their_names_do_not_cover_each_other() -> None:
    axes = Figure().subplots()
    # Of two that leave at once, and one a little later, each name has a place of its own.
    arrows = [Arrow(5.0, 5.1, True, "ask"), Arrow(5.0, 5.15, True, "ask more"), Arrow(5.2, 5.4, False, "answer")]
    draw_sequence(axes, "one", "other", arrows, "two parties")
    places = {text.get_text(): text.get_position() for text in axes.texts if text.get_text()}
    assert set(places) == {"ask", "ask more", "answer", "one", "other"}
    assert places["ask"][1] == 0.0
    assert places["ask more"][1] > places["ask"][1]
    assert round(places["answer"][1], 9) == 0.2
    assert places["ask"][0] < 0 < 1 < places["answer"][0]
    heads = [text.xy for text in axes.texts if isinstance(text, Annotation)]
    assert [(x, round(t, 9)) for x, t in heads] == [(1.0, 0.1), (1.0, 0.15), (0.0, 0.4)]
    low, high = axes.get_ylim()
    assert low > high  # time runs downwards
