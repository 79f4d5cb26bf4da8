'use strict';
// Playwright's browser behind a modelled link:
//
//     const { test } = require('@playwright/test');
//     test.use(airloom('wpt/3g', { seed: 7, loopback: [3000] }));
//
// It knows nothing of links. What Playwright starts as the browser is a script that calls `airloom emulate`, and that
// starts the browser inside; Playwright's pipe, descriptors 3 and 4 of the browser, goes through as stdin and stdout.

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');

/** A word for a shell. */
const quoted = (word) => `'${String(word).replaceAll("'", "'\\''")}'`;

/** Chromium: Playwright's own, or the system's. */
function chromium() {
  for (const name of ['@playwright/test', 'playwright', 'playwright-core']) {
    try {
      const found = require(require.resolve(name, { paths: [process.cwd()] })).chromium.executablePath();
      if (fs.existsSync(found)) return found;
    } catch {} // it is not installed
  }
  const places = (process.env.PATH || '').split(path.delimiter);
  const names = ['chromium', 'chromium-browser', 'google-chrome'];
  const found = names.flatMap((name) => places.map((place) => path.join(place, name))).find((file) => fs.existsSync(file));
  if (!found) throw new Error('airloom: there is no Chromium; say { browser: PATH } or npx playwright install chromium');
  return found;
}

/**
 * Options for `test.use` or `use` of a project.
 * @param {string} link a bearer, a preset or a scenario (airloom list presets)
 * @param {object} [options] `seed`; `set`: keys of the link; `loopback`: ports of this machine that pages of
 *   http://localhost:PORT/ are on; `outside`: a way to the outside world; `browser`: Chromium; `command`: airloom's
 *   words; `out`: the folder that gets a result folder for each browser
 */
function airloom(link, options = {}) {
  const { seed, set = {}, loopback = [], outside = false, browser = chromium() } = options;
  const { command = [process.env.AIRLOOM || 'airloom'], out = path.resolve('test-results') } = options;
  const words = [...command, '-q', 'emulate', link];
  if (seed !== undefined) words.push('--seed', seed);
  for (const [key, value] of Object.entries(set)) words.push('--set', `${key}=${value}`);
  if (loopback.length) words.push('--loopback', loopback.join(','));
  if (outside) words.push('--outside');
  const inside = 'exec "$0" "$@" 3<&0 4>&1 </dev/null >&2';
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'airloom-'));
  const script = path.join(folder, 'browser');
  const lines = [
    '#!/bin/sh',
    `mkdir -p ${quoted(out)} && out=$(mktemp -d ${quoted(path.join(out, 'airloom-XXXXXX'))}) || exit 1`,
    `exec ${words.map(quoted).join(' ')} --out "$out" -- /bin/sh -c ${quoted(inside)} ${quoted(browser)} "$@" <&3 >&4`,
  ];
  fs.writeFileSync(script, `${lines.join('\n')}\n`, { mode: 0o700 });
  process.on('exit', () => fs.rmSync(folder, { recursive: true, force: true }));
  const rules = loopback.flatMap((port) => ['localhost', '127.0.0.1'].map((name) => `MAP ${name}:${port} host.airloom:${port}`));
  return { launchOptions: { executablePath: script, args: rules.length ? [`--host-resolver-rules=${rules.join(',')}`] : [] } };
}

/** What a page calls for each freeze that ended, with its milliseconds, and what it offers to be asked for those that have not. */
const [BINDING, LASTING] = ['__airloom_froze', '__airloom_freezing'];

/** What watches a page's videos: the text of airloom's own `freezes.py`, which says what a freeze is. A test compares them. */
const WATCH = `(() => {
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
})()`.replace('BINDING', BINDING).replace('LASTING', LASTING);

/**
 * Counts the freezes of the videos in the pages that a context of Playwright opens from now on.
 * @returns an object whose `summary()`, to be asked for before the context is closed, says `freezes`, their number, and
 *   `freeze_s`, the seconds of all
 */
async function freezes(context) {
  const ended = [];
  await context.exposeBinding(BINDING, (_source, milliseconds) => void ended.push(milliseconds));
  await context.addInitScript(WATCH);
  const ask = (frame) => frame.evaluate(`window.${LASTING}?.() ?? []`).catch(() => []); // crashed, or between documents
  return {
    async summary() {
      const frames = context.pages().flatMap((page) => page.frames());
      const all = [...ended, ...(await Promise.all(frames.map(ask))).flat()];
      return { freezes: all.length, freeze_s: all.reduce((sum, each) => sum + each, 0) / 1e3 };
    },
  };
}

module.exports = airloom;
module.exports.airloom = airloom;
module.exports.freezes = freezes;
