// Charts from plain data (reports/page/charts.py). Text from data only ever becomes text nodes.
const COLORS = ["var(--series)", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8a8f3c", "#999999"];
const DASHES = ["", "6 3", "2 3"];
const MARKS = ["M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0", "M-3.6 -3.6h7.2v7.2h-7.2z", "M0 -4.6L4.4 3.4H-4.4z", "M0 -5L5 0L0 5L-5 0z",
  "M0 4.6L4.4 -3.4H-4.4z", "M-1.4 -4.6h2.8v3.2h3.2v2.8h-3.2v3.2h-2.8v-3.2h-3.2v-2.8h3.2z", "M-4.6 0L3.4 4.4V-4.4z", "M4.6 0L-3.4 4.4V-4.4z"];
const SVG = "http://www.w3.org/2000/svg";

function element(tag, attributes = {}, ...children) {
  const drawn = ["svg", "g", "rect", "line", "path", "text", "circle"].includes(tag);
  const made = drawn ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function percentText(value, digits = 2) {
  return `${(100 * value).toFixed(digits)} %`.replace("-", "−");
}

function download(name, kind, text) {
  const address = URL.createObjectURL(new Blob([text], { type: kind }));
  element("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

// A cell that starts like a formula is kept from being run by a spreadsheet.
function csv(rows) {
  const cell = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    const safe = /^[=+\-@\t]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text;
    return /[",\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return rows.map((row) => row.map(cell).join(",")).join("\n") + "\n";
}

// The page's colours live in its style sheet, so a drawing that leaves the page takes them along.
function standalone(svg) {
  const copy = svg.cloneNode(true);
  const pairs = [[svg, copy], ...[...svg.querySelectorAll("*")].map((node, i) => [node, copy.querySelectorAll("*")[i]])];
  for (const [from, to] of pairs) {
    const style = getComputedStyle(from);
    for (const name of ["fill", "stroke", "font-size", "font-family", "stroke-width", "stroke-dasharray", "fill-opacity"]) {
      to.setAttribute(name, style.getPropertyValue(name));
    }
    to.removeAttribute("class");
    to.removeAttribute("style");
  }
  copy.setAttribute("xmlns", SVG);
  copy.removeAttribute("tabindex");
  return new XMLSerializer().serializeToString(copy);
}

function tools(name, svg, rows) {
  return element("div", { class: "tools" },
    element("button", { type: "button", "aria-label": `Download ${name} as SVG`, onclick: () => download(`${name}.svg`, "image/svg+xml", standalone(svg())) }, "SVG"),
    element("button", { type: "button", "aria-label": `Download ${name} as CSV`, onclick: () => download(`${name}.csv`, "text/csv", csv(rows())) }, "CSV"));
}

function niceStep(span, count) {
  const rough = span / count, power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((step) => step >= rough);
}

function makeAxis(axis, values, from, to) {
  if (axis.scale === "category") {
    const names = [...new Set(values)];
    const width = (to - from) / names.length;
    return { at: (value) => from + width * (names.indexOf(value) + 0.5), ticks: names, text: (value) => value.replaceAll("_", " "), width };
  }
  const numbers = values.filter((value) => Number.isFinite(value));
  let low = Math.min(...numbers), high = Math.max(...numbers);
  if (axis.scale === "log") {
    if (axis.from !== undefined) low = Math.min(low, axis.from);
    const base = axis.percent === undefined && axis.label === "length" ? 2 : 10;
    const log = (value) => Math.log(value) / Math.log(base);
    if (axis.label === "digits") {
      const ticks = [];
      for (let power = 1; power <= high; power *= 10) ticks.push(power, 2 * power, 5 * power);
      return { at: (value) => from + (log(value / low) / log(high / low)) * (to - from), ticks: ticks.filter((tick) => tick >= low && tick <= high), text: (value) => value.toLocaleString("en") };
    }
    const first = Math.floor(log(low) + 1e-9), last = Math.max(Math.ceil(log(high) - 1e-9), first + 1);
    const every = Math.ceil((last - first) / 10);
    const ticks = [];
    for (let power = first; power <= last; power += every) ticks.push(base ** power);
    return { at: (value) => from + ((log(value) - first) / (last - first)) * (to - from), ticks, text: (v) => (v >= 1 ? v.toLocaleString("en") : String(Number(v.toPrecision(1)))) };
  }
  if (axis.percent) {
    high = Math.max(high, 1);
    if (axis.from_zero) low = 0;
    if (axis.from !== undefined) low = Math.min(low, axis.from);
    if (high - low < 0.002) low = high - 0.002;
  } else low = Math.min(low, 0);
  if (high === low) high = low + 1;
  const step = niceStep(high - low, 5);
  low = Math.floor(low / step + 1e-6) * step;
  if (!axis.percent) high = Math.ceil(high / step - 1e-6) * step;
  const ticks = [];
  for (let value = low; value <= high + step * 1e-6; value += step) ticks.push(value);
  let digits = 0;  // as many as tell the ticks apart and show them exactly
  while (digits < 4 && Math.abs(step * 100 * 10 ** digits - Math.round(step * 100 * 10 ** digits)) > 1e-6) digits += 1;
  const text = axis.percent ? (value) => percentText(value, digits) : (value) => value.toLocaleString("en");
  return { at: (value) => from + ((value - low) / (high - low)) * (to - from), ticks, text };
}

function makeChart(spec, host) {
  const names = [...new Set(spec.series.map((series) => series.name))];
  const look = (name) => ({ color: COLORS[names.indexOf(name) % COLORS.length], dash: DASHES[Math.floor(names.indexOf(name) / COLORS.length) % DASHES.length], mark: MARKS[names.indexOf(name) % MARKS.length] });
  const chosen = Object.fromEntries(spec.choices.map((choice) => [choice.tag, choice.values[0]]));
  const hidden = new Set();
  let svg = null, points = [], current = null, locked = false;
  const canvas = element("div");
  const readout = element("p", { class: "readout", role: "status" });
  const legend = element("div", { class: "legend", role: "group", "aria-label": "Series" });

  const visible = () => spec.series.filter((series) => spec.choices.every((choice) => series.tags[choice.tag] === chosen[choice.tag]));
  const shown = () => visible().filter((series) => !hidden.has(series.name));

  function describe() {
    readout.replaceChildren();
    if (!current) {
      readout.append(element("span", { class: "soft" }, "Point at the chart, or focus it and use the arrow keys; click or Enter locks, Escape unlocks."));
      return;
    }
    const { series, point } = current;
    const y = spec.y.percent ? percentText(point.y) : String(Number(point.y.toPrecision(4)));
    const parts = [`${series.name}${series.each && series.each !== series.name ? `, ${series.each}` : ""}; ${spec.x.label || series.tags.by || "at"} ${typeof point.x === "number" ? point.x.toLocaleString("en") : point.x}: ${y}`];
    if (point.low !== undefined) parts.push(`95 % interval ${spec.y.percent ? `${percentText(point.low)} to ${percentText(point.high)}` : `${point.low} to ${point.high}`}`);
    if (point.n !== undefined) parts.push(`n = ${point.n.toLocaleString("en")}`);
    if (point.note) parts.push(point.note);
    if (locked) readout.append(element("span", { class: "locked" }, "Locked. "));
    readout.append(parts.join("; "));
  }

  function show(next) {
    current = next;
    for (const old of svg.querySelectorAll(".chosen")) old.classList.remove("chosen");
    if (current) current.node.classList.add("chosen");
    describe();
  }

  function draw() {
    const width = Math.max(280, Math.min(1100, canvas.clientWidth || 640)), height = width < 460 ? 270 : width < 760 ? 320 : 400;
    const left = 76, right = width - 26, top = 14, bottom = height - 46;
    const series = shown();
    const flat = series.flatMap((one) => one.points);
    svg = element("svg", { viewBox: `0 0 ${width} ${height}`, role: "application", tabindex: "0", "aria-label": `${spec.title}. Chart with ${series.length} series; arrow keys read the points.` });
    points = [];
    if (flat.length) {
      const x = makeAxis(spec.x, flat.map((p) => p.x), left, right);
      const y = makeAxis(spec.y, [...flat.flatMap((p) => [p.y, p.low ?? p.y, p.high ?? p.y]), spec.y.reference?.value ?? flat[0].y], bottom, top);
      if (spec.band) svg.append(element("rect", { class: "band", x: left, y: top, width: Math.max(0, x.at(spec.band.to) - left), height: bottom - top }), element("text", { x: left + 6, y: bottom - 8 }, spec.band.label));
      for (const tick of y.ticks) svg.append(element("line", { class: "grid", x1: left, x2: right, y1: y.at(tick), y2: y.at(tick) }), element("text", { x: left - 8, y: y.at(tick) + 4, "text-anchor": "end" }, y.text(tick)));
      const room = Math.max(1, Math.ceil(x.ticks.length / ((right - left) / 48)));
      x.ticks.forEach((tick, i) => { if (i % room === 0) svg.append(element("text", { x: x.at(tick), y: bottom + 18, "text-anchor": "middle" }, x.text(tick))); });
      svg.append(element("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom }));
      svg.append(element("text", { x: (left + right) / 2, y: height - 8, "text-anchor": "middle" }, spec.x.label || series[0].tags.by || ""));
      svg.append(element("text", { x: 12, y: (top + bottom) / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${(top + bottom) / 2})` }, spec.y.label));
      const line = spec.y.reference;
      if (line) svg.append(element("line", { class: "reference", x1: left, x2: right, y1: y.at(line.value), y2: y.at(line.value) }), element("text", { x: right, y: y.at(line.value) + 16, "text-anchor": "end" }, line.label));
      series.forEach((one, index) => {
        const { color, dash, mark } = look(one.name);
        const shift = spec.x.scale === "category" ? (index - (series.length - 1) / 2) * Math.min(14, (x.width * 0.7) / series.length) : 0;
        const many = one.points.length > 24;
        const place = (p) => [x.at(p.x) + shift, y.at(p.y)];
        if (spec.x.scale !== "category") svg.append(element("path", { d: one.points.map((p, i) => `${i ? "L" : "M"}${place(p).map((v) => v.toFixed(1)).join(" ")}`).join(""), fill: "none", stroke: color, "stroke-width": many ? 1.4 : 1.8, "stroke-dasharray": dash || null }));
        for (const point of one.points) {
          const [px, py] = place(point);
          if (point.low !== undefined) svg.append(element("line", { x1: px, x2: px, y1: y.at(point.low), y2: y.at(point.high), stroke: color, "stroke-width": 1.2, "stroke-opacity": 0.6 }));
          const node = element("path", { d: mark, fill: color, transform: `translate(${px.toFixed(1)} ${py.toFixed(1)})${many ? " scale(0.4)" : ""}` });
          svg.append(node);
          points.push({ series: one, point, node, px, py });
        }
      });
    } else svg.append(element("text", { x: width / 2, y: height / 2, "text-anchor": "middle" }, "No series is switched on."));
    svg.addEventListener("pointermove", (event) => { if (!locked) show(nearest(event)); });
    svg.addEventListener("click", (event) => { locked = true; show(nearest(event)); if (!current) locked = false; describe(); });
    svg.addEventListener("keydown", onKey);
    canvas.replaceChildren(svg);
    current = null;
    locked = false;
    describe();
  }

  function nearest(event) {
    const box = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / box.width;
    const x = (event.clientX - box.left) * scale, y = (event.clientY - box.top) * scale;
    let best = null, least = 60 ** 2;
    for (const one of points) {
      const distance = (one.px - x) ** 2 + (one.py - y) ** 2;
      if (distance < least) [best, least] = [one, distance];
    }
    return best;
  }

  function onKey(event) {
    if (event.key === "Escape") { locked = false; show(null); return; }
    if (event.key === "Enter" || event.key === " ") { locked = current !== null; describe(); event.preventDefault(); return; }
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowUp: 1, ArrowDown: -1 };
    if (!(event.key in steps) || !points.length) return;
    event.preventDefault();
    locked = false;
    if (!current) { show(points[0]); return; }
    if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
      const own = points.filter((one) => one.series === current.series);
      show(own[Math.max(0, Math.min(own.length - 1, own.indexOf(current) + steps[event.key]))]);
    } else {
      const all = [...new Set(points.map((one) => one.series))];
      const next = all[(all.indexOf(current.series) + steps[event.key] + all.length) % all.length];
      const own = points.filter((one) => one.series === next);
      show(own.reduce((best, one) => (Math.abs(one.px - current.px) < Math.abs(best.px - current.px) ? one : best)));
    }
  }

  function drawLegend() {
    const present = [...new Set(visible().map((series) => series.name))];
    legend.replaceChildren(...present.map((name) => {
      const { color, dash, mark } = look(name);
      const sample = element("svg", { viewBox: "0 0 22 12", "aria-hidden": "true" }, element("line", { x1: 0, x2: 22, y1: 6, y2: 6, stroke: color, "stroke-width": 1.8, "stroke-dasharray": dash || null }), element("path", { d: mark, fill: color, transform: "translate(11 6)" }));
      return element("button", { type: "button", "aria-pressed": String(!hidden.has(name)), onclick: (event) => {
        if (hidden.has(name)) hidden.delete(name); else hidden.add(name);
        event.currentTarget.setAttribute("aria-pressed", String(!hidden.has(name)));
        draw();
      } }, sample, name);
    }));
  }

  const selects = spec.choices.map((choice) => element("label", {}, choice.label,
    element("select", { "data-tag": choice.tag, onchange: (event) => { chosen[choice.tag] = event.target.value; drawLegend(); draw(); } },
      ...choice.values.map((value) => element("option", { value }, value)))));
  const rows = () => {
    const tags = Object.keys(spec.series[0].tags);
    const head = ["series", "run", ...tags, spec.x.label || "x", spec.y.label, "low", "high", "n", "note"];
    return [head, ...spec.series.flatMap((one) => one.points.map((p) => [one.name, one.each, ...tags.map((tag) => one.tags[tag]), p.x, p.y, p.low, p.high, p.n, p.note]))];
  };
  host.append(element("h3", {}, spec.title), selects.length ? element("div", { class: "controls" }, ...selects) : "", canvas, readout, legend, tools(spec.key, () => svg, rows));
  drawLegend();
  draw();
  let width = canvas.clientWidth;
  new ResizeObserver(() => {
    if (Math.abs(canvas.clientWidth - width) > 8) { width = canvas.clientWidth; draw(); }
  }).observe(canvas);
}
