// Aggregates of a statistics deployment, latest first, and why some have no result.
import { ask, clock, failure, make, table } from "/common.js";

const EVERY = 3000;
const SHOWN = 200;
const COLUMNS = ["place", "from", "samples", "mean", "deviation", "slots", "dummies", "state"];
const KINDS = [undefined, undefined, "number", "number", "number", "number", "number"];
const main = document.getElementById("main");
const sums = make("p", { role: "status" });
const results = make("div", { id: "aggregates" });
const failed = make("div", { id: "failed" });
const trouble = make("div", { id: "trouble" });

const word = (value) => value === null || value === undefined ? "–" : String(Number(value.toPrecision(8)));

function show(rows) {
  const ended = rows.filter((row) => row.state !== "open");
  const without = ended.filter((row) => row.state !== "result");
  sums.textContent = `${rows.length - ended.length} open, ${ended.length - without.length} with a result, ${without.length} without.`;
  const cells = rows.toReversed().slice(0, SHOWN).map((row) => [
    row.aggregate, clock(row.interval_start), word(row.count), word(row.mean), word(row.deviation),
    String(row.slots), word(row.dummies), row.state]);
  results.replaceChildren(table("Aggregates, latest first", COLUMNS, cells, KINDS));
  const reasons = new Map();
  for (const row of without) reasons.set(row.state, (reasons.get(row.state) ?? 0) + 1);
  failed.replaceChildren(...(reasons.size
    ? [table("Why some have no result", ["reason", "aggregates"], [...reasons].map(([why, many]) => [why, String(many)]))]
    : []));
}

async function look() {
  try {
    show(await ask("/api/aggregates"));
    trouble.replaceChildren();
  } catch (error) {
    trouble.replaceChildren(failure(error));
  }
  setTimeout(look, EVERY);
}

main.append(make("h2", {}, "Aggregates"), trouble, sums, failed, results);
ask("/api/identity").then((who) => {
  const unit = who.place ? `${who.place}, in the unit of its plan` : "means and deviations in steps";
  document.getElementById("who").textContent = `Statistics of ${who.base}: ${unit}`;
}).catch((error) => trouble.replaceChildren(failure(error)));
look();
