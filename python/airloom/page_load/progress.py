"""Visual progress and Speed Index, from the pictures of a load.

How complete a picture is follows from its colours, as WebPageTest counts them: of each channel's 256 levels of the last
picture, white aside, the share of points that the picture has already, where a level counts for its neighbours up to
five levels away. The Speed Index is the time by which the page lags behind being complete at once: the integral of
1 - progress over time, in seconds.
"""

from __future__ import annotations

from collections.abc import Sequence

#: A channel's points by level.
Levels = Sequence[int]

#: Levels that are near enough to be the same colour.
_SLOP = 5

#: In the browser: the points of a picture (JPEG, in base64) by channel and level; nearly white ones are the empty page.
COLOURS = """async encoded => {
  const octets = Uint8Array.from(atob(encoded), c => c.charCodeAt(0));
  const picture = await createImageBitmap(new Blob([octets], { type: "image/jpeg" }));
  const canvas = new OffscreenCanvas(picture.width, picture.height);
  const drawing = canvas.getContext("2d", { willReadFrequently: true });
  drawing.drawImage(picture, 0, 0);
  const points = drawing.getImageData(0, 0, picture.width, picture.height).data;
  const found = [0, 1, 2].map(() => Array(256).fill(0));
  for (let i = 0; i < points.length; i += 4)
    if (points[i] < 250 || points[i + 1] < 250 || points[i + 2] < 250)
      for (let channel = 0; channel < 3; channel++) found[channel][points[i + channel]]++;
  return found;
}"""


def completeness(picture: Sequence[Levels], last: Sequence[Levels]) -> float:
    """How much of the last picture this one shows, from 0 to 1; 1 if the last one is white.

    >>> completeness([[0, 4, 0]], [[0, 0, 8]])
    0.5
    """
    wanted = matched = 0
    for here, final in zip(picture, last, strict=True):
        left = list(here)
        for level, points in enumerate(final):
            missing = points
            for near in range(max(0, level - _SLOP), min(len(left), level + _SLOP + 1)):
                if missing == 0:
                    break
                taken = min(missing, left[near])
                left[near] -= taken
                missing -= taken
            wanted += points
            matched += points - missing
    return matched / wanted if wanted else 1.0


def visual_progress(at_s: Sequence[float], colours: Sequence[Sequence[Levels]]) -> list[tuple[float, float]]:
    """When each picture was painted, in seconds since the page was asked for, and how complete it is.

    Pictures from before that show another page; the last of them is what this one begins from.
    """
    if not colours:
        return []
    return [(max(at, 0.0), completeness(picture, colours[-1])) for at, picture in zip(at_s, colours, strict=True)]


def speed_index_s(progress: Sequence[tuple[float, float]]) -> float | None:
    """The Speed Index in seconds; `None` without pictures.

    >>> speed_index_s([(1.0, 0.5), (3.0, 1.0)])
    2.0
    """
    if not progress:
        return None
    total, since, shown = 0.0, 0.0, 0.0
    for at, complete in progress:
        total += (1 - shown) * (at - since)
        since, shown = at, complete
    return total
