// Who learned what about an owner, as a timeline in sentences.
import { button, empty, keep, make, show, table } from "/dom.js";
import { between, clock, count, dates, day, each as interval, list, moment, people, plural, range, sentence } from "/words.js";

const MORE = 20;

/** A place for the timeline of one device. */
export function timeline() {
  const [days, records] = [make("div"), make("div")];
  const [nothing, more] = [make("div"), make("div", { class: "row" })];
  const record = make("details", { class: "record" }, make("summary", {}, "The record, line by line, as your controller keeps it"), records);
  let [shown, last] = [MORE, []];
  const element = make("div", {}, nothing, days, more, record);
  const draw = () => {
    const entries = merged(last);
    show(nothing, entries.length ? null : empty("Nobody has asked for anything yet.", "When somebody does, you will see here what they asked, and what they got."));
    keep(days, byDay(entries.slice(0, shown)), ({ name }) => name, ({ name }) => dayOf(name));
    more.hidden = entries.length <= shown;
    record.hidden = !last.length;
    if (record.open) lines(records, last);
  };
  more.append(button("Show earlier", () => { shown += MORE; draw(); }, { class: "plain" }));
  record.addEventListener("toggle", draw);
  return { element, update(log) { last = log; draw(); } };
}

function lines(place, log) {
  const rows = log.slice(-200).reverse().map((line) => [moment(line.at), line.window ? range(...line.window) : "–", line.text]);
  const title = log.length > 200 ? `The last 200 of ${count(log.length)} lines` : plural(log.length, "line");
  show(place, table(title, ["time", "window", "what happened"], rows));
}

/** Entries, latest first. Windows of one query on one day are one entry, and say how they ended. */
export function merged(log) {
  const ends = new Map(log.filter((line) => line.kind === "ended").map((line) => [`${line.plan} ${line.window}`, line]));
  const [entries, open] = [[], new Map()];
  for (const line of log) {
    if (line.kind === "ended") continue;
    if (line.kind !== "released") {
      entries.push({ ...line, key: `${line.kind} ${line.at} ${line.text}` });
      continue;
    }
    const end = ends.get(`${line.plan} ${line.window}`);
    const failed = end?.failed ?? null;
    const group = `${line.plan} ${day(line.window[0])}`;
    const before = open.get(group);
    const window = { ...line, failed };
    if (before) {
      before.windows.push(window);
      before.at = line.at;
    } else {
      const fresh = { kind: "released", key: group, at: line.at, windows: [window] };
      open.set(group, fresh);
      entries.push(fresh);
    }
  }
  return entries.sort((a, b) => b.at - a.at);
}

function byDay(entries) {
  const days = [];
  for (const entry of entries) {
    const name = day(entry.at);
    if (days.at(-1)?.name === name) days.at(-1).entries.push(entry);
    else days.push({ name, entries: [entry] });
  }
  return days;
}

function dayOf(name) {
  const entries = make("ol", { class: "timeline" });
  const element = make("section", { "aria-label": name }, make("h4", { class: "day" }, name), entries);
  element.update = (fresh) => keep(entries, fresh.entries, (entry) => entry.key, (entry) => (entry.kind === "released" ? released() : single(entry)));
  return element;
}

const CLASSES = { asked: "", handed: "stop", copied: "stop", revoked: "stop", erased: "stop" };

function single(entry) {
  return make("li", { class: CLASSES[entry.kind] ?? "you" }, make("p", { class: "time" }, clock(entry.at, false)), make("p", {}, said(entry)));
}

/** What happened once, as a sentence. */
function said(entry) {
  const days = entry.days && dates(entry.days);
  switch (entry.kind) {
    case "asked": return [make("strong", {}, entry.who), ` asked for ${entry.what ? reveals(entry.what) : `“${entry.query}”`}${entry.every ? `, every ${interval(entry.every)}` : ""}. What you allow permits it${entry.sealed ? "; not even the service can read the results" : ""}${entry.verified ? "; your controller and the others sign the results" : ""}.`];
    case "changed": return "You changed what is shared. This choice is in force until you make another one.";
    case "granted": return days ? `You let ${entry.who} read ${entry.what} from ${days}.` : `You ended the access of ${entry.who}. It keeps the keys that it has.`;
    case "handed": return [make("strong", {}, entry.who), ` got the keys of ${days}. It can read ${entry.what} of ${entry.days[0] === entry.days[1] ? "that day" : "these days"}, for ever.`];
    case "revoked": return "You ended sharing for good.";
    case "erased": return "You had the key of your data destroyed. What was recorded can be read only where a copy of the key, or of a day's key, is left.";
    case "moved-away": return `You moved this device's data to another controller. Yours answers for no time after ${day(entry.border)}, ${clock(entry.border, false)}.`;
    case "moved-here": return `You moved this device's data here from another controller${entry.lost ? ", which is lost: your privacy budgets count as spent until then" : ""}. Yours answers for no time before ${day(entry.border)}, ${clock(entry.border, false)}.`;
    default: return `${sentence(entry.text)}.`;
  }
}

