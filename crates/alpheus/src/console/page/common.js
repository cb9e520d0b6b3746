// Shared by all pages: the key, requests, elements.

// The key comes from the address and is then removed from it; a reload finds it in the session.
const given = location.hash.slice(1);
if (given && given !== "main") {
  sessionStorage.setItem("key", given);
  history.replaceState(null, "", location.pathname);
}
const key = sessionStorage.getItem("key") ?? "";

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
    throw new Error("alpheus console has stopped; start it again and open the address that it prints");
  }
  const text = await answer.text();
  if (answer.ok) return JSON.parse(text);
  let problem = {};
  try { problem = JSON.parse(text); } catch { /* reported below */ }
  const error = new Error(problem.detail ?? `the answer has status ${answer.status}`);
  error.rule = problem.rule;
  error.help = problem.help;
  throw error;
}

/** An element: `make("p", { class: "quiet" }, "text", child)`. Text stays text. */
export function make(name, attributes = {}, ...children) {
  const svg = ["svg", "rect", "polyline", "line", "text", "title", "circle"].includes(name) && attributes.svg !== false;
  const element = svg && name !== "title"
    ? document.createElementNS("http://www.w3.org/2000/svg", name)
    : document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) {
    if (attribute.startsWith("on")) element.addEventListener(attribute.slice(2), value);
    else if (value !== undefined && value !== false) element.setAttribute(attribute, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== undefined && child !== null));
  return element;
}

/** A table with a caption and headed columns; a cell is text or a node. */
export function table(caption, columns, rows, kinds = []) {
  const cell = (value, at) => make("td", { class: kinds[at] }, value);
  return make("div", { class: "table" },
    make("table", {},
      make("caption", {}, caption),
      make("thead", {}, make("tr", {}, ...columns.map((name) => make("th", { scope: "col" }, name)))),
      make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map(cell))))));
}

/** A time of day, or a day and time where it is not today. */
export function clock(milliseconds) {
  const time = new Date(milliseconds);
  const today = new Date().toDateString() === time.toDateString();
  return today ? time.toLocaleTimeString() : time.toLocaleString();
}

/** An error, which screen readers announce at once. */
export function failure(error) {
  const help = error.help ? `\n${error.help}` : "";
  return make("pre", { class: "wrong", role: "alert" }, error.message + help);
}
