// Scores of a file as a table: sorted by any column, page by page, each row with its references, flags and a way to explain it.

import { flagText, make, number } from "./elements.js";
import { csv, download, jsonl, records } from "./files.js";

const ROWS = 100;
const LONGEST = 240;

export class ScoreTable {
  // `explain` is called with the pair of the row that was chosen.
  constructor(place, title, answer, explain, close) {
    Object.assign(this, { place, title, answer, explain, close });
    this.scores = answer.metrics.map((one) => ({ ...one, column: one.columns[0], values: one.scores[one.columns[0].name] }));
    this.flags = answer.pairs.map((_, k) => this.flagsOf(k));
    this.sort = { by: "row", down: false };
    this.page = 0;
    this.flagged = false;
    this.chosen = null;
    this.named = answer.pairs.some((pair) => pair.id !== undefined);
    this.systems = [...new Set(answer.pairs.map((pair) => pair.system).filter((name) => name !== undefined))];
    this.draw();
  }

  get order() {
    const every = this.answer.pairs.map((_, k) => k).filter((k) => !this.flagged || this.flags[k].length);
    const key = this.keyOf(this.sort.by);
    if (!key) return this.sort.down ? every.reverse() : every;
    const sign = this.sort.down ? -1 : 1;
    // what has no score comes last in either direction
    return every.sort((a, b) => (key(a) === null) - (key(b) === null) || sign * compare(key(a), key(b)) || a - b);
  }

  keyOf(by) {
    if (by === "row") return null;
    if (by === "flags") return (k) => this.flags[k].length;
    if (by === "system" || by === "hyp") return (k) => this.answer.pairs[k][by];
    if (by === "ref") return (k) => this.answer.pairs[k].refs[0];
    return (k) => this.scores[by].values[k];
  }

  draw() {
    const rows = this.answer.pairs.length;
    const count = this.flags.filter((flags) => flags.length).length;
    const box = make("input", { type: "checkbox", id: "flagged", checked: this.flagged, onchange: () => {
      this.flagged = box.checked;
      this.page = 0;
      this.drawRows();
    } });
    this.body = make("tbody");
    this.head = make("thead");
    this.pager = make("div", { class: "pager" });
    const table = make("table", {}, this.head, this.body, make("tfoot", {}, ...this.means()));
    this.place.replaceChildren(
      make("h2", {}, `${this.title}: ${rows.toLocaleString("en")} ${rows === 1 ? "row" : "rows"}`),
      make("p", { class: "hint" }, "Choose a row to see why it scored as it did; choose a heading to sort."),
      make("div", { class: "tools" },
        make("button", { type: "button", onclick: () => this.save("csv", csv) }, "Download CSV"),
        make("button", { type: "button", onclick: () => this.save("jsonl", jsonl) }, "Download JSON lines"),
        ...(count ? [make("label", { class: "only" }, box, `Flagged only (${count.toLocaleString("en")})`)] : []),
        make("button", { type: "button", class: "quiet close", onclick: this.close }, "Close")),
      ...[...new Set(this.answer.metrics.map((one) => one.note).filter(Boolean))].map((note) => make("p", { class: "hint" }, note)),
      ...this.answer.metrics.flatMap((one) => this.about(one)),
      ...this.systemMeans(),
      make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Scores" }, table),
      this.pager);
    this.drawRows();
  }

  // Where the mean stands among scores of real texts, where it is that of one system; and how to cite it.
  about(one) {
    const meaning = one.meaning && this.systems.length < 2 ? [`${one.metric} ${one.columns[0].name} ${one.meaning}`, make("br")] : [];
    return [make("p", { class: "hint about-scores" }, ...meaning, "Cite as ", make("code", {}, one.citation))];
  }

  save(ending, write) {
    download(`scores.${ending}`, write(records(this.answer, (k) => this.flags[k])));
  }

  drawRows() {
    const order = this.order;
    const pages = Math.max(1, Math.ceil(order.length / ROWS));
    this.page = Math.min(this.page, pages - 1);
    const first = this.page * ROWS;
    const shown = order.slice(first, first + ROWS);
    this.head.replaceChildren(this.headings());
    this.body.replaceChildren(...shown.map((k) => this.row(k)));
    const turn = (label, step, possible) => make("button", { type: "button", disabled: !possible, onclick: () => {
      this.page += step;
      this.drawRows();
      this.place.querySelector(".scroll").scrollTop = 0;
    } }, label);
    this.pager.replaceChildren(...(pages > 1 ? [
      turn("Previous", -1, this.page > 0),
      make("span", {}, `rows ${(first + 1).toLocaleString("en")} to ${(first + shown.length).toLocaleString("en")} of ${order.length.toLocaleString("en")}`),
      turn("Next", 1, this.page < pages - 1)] : []));
  }

  headings() {
    const scores = this.scores.map((one, m) => [m, `${one.metric} ${one.column.name}`, "number", one.column.higher ? "higher is better" : "lower is better"]);
    const columns = [["row", this.named ? "id" : "#", ""], ...(this.systems.length ? [["system", "system", ""]] : []),
      ["hyp", "hypothesis", ""], ["ref", "reference", ""], ...scores, ["flags", "flags", ""]];
    return make("tr", {}, ...columns.map(([by, label, kind, title]) => {
      const sorted = this.sort.by === by;
      const button = make("button", { type: "button", title, onclick: () => this.sortBy(by) }, label,
        make("span", { "aria-hidden": "true" }, sorted ? (this.sort.down ? "\u00a0▼" : "\u00a0▲") : title ? (this.scores[by].column.higher ? "\u00a0↑" : "\u00a0↓") : ""));
      return make("th", { scope: "col", class: kind, "aria-sort": sorted ? (this.sort.down ? "descending" : "ascending") : null }, button);
    }));
  }

