"""Freezes of the videos in a page: how often, and how long, a picture stood still that should have moved.

A picture froze if the time between two frames that were shown was at least the larger of three times the mean of the
last thirty, and that mean and 150 ms (W3C, Identifiers for WebRTC's Statistics API, `freezeCount`). That holds for
every `<video>`: a file, Media Source Extensions, WebRTC. What its viewer paused, moved in time or hid does not count,
and neither does the wait for the first frame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

#: What a page calls for each freeze that ended, with its milliseconds.
_BINDING: Final = "__airloom_froze"
#: What it offers to be asked for those that have not.
_LASTING: Final = "__airloom_freezing"

_WATCH: Final = """(() => {
  const watched = new Map();
  const mean = (frames) => frames.reduce((sum, each) => sum + each, 0) / frames.length;
  const froze = (frames, passed) =>
    frames.length > 0 && passed >= Math.max(3 * mean(frames), mean(frames) + 150);
  const watch = (video) => {
    if (watched.has(video)) return;
    const state = { last: null, frames: [] };
    watched.set(video, state);
    const shown = (now) => {
      if (state.last !== null) {
        const passed = now - state.last;
        if (froze(state.frames, passed)) BINDING(passed);
        state.frames.push(passed);
        if (state.frames.length > 30) state.frames.shift();
      }
      state.last = now;
      video.requestVideoFrameCallback(shown);
    };
    video.requestVideoFrameCallback(shown);
  };
  const forget = (video) => { if (watched.has(video)) watched.get(video).last = null; };
  for (const name of ["loadeddata", "playing"]) {
    addEventListener(name, (event) => { if (event.target instanceof HTMLVideoElement) watch(event.target); }, true);
  }
  for (const name of ["pause", "seeking", "ended", "emptied", "ratechange"]) {
    addEventListener(name, (event) => forget(event.target), true);
  }
  document.addEventListener("visibilitychange", () => [...watched.keys()].forEach(forget));
  window.LASTING = () => [...watched].flatMap(([video, state]) => {
    const passed = performance.now() - state.last;
    return state.last !== null && video.isConnected && !video.paused && froze(state.frames, passed) ? [passed] : [];
  });
})()""".replace("BINDING", _BINDING).replace("LASTING", _LASTING)


class Freezes:
    """The freezes of all pages of some contexts of Playwright."""

    def __init__(self) -> None:
        #: The milliseconds of each.
        self._lengths: list[float] = []

    def watch(self, context: BrowserContext) -> None:
        """Counts in the pages that this context opens from now on."""
        context.expose_binding(_BINDING, self._froze)
        context.add_init_script(_WATCH)

    def _froze(self, _source: Any, milliseconds: float) -> None:
        self._lengths.append(milliseconds)

    def finish(self, context: BrowserContext) -> None:
        """Counts those that last until now; to be called before the context is closed."""
        from playwright.sync_api import Error

        for page in context.pages:
            for frame in page.frames:
                try:
                    self._lengths += frame.evaluate(f"window.{_LASTING}?.() ?? []")
                except Error:  # It has crashed, or is on its way to another document.
                    continue

    def summary(self) -> dict[str, float]:
        """`freezes`, their number, and `freeze_s`, the seconds of all."""
        return {"freezes": len(self._lengths), "freeze_s": sum(self._lengths) / 1e3}