/** Windows of one query on one day. */
function released() {
  const [time, text, missed, windows] = ["p", "p", "p", "ol"].map((tag) => make(tag));
  time.className = "time";
  missed.className = "quiet";
  windows.className = "windows";
  const more = make("details", {}, make("summary"), windows);
  const element = make("li", {}, time, text, missed, more);
  let entry;
  const inside = () => {
    if (more.open) keep(windows, entry.windows.toReversed().slice(0, 200), (each) => each.window[0], (each) => windowOf(each));
  };
  more.addEventListener("toggle", inside);
  element.update = (fresh) => {
    entry = fresh;
    const opened = fresh.windows.filter((each) => !each.failed);
    const failed = fresh.windows.length - opened.length;
    element.className = opened.length ? "" : "nothing";
    show(time, clock(fresh.at, false));
    show(text, ...learned(opened.length ? opened : fresh.windows, opened.length > 0));
    missed.hidden = failed === 0 || opened.length === 0;
    show(missed, missed.hidden ? null : `For ${plural(failed, "other window")} nothing was learned.`);
    more.hidden = false;
    show(more.firstChild, fresh.windows.length === 1 ? "More about it" : `All ${plural(fresh.windows.length, "window")}`);
    inside();
  };
  return element;
}

/** `the average heart rate and the number of readings`. */
const reveals = (columns) => list(columns.map((what) => (/^(whether|how) /.test(what) ? what : `the ${what}`)));

/** `FitCo learned the average heart rate of 31 people, you among them, from 10:00 to 10:10.` */
export function learned(windows, opened) {
  const [first, last] = [windows[0], windows.at(-1)];
  const what = first.what ? reveals(first.what) : `a statistic of your ${list(first.attributes)}`;
  const sizes = windows.map((each) => each.population);
  const [low, high] = [Math.min(...sizes), Math.max(...sizes)];
  // Readings may lack what was learned, so that fewer people are in it.
  const most = first.upTo ? "up to " : "";
  const crowd = low === high || first.upTo ? `${most}${people(high)}` : `${count(low)} to ${people(high)}`;
  // The number is the service's; of so many, controllers know that they are there.
  const real = Math.min(...windows.map((each) => each.counted));
  const proven = real < high ? ` (the service counts; ${count(real)}${first.upTo ? " with any reading" : ""} are certain)` : "";
  const among = high === 1 ? "you alone" : `${crowd}, you among them${proven}`;
  const noise = first.costs.length ? ", blurred with noise" : "";
  const alone = first.sealed ? ", and not the service," : "";
  const times = windows.length === 1
    ? `${between(...first.window)}`
    : `${count(windows.length)} times ${between(first.window[0], last.window[1])}`;
  if (!opened) return [make("strong", {}, first.who), ` asked for ${what} ${times}, and learned nothing: ${first.failed}.`];
  return [make("strong", {}, first.who), `${alone} learned ${what} of ${among}${noise}, ${times}.`];
}

function windowOf(each) {
  const [text, cost] = [make("span"), make("span", { class: "quiet" })];
  const element = make("li", {}, text, cost);
  element.update = (fresh) => {
    const ended = fresh.failed ? `nothing was learned: ${fresh.failed}` : fresh.population === 1 ? "you alone" : `${fresh.upTo ? "up to " : ""}${people(fresh.population)} as the service counts, of whom at least ${count(fresh.counted)} are real even if the service lies`;
    show(text, `${range(...fresh.window)}: ${ended}.`);
    show(cost, fresh.costs.length ? ` It used ${list(fresh.costs.map(([label, cost]) => `${cost} of your budget for ${label}`))}.` : "");
  };
  return element;
}
