// The parameters of a metric as the service describes them: sliders, lists and switches.

import { make } from "./elements.js";

const STEPS = 200;
const LABELS = {
  hyp: "Penalty on the hypothesis marginal (hyp)", ref: "Penalty on the reference marginal (ref)",
  epsilon: "Entropic regularisation (epsilon)", alpha: "Weight of recall against precision (alpha)", greedy: "Share of greedy matching",
  neighbours: "Weight of neighbours", floor: "Smallest similarity (floor)", order: "Weight of word order",
  unknown: "Cost of unknown words", unigram: "Weight of words", bigram: "Weight of word pairs",
  mass: "Mass of a unit", unit: "Units", pooling: "Layer pooling", references: "Several references",
  readout: "Read-out", clip: "Clip similarities at 0", shared: "Shared n-grams", baseline: "Baseline",
  cut: "Ignore transport at costs from (cut)", stop_words: "Stop words", version: "Version", ngram: "Words per n-gram",
  idf: "IDF weights",
};
const HIDDEN = new Set(["system_unigram", "system_bigram", "layer"]);

// The form of one metric; `changed` is called whenever something is set.
export class Chooser {
  constructor(place, title, metrics, encoders, first, changed) {
    Object.assign(this, { place, title, metrics, encoders, changed });
    this.id = place.id;
    this.name = first;
    this.encoder = null;
    this.adapter = null;
    this.layer = null;
    this.settings = {};
    this.chosen = {};
    this.draw();
  }

  // What the language of the references has chosen, by the last answer: an encoder, and a language with defaults of its own.
  speak(chosen = {}) {
    const same = JSON.stringify(chosen) === JSON.stringify(this.chosen);
    this.chosen = chosen;
    if (same) return;
    const focused = this.place.contains(document.activeElement) ? document.activeElement.id : null;
    this.draw();
    if (focused) document.getElementById(focused)?.focus();
  }

  get metric() {
    return this.metrics.find((one) => one.name === this.name);
  }

  // What can be set of it; an adapter brings defaults of its own along, and so does a language.
  get parameters() {
    const own = this.metric.adapters.find((one) => one.name === this.adapter)?.settings ?? {};
    return this.metric.parameters.map((one) => ({ ...one, default: one.name in own ? own[one.name] : this.spoken(one) }));
  }

  spoken(one) {
    const { lang } = this.chosen;
    if (!lang || lang === "en" || !one.by_language) return one.default;
    return one.by_language[lang] ?? one.by_language.other;
  }

  // The metric as requests name it: only what differs from the metric's own defaults.
  get request() {
    const settings = { ...this.settings };
    if (this.metric.needs_idf_texts && !("idf" in settings)) settings.idf = null;
    const request = { name: this.name, settings };
    if (this.encoder) request.encoder = this.encoder;
    if (this.adapter) request.adapter = this.adapter;
    if (this.layer !== null) request.layer = this.layer;
    return request;
  }

  // The same in a few words.
  get summary() {
    const set = Object.entries(this.settings).map(([name, value]) => `${name} ${value}`);
    return [this.name, this.encoder, this.adapter, this.layer === null ? null : `layer ${this.layer}`, ...set].filter(Boolean).join(", ");
  }

  choose(name) {
    this.name = name;
    this.reset(false);
  }

  // Take what a link says; a metric or an encoder that is not here is an error.
  restore({ name, encoder = null, adapter = null, layer = null, settings = {} }) {
    if (!this.metrics.some((one) => one.name === name)) throw new Error(`The link names the metric ${name}, which this service does not have.`);
    if (encoder && !this.encoders.some((one) => one.name === encoder)) throw new Error(`The link names the encoder ${encoder}, which this service does not have.`);
    Object.assign(this, { name, encoder, adapter, layer, settings: { ...settings } });
    this.draw();
  }

  draw() {
    const shown = this.parameters.filter((one) => !HIDDEN.has(one.name));
    const main = shown.filter((one) => one.kind === "number" && one.default !== null);
    const more = shown.filter((one) => !main.includes(one));
    this.place.replaceChildren(
      this.names(), make("p", { class: "about" }, this.metric.about),
      ...(this.metric.encoder ? [this.source()] : []),
      ...(this.metric.adapters.length ? [this.trained()] : []),
      ...main.map((one) => this.control(one)),
      ...(more.length ? [this.folded(more)] : []),
      make("button", { type: "button", class: "quiet reset", onclick: () => this.reset() }, "Reset to defaults"),
    );
  }

  names() {
    const kinds = [["Transport", true], ["Lexical", false]];
    const groups = kinds.map(([label, explained]) => make("optgroup", { label },
      ...this.metrics.filter((one) => one.explained === explained).map((one) => make("option", {
        value: one.name, selected: one.name === this.name, disabled: !usable(one),
      }, usable(one) ? one.name : `${one.name} (needs --idf)`))));
    const select = make("select", { id: `${this.id}-name`, onchange: () => {
      this.choose(select.value);
      document.getElementById(select.id).focus();
      this.changed();
    } }, ...groups);
    return make("div", {}, make("label", { for: select.id }, this.title), select);
  }

