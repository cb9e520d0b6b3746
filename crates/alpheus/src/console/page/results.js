// A consumer's results: the latest value of each column, charts over time, what is known about them, and the rows.
import { ask, download, every } from "/api.js";
import { button, empty, facts, failure, make, show, table, tried } from "/dom.js";
import { barChart, place, timeChart } from "/chart.js";
import { count, each, list, number, people, plural, range, roughly, sentence, zone } from "/words.js";

const DRAWN = 60; // windows on a chart
const AGAIN = 2000; // milliseconds, after a request that failed
const KEPT = 20_000; // rows for export
const NOT_OUTPUTS = new Set(["window_start", "window_end", "population", "silent", "excluded", "status", "noise", "windows", "streams_without_report", "integrity", "members_left_out", "members_refused", "mostly_noise"]);

export async function begin(main) {
  const [trouble, tabs, body] = [make("div"), make("div", { class: "row", role: "group", "aria-label": "Queries" }), make("div")];
  main.append(make("h1", {}, "Results"), make("p", { class: "lead" }, `One result for each window. Times are yours (${zone()}).`), trouble, tabs, body);
  let chosen = sessionStorage.getItem("query");
  let [follower, followed] = [null, ""];
  const choose = (query) => {
    chosen = query.name;
    sessionStorage.setItem("query", chosen);
    tabs.querySelectorAll("button").forEach((tab) => {
      tab.classList.toggle("on", tab.textContent === chosen);
      tab.setAttribute("aria-pressed", String(tab.textContent === chosen));
    });
    followed = mark(query);
    follower = section(query, () => { chosen = null; follower = null; });
    body.replaceChildren(follower);
  };
  await every(5000, main, () => tried(trouble, async () => {
    const queries = (await ask("/api/queries")).filter((query) => query.mine);
    tabs.hidden = queries.length < 2;
    if (queries.map((query) => query.name).join() !== [...tabs.children].map((tab) => tab.textContent).join()) {
      tabs.replaceChildren(...queries.map((query) => button(query.name, () => choose(query), { class: "plain" })));
    }
    if (!queries.length) {
      if (!follower) show(body, empty("You have no running query.", [make("a", { href: "#/ask" }, "Ask"), " for something. You see which data there is, and what a query would reveal before it runs."]));
      return;
    }
    const now = queries.find((query) => query.name === chosen);
    // Another query may have the name now. What was said of the first one is not said of it.
    if (!follower?.isConnected || (now && mark(now) !== followed)) choose(now ?? queries[0]);
  }));
}

/** What the page says of a query follows from this. */
const mark = ({ sql, columns, group, sealed, verified, bounded, noise, lacking }) => JSON.stringify([sql, columns, group, sealed, verified, bounded, noise, lacking]);

/** One query. */
function section(query, gone) {
  const state = { query, rows: [], chosen: null, group: null };
  const parts = Object.fromEntries(["status", "group", "tiles", "scrub", "charts", "rows", "trouble", "lost"].map((name) => [name, make("div")]));
  parts.status.className = "state";
  parts.tiles.className = "tiles";
  parts.charts.className = "charts";
  const element = make("section", { "aria-label": `Results of ${query.name}`, "data-query": query.name },
    make("div", { class: "head" }, make("h2", {}, query.name), make("span", { class: "quiet" }, about(query))),
    parts.status, parts.lost, parts.trouble, parts.group, parts.tiles, parts.scrub, parts.charts,
    known(query),
    make("div", { class: "card" },
      make("div", { class: "head" }, make("h2", {}, "Rows"),
        make("span", { class: "row" },
          button("Save as CSV", () => save(state, "csv"), { class: "plain" }),
          button("Save as JSON", () => save(state, "json"), { class: "plain" }))),
      parts.rows),
    make("div", { class: "row" }, button("Stop this query…", () => stop(query, parts.trouble, gone), { class: "danger" })));
  show(parts.status, make("p", { class: "quiet" }, "Waiting for the first window …"));
  follow(element, state, parts).catch((error) => show(parts.trouble, failure(error)));
  return element;
}

function about(query) {
  const crowd = query.population[0] === query.population[1] ? people(query.population[0]) : `${count(query.population[0])} to ${people(query.population[1])}`;
  return `every ${each(query.window_ms)}, over ${crowd}`;
}

