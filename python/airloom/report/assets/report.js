(() => {
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const said = document.getElementById("said");
const plots = [];

// ---- columns ------------------------------------------------------------------------------------------------------

const KINDS = { f8: Float64Array, u4: Uint32Array, u2: Uint16Array, u1: Uint8Array };

function column(packed) {
  if (!packed || packed.base64 === undefined) return packed;
  const text = atob(packed.base64);
  const octets = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) octets[i] = text.charCodeAt(i);
  return new KINDS[packed.type](octets.buffer);
}

function unpacked(series) {
  const made = {};
  for (const [key, value] of Object.entries(series)) made[key] = column(value);
  return made;
}

/** First index whose value is not below `wanted`; the column is sorted. */
function lower(values, wanted) {
  let from = 0, to = values.length;
  while (from < to) {
    const middle = (from + to) >> 1;
    if (values[middle] < wanted) from = middle + 1; else to = middle;
  }
  return from;
}

const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const colour = series => css("--" + series.role) || css("--ink");

function element(name, attributes = {}, ...inside) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...inside);
  return made;
}

function plain(value) {
  const size = Math.abs(value);
  if (size >= 1e9) return +(value / 1e9).toPrecision(4) + " G";
  if (size >= 1e6) return +(value / 1e6).toPrecision(4) + " M";
  if (size >= 1e4) return +(value / 1e3).toPrecision(4) + " k";
  return String(+value.toPrecision(4));
}

/** More marks than this in view are counted, in about so many spans of time. */
const MOST_MARKS = 4000, SPANS = 120;

// ---- a plot -------------------------------------------------------------------------------------------------------

/**
 * One plot: marks of several series over x. Plots of one group show the same span of x.
 * Marks are drawn here and not by the library: each pixel cell once, so that 100,000 of them cost what is seen.
 */
class Plot {
  constructor(place, options) {
    Object.assign(this, { place, chosen: null, hidden: new Set(), unit: "", ticks: null, height: 320 }, options);
    this.extent = this.extent || this.bounds();
    this.span = this.span || [...this.extent];
    this.place.replaceChildren();
    this.place.append(element("h3", {}, this.title));
    this.place.append(this.legend());
    this.canvas = element("div", { class: "canvas", tabindex: "0", role: "application",
      "aria-roledescription": "plot", "aria-label": this.label() });
    this.place.append(this.canvas);
    this.canvas.addEventListener("keydown", event => this.key(event));
    this.build();
    this.watch = new ResizeObserver(() => this.resize());
    this.watch.observe(this.canvas);
  }

  label() {
    const what = this.series.map(s => `${s.name}: ${s.t.length} marks`).join("; ");
    return `${this.title}. ${what}. Arrow keys move, plus and minus zoom, 0 shows all, n and p choose marks.`;
  }

  bounds() {
    let from = Infinity, to = -Infinity;
    for (const s of this.series) {
      if (!s.t.length) continue;
      from = Math.min(from, s.t[0]);
      to = Math.max(to, s.t[s.t.length - 1]);
    }
    if (from > to) return [0, 1];
    const room = (to - from || 1) * 0.02;
    return [from - room, to + room];
  }

  legend() {
    const row = element("div", { class: "tools legend" });
    this.series.forEach((s, n) => {
      const mark = element("span", { class: "mark", "aria-hidden": "true" });
      mark.style.backgroundColor = colour(s);
      // Dashed as the line is: colours come round again.
      if (s.dash && s.dash.length) {
        mark.style.backgroundImage = "repeating-linear-gradient(90deg, transparent 0 4px, var(--wash) 4px 6px)";
      }
      const count = s.shape === "line" || s.shape === "interval" ? "" : ` (${s.t.length})`;
      const button = element("button", { type: "button", "aria-pressed": String(!this.hidden.has(n)) }, mark, s.name + count);
      button.addEventListener("click", () => {
        if (this.hidden.has(n)) this.hidden.delete(n); else this.hidden.add(n);
        button.setAttribute("aria-pressed", String(!this.hidden.has(n)));
        this.fit();
      });
      row.append(button);
    });
    if (this.series.length <= 12) return row;
    return element("details", {}, element("summary", {}, `${this.series.length} series`), row);
  }

