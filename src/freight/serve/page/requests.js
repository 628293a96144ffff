// Requests to the service: the token, errors of one line, and retries while it is busy.

let token = sessionStorage.getItem("token") || "";

export function setToken(value) {
  token = value.trim();
  sessionStorage.setItem("token", token);
}

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export async function ask(path, options = {}, retries = 3) {
  const headers = { ...options.headers };
  if (token) headers.Authorization = `Bearer ${token}`;
  let answer;
  try {
    answer = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "The service does not answer. Is it running?");
  }
  if (answer.ok) return answer;
  if (answer.status === 429 && retries > 0) {
    await pause(1000 * Number(answer.headers.get("Retry-After") || 1), options.signal);
    return ask(path, options, retries - 1);
  }
  throw new Refused(answer.status, await errorOf(answer));
}

export function send(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  return ask(path, { method: "POST", headers, body: JSON.stringify(body), signal });
}

async function errorOf(answer) {
  try {
    return (await answer.json()).error;
  } catch {
    return `The service answered ${answer.status}.`;
  }
}

function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(new DOMException("", "AbortError"));
    });
  });
}