async function follow(element, state, parts) {
  await new Promise((wake) => setTimeout(wake)); // until it is on the page
  for (let after = 0; element.isConnected;) {
    const path = `/api/queries/${encodeURIComponent(state.query.name)}/results?after=${after}`;
    let read;
    try {
      read = await ask(path);
    } catch (error) {
      if (error.isFinal) {
        show(parts.lost);
        error.help = [error.help, "No more rows are read. Reload the page to try again."].filter(Boolean).join("\n");
        throw error;
      }
      // A service that was away comes back, and rows go on where they were.
      show(parts.lost, failure(error));
      await new Promise((wake) => setTimeout(wake, AGAIN));
      continue;
    }
    show(parts.lost);
    after = read.next;
    if (!read.rows.length) continue;
    state.rows.push(...read.rows);
    state.rows.splice(0, state.rows.length - KEPT);
    draw(state, parts);
  }
}

const INEXACT = "ok: less exact than asked";
const opened = (row) => row.status === "ok" || row.status === INEXACT;
const inexact = (row) => (row.status === "ok" ? "" : ", less exact than asked");

// Values may have commas, so two groups could look alike.
const groupOf = (state, row) => JSON.stringify(state.query.group.map((name) => row[name]));
const groupName = (key) => JSON.parse(key).join(", ");

function draw(state, parts) {
  const groups = [...new Set(state.rows.map((row) => groupOf(state, row)))].sort();
  state.group = groups.includes(state.group) ? state.group : groups[0];
  if (groups.length > 1) {
    const field = make("select", { id: "group", onchange: () => { state.group = field.value; draw(state, parts); } }, groups.map((key) => make("option", { value: key, selected: key === state.group }, groupName(key))));
    show(parts.group, make("label", { for: "group" }, sentence(list(state.query.group))), field);
  }
  const rows = state.rows.filter((row) => groupOf(state, row) === state.group);
  const drawn = rows.slice(-DRAWN);
  // The latest result, unless the reader has moved to another window.
  const at = drawn.findIndex((row) => row.window_start === state.chosen);
  const latest = drawn.findLastIndex(opened);
  const place = at >= 0 ? at : Math.max(0, latest);
  const choose = (index) => {
    state.chosen = index >= latest ? null : drawn[index].window_start;
    draw(state, parts);
  };
  const columns = state.query.columns.filter((column) => drawn.some((row) => column.name in row));
  const outputs = columns.length ? columns : Object.keys(drawn[0]).filter((name) => !NOT_OUTPUTS.has(name)).map((name) => ({ name, what: name, unit: "" }));
  status(parts.status, drawn);
  tiles(parts.tiles, outputs, drawn[place], state.query.lacking);
  scrubber(parts.scrub, drawn, place, choose);
  const crowd = { name: "population", what: "people", unit: "" };
  charts(parts.charts, [...outputs, crowd], drawn, place, choose);
  lines(parts.rows, state, outputs, rows);
}

function status(place, rows) {
  const last = rows.at(-1);
  const many = rows.filter(opened).length;
  const closed = rows.length - many;
  const ago = roughly(Date.now() - last.window_end);
  show(place, make("p", {}, `The last window ended ${ago} ago. ${many} of the last ${plural(rows.length, "window")} opened.`),
    closed ? make("p", { class: "note warn" }, `${plural(closed, "window")} did not open, most recently because: ${rows.findLast((row) => !opened(row)).status}`) : null);
}

const margin = (row, name) => row.noise?.[name]?.margin_95 ?? undefined;

