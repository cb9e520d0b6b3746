// What an owner may allow, in words.
import { duration, each, list, number, people } from "/words.js";

const KINDS = {
  public: () => "Everything: each single value",
  "stream-aggregate": () => "Totals and averages of this device alone",
  aggregate: () => "Only as part of a crowd",
  "dp-aggregate": () => "Only as part of a crowd, and blurred with noise",
};

/** What an option allows, without numbers. */
export const allows = (option) => (KINDS[option.kind] ?? (() => option.name))();

const crowd = (option) => ["aggregate", "dp-aggregate"].includes(option.kind);

/** What small crowds do not hide. */
const SMALL = { 1: ", which may be you alone", 2: ", of whom the other one can work out what is yours" };

/** The numbers of a chosen option. */
export function withLimits(option) {
  const parts = [];
  if (crowd(option)) parts.push(`of at least ${people(option.clients)}${SMALL[option.clients] ?? ""}`);
  parts.push(`over ${duration(option.window / 1000)} or longer`);
  if (option.setsPerDay) parts.push(`with at most ${option.setsPerDay} different crowds a day`);
  if (option.coarse) parts.push("in coarse steps");
  if (option.to.length) parts.push(`for ${list(option.to)} only`);
  return `, ${parts.join(", ")}.${limit(option)}`;
}

/** What a budget allows in all, as a sentence; nothing without one. */
export const limit = (option) => (option.budget ? ` The limit is ε = ${number(option.budget.total)} ${per(option.budget)}.` : "");

/** What a budget counts. */
export function per(budget) {
  if (budget.unit === "event") return "in all, for each event";
  return budget.unit === "window" ? "in all" : `in each ${each(budget.unit / 1000)}`;
}

/** What it means to allow an option, for those who have not read anything about it. */
export function meaning(option) {
  const who = option.to.length ? list(option.to, "or") : "anybody who asks the service";
  switch (option.kind) {
    case "public": return `${who} can learn each of your values.`;
    case "stream-aggregate": return `${who} can learn about you alone: sums, averages and the like over time. A window with a single reading shows that reading.`;
    case "aggregate": return `${who} can learn sums, averages and the like over so many people. If nearly the same people take part again and again, what changes can still tell about one of them.`;
    case "dp-aggregate": return `${who} can learn sums, averages and the like over so many people, changed at random. The smaller the limit (ε), the less they depend on ${option.budget?.unit === "event" ? "one reading of yours" : "you"}. Each result uses up some of your limit; then no more results include you.`;
    default: return "";
  }
}

/** What may be chosen within an option, as labels and values. */
export function sizes(offer) {
  const names = new Map(offer.named.map(([name, size]) => [size, name]));
  const size = (number) => (names.has(number) ? `${names.get(number)}: at least ${people(number)}` : `at least ${people(number)}`);
  return {
    clients: crowd(offer) ? offer.clients.map((number) => [number, size(number)]) : [],
    windows: offer.windows.map((window) => [window, `${duration(window / 1000)} or longer`]),
  };
}

