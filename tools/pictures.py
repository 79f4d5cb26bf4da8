"""Draws the pictures of README and documents again: `.venv/bin/python tools/pictures.py [NAME..]`, into docs/pictures.

`qvis.png` is not among them: it shows what another program drew of the file that `qlog.png` is drawn of.
"""

import sys
import tempfile
from pathlib import Path

from matplotlib.figure import Figure

import airloom as al
from airloom.analysis.qlog import analyze
from airloom.plot import picture, quic_trace, save_as

PLACE = Path(__file__).resolve().parent.parent / "docs" / "pictures"


def of_a_run(name: str, folder: Path, seed: int = 1) -> Figure:
    """What `airloom run NAME --plot` draws."""
    figure = picture(al.load(name).run(seed, out=folder, plot=True)).figure
    assert figure is not None
    return figure


def of_a_qlog(folder: Path) -> Figure:
    """What `airloom analyze FILE --plot` draws of the server's events of a page."""
    run = al.load("http3-page", {"run.record": ["qlog"]}).run(out=folder)
    return quic_trace(analyze(run.qlogs[1]).trace)


PICTURES = {
    "umts-page": lambda folder: of_a_run("umts-page", folder, seed=4),
    "quic-migration": lambda folder: of_a_run("quic-migration", folder),
    "qlog": of_a_qlog,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or PICTURES:
        with tempfile.TemporaryDirectory() as place:
            save_as(PICTURES[name](Path(place) / "run"), PLACE / f"{name}.png")
