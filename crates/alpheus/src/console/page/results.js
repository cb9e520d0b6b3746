// A consumer's page: what may be asked, running queries, and results as they arrive.
import { ask, clock, failure, make, table } from "/common.js";

const KEPT = 60; // windows on a chart
const EVERY = 5000;
const COUNTS = ["population", "silent", "excluded", "status"];
const main = document.getElementById("main");
const live = new Map(); // name of a query → its section

const statement = make("textarea", { id: "statement", spellcheck: "false", "aria-describedby": "hint" });
const answer = make("div", { id: "answer", "aria-live": "polite" });
const queries = make("div", { id: "queries" });
const results = make("div", { id: "results" });
const health = make("div", { id: "health" });

async function say(sql) {
  answer.replaceChildren(make("p", { class: "quiet" }, "sending …"));
  try {
    const said = await ask("/api/statements", { sql });
    const tables = said.tables.map((t) => table(t.title, t.columns, t.rows));
    answer.replaceChildren(...(said.text ? [make("pre", {}, said.text)] : []), ...tables);
    if (said.running) watch(said.running);
    await list();
  } catch (error) {
    answer.replaceChildren(failure(error));
  }
}

/** Running queries; those of other consumers are listed, but their results are not shown. */
async function list() {
  const { tables: [known] } = await ask("/api/statements", { sql: "SHOW QUERIES" });
  const rows = known.rows.map((row) => [...row, make("span", { class: "row" },
    make("button", { class: "plain", type: "button", onclick: () => watch(row[0]) }, `Show ${row[0]}`),
    make("button", { class: "plain", type: "button", onclick: () => stop(row[0]) }, `Stop ${row[0]}`))]);
  queries.replaceChildren(rows.length
    ? table("Running queries", [...known.columns, "actions"], rows)
    : make("p", { class: "quiet" }, "No query is running."));
}

async function stop(name) {
  if (confirm(`Stop ${name}? Its results stay, but no more windows will open.`)) await say(`DROP STREAM ${name}`);
}

function watch(name) {
  if (live.has(name)) return live.get(name).focus();
  const status = make("p", { class: "quiet", role: "status" }, "waiting for the first window …");
  const charts = make("div", { class: "charts" });
  const rows = make("div");
  const section = make("section", { tabindex: "-1", "aria-label": `Results of ${name}`, "data-query": name },
    make("h3", {}, name), status, charts, rows);
  live.set(name, section);
  results.append(section);
  follow(name, { section, status, charts, rows }).catch((error) => {
    live.delete(name);
    status.replaceChildren(failure(error));
  });
}

async function follow(name, place) {
  const known = [];
  for (let after = 0; live.get(name) === place.section;) {
    const { rows, next } = await ask(`/api/queries/${name}/results?after=${after}`);
    after = next;
    if (!rows.length) continue;
    known.push(...rows);
    known.splice(0, known.length - KEPT);
    show(known, place);
  }
}

function show(rows, place) {
  const last = rows.at(-1);
  const opened = rows.filter((row) => row.status === "ok").length;
  const behind = Math.max(0, Math.round((Date.now() - last.window_end) / 1000));
  place.status.textContent =
    `Last window ended ${behind} s ago with ${last.population} people, ${last.excluded} excluded; ` +
    `${opened} of the last ${rows.length} windows opened.`;
  const names = Object.keys(last).filter((name) => !COUNTS.includes(name) && !name.startsWith("window_"));
  place.charts.replaceChildren(...names.map((name) => chart(name, rows)).filter(Boolean));
  const columns = ["from", ...names, "people", "silent", "excluded", "status"];
  const cells = rows.toReversed().map((row) => [
    clock(row.window_start), ...names.map((name) => words(row[name])),
    String(row.population), String(row.silent), String(row.excluded), row.status]);
  place.rows.replaceChildren(table("Windows, latest first", columns, cells));
}

