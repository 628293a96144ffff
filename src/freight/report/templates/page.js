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
// Explanations are kept as text, by metric and row, and drawn when they are opened.
let explanations;
const explanation = (key) => {
  explanations ??= JSON.parse(document.getElementById("explanations").textContent);
  return explanations[key];
};
for (const details of document.querySelectorAll("details[data-key]")) {
  details.addEventListener("toggle", () => {
    if (details.open && !details.querySelector(".explanation")) details.append(drawExplanation(details.dataset.key));
  });
}
function drawExplanation(key) {
  const box = element("div", "explanation");
  box.innerHTML = explanation(key); // rendered by our template, which escapes every text
  return box;
}
function element(name, style = "", text = "") {
  const made = document.createElement(name);
  if (style) made.className = style;
  if (text) made.textContent = text;
  return made;
}
// The rows of the listing are data; one page of them is drawn at a time.
for (const table of document.querySelectorAll("table.paged")) {
  const PAGE = 50;
  const { rows, refs, flags, systems } = JSON.parse(document.getElementById("rows").textContent);
  const part = table.closest(".listing");
  const form = part.querySelector(".filters");
  const pager = part.querySelector(".pager");
  const heads = [...table.tHead.rows[0].cells];
  const labels = heads.filter((head) => /^\d+$/.test(head.dataset.by)).map((head) => head.textContent);
  const value = {
    segment: (row) => row[1],
    system: (row) => systems[row[2]],
    hyp: (row) => row[5],
    ref: (row) => refs[row[6]][0],
  };
  let page = 0;
  let shown = rows;
  let searchable;

  const place = ([, segment, system]) => (systems.length > 1 ? `${segment} ${systems[system]}` : `${segment}`);
  const number = (x) => (x === null ? "–" : x.toFixed(3).replace("-", "−"));
  function text(content) {
    const box = content.trim() ? element("span", "", content) : element("em", "", "(empty)");
    box.dir = "auto";
    return box;
  }
  function drawDetail(row) {
    const list = element("dl", "texts");
    const add = (label, content) => {
      const cell = element("dd");
      cell.append(text(content));
      list.append(element("dt", "", label), cell);
    };
    add("hypothesis", row[5]);
    refs[row[6]].forEach((ref) => add("reference", ref));
    row[4].forEach((flag) => add("flag", flags[flag]));
    const cell = element("td");
    cell.colSpan = heads.length;
    cell.append(list);
    labels.forEach((label, metric) => {
      if (explanation(`${metric}:${row[0]}`)) cell.append(element("h4", "", label), drawExplanation(`${metric}:${row[0]}`));
    });
    const line = element("tr", "opened");
    line.append(cell);
    return line;
  }
  function drawRow(row) {
    const line = element("tr");
    const head = element("th");
    const opener = element("button", "opener", `${row[1]}`);
    head.scope = "row";
    opener.type = "button";
    opener.setAttribute("aria-expanded", "false");
    opener.setAttribute("aria-label", `segment ${place(row)}`);
    opener.addEventListener("click", () => {
      const open = opener.getAttribute("aria-expanded") === "true";
      if (open) line.nextElementSibling.remove();
      else line.after(drawDetail(row));
      opener.setAttribute("aria-expanded", `${!open}`);
    });
    head.append(opener);
    line.append(head);
    if (systems.length > 1) line.append(element("td", "", systems[row[2]]));
    row[3].forEach((score) => line.append(element("td", "number", number(score))));
    [row[5], refs[row[6]][0]].forEach((content, k) => {
      const cell = element("td", "snippet");
      cell.append(text(content.slice(0, 300)));
      if (!k && row[4].length) cell.append(element("small", "flagged", row[4].map((flag) => flags[flag]).join("; ")));
      line.append(cell);
    });
    return line;
  }
  function draw() {
    const last = Math.max(0, Math.ceil(shown.length / PAGE) - 1);
    page = Math.min(Math.max(page, 0), last);
    const from = page * PAGE;
    table.tBodies[0].replaceChildren(...shown.slice(from, from + PAGE).map(drawRow));
    pager.querySelector("[role=status]").textContent = shown.length
      ? `${(from + 1).toLocaleString("en")}–${Math.min(from + PAGE, shown.length).toLocaleString("en")} of ${shown.length.toLocaleString("en")}`
      : "no matching segments";
    for (const name of ["first", "back"]) pager.querySelector(`[name=${name}]`).disabled = page === 0;
    for (const name of ["on", "last"]) pager.querySelector(`[name=${name}]`).disabled = page === last;
  }
  function applyFilters() {
    const chosen = new FormData(form);
    const words = (chosen.get("text") ?? "").toLowerCase();
    const system = chosen.get("system") ?? "";
    const flag = chosen.get("flag") ?? "";
    searchable ??= rows.map((row) => [row[5], ...refs[row[6]]].join("\n").toLowerCase());
    shown = rows.filter(
      (row, k) =>
        (!words || searchable[k].includes(words)) &&
        (system === "" || row[2] === +system) &&
        (flag === "" || (flag === "any" ? row[4].length > 0 : row[4].includes(+flag))),
    );
    sort();
    page = 0;
    draw();
  }
  function sort() {
    const head = heads.find((one) => one.ariaSort);
    if (!head) return;
    const by = value[head.dataset.by] ?? ((row) => row[3][+head.dataset.by]);
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
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.ariaSort = rising || (first && !/^\d+$/.test(head.dataset.by)) ? "ascending" : "descending";
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
  draw();
}
