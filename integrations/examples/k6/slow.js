// Behind a link: airloom emulate wpt/3g --seed 7 -- k6 run slow.js
import http from 'k6/http';
import { check } from 'k6';

export const options = { vus: 1, iterations: 3, thresholds: { checks: ['rate==1'], http_req_duration: ['p(95)<5000'] } };

export default function () {
  // The simulated server at the far end; one of your own: --loopback PORT, and host.airloom:PORT here.
  const answer = http.get('http://10.77.0.1/20kB');
  check(answer, { 'is whole': (one) => one.body.length === 20000, 'is behind a link': (one) => one.timings.duration > 300 });
}
