// Elements: making them, and changing only what has changed, so that focus stays where it is.

const SVG = new Set(["svg", "g", "rect", "polyline", "polygon", "line", "text", "circle", "path", "title"]);

/** An element: `make("p", { class: "quiet" }, "text", child)`. Text stays text. */
export function make(name, attributes = {}, ...children) {
  const element = SVG.has(name)
    ? document.createElementNS("http://www.w3.org/2000/svg", name)
    : document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) {
    if (attribute.startsWith("on")) element.addEventListener(attribute.slice(2), value);
    else if (value !== undefined && value !== null && value !== false) element.setAttribute(attribute, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== undefined && child !== null && child !== false));
  return element;
}

/** Shows these in an element, unless it shows the same text already. */
export function show(element, ...children) {
  const fresh = make("div", {}, ...children);
  if (fresh.textContent !== element.textContent || fresh.childElementCount !== element.childElementCount) {
    element.replaceChildren(...fresh.childNodes);
  }
}

/** One child for each item, by key: known children stay, and learn of their item by `update`. */
export function keep(parent, items, keyOf, create) {
  const known = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  let at = parent.firstElementChild;
  for (const item of items) {
    const key = String(keyOf(item));
    let child = known.get(key);
    if (!child) {
      child = create(item);
      child.dataset.key = key;
    }
    known.delete(key);
    child.update?.(item);
    if (child === at) at = at.nextElementSibling;
    else parent.insertBefore(child, at);
  }
  known.forEach((child) => child.remove());
}

/** A table with a caption and headed columns; a cell is text or a node. Wide ones scroll, also by keyboard. */
export function table(caption, columns, rows, numbers = [], wide = []) {
  const kind = (at) => (numbers.includes(at) ? "number" : wide.includes(at) ? "wide" : undefined);
  return make("div", { class: "table", tabindex: "0", role: "region", "aria-label": caption },
    make("table", {},
      make("caption", {}, caption),
      make("thead", {}, make("tr", {}, columns.map((name, at) => make("th", { scope: "col", class: kind(at) }, name)))),
      make("tbody", {}, rows.map((row) => make("tr", {}, row.map((cell, at) => make("td", { class: kind(at) }, cell)))))));
}

/** Facts as pairs of name and value. */
export function facts(pairs) {
  return make("dl", { class: "facts" }, pairs.filter(Boolean).map(([name, value]) =>
    make("div", {}, make("dt", {}, name), make("dd", {}, value))));
}

/** A button. */
export const button = (text, onclick, more = {}) => make("button", { type: "button", onclick, ...more }, text);

/** An error, which screen readers announce at once. */
export function failure(error) {
  return make("div", { class: "wrong", role: "alert" },
    make("pre", {}, error.message), error.help ? make("pre", { class: "help" }, error.help) : null);
}

/** Shows what goes wrong in `place`, and nothing once it goes right. */
export async function tried(place, act) {
  try {
    const done = await act();
    show(place);
    return done;
  } catch (error) {
    show(place, failure(error));
    return undefined;
  }
}

/** An empty place: what is missing, and what to do. */
export const empty = (title, ...text) => make("div", { class: "empty" }, make("p", { class: "title" }, title), text.map((each) => make("p", {}, each)));