  build() {
    const axis = () => css("--soft"), grid = { stroke: () => css("--rule"), width: 1 };
    const x = { stroke: axis, grid, ticks: grid, label: this.x, labelSize: 24, size: 40 };
    if (this.ticks) {
      x.splits = () => this.ticks.map((_, n) => n);
      x.values = (_, at) => at.map(n => this.ticks[n] ?? "");
    }
    this.u = new uPlot({
      width: Math.max(this.canvas.clientWidth, 240), height: this.height,
      legend: { show: false },
      cursor: { points: { show: false }, drag: { x: true, y: false, setScale: false } },
      scales: { x: { time: false, range: () => this.span }, y: { range: () => this.tall } },
      axes: [x, { stroke: axis, grid, ticks: grid, label: this.y, labelSize: 24, size: 64,
        values: (_, at) => at.map(plain) }],
      series: [{}, { paths: () => null, points: { show: false } }],
      hooks: {
        draw: [u => this.draw(u)],
        setSelect: [u => {
          if (u.select.width > 4) {
            const from = u.posToVal(u.select.left, "x"), to = u.posToVal(u.select.left + u.select.width, "x");
            this.show(from, to);
          }
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        }],
      },
    }, this.frame(), this.canvas);
    let down = null;
    this.u.over.addEventListener("mousedown", event => { down = [event.clientX, event.clientY]; });
    this.u.over.addEventListener("mouseup", event => {
      if (down && Math.hypot(event.clientX - down[0], event.clientY - down[1]) < 4) this.click(event);
      down = null;
    });
    this.u.over.addEventListener("dblclick", () => this.show(...this.extent));
  }

  frame() {
    this.counts = this.dense ? this.counted() : null;
    if (this.dense) this.place.querySelector("h3").textContent = this.title + (this.counts
      ? `: how many in each ${plain(this.counts.span)} s; zoom in to see each one` : "");
    this.tall = this.heights();
    return [this.span, this.tall];
  }

  /** Marks that would cover each other are counted in spans of time, kind by kind; null if they are few enough. */
  counted() {
    const [from, to] = this.span;
    const visible = this.series.map(s => [lower(s.t, from), lower(s.t, to)]);
    if (visible.reduce((sum, [a, b]) => sum + b - a, 0) <= MOST_MARKS) return null;
    const least = (to - from) / SPANS, power = 10 ** Math.floor(Math.log10(least));
    const span = power * [1, 2, 5, 10].find(step => power * step >= least);
    const start = Math.floor(from / span), number = Math.ceil(to / span) - start + 1;
    const lines = this.series.map((s, n) => {
      const y = new Float64Array(number), t = Float64Array.from(y, (_, i) => (start + i) * span);
      for (let i = visible[n][0]; i < visible[n][1]; i++) y[Math.floor(s.t[i] / span) - start]++;
      return { ...s, shape: "step", t, y };
    });
    return { span, lines };
  }

  /** The span of y that the visible marks need. */
  heights() {
    const drawn = this.counts ? this.counts.lines : this.series;
    let low = this.zero ? 0 : Infinity, high = this.zero ? 0 : -Infinity;
    drawn.forEach((s, n) => {
      if (this.hidden.has(n)) return;
      const first = Math.max(0, lower(s.t, this.span[0]) - (s.shape === "line" || s.shape === "step" ? 1 : 0));
      const last = lower(s.t, this.span[1]);
      const bottom = s.low || s.y, top = s.high || s.y;
      for (let i = first; i < last; i++) {
        if (bottom[i] < low) low = bottom[i];
        if (top[i] > high) high = top[i];
      }
    });
    if (!(low <= high)) return [0, 1];
    const room = (high - low || Math.abs(high) || 1) * 0.05;
    return [this.zero && low === 0 ? 0 : low - room, high + room];
  }

  fit() {
    this.u.setData(this.frame(), true);
  }

  /** Shows from..to, in every plot of the group. */
  show(from, to) {
    const [least, most] = this.extent;
    if (!(to - from > (most - least) * 1e-9)) return;
    const whole = to - from >= most - least;
    const width = whole ? most - least : to - from;
    const start = whole ? least : Math.min(Math.max(from, least), most - width);
    const span = whole ? [least, most] : [start, start + width];
    for (const other of plots) {
      if (other !== this && (!this.group || other.group !== this.group)) continue;
      other.span = [...span];
      other.fit();
    }
    said.textContent = `showing ${plain(start)} to ${plain(start + width)}`;
  }

