// The explorer: what is typed or set is sent to the service, and its answer is shown.

import { ask, Refused, send, setToken } from "./requests.js";
import { Chooser } from "./controls.js";
import { flagText, make, number } from "./elements.js";
import { EXAMPLES } from "./examples.js";
import { scoreFiles } from "./files.js";
import { decodeView, encodeView } from "./links.js";
import { ScoreTable } from "./table.js";

const WAIT = 250;
const FEW_ROWS = 500; // a file of so many is scored again whenever something is set
const the = (id) => document.getElementById(id);
const state = { example: 0, refs: 0, timer: 0, current: null, file: null, one: null, other: null, limits: {}, note: "", jump: false, links: 0 };

start();

async function start() {
  setUpTheme();
  the("hyp").addEventListener("input", later);
  the("other-hyp").addEventListener("input", later);
  the("add-ref").addEventListener("click", () => addRef("").focus());
  the("example").addEventListener("click", showExample);
  the("again").addEventListener("click", showTable);
  the("copy").addEventListener("click", copyLink);
  for (const id of ["file", "file-refs", "encoding", "hyp-column", "ref-column"]) the(id).addEventListener("change", uploadFiles);
  window.addEventListener("popstate", () => state.one && restoreView(true));
  the("form").addEventListener("submit", (event) => event.preventDefault());
  the("token").addEventListener("change", () => { setToken(the("token").value); state.one ? update() : loadChoices(); });
  document.getElementsByName("compare").forEach((one) => one.addEventListener("change", changeComparison));
  const wide = matchMedia("(min-width: 60rem)").matches;
  for (const panel of document.querySelectorAll(".panel")) panel.open = wide;
  addRef("");
  await loadChoices();
}

// Fetch the metrics and encoders to choose from; again once there is a token.
async function loadChoices() {
  try {
    const [metrics, encoders] = await Promise.all(["api/metrics", "api/encoders"].map(async (path) => (await ask(path)).json()));
    the("token-section").hidden = true;
    state.limits = metrics.limits;
    the("file-hint").textContent = `Up to ${state.limits.rows.toLocaleString("en")} rows. They are scored with the metric above, or with both metrics.`;
    state.one = new Chooser(the("metric"), "Name", metrics.metrics, encoders.encoders, "freight", changed);
    state.other = new Chooser(the("other-metric"), "Second metric", metrics.metrics, encoders.encoders, "lazy-emd", changed);
    await untilReady();
    await restoreView();
  } catch (error) {
    the("result").setAttribute("aria-busy", "false");
    complain(error);
  }
}

