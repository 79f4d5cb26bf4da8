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

module.exports = airloom;
module.exports.airloom = airloom;