  key(event) {
    const [from, to] = this.span, width = to - from;
    const act = {
      ArrowLeft: () => this.show(from - width / 4, to - width / 4),
      ArrowRight: () => this.show(from + width / 4, to + width / 4),
      "+": () => this.show(from + width / 4, to - width / 4),
      "=": () => this.show(from + width / 4, to - width / 4),
      "-": () => this.show(from - width / 2, to + width / 2),
      "0": () => this.show(...this.extent),
      n: () => this.step(1),
      p: () => this.step(-1),
    }[event.key];
    if (act && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      act();
    }
  }

  /** Chooses the next or previous mark in time, of all series that have packets. */
  step(by) {
    const now = this.chosen ? this.series[this.chosen[0]].t[this.chosen[1]] : (by > 0 ? this.span[0] : this.span[1]);
    let best = null, near = Infinity;
    this.series.forEach((s, n) => {
      if (!s.id || this.hidden.has(n)) return;
      let i = lower(s.t, now);
      if (by > 0) { while (i < s.t.length && !this.after(n, i, now)) i++; }
      else {
        while (i < s.t.length && s.t[i] <= now) i++;
        do i--; while (i >= 0 && !this.before(n, i, now));
      }
      if (i < 0 || i >= s.t.length) return;
      const away = Math.abs(s.t[i] - now);
      // Marks of one moment are in the order of their series, both ways.
      if (away < near || (by < 0 && away === near)) { near = away; best = [n, i]; }
    });
    if (best) this.choose(best);
  }

  after(n, i, now) {
    const t = this.series[n].t[i];
    if (!this.chosen || t !== now) return t >= now && !(this.chosen && t === now && n <= this.chosen[0]);
    return n > this.chosen[0] || (n === this.chosen[0] && i > this.chosen[1]);
  }

  before(n, i, now) {
    const t = this.series[n].t[i];
    if (!this.chosen || t !== now) return t <= now;
    return n < this.chosen[0] || (n === this.chosen[0] && i < this.chosen[1]);
  }

  click(event) {
    if (this.counts) return;
    const box = this.u.over.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    const kx = box.width / (this.span[1] - this.span[0]), ky = box.height / (this.tall[1] - this.tall[0]);
    let best = null, near = 14;
    this.series.forEach((s, n) => {
      if (!s.id || this.hidden.has(n)) return;
      const first = lower(s.t, this.span[0] + (x - near) / kx), last = lower(s.t, this.span[0] + (x + near) / kx);
      for (let i = first; i < last; i++) {
        const away = Math.hypot((s.t[i] - this.span[0]) * kx - x, (this.tall[1] - s.y[i]) * ky - y);
        if (away < near) { near = away; best = [n, i]; }
      }
    });
    if (best) this.choose(best);
  }

  choose(which) {
    this.chosen = which;
    const [n, i] = which, s = this.series[n];
    const packet = { kind: s.name, t: s.t[i], y: s.y[i], id: s.id[i], len: s.len[i], attempt: s.attempt[i] };
    if (s.t[i] < this.span[0] || s.t[i] > this.span[1]) {
      const half = (this.span[1] - this.span[0]) / 2;
      this.show(s.t[i] - half, s.t[i] + half);
    }
    chosenPacket = packet.id;
    tell(packet, this);
    for (const other of plots) other.u.redraw();
  }

  resize() {
    const width = Math.max(this.canvas.clientWidth, 240);
    if (width !== this.u.width) this.u.setSize({ width, height: this.height });
  }

  // ---- drawing

  draw(u) {
    const context = u.ctx, ratio = devicePixelRatio || 1, box = u.bbox;
    const kx = box.width / (this.span[1] - this.span[0]), ky = box.height / (this.tall[1] - this.tall[0]);
    const at = { x: t => box.left + (t - this.span[0]) * kx, y: v => box.top + (this.tall[1] - v) * ky };
    context.save();
    context.beginPath();
    context.rect(box.left, box.top, box.width, box.height);
    context.clip();
    (this.counts ? this.counts.lines : this.series).forEach((s, n) => {
      if (this.hidden.has(n)) return;
      context.fillStyle = context.strokeStyle = colour(s);
      context.lineWidth = 1.5 * ratio;
      if (s.shape === "line" || s.shape === "step") this.trail(context, s, at, s.shape === "step");
      else if (s.shape === "interval") this.intervals(context, s, at, ratio);
      else this.marks(context, s, at, ratio, box);
    });
    if (chosenPacket !== null) this.ring(context, at, ratio);
    context.restore();
    if (this.events) this.happenings(context, at, ratio, box);
  }