function tiles(place, outputs, row, lacking = []) {
  const tile = (name, value, more) => make("div", { class: "tile" }, make("p", { class: "name" }, name), make("p", { class: "value" }, value), make("p", { class: "more" }, more));
  const ok = opened(row);
  const own = outputs.filter(({ name }) => !Array.isArray(row[name])).map((column) => {
    const [value, error] = [row[column.name], margin(row, column.name)];
    const noise = row.noise ? (error ? `noise: ± ${number(error, error)} in 95 of 100 windows${Math.abs(value) < error ? ", more than the value itself" : ""}` : "with noise; how much depends on the data") : "exact";
    return tile(sentence(column.what), [number(value, error), column.unit && value !== null && value !== undefined ? make("small", {}, ` ${column.unit}`) : null], ok ? noise + inexact(row) : "this window did not open");
  });
  const missing = [row.silent && `${people(row.silent)} sent nothing`, row.excluded && `${count(row.excluded)} left out`].filter(Boolean);
  show(place, ...own, tile("People", `${lacking.length ? "up to " : ""}${count(row.population)}`, [...missing, lacking.length ? `fewer may have sent ${list(lacking)}, which readings may lack` : missing.length ? "" : "nobody was left out"].filter(Boolean).join("; ")));
}

/** Moves through the windows, for fingers and keys. */
function scrubber(place, rows, at, choose) {
  let [field, text] = [place.querySelector("input"), place.querySelector("output")];
  if (!field) {
    text = make("output", { class: "quiet small", for: "window" });
    field = make("input", { type: "range", id: "window", min: 0, "aria-label": "Window" });
    place.append(make("div", { class: "scrub" }, text, field));
  }
  field.oninput = () => choose(Number(field.value));
  place.hidden = rows.length < 2;
  field.max = rows.length - 1;
  field.value = at;
  const words = `Window ${range(rows[at].window_start, rows[at].window_end)}`;
  field.setAttribute("aria-valuetext", words);
  show(text, words);
}

function charts(place_, outputs, rows, at, choose) {
  const wanted = outputs.map((column) => column.name).join();
  if (place_.dataset.columns !== wanted) {
    place_.dataset.columns = wanted;
    place_.replaceChildren(...outputs.map((column) => {
      const title = [sentence(column.what), column.unit ? make("span", { class: "quiet" }, `, ${column.unit}`) : null];
      const element = make("figure", { "data-column": column.name }, make("figcaption", {}, title));
      element.holder = place((width) => element.make(width));
      element.append(element.holder);
      return element;
    }));
  }
  outputs.forEach((column, index) => {
    const element = place_.children[index];
    element.make = (width) => chart(column, rows, at, choose, width);
    element.holder.draw();
  });
}

function chart(column, rows, at, choose, width) {
  const row = rows[at];
  const title = `${sentence(column.what)}${column.unit ? ` in ${column.unit}` : ""}`;
  if (rows.some((each) => Array.isArray(each[column.name]))) {
    const bars = buckets(column, row);
    if (!bars.length) return make("p", { class: "quiet" }, `The window ${range(row.window_start, row.window_end)} has no result.`);
    return barChart({ label: `${title}: ${bars.map((bar) => `${bar.name}: ${number(bar.value)}`).join(", ")}`, bars, width });
  }
  const points = rows.map((each) => ({
    time: each.window_start, why: each.status,
    value: !opened(each) || each[column.name] === null || each[column.name] === undefined ? null : Number(each[column.name]),
    margin: margin(each, column.name) }));
  const known = points.filter((point) => point.value !== null).map((point) => point.value);
  const span = known.length ? `from ${number(Math.min(...known))} to ${number(Math.max(...known))}, last ${number(known.at(-1))}` : "no result yet";
  return timeChart({ label: `${title} over ${plural(points.length, "window")}: ${span}`, points, chosen: at, onChoose: choose, width, hasZero: column.name === "population" });
}

/** Bins of a histogram, values by bucket, or the fullest bins. */
function buckets(column, row) {
  const value = row[column.name];
  if (!Array.isArray(value)) return [];
  const error = margin(row, column.name);
  if (value.every((each) => typeof each === "number" || typeof each === "string")) {
    return value.map((each, at) => ({ name: number(column.edges?.[at] ?? at), value: Number(each), margin: error }));
  }
  return value.map((each) => {
    const [name, inside] = Array.isArray(each) ? each : Object.values(each);
    return { name: number(name), value: Number(inside), margin: error };
  });
}

