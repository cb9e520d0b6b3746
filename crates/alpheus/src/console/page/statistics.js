// Accountable statistics: aggregates with their charts, and why some have no result. All of it is public.
import { ask, download, every } from "/api.js";
import { button, empty, facts, make, show, table, tried } from "/dom.js";
import { place, timeChart } from "/chart.js";
import { asCsv } from "/results.js";
import { count, number, plural, range, sentence, zone } from "/words.js";

const SHOWN = 200;
const DRAWN = 60;

export async function begin(main, identity) {
  const unit = identity.place ? "the unit of the plan" : "steps";
  const parts = Object.fromEntries(["trouble", "sums", "why", "rows"].map((name) => [name, make("div")]));
  parts.sums.setAttribute("role", "status");
  let rows = [];
  const figure = make("figure", {}, make("figcaption", {}, "Mean", make("span", { class: "quiet" }, `, in ${unit}`)));
  const chart = place((width) => draw(rows, unit, width));
  figure.append(chart);
  const save = (kind) => (kind === "csv" ? download("statistics.csv", "text/csv", asCsv(rows)) : download("statistics.json", "application/json", JSON.stringify(rows, null, 1)));
  main.append(
    make("h1", {}, "Statistics"),
    make("p", { class: "lead" }, identity.place ? `Of ${identity.place}, in the unit of its plan. Times are yours (${zone()}).` : `Means and deviations are in steps. Times are yours (${zone()}).`),
    parts.trouble, parts.sums, figure, parts.why,
    make("div", { class: "card", "data-integrity": "signed" }, make("h2", {}, "What is known about these numbers"), facts([
      ["Checked", `Each result, and each reason for none, was signed by ${identity.threshold} of ${plural(identity.smoothers, "smoother")}; this page's program has checked the signatures on your machine. A result that too few have signed is not shown.`],
      ["Proven", "Each sample was in range, and within its account's quota. The smoothers checked that before they signed."],
      ["Not proven", "That samples are true. That an aggregate is open, and a count that no smoother sees, are the aggregator's own statements. Enough smoothers together could sign anything."],
    ])),
    make("div", { class: "card" }, make("div", { class: "head" }, make("h2", {}, "Aggregates"), make("span", { class: "row" },
      button("Save as CSV", () => save("csv"), { class: "plain" }), button("Save as JSON", () => save("json"), { class: "plain" }))), parts.rows));
  await every(3000, main, () => tried(parts.trouble, async () => {
    rows = await ask("/api/aggregates");
    figure.hidden = !rows.some((row) => row.mean !== null);
    fill(parts, rows, unit);
    chart.draw();
  }));
}

function fill(parts, rows, unit) {
  const ended = rows.filter((row) => row.state !== "open");
  const without = ended.filter((row) => row.state !== "result");
  show(parts.sums, make("p", {}, `${count(rows.length - ended.length)} open, ${count(ended.length - without.length)} with a result, ${count(without.length)} without.`));
  const cells = rows.toReversed().slice(0, SHOWN).map((row) => [
    range(row.interval_start, row.interval_end), row.aggregate, number(row.count), number(row.mean), number(row.deviation), count(row.slots), number(row.dummies), row.state]);
  show(parts.rows, rows.length
    ? table(`Aggregates, latest first; means and deviations in ${unit}`, ["interval", "place", "samples", "mean", "deviation", "slots", "dummies", "state"], cells, [2, 3, 4, 5, 6], [7])
    : empty("There is no aggregate yet.", "The first appears when the aggregator opens an interval."));
  const reasons = new Map();
  for (const row of without) reasons.set(row.state, (reasons.get(row.state) ?? 0) + 1);
  show(parts.why, reasons.size
    ? make("div", { class: "card", id: "failed" }, make("h2", {}, "Why some have no result"), table("Why some have no result", ["reason", "aggregates"], [...reasons].map(([why, many]) => [sentence(why), count(many)]), [1], [0]))
    : null);
}

/** Means over time. Their spread over samples is no error, so there are no error bars. */
function draw(rows, unit, width) {
  const places = [...new Set(rows.map((row) => row.aggregate))];
  const own = rows.filter((row) => row.aggregate === places[0] && row.state !== "open").slice(-DRAWN);
  const points = own.map((row) => ({ time: row.interval_start, value: row.mean, why: row.state }));
  if (!points.length) return empty("No result yet.");
  const known = points.filter((point) => point.value !== null).map((point) => point.value);
  return timeChart({ label: `Mean of ${places[0]} in ${unit}: last ${number(known.at(-1))}`, points, width });
}