  source() {
    // by default the language of the references may choose another one; what is named is taken
    const usual = this.chosen.lang ? this.chosen.encoder : this.metric.encoder;
    const chosen = this.encoder || usual;
    const options = [["", `default (${usual})`], ...this.encoders.map((one) => [one.name, one.name])];
    const encoder = this.list("encoder", "Encoder", options, this.encoder ?? "", (name) => {
      this.encoder = name || null;
      this.layer = null;
      this.adapter = null;
      this.draw();
      document.getElementById(`${this.id}-encoder`).focus();
    });
    const depth = this.encoders.find((one) => one.name === chosen).depth;
    const every = Array.from({ length: depth + 1 }, (_, k) => [String(k), k === 0 ? "0 (embeddings)" : String(k)]);
    const several = depth > 1 ? [["all", "all"], [`-${Math.min(5, depth)}:`, `the last ${Math.min(5, depth)}`]] : [];
    const layer = this.list("layer", "Layer", [["", "default"], ...every, ...several], String(this.layer ?? ""), (value) => {
      this.layer = value === "" ? null : /^\d+$/.test(value) ? Number(value) : value;
    });
    return make("div", { class: "pair" }, encoder, layer);
  }

  // An adapter has one encoder, which is chosen with it.
  trained() {
    const options = [["", "none"], ...this.metric.adapters.map((one) => [one.name, one.name])];
    return this.list("adapter", "Adapter", options, this.adapter ?? "", (name) => {
      const known = this.metric.adapters.find((one) => one.name === name);
      this.adapter = known ? name : null;
      if (known) this.encoder = known.encoder;
      this.settings = {};
      this.layer = null;
      this.draw();
      document.getElementById(`${this.id}-adapter`).focus();
    });
  }

  list(name, label, options, chosen, set) {
    const id = `${this.id}-${name}`;
    const select = make("select", { id, onchange: () => { set(select.value); this.changed(); } },
      ...options.map(([value, text]) => make("option", { value, selected: value === chosen }, text)));
    return make("div", {}, make("label", { for: id }, label), select);
  }

  folded(parameters) {
    const open = parameters.some((one) => one.name in this.settings);
    return make("details", { open }, make("summary", {}, "More settings"), ...parameters.map((one) => this.control(one)));
  }

  control(one) {
    if (one.kind === "choice") return this.choice(one);
    if (one.kind === "switch") return this.toggle(one);
    return this.slider(one);
  }

  choice(one) {
    const options = one.choices.map((name) => [name, name]);
    if (one.optional) options.unshift(["", "none"]);
    const now = one.name in this.settings ? this.settings[one.name] : one.default;
    return this.list(one.name, label(one), options, now ?? "", (value) => this.set(one, value === "" ? null : value));
  }

  toggle(one) {
    const box = make("input", { type: "checkbox", id: `${this.id}-${one.name}`, checked: this.settings[one.name] ?? one.default,
      onchange: () => { this.set(one, box.checked); this.changed(); } });
    return make("label", { class: "switch" }, box, label(one));
  }

  slider(one) {
    const id = `${this.id}-${one.name}`;
    const values = positions(one);
    const now = one.name in this.settings ? this.settings[one.name] : one.default;
    const output = make("output", { for: id });
    const input = make("input", { type: "range", id, min: 0, max: values.length - 1, step: 1, value: nearest(values, now) });
    const show = (value) => {
      output.textContent = valueText(value);
      output.className = one.name in this.settings ? "changed" : "";
      input.setAttribute("aria-valuetext", valueText(value));
    };
    input.addEventListener("input", () => {
      this.set(one, values[Number(input.value)]);
      show(one.name in this.settings ? this.settings[one.name] : one.default);
      this.changed();
    });
    show(now);
    return make("div", { class: "slider" }, make("label", { for: id }, label(one)), output, input);
  }

  set(one, value) {
    if (value === one.default) delete this.settings[one.name];
    else this.settings[one.name] = value;
  }

  reset(notify = true) {
    this.settings = {};
    this.layer = null;
    this.encoder = null;
    this.adapter = null;
    this.draw();
    if (notify) this.changed();
  }
}

// The values that a slider runs through: off and 0 first, infinity last, where the parameter has them.
function positions(one) {
  const whole = one.kind === "whole";
  const count = whole ? one.most - one.least : STEPS;
  const inner = Array.from({ length: count + 1 }, (_, k) => {
    const t = k / count;
    if (whole) return one.least + k;
    return tidy(one.scale === "log" ? one.least * (one.most / one.least) ** t : one.least + t * (one.most - one.least));
  });
  const first = [...(one.optional && one.default === null ? [null] : []), ...(one.zero ? [0] : [])];
  const values = [...first, ...inner, ...(one.infinite ? ["inf"] : [])];
  if (one.default !== null) values[nearest(values, one.default)] = one.default;
  return values;
}

function nearest(values, target) {
  if (target === null || target === "inf") return Math.max(values.indexOf(target), 0);
  let best = 0;
  values.forEach((value, k) => {
    if (typeof value === "number" && !(Math.abs(values[best] - target) <= Math.abs(value - target))) best = k;
  });
  return best;
}

function tidy(value) {
  return Number(value.toPrecision(3));
}

function valueText(value) {
  if (value === null) return "off";
  return value === "inf" ? "∞ (hard)" : String(value);
}

// Without texts to fit IDF on, a metric works if its IDF weights can be switched off.
function usable(metric) {
  return !metric.needs_idf_texts || metric.parameters.some((one) => one.name === "idf" && one.optional);
}

function label(one) {
  return LABELS[one.name] || one.name.replaceAll("_", " ");
}
