// Privacy budgets as gauges: how much of an owner's limit noisy results have used.
import { keep, make, show } from "/dom.js";
import { per } from "/options.js";
import { day, number, sentence } from "/words.js";

/** A place for the gauges of one device; empty without budgets. */
export function budgets() {
  const [gauges, events] = [make("div"), make("p", { class: "small", hidden: true }, "Where a limit is for each event, it bounds what results say about a single reading of yours. About all of them together it says nothing.")];
  const element = make("div", { hidden: true }, make("h3", {}, "Your privacy budget"), gauges,
    make("details", {}, make("summary", {}, "What is this?"),
      make("p", { class: "small" }, "Each noisy result tells a little about each person in it. ε measures how much at most: with ε = 1 in total, no conclusion about you is more than 2.7 times as likely as if you had not taken part. The budget is yours, as a person: what several of your devices release at the same controller counts together. Once it is used up, no noisy result includes you. Where a gauge has a δ, results may with that probability tell more."), events));
  return {
    element,
    update(bars, view) {
      element.hidden = bars.length === 0;
      events.hidden = !bars.some((bar) => bar.unit === "event");
      keep(gauges, bars, (bar) => `${bar.attribute} ${bar.total} ${JSON.stringify(bar.unit)}`, (bar) => gauge(bar, view));
    },
  };
}

function gauge(bar, view) {
  const [title, amount, year, fill] = ["p", "p", "p", "div"].map((tag) => make(tag));
  amount.className = "number";
  year.className = "quiet small";
  const meter = make("div", { class: "track", role: "meter", "aria-valuemin": 0, "aria-valuemax": 100 }, fill);
  const element = make("div", { class: "gauge" }, make("div", { class: "head" }, title, amount), meter, year);
  element.update = (fresh) => {
    const label = view.attributes.find((attribute) => attribute.name === fresh.attribute)?.label ?? fresh.attribute;
    const percent = 100 * fresh.share;
    const used = fresh.spent === null ? "more than any ε: this budget has no δ" : `ε = ${number(fresh.spent)} of ${number(fresh.total)}`;
    show(title, make("strong", {}, sentence(label)));
    show(amount, `${used} (${number(Math.round(percent))} %)`);
    meter.className = `track ${percent >= 100 ? "full" : percent >= 80 ? "near" : ""}`;
    fill.style.width = `${percent}%`;
    fill.hidden = percent === 0;
    meter.setAttribute("aria-valuenow", String(Math.round(percent)));
    meter.setAttribute("aria-label", `Used of the budget for ${label}`);
    meter.setAttribute("aria-valuetext", used);
    show(year, inWords(fresh));
  };
  return element;
}

/** The limit's own period, and what the last year used of it. */
function inWords(bar) {
  const own = bar.period ? `You get this budget again ${per(bar)}, next on ${day(bar.period[1])}.` : "This budget is for all time.";
  const delta = bar.delta ? ` δ = ${bar.delta}.` : "";
  const year = bar.year === null ? "" : ` The last 365 days used ε = ${number(bar.year)}.`;
  return own + delta + year;
}
