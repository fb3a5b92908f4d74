"use strict";
(() => {
const data = JSON.parse(document.getElementById("graph").textContent);
const SVG = "http://www.w3.org/2000/svg";
const $ = (id) => document.getElementById(id);
const stage = $("stage"), panel = $("panel"), search = $("search"), results = $("results");
const COLORS = {
  input: "input", output: "output", elementwise: "elementwise", reduction: "reduction", structured: "structured",
  view: "view (no copy)", data: "constant", control: "control flow", random: "random", python: "Python",
};
const CLOSED = 74, TINY = 5, READABLE = 0.42, SHOWN = 400;

let view = null;                      // one of the graphs that the page holds
let scale = 1, left = 0, top_ = 0;    // from the world to the screen
let drawnFor = null;                  // what the elements were made for: a rectangle of the world, and a scale
let selected = -1, found = new Set();
const made = new Map();               // key -> element

// -- small helpers -----------------------------------------------------------------------------
function el(tag, attributes = {}, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attributes)) {
    if (k === "click") e.addEventListener("click", v); else if (v !== null) e.setAttribute(k, v);
  }
  e.append(...children.filter((c) => c !== null));
  return e;
}
function shape(tag, attributes, text) {
  const e = document.createElementNS(SVG, tag);
  for (const k in attributes) e.setAttribute(k, attributes[k]);
  if (text !== undefined) e.textContent = text;
  return e;
}
function time(s) {
  if (s < 1e-6) return (s * 1e9).toFixed(0) + " ns";
  if (s < 1e-3) return (s * 1e6).toFixed(s < 1e-4 ? 1 : 0) + " \u00b5s";
  return s < 1 ? (s * 1e3).toFixed(2) + " ms" : s.toFixed(2) + " s";
}
const calm = matchMedia("(prefers-reduced-motion: reduce)");

