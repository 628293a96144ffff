// The state of the page as the fragment of its address: it is not sent to the service, and a link reproduces the view.

const SHORT = 1500;
const LONGEST = 30000;

// The fragment for a view, packed where it is long; null where it is too long for a link.
export async function encodeView({ hyp, refs, metric, otherHyp, otherMetric }) {
  if (!hyp && !refs.some(Boolean)) return "";
  const fields = new URLSearchParams();
  fields.append("hyp", hyp);
  refs.forEach((ref) => fields.append("ref", ref));
  fields.append("metric", compact(metric));
  if (otherHyp !== undefined) fields.append("hyp2", otherHyp);
  if (otherMetric !== undefined) fields.append("metric2", compact(otherMetric));
  const plain = `#${fields}`;
  if (plain.length <= SHORT || !window.CompressionStream) return plain.length <= LONGEST ? plain : null;
  const packed = `#z=${toText(await pass(new CompressionStream("deflate-raw"), new TextEncoder().encode(fields)))}`;
  return packed.length <= LONGEST ? packed : null;
}

// The view of a fragment; null where there is none. A damaged one is an error.
export async function decodeView(fragment) {
  let fields = new URLSearchParams(fragment.replace(/^#/, ""));
  try {
    if (fields.has("z")) fields = new URLSearchParams(new TextDecoder().decode(await pass(new DecompressionStream("deflate-raw"), toBytes(fields.get("z")))));
    if (!fields.has("hyp")) return null;
    const view = { hyp: fields.get("hyp"), refs: fields.getAll("ref"), metric: expand(fields.get("metric") || "freight") };
    if (fields.has("hyp2")) view.otherHyp = fields.get("hyp2");
    if (fields.has("metric2")) view.otherMetric = expand(fields.get("metric2"));
    return view;
  } catch {
    throw new Error("This link is not whole; ask for it again.");
  }
}

// A metric with its defaults is its name.
function compact(request) {
  const { name, settings, ...rest } = request;
  const set = Object.keys(settings).length ? { settings } : {};
  return Object.keys({ ...rest, ...set }).length ? JSON.stringify({ name, ...rest, ...set }) : name;
}

function expand(text) {
  return { settings: {}, ...(text.startsWith("{") ? JSON.parse(text) : { name: text }) };
}

async function pass(stream, bytes) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
}

function toText(bytes) {
  const letters = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function toBytes(text) {
  return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
}