/** State of the service: lag, failures with reasons, active hosts. */
async function look() {
  try {
    const now = await ask("/api/status");
    const counts = (reasons) => Object.entries(reasons).sort((a, b) => b[1] - a[1])
      .map(([reason, count]) => `${reason}: ${count}`).join("; ") || "none";
    const lag = now.lag_ms === undefined ? "no event yet" : `${(now.lag_ms / 1000).toFixed(1)} s`;
    const lost = now.lost_state;
    const signs = lost === undefined ? [] : [["state",
      `restored from a backup or emptied: ${lost.streams} streams and ${lost.windows} windows are ahead of it`]];
    const absent = now.absent_streams + now.absent_hosts === 0 ? [] : [["back from an outage, waiting for",
      `${now.absent_streams} streams, ${now.absent_hosts} hosts of controllers`]];
    health.replaceChildren(table("The service since its start", ["measure", "value"], [
      ...signs,
      ...absent,
      ["lag behind the clock", lag],
      ["windows in progress", String(now.windows_in_progress)],
      ["windows opened", String(now.windows_opened)],
      ["windows failed, by reason", counts(now.windows_failed)],
      ["streams excluded from windows, by reason", counts(now.streams_excluded)],
      ["frames read", String(now.frames_read)],
      ["frames refused, by reason", counts(now.frames_refused)],
      ["hosts of controllers active in the last minute", `${now.hosts_active} of ${now.hosts}`]]));
  } catch (error) {
    health.replaceChildren(failure(error));
  }
  setTimeout(look, EVERY);
}

function words(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value === "number") return String(Number(value.toPrecision(8)));
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Numbers over time as a line, the latest histogram as bars. */
function chart(name, rows) {
  const latest = rows.findLast((row) => row[name] !== null)?.[name];
  if (Array.isArray(latest)) return bars(name, latest);
  const points = rows.map((row) => (row[name] === null ? null : Number(row[name])));
  return points.some(Number.isFinite) ? line(name, points) : undefined;
}

function figure(caption, label, ...marks) {
  return make("figure", {},
    make("svg", { viewBox: "0 0 320 120", role: "img", "aria-label": label },
      make("line", { class: "axis", x1: 0, y1: 100, x2: 320, y2: 100 }), ...marks),
    make("figcaption", {}, caption));
}

function bars(name, bins) {
  const most = Math.max(1, ...bins);
  const width = 320 / bins.length;
  const marks = bins.map((count, at) => make("rect", {
    class: "mark", x: at * width, width: Math.max(1, width - 1), y: 100 - 95 * count / most, height: 95 * count / most }));
  return figure(`${name}, last window, largest bin ${most}`, `Histogram ${name}: ${bins.join(", ")}`, ...marks);
}

function line(name, points) {
  const known = points.filter(Number.isFinite);
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const at = (value) => 95 - 85 * (high > low ? (value - low) / (high - low) : 0.5);
  const step = 308 / Math.max(1, points.length - 1);
  // A window that did not open breaks the line.
  const parts = [[]];
  points.forEach((value, index) => {
    if (Number.isFinite(value)) parts.at(-1).push([6 + index * step, at(value)]);
    else parts.push([]);
  });
  const marks = parts.filter((part) => part.length).map((part) => part.length > 1
    ? make("polyline", { class: "path", points: part.map((point) => point.join(",")).join(" ") })
    : make("circle", { class: "mark", cx: part[0][0], cy: part[0][1], r: 3 }));
  const label = `${name} over ${points.length} windows, from ${words(low)} to ${words(high)}, now ${words(known.at(-1))}`;
  return figure(`${name}: ${words(low)} to ${words(high)}, now ${words(known.at(-1))}`, label, ...marks);
}

async function begin() {
  const who = await ask("/api/identity");
  document.getElementById("who").textContent = `${who.name} at ${who.base}`;
  document.title = `Results – Alpheus`;
  main.append(
    make("h2", {}, "Ask"),
    make("label", { for: "statement" }, "A statement"), statement,
    make("p", { id: "hint", class: "quiet" },
      "CREATE STREAM starts a query. EXPLAIN CREATE STREAM only shows what it would reveal. A refusal names the rule and the nearest query that is allowed."),
    make("div", { class: "row" },
      make("button", { type: "button", id: "ask", onclick: () => say(statement.value) }, "Ask"),
      make("button", { type: "button", class: "plain", onclick: () => say("SHOW STREAMS") }, "Which streams are there?"),
      make("button", { type: "button", class: "plain", onclick: () => say("SHOW SCHEMAS") }, "What may be asked?")),
    answer, make("h2", {}, "Queries"), queries, make("h2", {}, "Results"), results,
    make("h2", {}, "Health"), health);
  await Promise.all([list(), look()]);
}

begin().catch((error) => main.replaceChildren(failure(error)));
