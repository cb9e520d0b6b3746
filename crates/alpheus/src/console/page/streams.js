// An owner's page: who asked, when, what was released, and a button to revoke.
import { ask, clock, failure, make, table } from "/common.js";

const KINDS = { asked: "query", released: "released", ended: "ended", changed: "you changed it", revoked: "you revoked", erased: "you erased", copied: "device has a copy" };
const EVERY = 5000;
const main = document.getElementById("main");

function section(stream) {
  const lines = make("div");
  const budgets = make("div", { "data-budgets": stream });
  const said = make("p", { role: "status" });
  const button = make("button", { class: "danger", type: "button", onclick: () => revoke(stream, said, button) }, "Revoke");
  const place = make("section", { "aria-label": `Stream ${stream}`, "data-stream": stream },
    make("h2", {}, "Stream ", make("code", {}, stream)),
    make("div", { class: "row" }, button,
      make("span", { class: "quiet" }, "Permanently ends all releases about this stream.")),
    said, budgets, lines);
  refresh(stream, lines, said, button);
  fill(stream, budgets, said);
  return place;
}

async function revoke(stream, said, button) {
  if (!confirm("Revoke permanently? No future window will include this stream's data.")) return;
  try {
    await ask(`/api/streams/${stream}/revoke`, {});
    said.textContent = "Revoked.";
    button.disabled = true;
  } catch (error) {
    said.replaceChildren(failure(error));
  }
}

async function refresh(stream, place, said, button) {
  try {
    const lines = await ask(`/api/streams/${stream}`);
    if (lines.some((line) => line.kind === "revoked")) button.disabled = true;
    const released = lines.filter((line) => line.kind === "released").length;
    const rows = lines.toReversed().slice(0, 200).map((line) => [
      clock(line.at), KINDS[line.kind],
      line.window ? `${clock(line.window[0])} – ${clock(line.window[1])}` : "–", line.text]);
    place.replaceChildren(rows.length
      ? table(`Identity learnt what: windows released ${released}, the latest lines first`, ["time", "event", "window", "description"], rows)
      : make("p", { class: "quiet" }, "Nobody has asked for this stream's data yet."));
  } catch (error) {
    said.replaceChildren(failure(error));
  }
  setTimeout(() => refresh(stream, place, said, button), EVERY);
}

/** Privacy budgets spent on noise, a bar for each; empty without budgets. */
async function fill(stream, place, said) {
  try {
    const bars = await ask(`/api/streams/${stream}/budgets`);
    const rows = bars.map(({ words, share }) => [...words.slice(0, 4),
      make("span", { class: "row" }, make("meter", { min: 0, max: 1, high: 0.9, value: share, "aria-label": `used for ${words[0]}: ${words[4]}` }), words[4])]);
    place.replaceChildren(...(rows.length
      ? [table("Your privacy budgets spent on noise", ["attribute", "budget", "counts per", "used", "share"], rows)]
      : []));
  } catch (error) {
    said.replaceChildren(failure(error));
  }
  setTimeout(() => fill(stream, place, said), EVERY);
}

async function begin() {
  const who = await ask("/api/identity");
  document.getElementById("who").textContent = `${who.name} at ${who.base}`;
  document.title = "Your streams – Alpheus";
  main.append(...(who.streams.length
    ? who.streams.map(section)
    : [make("p", {}, "You have no streams at this controller yet. Create one with ", make("code", {}, "alpheus owner add"), ".")]));
}

begin().catch((error) => main.replaceChildren(failure(error)));
