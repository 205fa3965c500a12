"use strict";
(() => {
  const data = JSON.parse(document.getElementById("points").textContent);
  const points = data.Points, total = points.X.length;
  const names = points.Name.split("\n").slice(0, total)
    .map(line => line.split(" ").map(w => data.Words[parseInt(w, 36)] ?? "").join(" "));
  const outside = new Set(), doubt = new Map();
  const runs = (list, step, each) => {
    for (let r = 0, i = 0; r < (list ?? []).length; r += step) {
      i += list[r];
      for (let n = list[r + 1]; n > 0; n--) each(i++, list[r + 2]);
    }
  };
  runs(points.Outside, 2, i => outside.add(i));
  runs(points.Doubt, 3, (i, d) => doubt.set(i, data.Doubts[d]));
  const value = (axis, hundredths) => {
    const v = axis.Low + (hundredths / 100 - axis.Start) / (axis.End - axis.Start) * (axis.High - axis.Low);
    return axis.Linear ? v : 10 ** v;
  };
  const digits = v => v >= 1000 ? v.toFixed(0) : String(+v.toPrecision(3));
  const rate = i => value(data.Y, points.Y[i]), per = i => points.Exact ? points.Exact[i] : value(data.X, points.X[i]);
  const edge = i => outside.has(i) ? "beyond the frame at " : "";
  const level = i => data.Levels[points.Level[i]];
  const word = i => data.Series[points.Series[i]].Name;
  const kind = i => [word(i) === names[i] ? "" : word(i), data.Series[points.Series[i]].From].filter(Boolean).join(", ");
  const text = i => names[i] + (kind(i) ? ` (${kind(i)})` : "") + ": " +
    edge(i) + (data.Axes.Rate ? `${digits(rate(i))} ${data.Axes.Rate}, ` : "") + `${digits(per(i))} ${data.Axes.Per}` + (level(i) ? ` at ${level(i)}` : "") +
    (doubt.has(i) ? `; ${doubt.get(i)}` : "");

  const svg = document.querySelector("#drawing svg"), space = "http://www.w3.org/2000/svg";
  const layer = svg.getElementById("data") ?? document.createElementNS(space, "g");
  if (!layer.id) { // all points are in clouds
    layer.id = "data";
    svg.insertBefore(layer, svg.getElementById("labels") ?? svg.getElementById("legend"));
  }
  const path = (indices, colour, width, opacity, first, mark = "h0") => {
    const p = document.createElementNS(space, "path");
    p.setAttribute("d", indices.map(i => `M${points.X[i] / 100} ${points.Y[i] / 100}${mark}`).join(""));
    for (const [k, v] of Object.entries({fill: "none", stroke: colour, "stroke-width": width, "stroke-linecap": "round", opacity})) p.setAttribute(k, v);
    if (first) layer.prepend(p); else layer.append(p);
    return p;
  };
  // Clouds: dots, crosses for what is doubtful, rings for what lies beyond the frame, of
  // which one is drawn at a place.
  const kindOf = i => outside.has(i) ? 2 : doubt.has(i) ? 1 : 0;
  data.Series.forEach((s, k) => (s.Clouds ?? []).forEach(c => {
    const own = [], seen = new Set();
    for (let i = 0; i < total; i++) {
      if (points.Series[i] !== k || kindOf(i) !== c.Kind) continue;
      const place = Math.round(points.X[i] / 200) * 10000 + Math.round(points.Y[i] / 200);
      if (c.Kind && seen.has(place)) continue;
      seen.add(place);
      own.push(i);
    }
    path(own, c.Colour, c.Width, c.Opacity, true, c.Mark);
  }));

  // The table shows the first rows alone: nobody reads a hundred thousand.
  const most = 500, columns = [
    ["name", i => names[i]], ["series", word], ["level", level],
    ...(data.Axes.Rate ? [[data.Axes.Rate, rate]] : []), [data.Axes.Per, per], ["", i => doubt.get(i) ?? (outside.has(i) ? "beyond the frame" : "")]];
  let shown = [], order = null, down = false, hits = [];
  const head = document.querySelector("thead"), body = document.querySelector("tbody"), count = document.getElementById("count");
  const chosen = document.createElementNS(space, "circle");
  for (const [k, v] of Object.entries({r: 9, fill: "none", stroke: "#d62728", "stroke-width": 2, visibility: "hidden"})) chosen.setAttribute(k, v);
  svg.append(chosen);
  const choose = i => {
    chosen.setAttribute("visibility", i < 0 ? "hidden" : "visible");
    if (i >= 0) { chosen.setAttribute("cx", points.X[i] / 100); chosen.setAttribute("cy", points.Y[i] / 100); }
  };
  const row = document.createElement("tr");
  columns.forEach(([title], c) => {
    const cell = document.createElement("th");
    cell.textContent = title;
    if (total && typeof columns[c][1](0) === "number") cell.className = "number";
    cell.onclick = () => { down = order === c && !down; order = c; fill(); };
    row.append(cell);
  });
  head.append(row);
  const fill = () => {
    const rows = shown.slice();
    if (order !== null) {
      const of = columns[order][1];
      rows.sort((a, b) => { const x = of(a), y = of(b); return (x < y ? -1 : x > y ? 1 : a - b) * (down ? -1 : 1); });
    }
    body.replaceChildren(...rows.slice(0, most).map(i => {
      const line = document.createElement("tr");
      for (const [, of] of columns) {
        const cell = document.createElement("td"), v = of(i);
        if (typeof v === "number") { cell.className = "number"; cell.textContent = digits(v); } else cell.textContent = v;
        line.append(cell);
      }
      line.onmouseenter = () => choose(i);
      return line;
    }));
    count.textContent = `${shown.length} of ${total} points` + (shown.length > most ? `, the first ${most} in the table` : "");
  };
  const filter = document.getElementById("filter");
  const apply = () => {
    const wanted = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    shown = [];
    for (let i = 0; i < total; i++) {
      const all = wanted.length ? (names[i] + " " + word(i) + " " + level(i) + " " + (doubt.get(i) ?? "")).toLowerCase() : "";
      if (wanted.every(w => all.includes(w))) shown.push(i);
    }
    hits.forEach(p => p.remove());
    hits = [];
    svg.classList.toggle("filtered", wanted.length > 0);
    if (wanted.length) data.Series.forEach((s, k) => {
      const own = shown.filter(i => points.Series[i] === k);
      if (!own.length) return;
      const p = path(own, s.Colour, own.length > 1000 ? 3 : 7, 0.9, false);
      p.classList.add("hit");
      hits.push(p);
    });
    choose(-1);
    fill();
  };
  filter.oninput = apply;

  // The nearest point within a few pixels, found in cells of the drawing.
  const side = 1600, cells = new Map(), key = (x, y) => Math.floor(x / side) + "," + Math.floor(y / side);
  for (let i = 0; i < total; i++) {
    const k = key(points.X[i], points.Y[i]);
    if (!cells.has(k)) cells.set(k, []);
    cells.get(k).push(i);
  }
  const hover = document.getElementById("hover");
  const nearest = (x, y) => {
    let best = -1, least = 1200 * 1200;
    for (let dx = -side; dx <= side; dx += side) for (let dy = -side; dy <= side; dy += side)
      for (const i of cells.get(key(x + dx, y + dy)) ?? []) {
        const d = (points.X[i] - x) ** 2 + (points.Y[i] - y) ** 2;
        if (d < least) { least = d; best = i; }
      }
    return best;
  };
  svg.querySelectorAll("#data title").forEach(t => t.remove()); // the page has its own words on hover
  const show = (i, x, y) => {
    hover.hidden = i < 0;
    choose(i);
    if (i < 0) return;
    hover.textContent = text(i);
    hover.style.left = Math.min(x + 14, innerWidth - hover.offsetWidth - 8) + "px";
    hover.style.top = Math.min(y + 14, innerHeight - hover.offsetHeight - 8) + "px";
  };
  svg.onmousemove = e => {
    const box = svg.getBoundingClientRect(), view = svg.viewBox.baseVal;
    show(nearest((e.clientX - box.left) / box.width * view.width * 100, (e.clientY - box.top) / box.height * view.height * 100), e.clientX, e.clientY);
  };
  svg.onmouseleave = () => { hover.hidden = true; };

  const root = document.documentElement, dark = on => root.classList.toggle("dark", on);
  dark(matchMedia("(prefers-color-scheme: dark)").matches);
  document.getElementById("theme").onclick = () => dark(!root.classList.contains("dark"));
  // page.html#filter=words&theme=dark&point=7 opens it so.
  const start = new URLSearchParams(location.hash.slice(1));
  if (start.has("theme")) dark(start.get("theme") === "dark");
  filter.value = start.get("filter") ?? "";
  apply();
  const i = Number(start.get("point") ?? NaN);
  if (Number.isInteger(i) && i >= 0 && i < total) {
    const box = svg.getBoundingClientRect(), scale = box.width / svg.viewBox.baseVal.width / 100;
    show(i, box.left + points.X[i] * scale, box.top + points.Y[i] * scale);
  }
})();
