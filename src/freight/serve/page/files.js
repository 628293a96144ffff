// Scores of an uploaded file: a table whose rows can be explained, and downloads.

import { ask } from "./requests.js";
import { flagText, make, number } from "./elements.js";

const LONGEST = 160;

export async function scoreFile(file, metrics, signal) {
  const ending = file.name.split(".").pop().toLowerCase();
  const format = ending === "ndjson" ? "jsonl" : ending;
  const options = new URLSearchParams({ format });
  metrics.forEach((one) => options.append("metric", JSON.stringify(one)));
  const answer = await ask(`api/file?${options}`, { method: "POST", body: file, signal });
  return answer.json();
}

// The table; `explain` is called with the pair of the row that was chosen.
export function tableOf(title, answer, explain, close) {
  const scores = answer.metrics.map((one) => ({ ...one, column: one.columns[0] }));
  const heads = scores.map((one) => make("th", { class: "number", scope: "col" }, `${one.metric} ${one.column.name}${one.column.higher ? " ↑" : " ↓"}`));
  const body = make("tbody", {}, ...answer.pairs.map((pair, k) => row(pair, k, scores, explain)));
  const means = scores.map((one) => make("td", { class: "number" }, number(one.system[one.column.name])));
  const table = make("table", {},
    make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "#"), make("th", { scope: "col" }, "hypothesis"), ...heads, make("th", { scope: "col" }, ""))),
    body,
    make("tfoot", {}, make("tr", {}, make("td"), make("th", { scope: "row" }, "all rows"), ...means, make("td"))));
  return [
    make("h2", {}, `${title}: ${answer.pairs.length} rows`),
    make("p", { class: "hint" }, "Choose a row to see why it scored as it did."),
    make("div", { class: "tools" },
      make("button", { type: "button", onclick: () => download("scores.csv", csv(records(answer))) }, "Download CSV"),
      make("button", { type: "button", onclick: () => download("scores.jsonl", jsonl(records(answer))) }, "Download JSON lines"),
      make("button", { type: "button", class: "quiet close", onclick: close }, "Close")),
    make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Scores" }, table),
  ];
}

function row(pair, k, scores, explain) {
  const short = pair.hyp.length > LONGEST ? `${pair.hyp.slice(0, LONGEST)}…` : pair.hyp || "(empty)";
  const flags = [...new Set(scores.flatMap((one) => one.flags[k].map(flagText)))];
  const made = make("tr", {},
    make("td", {}, String(k + 1)),
    make("td", { class: "text" }, make("button", { type: "button", dir: "auto", onclick: () => {
      made.parentNode.querySelector("[aria-current]")?.removeAttribute("aria-current");
      made.setAttribute("aria-current", "true");
      explain(pair);
    } }, short)),
    ...scores.map((one) => make("td", { class: "number" }, number(one.scores[one.column.name][k]))),
    make("td", { class: "flags" }, flags.join("; ")));
  return made;
}

function records(answer) {
  return answer.pairs.map((pair, k) => {
    const record = { segment: k + 1 };
    answer.metrics.forEach((one, m) => {
      const same = answer.metrics.slice(0, m).some((other) => other.metric === one.metric);
      const title = same ? `${one.metric} (${m + 1})` : one.metric;
      for (const [column, values] of Object.entries(one.scores)) record[`${title}:${column}`] = values[k];
      record[`${title}:reference`] = one.references[k];
    });
    record.flags = [...new Set(answer.metrics.flatMap((one) => one.flags[k].map(flagText)))].join("; ");
    return record;
  });
}

function csv(rows) {
  const cell = (value) => (/[",\n]/.test(String(value ?? "")) ? `"${String(value).replaceAll('"', '""')}"` : String(value ?? ""));
  return [Object.keys(rows[0]), ...rows.map(Object.values)].map((line) => line.map(cell).join(",")).join("\n") + "\n";
}

function jsonl(rows) {
  return rows.map((one) => JSON.stringify(one)).join("\n") + "\n";
}

function download(name, text) {
  const link = make("a", { href: URL.createObjectURL(new Blob([text])), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
