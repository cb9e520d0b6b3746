// An owner's page: who asked, when, what came out, and a button to stop it.
import { ask, clock, failure, make, table } from "/common.js";

const KINDS = { asked: "someone asks", released: "released", ended: "ended", changed: "you changed it", revoked: "you revoked" };
const EVERY = 5000;
const main = document.getElementById("main");

function section(stream) {
  const lines = make("div");
  const said = make("p", { role: "status" });
  const button = make("button", { class: "danger", type: "button", onclick: () => revoke(stream, said, button) }, "Revoke");
  const place = make("section", { "aria-label": `Stream ${stream}`, "data-stream": stream },
    make("h2", {}, "Stream ", make("code", {}, stream)),
    make("div", { class: "row" }, button,
      make("span", { class: "quiet" }, "From then on nothing about this stream is released, for good.")),
    said, lines);
  refresh(stream, lines, said, button);
  return place;
}

async function revoke(stream, said, button) {
  if (!confirm("Revoke for good? No window will hold this stream's data any more.")) return;
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
      ? table(`Who learnt what: windows released ${released}, the latest lines first`, ["when", "what", "window", "in words"], rows)
      : make("p", { class: "quiet" }, "Nobody has asked for it yet."));
  } catch (error) {
    said.replaceChildren(failure(error));
  }
  setTimeout(() => refresh(stream, place, said, button), EVERY);
}

async function begin() {
  const who = await ask("/api/who");
  document.getElementById("who").textContent = `${who.name} at ${who.base}`;
  document.title = "Your streams – Alpheus";
  main.append(...(who.streams.length
    ? who.streams.map(section)
    : [make("p", {}, "No stream of yours is guarded there yet: ", make("code", {}, "alpheus owner add"), " makes one.")]));
}

begin().catch((error) => main.replaceChildren(failure(error)));