  /** What happened to the links: a shade or a dashed line, with its name above where there is room for it. */
  happenings(context, at, ratio, box) {
    const right = box.left + box.width, size = 11 * ratio;
    context.save();
    context.font = `${size}px system-ui, sans-serif`;
    context.textBaseline = "top";
    context.lineWidth = ratio;
    let free = -Infinity;
    for (const one of this.events) {
      const from = Math.max(at.x(one.begin_s), box.left), to = Math.min(at.x(one.end_s ?? one.begin_s), right);
      if (to < box.left || from > right) continue;
      context.strokeStyle = context.fillStyle = css("--soft");
      context.globalAlpha = 0.15;
      context.fillRect(from, box.top, to - from, box.height);
      context.globalAlpha = 1;
      context.setLineDash([4 * ratio, 3 * ratio]);
      context.beginPath();
      for (const x of one.end_s === null ? [from] : [from, to]) {
        context.moveTo(x, box.top);
        context.lineTo(x, box.top + box.height);
      }
      context.stroke();
      const width = context.measureText(one.name).width, x = Math.min(from + 3 * ratio, right - width);
      if (x < free) continue;
      free = x + width + 6 * ratio;
      context.fillStyle = css("--paper");
      context.globalAlpha = 0.8;
      context.fillRect(x - ratio, box.top, width + 2 * ratio, size + 2 * ratio);
      context.globalAlpha = 1;
      context.fillStyle = css("--ink");
      context.fillText(one.name, x, box.top + ratio);
    }
    context.restore();
  }

  /** A line; of all points that fall into one column of pixels the first, lowest, highest and last. */
  trail(context, s, at, stepped) {
    const first = Math.max(0, lower(s.t, this.span[0]) - 1), last = Math.min(s.t.length, lower(s.t, this.span[1]) + 1);
    context.beginPath();
    context.setLineDash(s.dash || []);
    let column = null, low = 0, high = 0, end = 0, open = false;
    const close = () => {
      if (low !== high) { context.moveTo(column, low); context.lineTo(column, high); context.moveTo(column, end); }
    };
    for (let i = first; i < last; i++) {
      const x = Math.round(at.x(s.t[i])), y = at.y(s.y[i]);
      if (x === column) {
        low = Math.min(low, y); high = Math.max(high, y); end = y;
        continue;
      }
      if (open) { close(); if (stepped) context.lineTo(x, end); context.lineTo(x, y); }
      else context.moveTo(x, y);
      open = true; column = x; low = high = end = y;
    }
    if (open) close();
    if (stepped && open) context.lineTo(at.x(this.span[1]), end);
    context.stroke();
    context.setLineDash([]);
  }

  marks(context, s, at, ratio, box) {
    const first = lower(s.t, this.span[0]), last = lower(s.t, this.span[1]);
    const cell = Math.max(1, Math.round(ratio)), wide = Math.ceil(box.width / cell) + 2;
    const seen = new Uint8Array(wide * (Math.ceil(box.height / cell) + 2));
    context.beginPath();
    for (let i = first; i < last; i++) {
      const x = at.x(s.t[i]), y = at.y(s.y[i]);
      const place = Math.round((y - box.top) / cell) * wide + Math.round((x - box.left) / cell);
      if (seen[place]) continue;
      seen[place] = 1;
      if (s.shape === "bar") context.rect(x - 0.75 * ratio, y - 3 * ratio, 1.5 * ratio, 6 * ratio);
      else if (s.shape === "dot") context.rect(x - 1.5 * ratio, y - 1.5 * ratio, 3 * ratio, 3 * ratio);
      else {
        const r = 3.5 * ratio;
        context.moveTo(x - r, y - r); context.lineTo(x + r, y + r);
        context.moveTo(x - r, y + r); context.lineTo(x + r, y - r);
      }
    }
    if (s.shape === "cross") context.stroke(); else context.fill();
  }

  intervals(context, s, at, ratio) {
    const r = 4 * ratio;
    context.beginPath();
    for (let i = 0; i < s.t.length; i++) {
      const x = at.x(s.t[i]), low = at.y(s.low[i]), high = at.y(s.high[i]);
      context.moveTo(x, low); context.lineTo(x, high);
      context.moveTo(x - r, low); context.lineTo(x + r, low);
      context.moveTo(x - r, high); context.lineTo(x + r, high);
    }
    context.stroke();
    context.beginPath();
    for (let i = 0; i < s.t.length; i++) {
      context.moveTo(at.x(s.t[i]) + r, at.y(s.y[i]));
      context.arc(at.x(s.t[i]), at.y(s.y[i]), r, 0, 2 * Math.PI);
    }
    if (s.hollow) context.stroke(); else context.fill();
    if (s.join) this.trail(context, s, at, false);
  }