// What is asked before the models are loaded has to wait: say so.
async function untilReady() {
  for (;;) {
    const { state: now } = await (await ask("health?check=live")).json();
    if (now !== "starting") return;
    say("The service is starting: models are being loaded …");
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

// Show what the address says; an empty form where it says nothing, but never instead of what was typed meanwhile.
async function restoreView(back = false) {
  try {
    const view = await decodeView(location.hash);
    if (view) {
      state.one.restore(view.metric);
      if (view.otherMetric) state.other.restore(view.otherMetric);
      fill({ hyp: view.hyp, refs: view.refs.length ? view.refs : [""] });
      the("other-hyp").value = view.otherHyp ?? the("other-hyp").value;
      choose(view.otherMetric ? "metric" : view.otherHyp !== undefined ? "hyp" : "none");
    } else if (back) {
      fill({ hyp: "", refs: [""] });
    }
    await update();
  } catch (error) {
    the("result").setAttribute("aria-busy", "false");
    complain(error);
  }
}

function view() {
  const { hyp } = texts();
  const refs = [...the("refs").querySelectorAll("textarea")].map((area) => area.value);
  const other = comparison() === "hyp" ? { otherHyp: the("other-hyp").value } : comparison() === "metric" ? { otherMetric: state.other.request } : {};
  return { hyp, refs, metric: state.one.request, ...other };
}

// Keep the address up to date: a step back where something else is looked at, else in place.
async function writeAddress() {
  const turn = (state.links += 1);
  const fragment = await encodeView(view());
  if (turn !== state.links) return;
  const target = location.href.replace(/#.*/, "") + (fragment ?? "");
  if (location.href !== target) history[state.jump ? "pushState" : "replaceState"](null, "", target);
  state.jump = false;
}

async function copyLink() {
  if ((await encodeView(view())) === null) return complain(new Error("These texts are too long for a link; send them as a file."));
  await writeAddress();
  try {
    await navigator.clipboard.writeText(location.href);
    say("Copied: whoever can reach this service sees the same with the link.");
  } catch {
    say("Copy the address of this page: it is the link.");
  }
}

function setUpTheme() {
  const button = the("theme");
  const dark = () => (document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const show = () => {
    button.textContent = dark() ? "Light" : "Dark";
    button.setAttribute("aria-pressed", String(dark()));
    button.setAttribute("aria-label", "Dark colours");
  };
  const kept = localStorage.getItem("theme");
  if (kept) document.documentElement.dataset.theme = kept;
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = dark() ? "light" : "dark";
    localStorage.setItem("theme", document.documentElement.dataset.theme);
    show();
  });
  show();
}

function addRef(text) {
  state.refs += 1;
  const id = `ref-${state.refs}`;
  const area = make("textarea", { id, rows: 3, dir: "auto", spellcheck: "false", oninput: later });
  area.value = text;
  const drop = make("button", { type: "button", class: "quiet", "aria-label": "Remove this reference", onclick: () => {
    place.remove();
    numberRefs();
    the("add-ref").focus();
    later();
  } }, "Remove");
  const place = make("div", { class: "ref" }, make("label", { for: id }, ""), drop, area);
  the("refs").append(place);
  numberRefs();
  return area;
}

function numberRefs() {
  const every = [...the("refs").children];
  every.forEach((place, k) => {
    const [label, drop] = place.children;
    label.replaceChildren(every.length > 1 ? `Reference ${k + 1}` : "Reference", " ", make("small", {}, k ? "" : "what it is compared with"));
    drop.hidden = every.length === 1;
  });
}

function fill(pair) {
  the("hyp").value = pair.hyp;
  the("refs").replaceChildren();
  pair.refs.forEach(addRef);
}

function showExample() {
  state.jump = true;
  const pair = EXAMPLES[state.example % EXAMPLES.length];
  state.example += 1;
  fill(pair);
  the("other-hyp").value = pair.other || "";
  update();
}

function comparison() {
  return document.querySelector("[name=compare]:checked").value;
}

function choose(kind) {
  document.querySelector(`[name=compare][value=${kind}]`).checked = true;
  showComparison();
}

function showComparison() {
  the("compare-hyp").hidden = comparison() !== "hyp";
  the("other-metric").hidden = comparison() !== "metric";
  the("outcome").classList.toggle("both", comparison() !== "none");
}

function changeComparison() {
  if (comparison() === "metric" && state.other.name === state.one.name) state.other.choose(state.one.name === "freight" ? "lazy-emd" : "freight");
  showComparison();
  changed();
}

// Update once nothing has changed for a while; until then the result is busy.
function later() {
  the("result").setAttribute("aria-busy", "true");
  clearTimeout(state.timer);
  state.timer = setTimeout(update, WAIT);
}

function changed() {
  later();
  if (!state.file) return;
  clearTimeout(state.file.timer);
  if (state.file.rows <= FEW_ROWS) state.file.timer = setTimeout(showTable, 2 * WAIT);
  else the("stale").hidden = false;
}

function texts() {
  const areas = [...the("refs").querySelectorAll("textarea")].map((area) => area.value);
  const refs = areas.filter((text) => text.trim());
  return { hyp: the("hyp").value, refs };
}

// Show the answer to what is in the form now; an older answer that arrives late is dropped.
async function update() {
  clearTimeout(state.timer);
  if (!state.one) return the("result").setAttribute("aria-busy", "false");
  the("metric-summary").textContent = state.one.summary;
  writeAddress();
  the("compare-summary").textContent = { none: "", hyp: "another hypothesis", metric: state.other.summary }[comparison()];
  state.current?.abort();
  const current = (state.current = new AbortController());
  const pair = texts();
  if (!pair.refs.length || !pair.hyp.trim()) return showIntroduction();
  the("result").setAttribute("aria-busy", "true");
  const start = performance.now();
  try {
    await show(pair, current.signal);
    if (current.signal.aborted) return;
    say([...summary(), state.note, `${Math.round(performance.now() - start)} ms`].filter(Boolean).join(" · "));
  } catch (error) {
    if (error.name === "AbortError") return;
    complain(error);
  }
  the("result").setAttribute("aria-busy", "false");
}

async function show(pair, signal) {
  const other = {};
  if (comparison() === "hyp" && the("other-hyp").value.trim()) other.hyp = the("other-hyp").value;
  if (comparison() === "metric") other.metric = state.other.request;
  const both = Object.keys(other).length > 0;
  const hasPlan = state.one.metric.explained && (!other.metric || state.other.metric.explained);
  if (hasPlan) {
    const body = { ...pair, metric: state.one.request, ...(both ? { other } : {}) };
    const answer = await send("api/explain/fragment", body, signal);
    const html = await answer.text();
    if (signal.aborted) return;
    state.note = answer.headers.get("Freight-Note");
    speak(JSON.parse(answer.headers.get("Freight-Chosen")));
    replace(html);
    return;
  }
  const pairs = [pair, ...(other.hyp ? [{ ...pair, hyp: other.hyp }] : [])];
  const metrics = [state.one.request, ...(other.metric ? [other.metric] : [])];
  const answers = await Promise.all(pairs.map(async (one) => (await send("api/score", { pairs: [one], metrics }, signal)).json()));
  if (signal.aborted) return;
  const [{ metrics: scored }] = answers;
  state.note = [...new Set(scored.map((one) => one.note).filter(Boolean))].join("; ");
  speak(scored.map((one) => one.chosen));
  the("result").replaceChildren(scoreCards(answers));
}

// Show the defaults of the language that the references are in.
function speak([one, other]) {
  state.one.speak(one);
  if (comparison() === "metric") state.other.speak(other);
}

// The scores in a few words, for screen readers.
function summary() {
  const drawn = [...the("result").querySelectorAll(".fx-head")].map((head) => `${head.querySelector(".fx-name").textContent} ${head.querySelector(".fx-score").textContent.split(",")[0]}`);
  const listed = [...the("result").querySelectorAll(".plain > div")].map((card) => `${card.querySelector("h3").textContent} ${card.querySelector("p").textContent.split(",")[0]}`);
  return [...drawn, ...listed].map((text) => text.replace(/\s+/g, " ").trim());
}

// The service escapes every text, and the browser runs no script but ours. Open details stay open.
function replace(html) {
  const folds = () => [...the("result").querySelectorAll("details")];
  const before = folds().map((one) => one.open);
  the("result").innerHTML = html;
  const after = folds();
  if (before.length === after.length) after.forEach((one, k) => { one.open = before[k]; });
}

function scoreCards(answers) {
  const cards = answers[0].metrics.flatMap((_, m) => answers.map(({ metrics: { [m]: one } }, k) => make("div", {},
    make("h3", {}, answers.length > 1 ? `${one.metric}, hypothesis ${k + 1}` : one.metric),
    ...one.columns.map((column) => make("p", {}, make("b", {}, number(one.scores[column.name][0])), ` ${column.name}, ${column.higher ? "higher" : "lower"} is better`)),
    ...(one.meaning ? [make("p", { class: "hint" }, one.meaning)] : []),
    ...one.flags[0].map((flag) => make("p", { class: "flags" }, flagText(flag))),
    make("p", { class: "hint" }, "Cite as ", make("code", {}, one.citation)))));
  return make("div", { class: "plain" }, ...cards);
}

function showIntroduction() {
  the("result").setAttribute("aria-busy", "false");
  the("result").replaceChildren(make("div", { class: "empty" },
    make("p", {}, "The words of each text are points with a mass. The score is read off the cheapest plan that transports the hypothesis onto the reference."),
    make("p", {}, "Type both, or ", make("b", {}, "try an example"), ": errors are coloured, ribbons show the transport plan, and additions and omissions are listed.")));
  say("");
}

async function uploadFiles() {
  const [file] = the("file").files;
  if (!file) return;
  const files = [file, ...the("file-refs").files];
  const size = files.reduce((sum, one) => sum + one.size, 0);
  if (size > state.limits.file) return complain(new Error(`${file.name} has ${size.toLocaleString("en")} bytes; a file has at most ${state.limits.file.toLocaleString("en")}: send it in parts, or use freight score.`));
  state.file?.current?.abort();
  state.file = { files, timer: 0, rows: 0, current: null };
  await showTable();
  the("table").scrollIntoView({ block: "nearest" });
}

async function showTable() {
  const file = state.file;
  const [{ name }, ...refs] = file.files;
  const title = [name, ...refs.map((one) => one.name)].join(" and ");
  const metrics = [state.one.request, ...(comparison() === "metric" ? [state.other.request] : [])];
  const options = { encoding: the("encoding").value, hyp_column: the("hyp-column").value.trim(), ref_column: the("ref-column").value.trim() };
  file.current?.abort();
  const current = (file.current = new AbortController());
  the("stale").hidden = true;
  showProgress(title, 0, 0, current);
  try {
    const answer = await scoreFiles(file.files, metrics, options, (done, rows) => showProgress(title, done, rows, current), current.signal);
    if (current.signal.aborted) return;
    file.rows = answer.pairs.length;
    the("table").hidden = false;
    file.table = new ScoreTable(the("scores"), title, answer, explainRow, closeTable);
    say(`Scored ${answer.pairs.length.toLocaleString("en")} rows of ${name}.`);
  } catch (error) {
    if (error.name === "AbortError") say(`${name} was not scored to the end.`);
    else complain(error);
    if (/column|encoding/.test(error.message)) the("file-options").open = true;
  }
  if (file.current === current) the("progress").hidden = true;
}

async function explainRow(pair) {
  state.jump = true;
  fill(pair);
  await update();
  if (!matchMedia("(min-width: 40rem)").matches) the("result").scrollIntoView({ block: "start" });
}

function showProgress(title, done, rows, current) {
  if (current.signal.aborted) return;
  the("progress").hidden = false;
  the("progress-bar").max = rows || 1;
  the("progress-bar").value = done;
  the("progress-text").textContent = rows ? `${title}: ${done.toLocaleString("en")} of ${rows.toLocaleString("en")} rows` : `${title} is being read …`;
  the("cancel").onclick = () => current.abort();
}

function closeTable() {
  state.file?.current?.abort();
  state.file = null;
  the("file").value = "";
  the("file-refs").value = "";
  the("table").hidden = true;
  the("scores").replaceChildren();
  the("file").focus();
}

function say(text) {
  the("status").className = "";
  the("status").textContent = text;
}

function complain(error) {
  the("status").className = "alarm";
  the("status").textContent = error.message;
  if (error instanceof Refused && error.status === 401) {
    the("token-section").hidden = false;
    the("token").focus();
  }
}
