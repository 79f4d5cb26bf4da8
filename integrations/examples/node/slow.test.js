// Behind a link: airloom emulate wpt/3g --seed 7 -- node --test
const assert = require('node:assert');
const test = require('node:test');

test('a file comes in time over the link', async () => {
  const link = process.env.AIRLOOM_LINK;
  assert.ok(link, 'no link here: airloom emulate wpt/3g -- node --test');
  const start = performance.now();
  // The simulated server at the far end; one of your own: --loopback PORT, and host.airloom:PORT here.
  const answer = await fetch('http://10.77.0.1/20kB');
  const octets = (await answer.arrayBuffer()).byteLength;
  const ms = performance.now() - start;
  assert.strictEqual(octets, 20000);
  console.log(`${ms.toFixed(0)} ms over ${link}, seed ${process.env.AIRLOOM_SEED}`);
  // Two round trips of 300 ms, and 20 kB at 1.6 Mbit/s.
  assert.ok(ms > 600 && ms < 5000, `it took ${ms} ms`);
});
