// An owner's page: each device with what it shares, what that costs, who learned what, and how to stop it.
import { ask, every } from "/api.js";
import { button, empty, keep, make, show, tried } from "/dom.js";
import { changeChoice, endAccess, eraseKey, giveAccess, pause, resume, revoke } from "/decisions.js";
import { budgets } from "/budgets.js";
import { allows, withLimits } from "/options.js";
import { timeline } from "/timeline.js";
import { dates, list, sentence, zone } from "/words.js";

const EVERY = 5000;

const STATES = {
  sharing: ["Sharing", "good"],
  private: ["Shares nothing", ""],
  paused: ["Paused", "warn"],
  copied: ["A copy was found", "wrong"],
  unconfirmed: ["Waiting for you", "warn"],
  revoked: ["Ended for good", ""],
  erased: ["Erased", ""],
};

const reading = (view) => view.grants.filter((grant) => grant.days).map((grant) => named(grant));
const holding = (view) => view.grants.filter((grant) => grant.handed.length).map((grant) => named(grant));

const HINTS = {
  paused: (view) => `No query gets a result that includes this device. Nothing is lost: resume whenever you like.${goesOn(view)}`,
  private: (view) => `You allow no query to learn anything from this device. It goes on sending encrypted readings.${goesOn(view)}`,
  copied: (view) => `Two different messages came from this device for the same time, so somebody has a copy of it. No query gets a result until you have found the copy and share again.${goesOn(view)}`,
  unconfirmed: (view) => `Your controller was restored from a backup and cannot know your latest choice. No query gets a result until you confirm it.${goesOn(view)}`,
  revoked: (view) => `You ended sharing. No result will ever include this device again, and nothing can undo that.${keeps(view)}`,
  erased: (view) => `Your controller says that it has destroyed the key of this device's data; its signed statement is the proof. Once the key's file on the device is removed too, nobody can read what was recorded.${keeps(view)}`,
};

const goesOn = (view) => (reading(view).length ? ` But ${list(reading(view))} can still read everything: a pause does not end that access. End it below.` : "");
const keeps = (view) => (holding(view).length ? ` The days whose keys ${list(holding(view))} got stay readable there.` : "");

/** Who a reader is: its certificate's name, which the authority has checked. */
const named = (grant) => grant.name ?? `a reader without a valid certificate (${grant.reader.slice(0, 8)})`;

/** Fills the page. */
export async function begin(main, identity) {
  document.title = "Your data – Alpheus";
  const trouble = make("div");
  const devices = make("div");
  main.replaceChildren(
    make("h1", {}, "Your data"),
    make("p", { class: "lead" }, `What others may learn from your devices, and what they have learned. Times are yours (${zone()}).`),
    trouble, devices);
  const act = async () => {
    const streams = await ask("/api/streams");
    if (!streams.length) {
      show(devices, empty("No device sends for you yet.", "Add one with alpheus owner add. It then appears here."));
      return;
    }
    keep(devices, streams, (id) => id, (id) => device(id, identity));
  };
  await every(EVERY * 4, main, () => tried(trouble, act));
}

/** The card of one device. */
function device(id, identity) {
  const [name, state, hint, choice, access, actions, said, gauges, story] =
    ["h2", "span", "p", "div", "div", "div", "div", "div", "div"].map((tag) => make(tag));
  said.setAttribute("role", "status");
  actions.className = "row actions";
  const card = make("article", { class: "card", "data-stream": id },
    make("div", { class: "head" }, name, state), hint, said,
    make("h3", {}, "What others may learn"), choice, access, actions,
    gauges,
    make("h3", {}, "What others have learned"),
    make("p", { class: "quiet small" }, "The service says who asked, and checks their certificates. Those who ask choose the names of their queries."),
    story);
  const place = { id, identity, said, refresh };
  const parts = { name, state, hint, choice, access, actions };
  const history = timeline();
  const limits = budgets();
  gauges.append(limits.element);
  story.append(history.element);
  async function refresh() {
    const view = await ask(`/api/streams/${id}`);
    card.setAttribute("aria-label", `Device ${view.device}`);
    card.dataset.version = view.seen.choice;
    render(view, place, parts);
    limits.update(await ask(`/api/streams/${id}/budgets`), view);
    history.update(await ask(`/api/streams/${id}/log`), identity);
  }
  const trouble = make("div");
  card.append(trouble);
  setTimeout(() => every(EVERY, card, () => tried(trouble, refresh)));
  return card;
}

function render(view, place, { name, state, hint, choice, access, actions }) {
  show(name, view.device);
  const [word, kind] = STATES[view.state];
  state.className = `pill ${kind}`;
  show(state, word);
  hint.hidden = !HINTS[view.state];
  show(hint, HINTS[view.state]?.(view) ?? "");
  const shared = view.attributes.filter((attribute) => attribute.chosen.length);
  show(choice, shared.length ? make("dl", { class: "facts" }, shared.map(fact)) : make("p", { class: "quiet" }, "Nothing."));
  const rest = view.attributes.filter((attribute) => !attribute.chosen.length).map((attribute) => attribute.label);
  if (shared.length && rest.length) choice.append(make("p", { class: "quiet" }, `Not shared: ${list(rest)}.`));
  keep(access, view.grants, (grant) => grant.reader, (grant) => reader(grant, view, place));
  doing(actions, view, place);
}

const fact = ({ label, chosen }) => make("div", {},
  make("dt", {}, sentence(label)),
  make("dd", {}, chosen.map((option) => make("p", {}, `${allows(option)}${withLimits(option)}`))));

/** Somebody who may read all that the device has sent. */
function reader(grant, view, place) {
  const text = make("p");
  const row = make("div", { class: "note warn" }, text, make("div", { class: "row" },
    button("End access…", () => endAccess(row.grant, view, place), { class: "plain", "aria-label": `End access… of ${named(grant)}` })));
  row.update = (fresh) => {
    row.grant = fresh;
    const handed = fresh.handed.length ? ` It has the keys of ${fresh.handed.map(dates).join(", and ")}, and keeps them.` : " It has no key yet: each day's key is handed out once the day is over.";
    const certified = fresh.name ? " (the name on its certificate)" : "";
    const given = fresh.days ? `${named(fresh)} may read ${view.readable} from ${dates(fresh.days)}${certified}. A pause does not change that.` : `You ended the access of ${named(fresh)}.`;
    show(text, given + handed);
    row.querySelector("button").hidden = !fresh.days;
    row.className = fresh.days ? "note warn" : "note";
  };
  return row;
}

/** The buttons that make sense in this state; they stay in place while it lasts. */
function doing(actions, view, place) {
  const ended = ["revoked", "erased"].includes(view.state);
  const wanted = [
    ended || view.state !== "sharing" ? null : ["Pause…", "", pause],
    view.resumes ? ["Share again…", "", resume] : null,
    ended ? null : ["Change what is shared…", "plain", changeChoice],
    ended ? null : ["Let somebody read everything…", "plain", giveAccess],
    ended ? null : ["End sharing for good…", "danger", revoke],
    view.state === "erased" ? null : ["Erase…", "danger", eraseKey],
  ].filter(Boolean);
  actions.view = view;
  keep(actions, wanted, ([text]) => text, ([text, kind, act]) => button(text, () => act(actions.view, place), { class: kind, "aria-label": `${text} ${view.device}` }));
}