  // The worst scores first, then the best; flags: those with most of them first.
  sortBy(by) {
    const first = typeof by === "number" ? !this.scores[by].column.higher : by === "flags";
    this.sort = { by, down: this.sort.by === by ? !this.sort.down : first };
    this.page = 0;
    this.drawRows();
    const heading = [...this.head.querySelectorAll("th")].find((one) => one.hasAttribute("aria-sort"));
    heading.querySelector("button").focus();
  }

  row(k) {
    const pair = this.answer.pairs[k];
    const winner = this.scores[0].references[k];
    const more = pair.refs.length > 1 ? ` (${winner + 1} of ${pair.refs.length})` : "";
    const spans = (side) => this.scores[0].flags[k].filter((flag) => flag[side]).map((flag) => flag[side]);
    const made = make("tr", { "aria-current": k === this.chosen ? "true" : null },
      nameCell(pair.id ?? pair.segment),
      ...(this.systems.length ? [nameCell(pair.system ?? "")] : []),
      make("td", { class: "text" }, make("button", { type: "button", dir: "auto", onclick: () => {
        this.body.querySelector("[aria-current]")?.removeAttribute("aria-current");
        made.setAttribute("aria-current", "true");
        this.chosen = k;
        this.explain(pair);
      } }, ...marked(pair.hyp, spans("hyp")))),
      make("td", { class: "text ref", dir: "auto" }, ...marked(pair.refs[winner], spans("ref")), make("small", {}, more)),
      ...this.scores.map((one, m) => this.score(m, one.values[k])),
      make("td", { class: "flags" }, this.flags[k].join("; ")));
    return made;
  }

  // Of all rows; the corpus has a score of its own where that is no mean.
  means() {
    const line = (label, values) => make("tr", {}, make("td"), ...(this.systems.length ? [make("td")] : []),
      make("th", { scope: "row" }, label), make("td"), ...values.map((value, m) => this.score(m, value)), make("td"));
    const means = this.mean(() => true);
    const corpus = this.scores.map((one) => one.system[one.column.name]);
    const same = corpus.every((value, m) => number(value) === number(means[m]));
    return [line("mean", means), ...(same ? [] : [line("whole corpus", corpus)])];
  }

  // The means of each system, the best first.
  systemMeans() {
    if (this.systems.length < 2) return [];
    const rows = this.systems.map((name) => ({ name, values: this.mean((pair) => pair.system === name), count: this.answer.pairs.filter((pair) => pair.system === name).length }));
    const sign = this.scores[0].column.higher ? -1 : 1;
    rows.sort((a, b) => sign * compare(a.values[0], b.values[0]));
    const heads = ["system", "rows", ...this.scores.map((one) => `${one.metric} ${one.column.name}`)];
    return [make("details", { class: "systems" }, make("summary", {}, `Means of ${rows.length} systems`), make("table", {},
      make("thead", {}, make("tr", {}, ...heads.map((name, k) => make("th", { scope: "col", class: k ? "number" : "" }, name)))),
      make("tbody", {}, ...rows.map(({ name, values, count }) => make("tr", {}, make("th", { scope: "row" }, name),
        make("td", { class: "number", "data-name": "rows" }, count.toLocaleString("en")), ...values.map((value, m) => this.score(m, value)))))))];
  }

  mean(wanted) {
    return this.scores.map((one) => average(one.values.filter((value, k) => value !== null && wanted(this.answer.pairs[k]))));
  }

  score(m, value) {
    return make("td", { class: "number", "data-name": `${this.scores[m].metric} ${this.scores[m].column.name}` }, number(value));
  }

  // A critical difference is told with its words.
  flagsOf(k) {
    const pair = this.answer.pairs[k];
    return [...new Set(this.answer.metrics.flatMap((one) => one.flags[k].map((flag) => {
      if (!flag.hyp) return flagText(flag);
      const words = [pair.hyp, pair.refs[one.references[k]]].map((text, side) => characters(text).slice(...(side ? flag.ref : flag.hyp)).join(""));
      return `${flag.kind}: ${words.map((word) => (word ? `“${word}”` : "nothing")).join(" for ")}`;
    })))];
  }
}

function nameCell(name) {
  return make("td", { class: "name", title: String(name) }, String(name));
}

// A text with the characters of critical differences marked, cut where it is long.
function marked(text, spans) {
  const every = characters(text || "");
  if (!every.length) return [make("i", {}, "empty")];
  const end = Math.min(every.length, LONGEST);
  const pieces = [];
  let from = 0;
  for (const [start, stop] of [...spans].sort((a, b) => a[0] - b[0])) {
    if (start < from || start >= end || stop <= start) continue;
    pieces.push(every.slice(from, start).join(""), make("mark", {}, every.slice(start, Math.min(stop, end)).join("")));
    from = Math.min(stop, end);
  }
  return [...pieces, every.slice(from, end).join(""), every.length > end ? "…" : ""].filter((one) => one !== "");
}

// The service counts characters, not halves of them.
function characters(text) {
  return Array.from(text);
}

function average(values) {
  return values.length ? values.reduce((sum, value) => sum + value, 0) / values.length : null;
}

function compare(a, b) {
  return a < b ? -1 : a > b ? 1 : 0;
}