function lines(place_, state, outputs, rows) {
  const names = [...state.query.group, ...outputs.map((column) => (column.unit ? `${column.what}, ${column.unit}` : column.what))];
  const cell = (row, column) => (Array.isArray(row[column.name]) ? plural(row[column.name].length, "value") : number(row[column.name], margin(row, column.name)));
  const error = (row, column) => {
    const known = margin(row, column.name);
    return known && !Array.isArray(row[column.name]) ? ` ± ${number(known, known)}` : "";
  };
  const latest = rows.slice(-50).reverse();
  const cells = latest.map((row) => [
    range(row.window_start, row.window_end), ...state.query.group.map((name) => row[name]),
    ...outputs.map((column) => (opened(row) ? cell(row, column) + error(row, column) : "–")),
    count(row.population), count(row.silent), count(row.excluded), opened(row) ? (row.integrity ?? "opened") + inexact(row) : row.status]);
  const first = 1 + state.query.group.length;
  const numbers = [...outputs.keys(), outputs.length, outputs.length + 1, outputs.length + 2].map((at) => at + first);
  const title = rows.length > latest.length ? `The latest ${latest.length} of ${count(rows.length)} windows` : `${plural(rows.length, "window")}, latest first`;
  show(place_, table(title, ["window", ...names, "people", "silent", "left out", "outcome"], cells, numbers, [numbers.at(-1) + 1]));
}

/** What is known about whether the results are true: no more than that. */
function known(query) {
  const reach = query.sealed
    ? ["Only you can read them.", "They are sealed for your key, and this page opened them on your machine. The service sees that a window opened, and over how many people, but no value."]
    : ["The service can read them too.", "It adds up the encrypted readings, opens each window with the owners' tokens, and hands you the result."];
  return make("div", { class: "card", "data-integrity": query.bounded ? "bounded" : query.verified ? "verified" : query.sealed ? "sealed" : "plain" },
    make("h2", {}, "What is known about these numbers"),
    facts([
      ["Checked", query.bounded
        ? "Each row, against what the controllers of its window have signed, and their proofs that every person's part is within the query's bounds. A row that differs, or whose proofs do not hold, is refused, and says why."
        : query.verified
        ? "Each row, against what the controllers of its window have signed. A row that differs is refused, and says why."
        : query.sealed
        ? "The plan was signed by the service and names certified controllers; your key and their tokens fit the sum, since its check word is zero. A window that fails this says so in its row."
        : "The connection: the rows come from the service that your deployment's authority certified. Nothing else: the page shows what the service says."],
      ["Not proven", query.bounded
        ? "What each controller says of its own owners within their bounds: each controller of a window could have changed a row by as much as its owners' bounds allow, and no further. The service could leave people out, and devices could send false readings within the bounds."
        : query.verified
        ? "What each controller says of its own owners: a row is signed by all controllers of its window, any of which could have changed it. The service could leave people out, and devices could send false readings."
        : "That the numbers are right. The service could change a sum before you get it, or leave people out, and devices could send false readings. No signature covers a result."],
      ["Who reads", reach.join(" ")],
      ["Population", query.verified ? "As the controllers of the window have signed it." : "As the service counts it. Each owner's controller checks that its own owners take part, and that enough people do, before it helps to open a window."],
      query.noise ? ["Noise", "The controllers add random noise before a window opens. The ± is what 95 of 100 windows stay within. It counts the noise alone, not what a small crowd or a lost window does."] : null,
      ["What was asked", make("code", {}, query.sql)],
    ]));
}

async function stop(query, trouble, gone) {
  if (!confirm(`Stop ${query.name}? No more windows will open. Its results stay at the service, under the same name.`)) return;
  await tried(trouble, async () => {
    await ask("/api/statements", { sql: `DROP STREAM "${query.name.replaceAll('"', '""')}"` });
    gone();
  });
}

function save(state, kind) {
  const name = `${state.query.name}.${kind}`;
  if (kind === "json") return download(name, "application/json", `[\n${state.rows.map((row) => JSON.stringify(row)).join(",\n")}\n]\n`);
  return download(name, "text/csv", asCsv(state.rows));
}

/** As `alpheus query --format csv` writes them: null is empty, lists are JSON. Whole text, exact numbers. */
export function asCsv(rows) {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const cell = (value) => {
    if (value === null || value === undefined) return "";
    const text = typeof value === "string" ? value : JSON.stringify(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [names, ...rows.map((row) => names.map((name) => row[name]))].map((line) => line.map(cell).join(",")).join("\n") + "\n";
}

