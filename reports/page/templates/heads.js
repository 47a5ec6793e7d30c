// The grid of heads: colour by a measure, look at a map, switch a head off (reports/page/head_view.py).
const UNITS = {
  points: (value) => `${(100 * value).toFixed(1)} points`.replace("-", "−"),
  share: (value) => percentText(value, 1),
  bits: (value) => `${value.toFixed(2)} bits`,
  number: (value) => String(Number(value.toPrecision(3))).replace("-", "−"),
};
const SHORT = {
  points: (value) => (100 * value).toFixed(Math.abs(value) >= 0.0995 ? 0 : 1).replace("-", "−").replace(/^−(0\.0|0)$/, "$1"),
  share: (value) => (100 * value).toFixed(0),
  bits: (value) => value.toFixed(1),
  number: (value) => String(Number(value.toPrecision(2))).replace("-", "−"),
};
const CHANGES = "changes";

function makeHeads(view, host) {
  const heads = view.layers.flatMap((group) => group.layers.flatMap((layer) => layer.heads.map((head) => `${layer.layer}.${head}`)));
  const measures = new Map(view.measures.map((measure) => [measure.key, measure]));
  const state = { measure: view.measures[0]?.key ?? CHANGES, example: view.examples[0] ?? null, head: heads[0], locked: false, cell: null, cellLocked: false, off: false };
  if (measures.has(state.measure)) {
    const values = measures.get(state.measure).values;
    state.head = heads.filter((head) => head in values).sort((a, b) => values[b].value - values[a].value)[0];
  }
  const buttons = new Map();

  // --- what can be chosen
  const groups = new Map();
  for (const measure of view.measures) groups.set(measure.group, [...(groups.get(measure.group) ?? []), measure]);
  const measureSelect = element("select", { id: "measure", onchange: (event) => { state.measure = event.target.value; colour(); describe(); } },
    ...[...groups].map(([name, list]) => element("optgroup", { label: name }, ...list.map((measure) => element("option", { value: measure.key }, measure.label)))));
  if (view.examples.some((example) => example.intact)) {
    measureSelect.append(element("optgroup", { label: "Chosen example" }, element("option", { value: CHANGES }, "changes the answer when switched off")));
  }
  const exampleSelect = element("select", { id: "example", onchange: (event) => { state.example = view.examples[event.target.value]; state.cell = null; state.cellLocked = false; if (state.measure === CHANGES) colour(); drawHead(); } },
    ...view.examples.map((example, i) => element("option", { value: String(i) }, example.title)));
  const controls = element("div", { class: "controls" }, element("label", {}, "Colour by", measureSelect), view.examples.length ? element("label", {}, "Example", exampleSelect) : null);

  // --- the grid; one stop for Tab, arrows inside
  const grid = element("div", { class: "head-grid", role: "group", "aria-label": "Attention heads; arrow keys move, Enter locks, Escape unlocks" });
  for (const group of view.layers) {
    const stack = element("div", { class: "stack" }, element("h4", {}, `${group.group} attention`));
    for (const layer of group.layers) {
      const cells = element("div", { class: "cells" });
      for (const number of layer.heads) {
        const name = `${layer.layer}.${number}`;
        const button = element("button", {
          type: "button", "data-head": name, tabindex: "-1", "aria-pressed": "false",
          onpointermove: () => preview(name), onfocus: () => preview(name),
          onclick: () => lock(name), onkeydown: (event) => onGridKey(event, name),
        });
        buttons.set(name, button);
        cells.append(button);
      }
      stack.append(element("div", { class: "layer" }, element("span", {}, `layer ${layer.layer.split(".")[1]}`), cells));
    }
    grid.append(stack);
  }
  const scale = element("div", { class: "scale" });
  const readout = element("p", { class: "readout", role: "status", id: "head-values" });
  const title = element("h3", { id: "head-name" });
  const map = element("div", { class: "map" });
  const cellReadout = element("p", { class: "readout", role: "status", id: "cell-values" });
  const answer = element("div", { class: "answer" });
  const parts = element("details", {}, element("summary", {}, "What it costs where"));
  let svg = null;

  function preview(name) {
    if (state.locked || state.head === name) return;
    state.head = name;
    state.off = false;
    forgetCell();
    drawHead();
  }

  function lock(name) {
    const changed = state.head !== name;
    state.head = name;
    state.locked = true;
    if (changed) { state.off = false; forgetCell(); }
    drawHead();
  }

  function forgetCell() { state.cell = null; state.cellLocked = false; }

  function unlock() {
    if (state.cellLocked) forgetCell();
    else state.locked = false;
    drawHead();
  }

  function onGridKey(event, name) {
    const [stack, layer, kind, number] = name.split(".");
    const inOrder = heads.indexOf(name);
    let next = null;
    if (event.key === "ArrowRight") next = heads[inOrder + 1];
    else if (event.key === "ArrowLeft") next = heads[inOrder - 1];
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const step = event.key === "ArrowDown" ? 1 : -1;
      for (let i = inOrder + step; i >= 0 && i < heads.length && !next; i += step) {
        const other = heads[i].split(".");
        if (other[3] === number && other.slice(0, 3).join() !== [stack, layer, kind].join()) next = heads[i];
      }
    } else return;
    event.preventDefault();
    if (next) { buttons.forEach((button) => button.setAttribute("tabindex", "-1")); buttons.get(next).setAttribute("tabindex", "0"); buttons.get(next).focus(); }
  }

  host.addEventListener("keydown", (event) => { if (event.key === "Escape") { event.preventDefault(); unlock(); } });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && !host.contains(event.target) && document.activeElement === document.body) unlock(); });

  // --- drawing
  const changed = (name) => { const other = state.example?.answers?.[name]; return other ? other.answer !== state.example.intact.answer : null; };

  function colour() {
    const measure = measures.get(state.measure);
    const values = measure ? heads.map((head) => measure.values[head]?.value).filter((value) => value !== undefined) : [];
    const most = Math.max(...values.map(Math.abs), 1e-12), below = values.some((value) => value < -0.05 * most);
    for (const head of heads) {
      const button = buttons.get(head);
      const value = measure ? measure.values[head]?.value : null;
      let strength = 0, words = "not measured", text = "·", negative = false;
      if (measure && value !== undefined) {
        strength = Math.abs(value) / most;
        negative = value < 0;
        words = `${measure.label} ${UNITS[measure.unit](value)}`;
        text = SHORT[measure.unit](value);
      } else if (!measure && changed(head) !== null) {
        strength = changed(head) ? 1 : 0;
        words = changed(head) ? "changes the answer" : "leaves the answer";
        text = changed(head) ? state.example.answers[head].answer : "=";
      }
      button.textContent = text;
      button.setAttribute("aria-label", `${head}: ${words}`);
      button.style.background = `color-mix(in srgb, var(${negative ? "--below" : "--accent"}) ${(100 * strength).toFixed(1)}%, var(--surface))`;
      button.style.color = strength > 0.55 ? "var(--on-accent)" : "var(--ink)";
    }
    if (measure && values.length) {
      const ends = below ? [-most, most] : [0, most];
      scale.replaceChildren(UNITS[measure.unit](ends[0]), element("i", { class: below ? "both" : "" }), UNITS[measure.unit](ends[1]));
    } else scale.replaceChildren(measure ? "" : "Coloured: the answer to the chosen example changes without the head.");
  }

  function describe() {
    const measure = measures.get(state.measure), figure = measure?.values[state.head];
    const words = [];
    if (figure) {
      words.push(`${measure.label}: ${UNITS[measure.unit](figure.value)}`);
      if (figure.interval) words.push(`95 % interval ${figure.interval.map(UNITS[measure.unit]).join(" to ")}`);
      if (figure.n !== undefined) words.push(`n = ${figure.n.toLocaleString("en")}`);
      if (figure.uniform !== undefined) words.push(`without preference ${UNITS[measure.unit](figure.uniform)}`);
      if (figure.class) words.push(figure.class.replace("?", " (the interval reaches into another class)"));
    } else if (measure) words.push(`${measure.label}: not measured for this head`);
    if (view.roles[state.head]) words.push(`role: ${view.roles[state.head]}`);
    readout.replaceChildren(element("strong", {}, state.head), state.locked ? element("span", { class: "locked" }, " (locked)") : "", ` ${words.join("; ")}`);
  }

  function drawHead() {
    for (const [name, button] of buttons) {
      button.classList.toggle("shown", name === state.head);
      button.setAttribute("aria-pressed", String(name === state.head && state.locked));
      if (!grid.contains(document.activeElement)) button.setAttribute("tabindex", name === state.head ? "0" : "-1");
    }
    title.textContent = state.head;
    describe();
    drawMap();
    drawAnswer();
    drawParts();
  }

  function weightsOf() {
    const layer = state.head.split(".").slice(0, 3).join(".");
    const found = state.example?.maps[layer];
    const place = found ? found.heads.indexOf(Number(state.head.split(".")[3])) : -1;
    return place < 0 ? null : { ...found, weights: found.weights[place] };
  }

  function drawMap() {
    const found = weightsOf();
    if (!found) { map.replaceChildren(element("p", { class: "soft" }, "There is no map of this head for this example, or it is too large for this page.")); cellReadout.replaceChildren(); svg = null; return; }
    const { queries, keys, weights } = found;
    const longest = Math.max(...queries.map((token) => token.length), 2);
    const left = 30 + 8 * Math.min(longest, 7), top = 40, size = Math.max(16, Math.min(46, Math.floor((480 - left) / keys.length)));
    const width = left + size * keys.length + 6, height = top + size * queries.length + 6;
    const name = (token) => token.replace("<eos>", "end");
    svg = element("svg", { viewBox: `0 0 ${Math.max(width, 300)} ${height}`, role: "application", tabindex: "0", "aria-label": `Attention map of ${state.head}, ${queries.length} queries by ${keys.length} keys; arrow keys read the weights, Enter locks, Escape unlocks` });
    svg.append(element("text", { x: left, y: 14 }, "key"), element("text", { x: 12, y: top + (size * queries.length) / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${top + (size * queries.length) / 2})` }, "query"));
    keys.forEach((token, k) => svg.append(element("text", { class: "title-text", x: left + size * (k + 0.5), y: top - 8, "text-anchor": "middle" }, name(token))));
    queries.forEach((token, q) => {
      svg.append(element("text", { class: "title-text", x: left - 8, y: top + size * (q + 0.5) + 4, "text-anchor": "end" }, name(token)));
      keys.forEach((_, k) => {
        const weight = weights[q][k];
        const cell = element("rect", { "data-cell": `${q},${k}`, x: left + size * k + 1, y: top + size * q + 1, width: size - 2, height: size - 2, rx: 2, "fill-opacity": weight.toFixed(3), fill: "var(--accent)", stroke: "var(--line)" });
        svg.append(cell);
        if (size >= 28 && weight >= 0.05) svg.append(element("text", { x: left + size * (k + 0.5), y: top + size * (q + 0.5) + 4, "text-anchor": "middle", "pointer-events": "none", class: weight > 0.55 ? "title-text on" : "title-text" }, weight.toFixed(2).replace("0.", ".")));
      });
    });
    for (const text of svg.querySelectorAll("text.on")) text.style.fill = "var(--on-accent)";
    const cellAt = (event) => event.target.getAttribute?.("data-cell")?.split(",").map(Number) ?? null;
    svg.addEventListener("pointermove", (event) => { const cell = cellAt(event); if (cell && !state.cellLocked) { state.cell = cell; markCell(); } });
    svg.addEventListener("click", (event) => { const cell = cellAt(event); if (cell) { state.cell = cell; state.cellLocked = true; markCell(); } });
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
      if (step) {
        event.preventDefault();
        const [q, k] = state.cell ?? [-step[0], -step[1]];
        state.cell = [Math.max(0, Math.min(queries.length - 1, q + step[0])), Math.max(0, Math.min(keys.length - 1, k + step[1]))];
        markCell();
      } else if (event.key === "Enter" || event.key === " ") { event.preventDefault(); if (state.cell) { state.cellLocked = true; markCell(); } }
    });
    const focused = map.contains(document.activeElement);
    map.replaceChildren(svg);
    if (focused) svg.focus();
    markCell();
  }

  function markCell() {
    const found = weightsOf();
    for (const old of svg.querySelectorAll(".chosen")) old.classList.remove("chosen");
    if (!state.cell) { cellReadout.replaceChildren(element("span", { class: "soft" }, "Point at a cell for its weight. Every row adds up to 1.")); return; }
    const [q, k] = state.cell;
    svg.querySelector(`[data-cell="${q},${k}"]`).classList.add("chosen");
    cellReadout.replaceChildren(state.cellLocked ? element("span", { class: "locked" }, "Locked. ") : "", `Query ${found.queries[q].replace("<eos>", "end")} (${q + 1}), key ${found.keys[k].replace("<eos>", "end")} (${k + 1}): weight ${found.weights[q][k].toFixed(4)}`);
  }

  // Characters of an answer that differ from the intact one are marked.
  function marked(text, beside) {
    const span = element("span");
    [...text].forEach((letter, i) => span.append(beside.length === text.length && beside[i] !== letter ? element("span", { class: "differs" }, letter) : letter));
    return span;
  }

  function verdict(one) {
    const sure = one.probability === undefined ? "" : `, probability ${one.probability.toFixed(3)}`;
    return element("span", { class: one.right ? "right" : "wrong" }, ` ${one.right ? "right" : "wrong"}${sure}`);
  }

  function drawAnswer() {
    const example = state.example, without = example?.answers?.[state.head];
    answer.hidden = !without;
    if (!without) return;
    const button = element("button", { type: "button", id: "switch", "aria-pressed": String(state.off), onclick: () => { state.off = !state.off; drawAnswer(); answer.querySelector("#switch").focus(); } }, state.off ? "Switched off: switch it on again" : "Switch this head off");
    const list = element("dl", {}, element("dt", {}, "asked"), element("dd", {}, example.input), element("dt", {}, "right answer"), element("dd", {}, example.target), element("dt", {}, "intact model"), element("dd", {}, example.intact.answer, verdict(example.intact)));
    if (state.off) list.append(element("dt", {}, "without this head"), element("dd", { id: "without" }, marked(without.answer, example.intact.answer), verdict(without), without.answer === example.intact.answer ? ", the same answer" : ""));
    answer.replaceChildren(button, element("div", { role: "status" }, list));
  }

  function drawParts() {
    const rows = view.breakdowns[state.head] ?? [];
    parts.hidden = rows.length === 0;
    const table = element("table", {}, element("tbody", {}, ...rows.map((row) => element("tr", {}, element("td", {}, row.by), element("td", {}, row.of), element("td", { class: "number" }, UNITS[row.unit](row.value)), element("td", { class: "number" }, row.interval.map((value) => UNITS[row.unit](value).replace(" points", "")).join(" to ")), element("td", { class: "number" }, `n = ${row.n.toLocaleString("en")}`)))));
    parts.replaceChildren(parts.firstChild, element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Drop by part of the data" }, table));
  }

  const rows = () => {
    const found = [["head", "measure", "value", "low", "high", "n", "uniform"]];
    for (const measure of view.measures) for (const [head, figure] of Object.entries(measure.values)) found.push([head, measure.key, figure.value, figure.interval?.[0], figure.interval?.[1], figure.n, figure.uniform]);
    return found;
  };
  host.append(controls, element("div", { class: "heads" }, element("div", { class: "panel" }, grid, scale, readout), element("div", { class: "panel" }, title, map, cellReadout, answer, parts, element("div", { class: "tools" },
    element("button", { type: "button", "aria-label": "Download this map as SVG", onclick: () => { if (svg) download(`${state.head}.svg`, "image/svg+xml", standalone(svg)); } }, "SVG of this map"),
    element("button", { type: "button", "aria-label": "Download all measures of heads as CSV", onclick: () => download("heads.csv", "text/csv", csv(rows())) }, "CSV of all measures")))));
  measureSelect.value = state.measure;
  colour();
  drawHead();
}
