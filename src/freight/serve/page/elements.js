// Elements made in one expression; strings become text, never markup.

export function make(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

export function number(value) {
  if (value === null || value === undefined) return "–";
  return Math.abs(value) >= 10 ? value.toFixed(2) : value.toFixed(4);
}

export function flagText({ kind, side, share }) {
  const percent = share === null ? "" : ` ${Math.round(100 * share)}%`;
  return `${kind}${percent}${side ? ` (${side})` : ""}`;
}
