// The state of the service, for its operator and for consumers: health, windows by outcome, hosts, lag.
import { ask, every } from "/api.js";
import { empty, make, show, table, tried } from "/dom.js";
import { place, timeChart } from "/chart.js";
import { count, moment, number, plural, roughly, sentence } from "/words.js";

const EVERY = 3000;
const KEPT = 200;
const LATE = 60_000;

export async function begin(main, identity) {
  const parts = Object.fromEntries(["trouble", "signs", "tiles", "outcomes", "queries", "hosts"].map((name) => [name, make("div")]));
  parts.tiles.className = "tiles";
  const samples = [];
  const lag = make("figure", {}, make("figcaption", {}, "Lag behind the clock", make("span", { class: "quiet" }, ", seconds, since you opened this page")));
  const chart = place((width) => drawLag(samples, width));
  lag.append(chart);
  main.append(
    make("h1", {}, "The service"),
    make("p", { class: "lead" }, `${identity.base}, as it describes itself. Counts are since it started.`),
    parts.trouble, parts.signs, parts.tiles,
    make("div", { class: "two" }, make("div", { class: "card" }, make("h2", {}, "Windows by outcome"), parts.outcomes), make("div", {}, lag)),
    parts.queries, parts.hosts);
  await every(EVERY, main, () => tried(parts.trouble, async () => {
    const now = await ask("/api/status");
    samples.push({ time: Date.now(), value: now.lag_ms === undefined ? null : now.lag_ms / 1000, why: "no event yet" });
    samples.splice(0, samples.length - KEPT);
    signs(parts.signs, now, identity.role === "operator" ? await ask("/api/findings") : null);
    tiles(parts.tiles, now);
    outcomes(parts.outcomes, now);
    chart.draw();
    reasons(parts.queries, now, identity.role === "operator");
    if (identity.role === "operator") hosts(parts.hosts, await ask("/api/hosts"));
  }));
}

function drawLag(samples, width) {
  if (!samples.some((sample) => sample.value !== null)) return empty("No event yet.", "Lag is known once devices send.");
  const known = samples.filter((sample) => sample.value !== null).map((sample) => sample.value);
  const label = `Lag in seconds: now ${number(known.at(-1))}, at most ${number(Math.max(...known))}`;
  return timeChart({ label, points: samples, width, hasZero: true });
}

/** What an operator should look at first: what the doctor finds, else the service's own signs of it. */
function signs(place_, now, findings) {
  const lost = findings === null && now.lost_state;
  const silent = findings === null ? now.hosts - now.hosts_active : 0;
  const found = [
    lost && ["wrong", `The state was restored from a backup, or emptied, as noticed at ${moment(lost.since)}: ${plural(lost.streams, "stream")} and ${plural(lost.windows, "window")} are ahead of it.`],
    now.absent_streams + now.absent_hosts > 0 && ["warn", `Back from an outage: waiting for ${plural(now.absent_streams, "stream")} and ${plural(now.absent_hosts, "host")} of controllers.`],
    silent > 0 && ["warn", `${plural(silent, "host")} of controllers ${silent === 1 ? "has" : "have"} not been heard from in the last minute: windows open without their owners, or not at all.`],
    now.lag_ms > LATE && ["warn", `Event time is ${roughly(now.lag_ms)} behind the clock: a device or a partition holds it back.`],
    ...Object.entries(now.notes ?? {}).map(([about, text]) => ["warn", `${sentence(about)}: ${text}`]),
  ].filter(Boolean);
  const faults = (findings ?? []).map(({ what, cause, fix }) => make("div", { class: "wrong" },
    make("strong", {}, what), ` ${sentence(cause)}.`, make("p", { class: "help" }, "To fix it: ", make("code", {}, fix))));
  const notes = found.map(([kind, text]) => make("div", { class: kind === "wrong" ? "wrong" : "note warn" }, text));
  show(place_, ...(faults.length + notes.length
    ? [...faults, ...notes]
    : [make("p", {}, make("span", { class: "pill good" }, "Healthy"), " Nothing needs attention.")]));
}

function tiles(place_, now) {
  const failed = sum(now.windows_failed);
  const refused = sum(now.frames_refused);
  const tile = (name, value, more, kind = "") => make("div", { class: "tile" }, make("p", { class: "name" }, name), make("p", { class: `value ${kind}` }, value), make("p", { class: "more" }, more));
  show(place_,
    tile("Lag behind the clock", now.lag_ms === undefined ? "–" : roughly(now.lag_ms), now.lag_ms === undefined ? "no event yet" : "event time", now.lag_ms > LATE ? "warn" : ""),
    tile("Windows opened", count(now.windows_opened), `${count(now.windows_in_progress)} in progress`),
    tile("Windows failed", count(failed), failed ? "reasons below" : "none", failed ? "warn" : ""),
    tile("Hosts of controllers", `${count(now.hosts_active)} of ${count(now.hosts)}`, "heard from in the last minute", now.hosts_active < now.hosts ? "warn" : ""),
    tile("Frames read", count(now.frames_read), `${count(refused)} refused`, refused ? "warn" : ""));
}

const sum = (counts) => Object.values(counts).reduce((all, each) => all + each, 0);

function outcomes(place_, now) {
  const rows = [["opened", now.windows_opened, ""], ...Object.entries(now.windows_failed).sort((a, b) => b[1] - a[1]).map(([why, many]) => [why, many, "full"])];
  const most = Math.max(1, ...rows.map(([, many]) => many));
  if (rows.length === 1 && rows[0][1] === 0) return show(place_, empty("No window has ended yet.", "The first ends once a query runs and devices send."));
  return show(place_, make("ul", { class: "bars" }, rows.map(([name, many, kind]) => {
    const fill = make("div");
    fill.style.width = `${100 * many / most}%`;
    return make("li", {}, make("div", { class: "head" }, make("span", {}, sentence(name)), make("span", { class: "number" }, count(many))), make("div", { class: `track ${kind}` }, fill));
  })));
}

/** Why streams and frames do not count. */
function reasons(place_, now, isOperator) {
  const part = (title, name, counts, none) => {
    const rows = Object.entries(counts).sort((a, b) => b[1] - a[1]).map(([why, many]) => [sentence(why), count(many)]);
    return make("div", { class: "card" }, make("h2", {}, title), rows.length ? table(title, ["reason", name], rows, [1], [0]) : make("p", { class: "quiet" }, none));
  };
  show(place_, make("div", { class: "two" },
    part(isOperator ? "Streams left out of windows" : "Streams left out of windows that opened", "times", now.streams_excluded, "None."),
    part("Frames refused", "frames", now.frames_refused, "None.")));
}

function hosts(place_, known) {
  const heard = (host) => (host.heard_ms_ago === null ? "not since the service started" : `${roughly(host.heard_ms_ago)} ago`);
  const rows = known.map((host) => [host.name, count(host.controllers), count(host.streams), heard(host), count(host.waiting)]);
  show(place_, make("div", { class: "card" }, make("h2", {}, "Hosts of controllers"), rows.length
    ? table(plural(rows.length, "host"), ["host", "controllers", "streams", "heard from", "messages waiting"], rows, [1, 2, 4])
    : empty("No controller has come yet.", "Hosts appear once alpheus controller run reaches this service.")));
}
