// Requests to the local alpheus. The address has a key, which opens this tab and no other.

const GIVEN = /^#([0-9a-f]{32})$/.exec(location.hash)?.[1];
// A reload finds the session of this tab; nobody else does.
let key = sessionStorage.getItem("key") ?? "";
if (GIVEN) {
  history.replaceState(null, "", location.pathname);
  const answer = await fetch("/api/session", { method: "POST", headers: { authorization: `Bearer ${GIVEN}` } }).catch(() => null);
  if (answer?.ok) {
    key = (await answer.json()).session;
    sessionStorage.setItem("key", key);
  }
}

/** Makes a request to the local alpheus; throws its refusal as a readable error. */
export async function ask(path, body) {
  const headers = { authorization: `Bearer ${key}` };
  const request = body === undefined
    ? { headers }
    : { method: "POST", headers: { ...headers, "content-type": "application/json" }, body: JSON.stringify(body) };
  let answer;
  try {
    answer = await fetch(path, request);
  } catch {
    const error = new Error("This page has lost its program.");
    error.help = "`alpheus console` has stopped. Start it again, and open the address that it prints.";
    throw error;
  }
  const text = await answer.text();
  if (answer.ok) return JSON.parse(text);
  let problem = {};
  try { problem = JSON.parse(text); } catch { /* reported below */ }
  const detail = problem.detail ?? `The answer has status ${answer.status}.`;
  const query = problem.query ? `\nThe nearest query that would be allowed:\n${problem.query}` : "";
  const error = new Error(detail + query);
  error.rule = problem.rule;
  error.help = problem.help;
  // The same request is refused again, unless it only came too early or too often.
  error.isFinal = answer.status >= 400 && answer.status < 500 && ![408, 425, 429].includes(answer.status);
  throw error;
}

/** Does something now and then, while anybody looks at it: `where` is an element of the page. */
export async function every(milliseconds, where, act) {
  do {
    if (!document.hidden) await act();
    await new Promise((wake) => setTimeout(wake, milliseconds));
  } while (where.isConnected);
}

/** Lets the reader keep a text as a file. */
export function download(name, kind, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: kind }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