  ring(context, at, ratio) {
    context.strokeStyle = css("--ink");
    context.lineWidth = 2 * ratio;
    if (this.counts) return;
    this.series.forEach((s, n) => {
      if (!s.id || this.hidden.has(n)) return;
      const last = lower(s.t, this.span[1]);
      for (let i = lower(s.t, this.span[0]); i < last; i++) {
        if (s.id[i] !== chosenPacket) continue;
        context.beginPath();
        context.arc(at.x(s.t[i]), at.y(s.y[i]), 7 * ratio, 0, 2 * Math.PI);
        context.stroke();
      }
    });
  }

  gone() {
    this.watch.disconnect();
    this.u.destroy();
  }
}

// ---- the chosen packet --------------------------------------------------------------------------------------------

let chosenPacket = null;

function tell(packet, plot) {
  const card = document.getElementById("chosen");
  if (!card) return;
  const filter = `frame.packet_id == ${packet.id}`;
  const attempt = packet.attempt ? `, attempt ${packet.attempt}` : "";
  const copy = element("button", { type: "button" }, "Copy filter");
  copy.addEventListener("click", async () => {
    try { await navigator.clipboard.writeText(filter); copy.textContent = "Copied"; }
    catch { getSelection().selectAllChildren(document.getElementById("filter")); copy.textContent = "Selected: press Ctrl-C"; }
  });
  const rows = [
    element("p", {}, element("strong", {}, `packet ${packet.id}`),
      `: ${packet.kind}${attempt}, ${packet.t.toFixed(6)} s, ${plot.unit} ${packet.y}, ${packet.len} octets`),
    element("p", {}, "Wireshark filter: ", element("code", { id: "filter" }, filter), " ", copy),
  ];
  if (data.capture) {
    rows.push(element("pre", { tabindex: "0" }, element("code", {},
      `tshark --enable-heuristic rlc_udp -r ${data.capture} -Y '${filter}'`)));
  } else {
    rows.push(element("p", {}, "This run wrote no capture: add \"pcapng\" to record in [run]."));
  }
  card.replaceChildren(...rows);
}

// ---- a run --------------------------------------------------------------------------------------------------------

const TIME = "time since the start of the run (s)";

function toolbar(place, plot) {
  const bar = element("div", { class: "tools", role: "group", "aria-label": "Zoom of the plots over time" });
  for (const [text, name, key] of [["All", "Show all", "0"], ["+", "Zoom in", "+"], ["−", "Zoom out", "-"],
    ["◀", "Earlier", "ArrowLeft"], ["▶", "Later", "ArrowRight"]]) {
    const button = element("button", { type: "button", "aria-label": name }, text);
    button.addEventListener("click", () => plot().key(new KeyboardEvent("keydown", { key })));
    bar.append(button);
  }
  place.append(bar);
}

function run() {
  const state = { flow: 0, span: null };
  const flows = data.flows.map(f => ({ ...f, segments: f.segments.map(unpacked), attempts: f.attempts.map(unpacked) }));
  const lines = name => data[name].map((line, n) => ({ ...unpacked(line), role: `s${n % 8}`, shape: name === "rates" ? "line" : "step" }));
  const others = [["rates", "Rate at the end of each link", "rate (bit/s)", lines("rates")],
    ["queues", "Queues", "octets", lines("queues")], ["windows", "Congestion windows", "octets", lines("windows")]];
  const controls = document.getElementById("controls");
  if (!controls) return;
  if (flows.length > 1) {
    const select = element("select", { id: "flow" });
    flows.forEach((f, n) => select.append(element("option", { value: n }, f.name)));
    select.addEventListener("change", () => { state.flow = +select.value; chosenPacket = null; draw(); });
    controls.append(element("label", { for: "flow" }, "Flow: "), select);
  }
  toolbar(controls, () => plots[0]);

  function draw() {
    if (plots.length) state.span = plots[0].span;
    while (plots.length) plots.pop().gone();
    const all = [...(flows[state.flow] ? [...flows[state.flow].segments, ...flows[state.flow].attempts] : []),
      ...others.flatMap(o => o[3])].filter(s => s.t.length);
    if (!all.length) return;
    const end = Math.max(...all.map(s => s.t[s.t.length - 1]));
    const extent = [-0.01 * end, 1.01 * end];
    const shared = { x: TIME, group: "time", extent, span: state.span || undefined, zero: true, events: data.events };
    const flow = flows[state.flow];
    if (flow) {
      plots.push(new Plot(document.getElementById("sequence"), { ...shared, title: `${flow.title}, ${flow.name}`,
        y: flow.y, series: flow.segments, unit: "sequence number", height: 360 }));
      const place = document.getElementById("attempts");
      if (flow.attempts.length) {
        plots.push(new Plot(place, { ...shared, title: `Link-layer attempts, ${flow.attempts_title}`,
          y: "PDUs", series: flow.attempts, unit: "PDU", height: 260, dense: true }));
      } else place.replaceChildren();
    }
    for (const [name, title, y, series] of others) {
      if (series.length) plots.push(new Plot(document.getElementById(name), { ...shared, title, y, series, height: 240 }));
    }
  }
  return draw;
}

