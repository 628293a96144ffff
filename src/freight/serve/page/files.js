// Files: they are sent to the service, which reads and scores them part by part.

import { ask, Refused } from "./requests.js";

// The scores of a table, or of hypotheses and files of references; `progress` is told the rows done, of how many.
export async function scoreFiles(files, metrics, options, progress, signal) {
  const query = new URLSearchParams({ output: "progress" });
  for (const [name, value] of Object.entries(options)) if (value) query.append(name, value);
  for (const file of files) {
    query.append("name", file.name);
    query.append("size", file.size);
  }
  metrics.forEach((one) => query.append("metric", JSON.stringify(one)));
  const answer = await ask(`api/file?${query}`, { method: "POST", body: new Blob(files), signal });
  let whole = null;
  for await (const line of linesOf(answer.body)) {
    const told = JSON.parse(line);
    if (told.error) throw new Refused(422, told.error);
    if ("done" in told) progress(told.done, told.rows);
    else whole = told;
  }
  if (!whole) throw new Refused(0, "The service has stopped before it was done.");
  return whole;
}

async function* linesOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    yield* lines;
  }
  if (rest) yield rest;
}

// What was scored as rows with names: what identifies a row, its texts, each column of each metric, flags.
export function records(answer, flagsOf) {
  return answer.pairs.map(({ hyp, refs, ...names }, k) => {
    const record = { ...names, hyp, ...(refs.length === 1 ? { ref: refs[0] } : { refs }) };
    answer.metrics.forEach((one, m) => {
      const same = answer.metrics.slice(0, m).filter((other) => other.metric === one.metric).length;
      const title = same ? `${one.metric} (${same + 1})` : one.metric;
      for (const [column, values] of Object.entries(one.scores)) record[`${title}:${column}`] = values[k];
      record[`${title}:reference`] = one.references[k] + 1;
    });
    record.flags = flagsOf(k).join("; ");
    return record;
  });
}

export function csv(rows) {
  const names = [...new Set(rows.flatMap(Object.keys))];
  const text = (value) => (Array.isArray(value) ? JSON.stringify(value) : String(value ?? ""));
  const cell = (value) => (/[",\r\n]/.test(text(value)) ? `"${text(value).replaceAll('"', '""')}"` : text(value));
  return [names, ...rows.map((row) => names.map((name) => row[name]))].map((line) => line.map(cell).join(",")).join("\n") + "\n";
}

export function jsonl(rows) {
  return rows.map((one) => JSON.stringify(one)).join("\n") + "\n";
}

export function download(name, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text]));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
