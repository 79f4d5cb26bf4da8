"""The picture of a scenario's network."""

from pathlib import Path

import pytest
from matplotlib.text import Annotation

import airloom as al
from airloom import plot
from airloom.scenario import shipped
from tests.cli.shell import inside


@pytest.mark.parametrize("name", shipped())
def test_every_host_and_link_is_named_and_no_box_covers_another(name: str) -> None:
    understood = al.load(name).understood
    for width_mm in (None, 170):
        figure = plot.topology(understood, width_mm)
        (axes,) = figure.axes
        figure.draw_without_rendering()
        words = "\n".join(text.get_text() for text in axes.texts)
        for host in understood["hosts"]:
            assert host.split("[")[0] in words
        for link, keys in understood["links"].items():
            assert f"{link}: {keys['bearer']}" in words
        boxes = [t for t in axes.texts if isinstance(t, Annotation) and t.get_bbox_patch().get_linewidth() > 1]  # type: ignore[union-attr]
        extents = [box.get_window_extent() for box in boxes]
        assert len(boxes) == len({host.split("[")[0] for host in understood["hosts"]})
        if width_mm is None:
            assert not any(a.overlaps(b) for n, a in enumerate(extents) for b in extents[:n])


def test_in_a_column_of_a_paper_the_path_leads_down_and_covers_no_word() -> None:
    figure = plot.topology(al.load("umts-page").understood, 88)
    figure.draw_without_rendering()
    (axes,) = figure.axes
    extents = [text.get_window_extent() for text in axes.texts]
    assert not any(a.overlaps(b) for n, a in enumerate(extents) for b in extents[:n])
    assert all(figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 for box in extents)


def test_a_cell_is_drawn_once_however_many_mobiles_it_has() -> None:
    words = []
    for count in (15, 16):
        figure = plot.topology(al.load("umts-page", {"hosts.mobile.count": count, "run.points": ["*.ip"]}).understood)
        words.append([text.get_text().replace(str(count), "N") for axes in figure.axes for text in axes.texts])
    assert words[0] == words[1]


def test_list_draws_a_scenario(tmp_path: Path) -> None:
    for ending, begin in ((".svg", b"<?xml"), (".png", b"\x89PNG"), (".pdf", b"%PDF")):
        target = tmp_path / f"net{ending}"
        done = inside("list", "scenarios", "umts-page", "--picture", "--out", target)
        assert (done.code, done.out.strip()) == (0, str(target))
        assert target.read_bytes().startswith(begin)
    assert inside("list", "scenarios", "umts-page", "--picture").out.strip() == "umts-page.svg"
    Path("umts-page.svg").unlink()
    for words, why in (
        (("list", "presets", "--picture"), "draws a scenario"),
        (("list", "scenarios", "umts-page", "--out", tmp_path / "net.gif"), "has to end in .svg"),
        (("list", "scenarios", "umts-page", "--out", tmp_path / "no" / "net.svg"), "No such file"),
    ):
        wrong = inside(*words)
        assert (wrong.code, why in wrong.err) == (2, True), wrong.err