// ---- a sweep ------------------------------------------------------------------------------------------------------

function sweep() {
  const measure = document.getElementById("measure"), axis = document.getElementById("axis");
  if (!measure) return;
  const point = column(data.point);
  const values = {};
  for (const [name, packed] of Object.entries(data.values)) values[name] = column(packed);
  const medians = {};
  for (const [name, m] of Object.entries(data.medians)) medians[name] = unpacked(m);

  /** A point by the labels of its axes but one; axes of a single level say nothing. */
  const named = (labels, but = -1) => labels.map((label, a) => [label, data.axes[a], a])
    .filter(([, axis, a]) => a !== but && axis.labels.length > 1).map(([label, axis]) => `${axis.short} ${label}`).join(", ");

  /** Points that differ in the chosen axis only, in groups. */
  function groups(n) {
    const found = new Map();
    data.points.forEach((labels, p) => {
      const rest = named(labels, n);
      if (!found.has(rest)) found.set(rest, []);
      found.get(rest).push(p);
    });
    return found;
  }

  function draw() {
    while (plots.length) plots.pop().gone();
    const name = measure.value, n = axis && data.axes.length ? +axis.value : 0;
    const chosen = data.axes[n] || { key: "point", title: "point", short: "point", labels: ["all"], numeric: false };
    const at = labels => chosen.numeric ? labels : chosen.labels.indexOf(labels);
    const m = medians[name], y = data.titles[name];
    // Where too few seeds set no interval the point stands alone.
    const end = (of, which, p) => Number.isNaN(of[which][p]) ? of.median[p] : of[which][p];
    const series = [...groups(n)].map(([rest, members], k) => {
      const rows = members.filter(p => !Number.isNaN(m.median[p]))
        .map(p => [data.axes.length ? at(data.points[p][n]) : 0, p]).sort((a, b) => a[0] - b[0]);
      return { name: rest || "median", role: `s${k % 8}`, shape: "interval", join: true,
        t: Float64Array.from(rows, r => r[0]), y: Float64Array.from(rows, r => m.median[r[1]]),
        low: Float64Array.from(rows, r => end(m, "low", r[1])), high: Float64Array.from(rows, r => end(m, "high", r[1])) };
    });
    plots.push(new Plot(document.getElementById("response"), { title: `Median of ${y}, 95 % intervals over seeds`,
      x: chosen.title, y, series, ticks: chosen.numeric ? null : chosen.labels,
      extent: chosen.numeric ? undefined : [-0.5, chosen.labels.length - 0.5] }));
    const spread = data.points.map((labels, p) => {
      const mine = [];
      for (let i = 0; i < point.length; i++) if (point[i] === p && !Number.isNaN(values[name][i])) mine.push(values[name][i]);
      mine.sort((a, b) => a - b);
      return { name: named(labels) || "all", role: `s${p % 8}`, shape: "step",
        dash: p >= 8 ? [6, 4] : [], t: Float64Array.from(mine), y: Float64Array.from(mine, (_, i) => (i + 1) / mine.length) };
    });
    plots.push(new Plot(document.getElementById("spread"), { title: `Distribution of ${y} over seeds`, x: y,
      y: "share of runs with at most that", series: spread, zero: true }));
  }
  measure.addEventListener("change", draw);
  if (axis) axis.addEventListener("change", draw);
  return draw;
}

const draw = { run, sweep }[data.kind]?.();
if (draw) {
  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
}
window.airloom = { plots, data };
})();
