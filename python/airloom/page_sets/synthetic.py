"""A news site of 2004, made up.

The site of the slides (a mirror of part of a German news site and of related ones, 135 pages) is lost, and so are the
figures that show its histograms. What is fitted here is what is published of pages of that time:

- 25.7 objects and 93.7 kB a page on average in 2003 (Domenech and others 2007, as quoted by websiteoptimization.com);
- the page itself is 44 % of that (Yuan, Li and Chi 2005, as quoted there).

All else is assumption, and marked so below: how the number of objects spreads, which are small, how many servers there
are. The slides name transparent pixels and arrows (small, cached) and large images (not cached), and related sites on
servers of their own. The generator was fixed before any page time was computed with it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random
from statistics import NormalDist

from airloom.page_sets.page_set import Page, PageObject, PageSet

#: The surf list of the slides.
PAGES = 135

#: Published means: octets of a page, and of it the share of the page itself.
PAGE_OCTETS, OWN_SHARE = 93_700, 0.44

#: ASSUMPTION: kinds of pages: share, and mean number of inline objects. Articles are most of a surf list, front pages
#: of sections have a teaser for each article, overviews are the longest. The mean is the published 24.7.
KINDS = (("article", 0.70, 17.0), ("section", 0.22, 36.0), ("overview", 0.08, 62.0))

#: ASSUMPTION: how much the number of inline objects spreads within a kind (of its logarithm).
SPREAD = 0.25

#: ASSUMPTION: the servers beside the main one, and the share of pages that have an object there: an image server, a
#: counter (a pixel on every page), advertisements.
IMAGES, COUNTER, ADS = "images", "counter", "ads"
ADS_SHARE = 0.6

#: ASSUMPTION: related sites, and the share of pages that are at one of them; pages of the main site show an image
#: of one now and then.
RELATED, RELATED_SHARE, TEASER_SHARE = ("sport", "weather", "boerse", "tv"), 0.25, 0.15

#: ASSUMPTION: of the inline objects of a page a fifth are large images (photographs), the others are small ones
#: that all pages share.
LARGE_SHARE = 0.2

#: ASSUMPTION: small images of the site: pixels, arrows, bullets, buttons, headlines as pictures. Octets: lognormal,
#: median 250, from the 43 of a transparent GIF to 2,000.
SMALL_POOL, SMALL_MEDIAN, SMALL_SPREAD, SMALL_LEAST, SMALL_MOST = 160, 250.0, 1.1, 43, 2_000

#: ASSUMPTION: spreads of pages and of large images (of the logarithm); their means follow from the published ones.
OWN_SPREAD, LARGE_SPREAD = 0.35, 0.5

#: ASSUMPTION: an advertisement.
AD_OCTETS = 12_000


def news(seed: int = 2004, pages: int = PAGES) -> PageSet:
    """The set; another seed is another site of the same kind. Raises `ValueError` without pages."""
    if pages < 1:
        raise ValueError("a page set has at least one page")
    random = Random(seed)
    pool = [_clip(_lognormal(random, SMALL_MEDIAN, SMALL_SPREAD), SMALL_LEAST, SMALL_MOST) for _ in range(SMALL_POOL)]
    counts = _counts(random, pages)
    drafts = [_draft(random, number, count, pool) for number, count in enumerate(counts)]
    return PageSet(
        title=f"A news site of 2004, {pages} pages (made up, seed {seed})",
        source="model: airloom.page_sets.synthetic; published means of 2003, the rest assumed",
        pages=tuple(_fitted(drafts)),
    )


def _uniform_to_normal(u: float) -> float:
    return NormalDist().inv_cdf(min(max(u, 1e-9), 1 - 1e-9))


def _lognormal(random: Random, median: float, spread: float) -> float:
    return median * math.exp(spread * _uniform_to_normal(random.random()))


def _clip(octets: float, least: int, most: int) -> int:
    return min(max(round(octets), least), most)


def _counts(random: Random, pages: int) -> list[int]:
    """Numbers of inline objects: the quantiles of each kind, so that their mean is the law's, in a random order."""
    counts: list[int] = []
    for number, (_, share, mean) in enumerate(KINDS):
        last = number == len(KINDS) - 1
        of_kind = pages - len(counts) if last else min(round(share * pages), pages - len(counts))
        median = mean / math.exp(SPREAD**2 / 2)
        for n in range(of_kind):
            counts.append(max(1, round(median * math.exp(SPREAD * _uniform_to_normal((n + 0.5) / of_kind)))))
    # Fisher and Yates, by hand: `shuffle` may change from one Python to the next.
    for n in range(len(counts) - 1, 0, -1):
        other = int(random.random() * (n + 1))
        counts[n], counts[other] = counts[other], counts[n]
    return counts


#: The main server.
MAIN = "www"


def _draft(random: Random, number: int, count: int, pool: list[int]) -> list[tuple[PageObject, str]]:
    """A page with its objects, and what each is: `own`, `large` or `small`. Sizes of the first two are relative."""
    is_related = number > 0 and random.random() < RELATED_SHARE
    home = RELATED[int(random.random() * len(RELATED))] if is_related else MAIN
    own = PageObject(f"/page-{number + 1}.html", round(1e4 * _lognormal(random, 1.0, OWN_SPREAD)), home, changes=True)
    found = [(own, "own"), (PageObject(f"/pixel-{number + 1}.gif", 43, COUNTER, changes=True), "small")]
    if random.random() < ADS_SHARE:
        found.append((PageObject(f"/banner-{number + 1}.gif", AD_OCTETS, ADS, changes=True), "ad"))
    if not is_related and random.random() < TEASER_SHARE:
        site = RELATED[int(random.random() * len(RELATED))]
        found.append((_large(random, f"/teaser-{number + 1}.jpg", site), "large"))
    large = round(LARGE_SHARE * count)
    found += [(_large(random, f"/photo-{number + 1}-{n + 1}.jpg", IMAGES), "large") for n in range(large)]
    left = max(0, count - (len(found) - 1))
    found += [(_small(n, pool, home), "small") for n in _some(random, left, len(pool))]
    return found[: count + 1]


def _large(random: Random, path: str, server: str) -> PageObject:
    return PageObject(path, round(1e4 * _lognormal(random, 1.0, LARGE_SPREAD)), server, changes=True)


def _small(number: int, pool: list[int], home: str) -> PageObject:
    """Every page of a site shows small images of that site; half of them come from the image server."""
    return PageObject(f"/small-{number + 1}.gif", pool[number], IMAGES if number % 2 else home)


def _some(random: Random, wanted: int, there: int) -> list[int]:
    """Different numbers, low ones more often: what is on every page is on every page."""
    found: list[int] = []
    while len(found) < min(wanted, there):
        number = int(there * random.random() ** 2)
        if number not in found:
            found.append(number)
    return found


def _fitted(drafts: list[list[tuple[PageObject, str]]]) -> list[Page]:
    """Sizes of pages and of large images, scaled to the published means; the others are what they are."""
    totals = dict.fromkeys(("own", "large", "small", "ad"), 0)
    for draft in drafts:
        for o, kind in draft:
            totals[kind] += o.size
    whole = PAGE_OCTETS * len(drafts)
    rest = whole * (1 - OWN_SHARE) - totals["small"] - totals["ad"]
    scale = {"own": whole * OWN_SHARE / totals["own"], "large": rest / max(1, totals["large"])}
    pages = []
    for number, draft in enumerate(drafts, 1):
        objects = [replace(o, size=max(1, round(o.size * scale.get(kind, 1.0)))) for o, kind in draft]
        pages.append(Page(f"page {number}", tuple(objects)))
    return pages
