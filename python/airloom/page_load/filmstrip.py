"""A load's pictures in a row, one each step of time."""

from __future__ import annotations

from airloom.page_load.measure import Loaded
from airloom.page_load.outcome import name_of
from airloom.report.page import embedded, escaped, number

#: Seconds from one picture, or tick, to the next: the first with which there are few enough.
_STEPS_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0)
_MOST_PICTURES = 20

#: A white pixel.
_BLANK = "data:image/gif;base64,R0lGODlhAQABAIAAAP///wAAACH5BAAAAAAALAAAAAABAAEAAAICRAEAOw=="

STYLE = """
.strip { display: flex; gap: .4rem; padding-bottom: .4rem }
.strip figure { margin: 0; flex: 0 0 auto; text-align: center; font-size: .75rem }
.strip img { width: 8rem; height: 6rem; object-fit: cover; object-position: top; margin: 3px;
  border: 1px solid #8888; background: #fff }
.strip .done img { outline: 3px solid #009e73 }
"""


def step_s(longest_s: float, most: int = _MOST_PICTURES - 2) -> float:
    """Seconds between the pictures of loads of which the longest took so long; there are at most so many.

    >>> step_s(8.4), step_s(31.0)
    (0.5, 2.0)
    """
    return next((step for step in _STEPS_S if longest_s / step <= most), _STEPS_S[-1])


def last_picture_s(loaded: Loaded) -> float:
    """When the last picture was painted."""
    return max((at for at, _ in loaded.seen["progress"]), default=0.0)


def strip(loaded: Loaded, longest_s: float) -> str:
    """At each step the last picture that was painted before it, and how complete it is."""
    step, end, progress = step_s(longest_s), loaded.page_s, loaded.seen["progress"]
    pictures = []
    for count in range(int(longest_s / step) + 2):
        at = count * step
        painted = [index for index, (when, _) in enumerate(progress) if when <= at]
        is_done = end is not None and end <= at
        source, complete = _BLANK, 0.0
        if painted:
            source = embedded((loaded.folder / "shots" / f"{painted[-1]:04}.jpg").read_bytes(), "jpeg")
            complete = progress[painted[-1]][1]
        told = f"{at:g} s, {complete:.0%}"
        pictures.append(
            f'<figure class="{"done" if is_done else ""}"><img alt="the page after {told}" src="{source}">'
            f"<figcaption>{told}</figcaption></figure>"
        )
        if is_done:
            break
    when = "not loaded" if end is None else f"loaded after {number(end)} s"
    return (
        f'<h3>{escaped(name_of(loaded))}: {when}</h3><div class="strip more" tabindex="0" role="region" '
        f'aria-label="filmstrip, {escaped(name_of(loaded))}">{"".join(pictures)}</div>'
    )
