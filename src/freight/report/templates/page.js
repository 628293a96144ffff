"use strict";
// A click on a heading sorts its table: numbers descending first, then ascending.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  table.querySelectorAll("thead th").forEach((head, column) => {
    const value = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
    const numeric = head.classList.contains("number");
    head.querySelector("button")?.addEventListener("click", () => {
      const rising = head.ariaSort ? head.ariaSort === "descending" : !numeric;
      const compare = (a, b) => {
        const numbers = [a, b].every((x) => x !== "" && !isNaN(x));
        if (!numeric) return numbers ? a - b : a.localeCompare(b);
        if (isNaN(a) || isNaN(b)) return rising ? isNaN(b) - isNaN(a) : isNaN(a) - isNaN(b);
        return a - b;
      };
      const rows = [...body.rows].sort((a, b) => compare(value(a), value(b)) * (rising ? 1 : -1));
      table.querySelectorAll("thead th").forEach((other) => other.removeAttribute("aria-sort"));
      head.ariaSort = rising ? "ascending" : "descending";
      body.append(...rows);
    });
  });
}
// Of several views only the chosen one is shown.
for (const chooser of document.querySelectorAll(".chooser")) {
  const select = chooser.querySelector("select");
  const show = () => {
    for (const view of document.querySelectorAll(".view")) view.hidden = view.id !== select.value;
  };
  select.addEventListener("change", show);
  chooser.hidden = false;
  show();
}
// What is large is compressed, and unpacked when it is needed.
async function unpack(id) {
  const bytes = Uint8Array.from(atob(document.getElementById(id).textContent), (one) => one.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}
// Explanations are kept as text, by metric and row, and drawn when they are opened.
let explanations;
const explanation = async (key) => (await (explanations ??= unpack("explanations")))[key];
for (const details of document.querySelectorAll("details[data-key]")) {
  details.addEventListener("toggle", () => {
    if (details.open && !details.querySelector(".explanation")) details.append(drawExplanation(details.dataset.key));
  });
}
function drawExplanation(key, label = "") {
  const box = element("div", "explanation");
  box.hidden = true;
  explanation(key).then((html) => {
    if (html === undefined) return box.remove();
    box.innerHTML = html; // rendered by our template, which escapes every text
    if (label) box.prepend(element("h4", "", label));
    box.hidden = false;
  });
  return box;
}
function element(name, style = "", text = "") {
  const made = document.createElement(name);
  if (style) made.className = style;
  if (text) made.textContent = text;
  return made;
}
function number(value, signed = false) {
  if (value === null) return "–";
  const text = value.toFixed(3);
  return (signed && value > 0 ? `+${text}` : text).replace("-", "−");
}
function textBox(content) {
  const box = content.trim() ? element("span", "", content) : element("em", "", "(empty)");
  box.dir = "auto";
  return box;
}
function drawTexts(entries) {
  const list = element("dl", "texts");
  for (const [label, content] of entries) {
    const cell = element("dd");
    cell.append(typeof content === "string" ? textBox(content) : content);
    list.append(element("dt", "", label), cell);
  }
  return list;
}
// A text with its errors marked; positions count characters, not UTF-16 units.
function markErrors(text, errors) {
  const box = element("span", "fx");
  const characters = [...text];
  let end = 0;
  box.dir = "auto";
  for (const [start, stop, severity, kind] of errors) {
    const marked = element("span", `fx-w fx-${severity}`, characters.slice(start, stop).join(""));
    marked.title = `${kind}, ${severity}`;
    box.append(characters.slice(end, start).join(""), marked);
    end = stop;
  }
  box.append(characters.slice(end).join(""));
  return box;
}
// The rows of the listing are data, a segment each; one page of them is drawn at a time.
async function drawListing(table) {
  const PAGE = 50;
  const data = await unpack("rows");
  const { rows, refs, flags, systems, labels } = data;
  const several = data.pairs.length > 0;
  const part = table.closest(".listing");
  const form = part.querySelector(".filters");
  const pager = part.querySelector(".pager");
  const heads = [...table.tHead.rows[0].cells];
  const chosen = { metric: 0, first: 0, second: 1, sign: 1 };
  const cellsOf = ([, cells]) => cells.filter((cell) => cell);
  const scoreOf = (row, system) => row[1][system]?.[3][chosen.metric] ?? null;
  const differenceOf = (row) => {
    const [a, b] = [scoreOf(row, chosen.first), scoreOf(row, chosen.second)];
    return a === null || b === null ? null : chosen.sign * (a - b);
  };
  const value = {
    segment: (row) => row[0],
    hyp: (row) => cellsOf(row)[0][2],
    ref: (row) => refs[cellsOf(row)[0][1]][0],
    first: (row) => scoreOf(row, chosen.first),
    second: (row) => scoreOf(row, chosen.second),
    difference: differenceOf,
  };
  let page = 0;
  let shown = rows;
  let searchable;

  function drawOutput(cell) {
    const [row, , hyp, , raised] = cell;
    const box = element("span");
    const errors = data.errors[chosen.metric]?.[row];
    box.append(errors && hyp.trim() ? markErrors(hyp, errors[0]) : textBox(hyp));
    const missing = ["major", "minor"].map((severity) => [severity, (errors?.[1] ?? []).filter((one) => one[1] === severity)]);
    const notes = [
      ...missing.filter(([, some]) => some.length).map(([severity, some]) => `missing (${severity}): ${some.map(([text]) => `“${text}”`).join(", ")}`),
      ...raised.map((flag) => flags[flag]),
    ];
    if (notes.length) box.append(element("small", "flagged", notes.join("; ")));
    return box;
  }
  function drawOutputs(row) {
    const refsOf = [...new Set(cellsOf(row).map((cell) => cell[1]))];
    const entries = refsOf.flatMap((number) => refs[number].map((ref) => ["reference", ref]));
    const list = drawTexts(entries);
    row[1].forEach((cell, system) => {
      const name = element("dt", system === chosen.first || system === chosen.second ? "chosen" : "", systems[system]);
      const text = element("dd");
      name.append(" ", element("small", "", number(cell?.[3][chosen.metric] ?? null)));
      text.append(cell ? drawOutput(cell) : element("em", "", "(no output)"));
      list.append(name, text);
    });
    return list;
  }
  function drawDetail(row) {
    const cell = element("td");
    cell.colSpan = heads.length;
    if (!several) {
      const [, ref, hyp, , raised] = row[1][0];
      const entries = refs[ref].map((one) => ["reference", one]);
      cell.append(drawTexts([["hypothesis", hyp], ...entries, ...raised.map((flag) => ["flag", flags[flag]])]));
    }
    for (const [number] of cellsOf(row)) {
      const system = several ? `, ${systems[row[1].findIndex((one) => one?.[0] === number)]}` : "";
      labels.forEach((label, metric) => cell.append(drawExplanation(`${metric}:${number}`, label + system)));
    }
    const line = element("tr", "opened");
    line.append(cell);
    return line;
  }
  function drawRow(row, brief = false) {
    const line = element("tr");
    const head = element("th");
    const opener = element("button", "opener", `${row[0]}`);
    head.scope = "row";
    opener.type = "button";
    opener.setAttribute("aria-expanded", "false");
    opener.setAttribute("aria-label", `segment ${row[0]}`);
    opener.addEventListener("click", () => {
      const open = opener.getAttribute("aria-expanded") === "true";
      if (open) line.nextElementSibling.remove();
      else line.after(drawDetail(row));
      opener.setAttribute("aria-expanded", `${!open}`);
    });
    head.append(opener);
    line.append(head);
    if (several) {
      for (const system of brief ? [] : [chosen.first, chosen.second]) line.append(element("td", "number", number(scoreOf(row, system))));
      const texts = element("td", "outputs");
      texts.append(drawOutputs(row));
      line.append(element("td", "number", number(differenceOf(row), true)), texts);
      return line;
    }
    const [, ref, hyp, scores, raised] = row[1][0];
    scores.forEach((score) => line.append(element("td", "number", number(score))));
    [hyp, refs[ref][0]].forEach((content, k) => {
      const cell = element("td", "snippet");
      cell.append(textBox(content.slice(0, 300)));
      if (!k && raised.length) cell.append(element("small", "flagged", raised.map((flag) => flags[flag]).join("; ")));
      line.append(cell);
    });
    return line;
  }
  function draw() {
    const last = Math.max(0, Math.ceil(shown.length / PAGE) - 1);
    page = Math.min(Math.max(page, 0), last);
    const from = page * PAGE;
    table.tBodies[0].replaceChildren(...shown.slice(from, from + PAGE).map((row) => drawRow(row)));
    pager.querySelector("[role=status]").textContent = shown.length
      ? `${(from + 1).toLocaleString("en")}–${Math.min(from + PAGE, shown.length).toLocaleString("en")} of ${shown.length.toLocaleString("en")}`
      : "no matching segments";
    for (const name of ["first", "back"]) pager.querySelector(`[name=${name}]`).disabled = page === 0;
    for (const name of ["on", "last"]) pager.querySelector(`[name=${name}]`).disabled = page === last;
  }
  function applyFilters() {
    const wanted = new FormData(form);
    const words = (wanted.get("text") ?? "").toLowerCase();
    const flag = wanted.get("flag") ?? "";
    searchable ??= rows.map((row) => cellsOf(row).flatMap((cell) => [cell[2], ...refs[cell[1]]]).join("\n").toLowerCase());
    const flagged = (cell) => (flag === "any" ? cell[4].length > 0 : cell[4].includes(+flag));
    shown = rows.filter(
      (row, k) => (!words || searchable[k].includes(words)) && (flag === "" || cellsOf(row).some(flagged)),
    );
    sort();
    page = 0;
    draw();
  }
  function sort() {
    const head = heads.find((one) => one.ariaSort);
    if (!head) return;
    const by = value[head.dataset.by] ?? ((row) => row[1][0][3][+head.dataset.by]);
    const way = head.ariaSort === "ascending" ? 1 : -1;
    const numeric = head.classList.contains("number");
    shown = [...shown].sort((a, b) => {
      const [x, y] = [by(a), by(b)];
      if (x === null || y === null) return (x === null) - (y === null);
      return way * (numeric ? x - y : x < y ? -1 : x > y ? 1 : 0) || a[0] - b[0];
    });
  }

  for (const head of heads) {
    head.querySelector("button").addEventListener("click", () => {
      const rising = head.ariaSort === "descending";
      const first = !head.ariaSort;
      const scored = head.classList.contains("number") && head.dataset.by !== "segment";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.ariaSort = rising || (first && !scored) ? "ascending" : "descending";
      applyFilters();
    });
  }
  form.addEventListener("input", applyFilters);
  form.addEventListener("submit", (event) => event.preventDefault());
  const steps = { first: () => 0, back: () => page - 1, on: () => page + 1, last: () => Infinity };
  for (const button of pager.querySelectorAll("button")) {
    button.addEventListener("click", () => {
      page = steps[button.name]();
      draw();
    });
  }
  for (const pick of document.querySelectorAll(".pick")) {
    pick.addEventListener("click", () => {
      form.elements.flag.value = pick.dataset.flag;
      applyFilters();
      form.elements.flag.focus();
    });
  }
  form.hidden = pager.hidden = false;
  if (several) compareSystems(data, chosen, drawRow, applyFilters);
  else draw();
}
// How the two chosen systems differ; choosing others redraws the listing too.
function compareSystems({ rows, systems, pairs, labels }, chosen, drawRow, redraw) {
  const part = document.querySelector(".differences");
  const form = part.querySelector("form");
  const tables = part.querySelectorAll("table.compared");
  const heads = document.querySelectorAll("table.paged [data-by=first] button, table.paged [data-by=second] button, table.paged [data-by=difference] button");
  const bySegment = new Map(rows.map((row) => [row[0], row]));
  const p = (value) => (value === null ? "–" : value < 0.001 ? "< .001" : `= ${value.toFixed(3).replace("0.", ".")}`);
  function turn(pair) {
    if (pair.systems[0] === chosen.first) return pair;
    const { first, second, better, worse, histogram } = pair;
    const mean = pair.mean === null ? null : -pair.mean;
    return { ...pair, mean, better: worse, worse: better, first: second, second: first, p: [...pair.p].reverse(), histogram: [...histogram].reverse() };
  }
  function show() {
    chosen.metric = +(form.elements.metric?.value ?? 0);
    chosen.first = +form.elements.first.value;
    chosen.second = +form.elements.second.value;
    chosen.sign = labels[chosen.metric].endsWith("↓") ? -1 : 1;
    const names = [systems[chosen.first], systems[chosen.second]];
    const both = [chosen.first, chosen.second];
    const pair = turn(pairs[chosen.metric].find((one) => both.includes(one.systems[0]) && both.includes(one.systems[1])));
    const counts = [pair.better, pair.worse, pair.count - pair.better - pair.worse].map((one) => one.toLocaleString("en"));
    part.querySelector(".summary").textContent =
      `Of ${pair.count.toLocaleString("en")} segments ${names[0]} scores better in ${counts[0]}, ${names[1]} in ${counts[1]}, ` +
      `and they are equal in ${counts[2]}. Mean difference ${number(pair.mean, true)}; one-sided p that ${names[0]} is better ${p(pair.p[0])}, ` +
      `that ${names[1]} is better ${p(pair.p[1])} (paired permutation test).`;
    drawHistogram(part.querySelector(".drawn svg"), pair, names);
    [pair.first, pair.second].forEach((segments, k) => {
      part.querySelectorAll(".beats")[k].textContent = segments.length ? `Where ${names[k]} beats ${names[1 - k]} most` : `${names[k]} beats ${names[1 - k]} in no segment`;
      tables[k].tBodies[0].replaceChildren(...segments.map((segment) => drawRow(bySegment.get(segment), true)));
    });
    [...names, `${names[0]} better by`].forEach((name, k) => (heads[k].textContent = name));
    redraw();
  }
  form.addEventListener("input", (event) => {
    const { first, second } = form.elements;
    const other = event.target === first ? second : first;
    if (first.value === second.value) other.value = +first.value === 0 ? 1 : 0;
    show();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  show();
}
function drawHistogram(svg, { histogram, reach, mean, count, better, worse }, names) {
  const make = (name, attributes, text = "") => {
    const made = document.createElementNS(svg.namespaceURI, name);
    for (const [key, one] of Object.entries(attributes)) made.setAttribute(key, one);
    made.textContent = text;
    return made;
  };
  const [width, height, floor] = [560, 200, 160];
  const step = width / histogram.length;
  const tallest = Math.max(...histogram, 1);
  const label = `Histogram of the differences between ${names[0]} and ${names[1]}`;
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("aria-label", label);
  svg.replaceChildren();
  histogram.forEach((count, k) => {
    const tall = (count / tallest) * (floor - 24);
    const side = k < histogram.length / 2 ? "second" : "first";
    const bar = make("rect", { x: k * step + 1, y: floor - tall, width: step - 2, height: tall, class: side });
    const edges = [k, k + 1].map((edge) => number((2 * reach * edge) / histogram.length - reach, true));
    bar.append(make("title", {}, `${edges[0]} to ${edges[1]}: ${count.toLocaleString("en")} segments`));
    svg.append(bar);
  });
  svg.append(make("line", { x1: 0, x2: width, y1: floor, y2: floor }), make("line", { x1: width / 2, x2: width / 2, y1: 14, y2: floor }));
  if (mean !== null) {
    const x = width / 2 + (mean / reach) * (width / 2);
    svg.append(make("line", { x1: x, x2: x, y1: 14, y2: floor, class: "mean" }));
    svg.append(make("text", { x, y: 10, "text-anchor": "middle" }, `mean ${number(mean, true)}`));
  }
  const marks = [[0, "start", -reach], [width / 2, "middle", 0], [width, "end", reach]];
  for (const [x, anchor, value] of marks) svg.append(make("text", { x, y: floor + 14, "text-anchor": anchor }, number(value, true)));
  const short = names.map((name) => (name.length > 24 ? `${name.slice(0, 23)}…` : name));
  svg.append(make("text", { x: 0, y: floor + 32, class: "second" }, `← ${short[1]} better`));
  const equal = count - better - worse;
  if (equal) svg.append(make("text", { x: width / 2, y: floor + 32, "text-anchor": "middle" }, `${equal.toLocaleString("en")} equal, not drawn`));
  svg.append(make("text", { x: width, y: floor + 32, "text-anchor": "end", class: "first" }, `${short[0]} better →`));
}
const drawn = Promise.all([...document.querySelectorAll("table.paged")].map(drawListing));