// -- the graph ---------------------------------------------------------------------------------
function prepare(v) {
  for (const item of v.items) item.code = item.code === undefined ? "" : data.codes[item.code];
  v.children = v.items.map(() => []);
  v.roots = [];
  v.items.forEach((item, n) => (item.p === null ? v.roots : v.children[item.p]).push(n));
  v.inEdges = v.items.map(() => []);
  v.outEdges = v.items.map(() => []);
  v.edges.forEach(([a, b, segments]) => { v.outEdges[a].push([b, segments]); v.inEdges[b].push([a, segments]); });
  v.inside = new Map();
  v.segments.forEach((s, n) => {
    const [, within, points] = s;
    const xs = points.filter((_, i) => i % 2 === 0), ys = points.filter((_, i) => i % 2);
    s.box = [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
    if (!v.inside.has(within)) v.inside.set(within, []);
    v.inside.get(within).push(n);
  });
  v.kernels = v.items.flatMap((item, n) => item.k === "kernel" ? [n] : []);
  v.kernels.sort((a, b) => parseInt(v.items[a].s.slice(7), 10) - parseInt(v.items[b].s.slice(7), 10));
  v.total = v.kernels.reduce((sum, n) => sum + (v.items[n].us || 0), 0);
  v.texts = v.items.map((i) => [i.t, i.s, i.code, (i.at || []).flat().join(" ")].join(" \n").toLowerCase());
}
function curve(s, simple) {
  if (!simple && s.d) return s.d;
  const p = s[2], n = p.length;
  let d = `M${p[0]} ${p[1]}`;
  if (simple) return d + `L${p[n - 2]} ${p[n - 1]}`;
  for (let i = 2; i < n; i += 2) {
    const middle = (p[i - 1] + p[i + 1]) / 2;
    d += `C${p[i - 2]} ${middle} ${p[i]} ${middle} ${p[i]} ${p[i + 1]}`;
  }
  const x = p[n - 2], y = p[n - 1];
  s.d = d + `M${x - 3.5} ${y - 6}L${x} ${y}L${x + 3.5} ${y - 6}`;
  return s.d;
}

// The parts of a long way that lie between two heights; what ways from one source share is drawn once.
function parts(s, from, to, drawn) {
  const p = s[2], n = p.length;
  let d = "", at = -1;
  for (let i = 2; i < n; i += 2) {
    if (Math.max(p[i - 1], p[i + 1]) < from || Math.min(p[i - 1], p[i + 1]) > to) continue;
    const key = `${p[i - 2]} ${p[i - 1]} ${p[i]} ${p[i + 1]}`;
    if (drawn.has(key)) continue;
    drawn.add(key);
    const middle = (p[i - 1] + p[i + 1]) / 2;
    if (at !== i) d += `M${p[i - 2]} ${p[i - 1]}`;
    d += `C${p[i - 2]} ${middle} ${p[i]} ${middle} ${p[i]} ${p[i + 1]}`;
    at = i + 2;
  }
  const x = p[n - 2], y = p[n - 1];
  return y < from || y > to ? d : d + `M${x - 3.5} ${y - 6}L${x} ${y}L${x + 3.5} ${y - 6}`;
}

// -- drawing -----------------------------------------------------------------------------------
function isClosed(item) {
  const least = item.k === "kernel" ? CLOSED : CLOSED / 2;
  return item.w * scale < least || item.h * scale < least * 0.6;
}

function draw(force) {
  $("world").setAttribute("transform", `translate(${left} ${top_}) scale(${scale})`);
  const w = stage.clientWidth / scale, h = stage.clientHeight / scale;
  const x = -left / scale, y = -top_ / scale;
  placeMap(x, y, w, h);
  const d = drawnFor;
  if (!force && d && x >= d.x && y >= d.y && x + w <= d.x + d.w && y + h <= d.y + d.h
      && Math.abs(Math.log(scale / d.scale)) < 0.15) return;
  drawnFor = { x: x - w * 0.4, y: y - h * 0.4, w: w * 1.8, h: h * 1.8, scale };
  const right = drawnFor.x + drawnFor.w, bottom = drawnFor.y + drawnFor.h;
  const wanted = new Map(), cheap = {}, open = [null];
  const stack = view.roots.slice().reverse();
  while (stack.length) {
    const n = stack.pop(), item = view.items[n];
    if (item.x > right || item.y > bottom || item.x + item.w < drawnFor.x || item.y + item.h < drawnFor.y) continue;
    const kids = view.children[n];
    if (kids.length && !isClosed(item)) {
      wanted.set("f" + n, n);
      wanted.set("h" + n, n);
      open.push(n);
      for (let i = kids.length - 1; i >= 0; i--) stack.push(kids[i]);
    } else if (Math.min(item.w, item.h) * scale < TINY) {
      cheap[item.c] = (cheap[item.c] || "") + `M${item.x} ${item.y}h${item.w}v${item.h}h${-item.w}z`;
    } else wanted.set((kids.length ? "c" : "n") + n, n);
  }
  for (const [key, e] of made) if (!wanted.has(key)) { e.remove(); made.delete(key); }
  for (const [key, n] of wanted) if (!made.has(key)) {
    const e = element(key, n);
    made.set(key, e);
    $(key[0] === "f" ? "frames" : "nodes").append(e);
  }
  for (const [key, e] of made) if (key[0] === "c") fitText(e, view.items[+key.slice(1)]);
  $("cheap").replaceChildren(...Object.entries(cheap).map(([c, path]) => {
    const e = shape("path", { d: path });
    e.style.fill = `var(--${c === "region" ? "control" : c})`;
    return e;
  }));
  const simple = scale < 0.06;
  const drawn = new Set();
  let path = "";
  for (const n of open) for (const s of view.inside.get(n) || []) {
    const b = view.segments[s].box;
    if (b[0] <= right && b[2] >= drawnFor.x && b[1] <= bottom && b[3] >= drawnFor.y
        && Math.max(b[2] - b[0], b[3] - b[1]) * scale > 3) path += view.segments[s][2].length > 8 && !simple
      ? parts(view.segments[s], drawnFor.y, bottom, drawn) : curve(view.segments[s], simple);
  }
  $("edges").setAttribute("d", path);
  $("edges").style.opacity = simple ? 0.45 : 0.9;
  $("nodes").classList.toggle("plain", scale < READABLE);
  emphasise(new Set(open));
}

function element(key, n) {
  const item = view.items[n], how = key[0];
  const g = shape("g", { class: `item ${item.k}`, "data-id": n });
  const x = item.x, y = item.y, w = item.w, h = item.h;
  if (how === "f") {
    g.classList.add("frame");
    g.append(shape("rect", { x, y, width: w, height: h, rx: 8 }));
    if (item.k === "region") g.firstChild.style.fill = "var(--region)";
    return g;
  }
  if (how === "h") {
    g.classList.add("head");
    g.append(shape("rect", { class: "hit", x, y, width: w, height: item.hd }));
    g.append(shape("text", { x: x + 10, y: y + 17 }, item.t));
    if (item.us !== undefined) {
      g.append(shape("text", { class: "time", x: x + w - 10, y: y + 17, "text-anchor": "end" }, time(item.us / 1e6)));
      const share = view.total ? item.us / view.total : 0;
      g.append(shape("rect", { class: "bar", x: x + 8, y: y + item.hd - 2, width: Math.max(share * (w - 16), 1),
        height: 3, rx: 1.5 }));
    }
    return g;
  }
  const round = item.k === "input" || item.k === "output" ? 13 : 6;
  const box = shape("rect", { x, y, width: w, height: h, rx: round });
  box.style.fill = `var(--${item.c === "region" ? "control" : item.c})`;
  if (item.c === "python") box.style.strokeDasharray = "5 3";
  g.append(box);
  if (how === "c") {
    const text = shape("text", { "text-anchor": "middle" });
    for (const part of shortly(item)) text.append(shape("tspan", { x: x + w / 2 }, part));
    g.append(text);
    return g;
  }
  g.append(shape("text", { x: x + w / 2, y: y + (item.s ? 16.5 : h / 2 + 4), "text-anchor": "middle" }, item.t));
  if (item.s) g.append(shape("text", { class: "sub", x: x + w / 2, y: y + 31, "text-anchor": "middle" }, item.s));
  return g;
}

function shortly(item) {
  const parts = item.t.split(", ");
  return item.us === undefined ? parts : [...parts, time(item.us / 1e6)];
}
function fitText(g, item) {
  const text = g.lastChild, lines = [...text.children], room = Math.max(Math.floor(item.w * scale / 3.7), 1);
  shortly(item).forEach((t, n) => { lines[n].textContent = t.length > room ? t.slice(0, room - 1) + "\u2026" : t; });
  const longest = Math.max(...lines.map((t) => t.textContent.length));
  const size = Math.min(12 / scale, item.h * 0.78 / lines.length, item.w * 0.94 / (longest * 0.58));
  lines.forEach((t, n) => t.setAttribute("y", item.y + item.h / 2 + size * (1.15 * (n - (lines.length - 1) / 2) + 0.35)));
  text.style.fontSize = size + "px";
  text.style.display = size * scale >= 5.5 ? "inline" : "none";
}

function emphasise(open) {
  for (const [key, e] of made) {
    const n = +key.slice(1);
    e.classList.toggle("selected", n === selected && key[0] !== "h");
    e.classList.toggle("found", found.has(n) && key[0] !== "h");
  }
  const into = new Set(), outof = new Set();
  if (selected >= 0) {
    const inner = new Set(view.items[selected].m || []);
    for (const n of inner.size ? inner : [selected]) {
      for (const [a, s] of view.inEdges[n]) if (!inner.has(a)) s.forEach((k) => into.add(k));
      for (const [b, s] of view.outEdges[n]) if (!inner.has(b)) s.forEach((k) => outof.add(k));
    }
  }
  const path = (set) => [...set].filter((s) => open.has(view.segments[s][1])).map((s) => curve(view.segments[s])).join("");
  $("into").setAttribute("d", path(into));
  $("outof").setAttribute("d", path(outof));
}

// -- moving ------------------------------------------------------------------------------------
let pending = false;
function redraw() {
  if (pending) return;
  pending = true;
  requestAnimationFrame(() => { pending = false; draw(false); });
}
function zoom(factor, x = stage.clientWidth / 2, y = stage.clientHeight / 2) {
  const next = Math.min(Math.max(scale * factor, 0.0005), 6);
  left = x - (x - left) * next / scale;
  top_ = y - (y - top_) * next / scale;
  scale = next;
  redraw();
}
function fit() {
  const w = stage.clientWidth, h = stage.clientHeight;
  const whole = Math.min(w / (view.w + 40), h / (view.h + 40), 1.3);
  // What would be too small to read as a whole begins at its top.
  scale = whole >= 0.28 ? whole : Math.max(whole, Math.min(0.5, w / (view.w + 40)), 0.02);
  left = (w - view.w * scale) / 2;
  top_ = scale > whole ? 16 : (h - view.h * scale) / 2;
  draw(true);
}
function moveTo(s, l, t) {
  if (calm.matches) { scale = s; left = l; top_ = t; draw(true); return; }
  const from = [scale, left, top_], start = performance.now();
  const step = (now) => {
    const k = Math.min((now - start) / 260, 1), e = 1 - (1 - k) ** 3;
    scale = from[0] * (s / from[0]) ** e;
    const blend = s === from[0] ? e : (scale - from[0]) / (s - from[0]);
    left = from[1] + (l - from[1]) * blend;
    top_ = from[2] + (t - from[2]) * blend;
    draw(k === 1);
    if (k < 1) requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
}
function goTo(n) {
  const item = view.items[n], w = stage.clientWidth, h = stage.clientHeight;
  const s = Math.min(Math.max(scale, 0.9), Math.max(0.9 * Math.min(w / item.w, h / item.h), 0.12), 1.6);
  moveTo(s, w / 2 - (item.x + item.w / 2) * s, h / 2 - (item.y + item.h / 2) * s);
}
function inSight(n) {
  const item = view.items[n], x = item.x * scale + left, y = item.y * scale + top_;
  return x >= 0 && y >= 0 && x + item.w * scale <= stage.clientWidth && y + item.h * scale <= stage.clientHeight
    && item.h * scale > 14;
}
function select(n, go) {
  selected = n;
  drawnFor = null;
  tell();
  if (n >= 0 && go && !inSight(n)) { draw(true); goTo(n); } else draw(true);
}

// -- the map -----------------------------------------------------------------------------------
let mapScale = [1, 1];
function drawMap() {
  const canvas = $("map").firstElementChild, wide = Math.min(150, Math.max(28, 110 * view.w / view.h)), tall = 110;
  const dense = devicePixelRatio || 1;
  canvas.width = wide * dense; canvas.height = tall * dense;
  canvas.style.width = wide + "px"; canvas.style.height = tall + "px";
  mapScale = [wide / view.w, tall / view.h];
  const c = canvas.getContext("2d"), style = getComputedStyle(document.documentElement);
  view.items.forEach((item, n) => {
    const around = view.children[n].length;
    c.fillStyle = style.getPropertyValue(around ? "--frame" : `--${item.c}`);
    if (!around) c.fillStyle = style.getPropertyValue("--frame-line");
    c.fillRect(item.x * mapScale[0] * dense, item.y * mapScale[1] * dense,
      Math.max(item.w * mapScale[0] * dense, 1), Math.max(item.h * mapScale[1] * dense, 0.6));
  });
}
function placeMap(x, y, w, h) {
  const frame = $("map").lastElementChild.style;
  const all = x <= 0 && y <= 0 && x + w >= view.w && y + h >= view.h;
  $("map").style.visibility = all ? "hidden" : "visible";
  frame.left = x * mapScale[0] + "px"; frame.top = y * mapScale[1] + "px";
  frame.width = w * mapScale[0] + "px"; frame.height = h * mapScale[1] + "px";
}

// -- the panel ---------------------------------------------------------------------------------
function link(n, text) {
  return el("button", { class: "link", click: () => select(n, true) }, text);
}
function section(title, ...inside) {
  return [el("h3", {}, title), ...inside];
}
function list(rows) {
  return el("ul", {}, ...rows.map((r) => el("li", {}, r)));
}
function facts(pairs) {
  return el("dl", {}, ...pairs.flatMap(([k, v]) => [el("dt", {}, k), el("dd", {}, v)]));
}
function limited(rows) {
  return rows.length <= SHOWN ? rows
    : [...rows.slice(0, SHOWN), el("span", { class: "kind" }, `and ${rows.length - SHOWN} more: search finds them`)];
}
function tell() {
  panel.replaceChildren(...(selected < 0 ? aboutGraph() : aboutItem(selected)));
  panel.scrollTop = 0;
}
function aboutGraph() {
  const rows = view.kernels.slice();
  if (view.total) rows.sort((a, b) => (view.items[b].us || 0) - (view.items[a].us || 0));
  const colors = [...new Set(view.items.filter((i) => i.c in COLORS).map((i) => i.c))];
  return [
    el("h2", {}, view.title), el("p", { class: "kind" }, view.note), facts(view.facts),
    ...section("Colors", el("div", { class: "legend" }, ...colors.map((c) => {
      const dot = el("i");
      dot.style.background = `var(--${c})`;
      return el("span", {}, dot, COLORS[c]);
    }))),
    ...(rows.length ? section(view.total ? "Kernels by time" : "Kernels", list(limited(rows.map(kernelRow)))) : []),
    ...view.memory.filter((m) => m.blocks.length).map((m, n, all) => el("details", { class: "memory" },
      el("summary", {}, "Memory between kernels" + (all.length > 1 ? `, program ${n}` : "")),
      m.arena === null ? null : memoryChart(m),
      list(limited(m.blocks.map(([name, size, first, last]) =>
        el("span", { class: "mono" }, `${name}: ${size}, steps ${first} to ${last}`)))))),
    el("details", {}, el("summary", {}, "Keys"), el("p", {}, $("keys").textContent)),
  ];
}
function memoryChart(m) {
  const wide = 350, tall = 130, x = (step) => step / m.steps * wide, y = (at) => at / m.arena * tall;
  const chart = shape("svg", { viewBox: `0 0 ${wide} ${tall}`, class: "memory", role: "img",
    "aria-label": "What lies where in memory, from the first step at the left to the last at the right" });
  for (const [name, size, first, last, bytes, offset] of m.blocks) {
    const box = shape("rect", { x: x(first), y: y(offset), width: Math.max(x(last + 1) - x(first), 1),
      height: Math.max(y(bytes), 1) });
    box.append(shape("title", {}, `${name}: ${size}, steps ${first} to ${last}`));
    chart.append(box);
  }
  return el("div", {}, chart, el("p", { class: "kind" }, "steps to the right, bytes downwards"));
}
function kernelRow(n) {
  const item = view.items[n];
  const bar = el("i");
  bar.style.width = view.total ? `${100 * (item.us || 0) / view.total}%` : "0";
  return el("button", { class: "row", "data-kernel": n, click: () => select(n, true) },
    el("span", {}, item.s.replace("kernel ", "")), el("span", {}, item.t),
    el("span", {}, item.us === undefined ? "" : time(item.us / 1e6)), bar);
}
function aboutItem(n) {
  const item = view.items[n], out = [];
  const kinds = { node: COLORS[item.c] || "node", input: "input of the graph", output: "output of the graph",
    kernel: item.s, region: item.code ? "control flow" : "region" };
  out.push(el("h2", { tabindex: -1 }, item.t), el("p", { class: "kind" }, kinds[item.k] || item.k));
  const pairs = (item.f || []).slice();
  if (item.us !== undefined && view.total) pairs.splice(1, 0, ["share", (100 * item.us / view.total).toFixed(1) + "%"]);
  if (pairs.length) out.push(facts(pairs));
  if (item.k !== "kernel" && item.code) out.push(...section("Text of the node", el("pre", { id: "ir" }, item.code)));
  if ((item.at || []).length) out.push(...section(item.at.length > 1 ? "Source lines" : "Source line",
    ...item.at.map(([place, fn, line]) => el("div", {}, el("p", { class: "mono" }, `${place} in ${fn}`),
      line ? el("pre", {}, line) : null))));
  if (item.m && item.m.length) out.push(...section(`Fused here: ${item.m.length}`,
    list(limited(item.m.map((k) => link(k, view.items[k].t + "  " + view.items[k].s))))));
  if ((item.o || []).length) out.push(...section("Reads", list(limited(item.o.map(([from, text]) =>
    from === null ? el("span", { class: "mono" }, text) : link(from, text))))));
  const users = [...new Set(view.outEdges[n].map(([b]) => b))];
  if (users.length) out.push(...section("Read by", list(limited(users.map((b) =>
    link(b, `${view.items[b].t}  ${view.items[b].s}`))))));
  if (item.p !== null) out.push(...section("Inside", list([link(item.p, view.items[item.p].t)])));
  if (item.k === "kernel" && item.code) out.push(el("details", {}, el("summary", {}, "Its loops"),
    el("pre", { id: "loops" }, item.code)));
  return out;
}

// -- searching ---------------------------------------------------------------------------------
function look() {
  const wanted = search.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
  found = new Set();
  if (wanted.length) view.texts.forEach((t, n) => { if (wanted.every((w) => t.includes(w))) found.add(n); });
  const named = (n) => wanted.every((w) => view.items[n].t.toLowerCase().includes(w)) ? 0 : 1;
  const hits = [...found].sort((a, b) => named(a) - named(b) || a - b);
  found = new Set(hits);
  results.hidden = !wanted.length;
  results.replaceChildren(el("li", {}, el("p", { role: "status" },
    hits.length === 1 ? "1 found" : `${hits.length} found`)), ...hits.slice(0, 60).map((n) => {
    const item = view.items[n];
    return el("li", {}, el("button", { click: () => { results.hidden = true; select(n, true); } }, item.t,
      el("small", {}, [item.s, ...(item.at || []).slice(0, 1).map((a) => a[0])].filter(Boolean).join(" \u00b7 "))));
  }));
  drawnFor = null;
  draw(true);
}
search.addEventListener("input", look);
search.addEventListener("focus", () => { if (search.value) results.hidden = false; });
search.addEventListener("keydown", (e) => {
  if (e.key === "Enter" && found.size) {
    const hits = [...found], next = hits[(hits.indexOf(selected) + 1) % hits.length];
    select(next, true);
  } else if (e.key === "Escape") { search.value = ""; look(); stage.focus(); }
  else if (e.key === "ArrowDown") { e.preventDefault(); results.querySelector("button")?.focus(); }
});
results.addEventListener("keydown", (e) => {
  const at = document.activeElement.closest("li");
  const to = e.key === "ArrowDown" ? at?.nextElementSibling : e.key === "ArrowUp" ? at?.previousElementSibling : null;
  if (to) { e.preventDefault(); (to.querySelector("button") || search).focus(); }
  if (e.key === "Escape") { results.hidden = true; search.focus(); }
});
document.addEventListener("pointerdown", (e) => { if (!e.target.closest(".find")) results.hidden = true; });

// -- hands -------------------------------------------------------------------------------------
const fingers = new Map();
let moved = 0;
stage.addEventListener("wheel", (e) => {
  e.preventDefault();
  const box = stage.getBoundingClientRect(), unit = e.deltaMode === 1 ? 16 : 1;
  if (e.shiftKey) { left -= e.deltaY * unit; redraw(); return; }
  zoom(Math.exp(-e.deltaY * unit * (e.ctrlKey ? 0.01 : 0.0016)), e.clientX - box.left, e.clientY - box.top);
}, { passive: false });
stage.addEventListener("pointerdown", (e) => {
  if (e.button || e.target.closest("#map")) return;
  fingers.set(e.pointerId, [e.clientX, e.clientY]);
  moved = 0;
});
stage.addEventListener("pointermove", (e) => {
  const before = fingers.get(e.pointerId);
  if (!before) return;
  const now = [e.clientX, e.clientY];
  if (fingers.size === 2) {
    const [other] = [...fingers].filter(([id]) => id !== e.pointerId).map(([, p]) => p);
    const box = stage.getBoundingClientRect(), d = (p) => Math.hypot(p[0] - other[0], p[1] - other[1]) || 1;
    zoom(d(now) / d(before), (now[0] + other[0]) / 2 - box.left, (now[1] + other[1]) / 2 - box.top);
  } else {
    left += now[0] - before[0]; top_ += now[1] - before[1];
    redraw();
  }
  moved += Math.abs(now[0] - before[0]) + Math.abs(now[1] - before[1]);
  if (moved > 4 && !stage.classList.contains("dragging")) {
    stage.classList.add("dragging");
    stage.setPointerCapture(e.pointerId);
  }
  fingers.set(e.pointerId, now);
});
const lift = (e) => { fingers.delete(e.pointerId); stage.classList.remove("dragging"); };
stage.addEventListener("pointerup", lift);
stage.addEventListener("pointercancel", lift);
stage.addEventListener("click", (e) => {
  if (moved > 4 || e.target.closest("#map")) return;
  const item = e.target.closest(".item");
  select(item ? +item.dataset.id : -1, false);
});
stage.addEventListener("dblclick", (e) => {
  const item = e.target.closest(".item");
  if (item) goTo(+item.dataset.id);
});
$("map").addEventListener("click", (e) => {
  const box = $("map").getBoundingClientRect();
  left = stage.clientWidth / 2 - (e.clientX - box.left) / mapScale[0] * scale;
  top_ = stage.clientHeight / 2 - (e.clientY - box.top) / mapScale[1] * scale;
  draw(true);
});

// -- keys --------------------------------------------------------------------------------------
function beside(n, way) {
  const item = view.items[n], around = item.p === null ? view.roots : view.children[item.p];
  const row = around.filter((k) => Math.abs(view.items[k].y + view.items[k].h / 2 - item.y - item.h / 2) < 30)
    .sort((a, b) => view.items[a].x - view.items[b].x);
  return row[row.indexOf(n) + way];
}
function follow(key) {
  if (selected < 0) return view.roots[0];
  const inner = view.items[selected].m || [];
  if (key === "ArrowDown" && inner.length) return inner[0];
  if (key === "ArrowUp") return view.inEdges[selected][0]?.[0] ?? view.items[selected].p ?? undefined;
  if (key === "ArrowDown") return view.outEdges[selected][0]?.[0] ?? view.children[selected][0];
  return beside(selected, key === "ArrowLeft" ? -1 : 1);
}
stage.addEventListener("keydown", (e) => {
  const ways = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.key in ways) {
    if (e.shiftKey) { left += ways[e.key][0]; top_ += ways[e.key][1]; redraw(); } else {
      const next = follow(e.key);
      if (next !== undefined) select(next, true);
    }
  } else if (e.key === "+" || e.key === "=") zoom(1.3);
  else if (e.key === "-") zoom(1 / 1.3);
  else if (e.key === "0") fit();
  else if (e.key === "Enter" && selected >= 0) goTo(selected);
  else if (e.key === "Escape") select(-1, false);
  else return;
  e.preventDefault();
});
document.addEventListener("keydown", (e) => {
  if (e.key === "/" && document.activeElement !== search) { e.preventDefault(); search.focus(); search.select(); }
});

// -- beginning ---------------------------------------------------------------------------------
function show(n) {
  view = data.views[n];
  if (!view.children) prepare(view);
  for (const e of made.values()) e.remove();
  made.clear();
  selected = -1; found = new Set(); search.value = ""; results.hidden = true;
  [...$("views").children].forEach((b, i) => b.setAttribute("aria-pressed", i === n));
  drawMap();
  tell();
  fit();
}
data.views.forEach((v, n) => $("views").append(el("button", { click: () => show(n), title: v.note }, v.label)));
if (data.views.length < 2) $("views").hidden = true;
$("in").addEventListener("click", () => zoom(1.3));
$("out").addEventListener("click", () => zoom(1 / 1.3));
$("fit").addEventListener("click", fit);
$("theme").addEventListener("click", () => {
  const root = document.documentElement, now = getComputedStyle(root).colorScheme;
  root.dataset.theme = now === "dark" ? "light" : "dark";
  drawMap();
});
let width = stage.clientWidth;
new ResizeObserver(() => {
  if (!width && stage.clientWidth) fit(); else draw(true);
  width = stage.clientWidth;
}).observe(stage);
show(0);
})();
