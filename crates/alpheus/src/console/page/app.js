// The web app: who is looking decides which pages there are.
import { ask } from "/api.js";
import { failure, make } from "/dom.js";

const main = document.getElementById("main");
const nav = document.getElementById("nav");

/** Pages by role; the first is where one lands. */
const PAGES = {
  owner: [["", "Your data", "/owner.js", "begin"]],
  consumer: [["results", "Results", "/results.js", "begin"], ["ask", "Ask", "/asking.js", "begin"], ["service", "Service", "/service.js", "begin"]],
  operator: [["service", "Service", "/service.js", "begin"]],
  statistics: [["", "Statistics", "/statistics.js", "begin"]],
};

async function open(pages, identity, moved) {
  const wanted = location.hash.replace(/^#\//, "");
  const [path, title, file, name] = pages.find(([own]) => own === wanted) ?? pages[0];
  nav.querySelectorAll("a").forEach((link) => {
    if (link.hash === `#/${path}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  });
  document.title = `${title} – Alpheus`;
  // What the last page still waits for ends with it.
  const fresh = make("div");
  main.replaceChildren(fresh);
  if (moved) main.focus();
  try {
    const module = await import(file);
    await module[name](fresh, identity);
  } catch (error) {
    fresh.prepend(failure(error));
  }
}

async function start() {
  const identity = await ask("/api/identity");
  document.getElementById("who").textContent = `${identity.name} at ${identity.base}`;
  const pages = PAGES[identity.role];
  if (pages.length > 1) {
    nav.hidden = false;
    nav.append(...pages.map(([path, title]) => make("a", { href: `#/${path}` }, title)));
  }
  addEventListener("hashchange", () => { if (/^#\//.test(location.hash)) open(pages, identity, true); });
  await open(pages, identity, false);
}

start().catch((error) => main.replaceChildren(failure(error)));
