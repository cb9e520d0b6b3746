// An owner's decisions. Each says what it means before it happens; what cannot be undone asks twice.
import { ask, download } from "/api.js";
import { button, failure, make, show } from "/dom.js";
import { allows, limit, meaning, sizes, withLimits } from "/options.js";
import { dates, list, sentence } from "/words.js";

/** A dialog. `act` does it, and may return what to say then. */
function dialog({ title, body, act, does, kind = "", sure }) {
  const trouble = make("div");
  const tick = sure && make("input", { type: "checkbox", id: "sure" });
  const go = make("button", { type: "submit", class: kind, disabled: Boolean(sure) }, does);
  if (tick) tick.addEventListener("change", () => { go.disabled = !tick.checked; });
  const form = make("form", { method: "dialog" },
    make("h2", { id: "title" }, title), body,
    tick && make("label", { class: "tick" }, tick, make("span", {}, sure)),
    trouble,
    make("div", { class: "row" }, button("Cancel", () => box.close(), { class: "plain" }), go));
  const box = make("dialog", { "aria-labelledby": "title" }, form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    go.disabled = true;
    try {
      await act();
      box.close();
    } catch (error) {
      show(trouble, failure(error));
      go.disabled = false;
    }
  });
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
  return { box, form };
}

const means = (...lines) => make("ul", {}, lines.filter(Boolean).map((line) => make("li", {}, line)));

/** Sends a decision, says what has happened, and shows the new state. */
async function decide(place, path, body, said) {
  const answer = await ask(`/api/streams/${place.id}/${path}`, body);
  show(place.said, make("p", { class: "note" }, said));
  await place.refresh();
  return answer;
}

export function pause(view, place) {
  const readers = view.grants.filter((grant) => grant.days);
  const names = list(readers.map(named));
  const tick = readers.length ? make("input", { type: "checkbox", id: "end", checked: true }) : null;
  dialog({
    title: `Pause ${view.device}?`,
    body: make("div", {},
      means(
        "No query gets a new result that includes this device, until you resume. One that your controller has helped with already may still come out.",
        "Running queries go on without you.",
        "The device goes on sending encrypted readings. No query can open what it sends during the pause, also later: results only ever cover times in which you allowed them.",
        tick && `A pause does not hold back keys: ${names} may read everything, and gets the key of each day that was given, also of days with a pause.`,
        "If you later let somebody read everything of a day, that is the whole day, with its pauses.",
        "What others have learned already, they know."),
      tick && make("label", { class: "tick" }, tick, make("span", {}, `Also end the access of ${names}. Keys that were handed out already still work.`))),
    does: "Pause",
    act: () => {
      const end = tick?.checked ? readers.map((grant) => grant.reader) : [];
      const left = readers.length && !end.length ? ` ${sentence(names)} can still read everything.` : "";
      return decide(place, "pause", { end }, `Paused. No query gets a result that includes this device.${left}`);
    },
  });
}

/** Who a reader is, by its certificate. */
const named = (grant) => grant.name ?? "a reader without a valid certificate";

/** What was allowed last is signed again, so it is shown again. */
export function resume(view, place) {
  const lines = view.resumes.filter(({ chosen }) => chosen.length).map(({ label, chosen }) =>
    `${sentence(label)}: ${chosen.map((option) => allows(option) + withLimits(option)).join(" Or: ")}`);
  dialog({
    title: `Share from ${view.device} again?`,
    body: make("div", {}, make("p", {}, "From now on this is allowed again, as you signed it before:"), means(...lines)),
    sure: view.state === "copied" ? "I have found the copy of my device, and it sends no more." : undefined,
    does: "Sign and share again",
    act: () => decide(place, "resume", { seen: view.seen, shown: view.resumes }, "Sharing again, as before."),
  });
}

export function revoke(view, place) {
  dialog({
    title: `End sharing of ${view.device} for good?`,
    body: means(
      "No result will ever include this device again, whatever you choose later. To share again you would have to add it as a new device.",
      "What others have learned already, they know. Keys of days that you handed out still work.",
      "The recorded, encrypted readings stay where they are. To make them unreadable as well, choose Erase."),
    sure: "I understand that this cannot be undone.",
    does: "End sharing for good", kind: "danger sure",
    act: () => decide(place, "revoke", {}, "Revoked. No result will include this device any more."),
  });
}

export function eraseKey(view, place) {
  dialog({
    title: `Erase the data of ${view.device}?`,
    body: make("div", {}, means(
      "Your controller destroys the key of this device's data, and signs that it has done so. Anyone without a copy of the key cannot read what was recorded: neither the service, nor you.",
      view.state === "revoked" ? null : "Sharing ends for good.",
      "What others have learned already, they know. Days whose keys you handed out stay readable for their readers.",
      "The device has the key too. Remove its file there afterwards: shred -u FILE.")),
    sure: "I understand that nobody can bring the data back.",
    does: "Erase for good", kind: "danger sure",
    act: async () => {
      const statement = await ask(`/api/streams/${place.id}/erase`, {});
      show(place.said, make("div", { class: "note" },
        make("p", {}, "Erased. Your controller has signed that the key is destroyed. Keep its statement: should the key ever turn up, it is your proof."),
        make("div", { class: "row" }, button("Save the statement", () => download("erased.json", "application/json", statement.text), { class: "plain" })),
        make("p", { class: "quiet" }, "Now remove the key's file on the device: shred -u FILE.")));
      await place.refresh();
    },
  });
}

/** What may be learned, attribute by attribute. */
export function changeChoice(view, place) {
  const fields = view.attributes.map(attributeField);
  dialog({
    title: `What may others learn from ${view.device}?`,
    body: make("div", {},
      make("p", { class: "quiet" }, "Tick what you allow; nothing ticked means nothing. A change counts at once. Windows in progress are released only if both your old and your new choice allow it."),
      fields.map((field) => field.element)),
    does: "Sign and save",
    act: () => decide(place, "choice", {
      seen: view.seen,
      wish: { attributes: Object.fromEntries(fields.map((field) => [field.name, field.value()])) },
    }, "Your new choice is signed and in force."),
  });
}

function attributeField(attribute) {
  const options = attribute.offers.map((offer) => optionField(attribute, offer));
  const title = attribute.unit ? `${sentence(attribute.label)} (${attribute.unit})` : sentence(attribute.label);
  const nothing = make("p", { class: "quiet small" }, "The schema offers nothing else: this stays private.");
  return {
    name: attribute.name,
    element: make("fieldset", { "data-attribute": attribute.name }, make("legend", {}, title), options.length ? options.map((option) => option.element) : nothing),
    value: () => options.flatMap((option) => option.value()),
  };
}

function optionField(attribute, offer) {
  const chosen = attribute.chosen.find((option) => option.name === offer.name);
  const tick = make("input", { type: "checkbox", checked: Boolean(chosen), "data-option": offer.name });
  const known = sizes(offer);
  const clients = select("Crowd", known.clients, chosen?.clients ?? offer.clients.at(-1));
  const windows = select("Time covered", known.windows, chosen?.window ?? offer.windows.at(-1));
  const sub = make("div", { class: "sub" }, clients.element, windows.element);
  const text = make("span", {}, make("strong", {}, allows(offer)), make("br"), make("span", { class: "quiet small" }, `${sentence(meaning(offer))}${limit(offer)}`));
  const follow = () => { sub.hidden = !tick.checked; };
  tick.addEventListener("change", follow);
  follow();
  return {
    element: make("div", {}, make("label", { class: "tick" }, tick, text), sub),
    // A bound that was chosen elsewhere stays.
    value: () => (tick.checked ? [{ option: offer.name, clients: clients.value(), window: windows.value(), setsPerDay: chosen?.setsPerDay ?? null }] : []),
  };
}

/** A choice among numbers; one without a choice is only shown. */
function select(label, values, chosen) {
  if (values.length < 2) {
    return { element: make("p", { class: "quiet small" }, values[0] ? `${label}: ${values[0][1]}.` : null), value: () => values[0]?.[0] ?? null };
  }
  const field = make("select", {}, values.map(([value, text]) => make("option", { value, selected: value === chosen }, text)));
  return { element: make("label", {}, label, field), value: () => Number(field.value) };
}

const today = () => new Date().toISOString().slice(0, 10);

/** Lets a consumer read what the device sends. */
export function giveAccess(view, place) {
  const file = make("input", { type: "file", id: "file", accept: ".txt,text/plain" });
  const text = make("textarea", { id: "certificate", rows: 3, required: true, spellcheck: "false", "aria-describedby": "reader" });
  const reader = make("div", { id: "reader", role: "status", class: "note" }, "Choose the file consumer.txt that the reader gave you, or paste its text.");
  const [from, to] = ["from", "to"].map((id) => make("input", { type: "date", id, required: true, value: today() }));
  let [latest, known] = [0, null];
  const look = async () => {
    // Answers may overtake each other while somebody types: only the last counts.
    const own = ++latest;
    known = null;
    await new Promise((wake) => setTimeout(wake, 150));
    if (own !== latest || !text.value.trim()) return;
    const certificate = text.value.trim();
    const asked = ask("/api/readers", { certificate }).then((found) => ({ ...found, certificate }), (error) => ({ error }));
    const found = await asked;
    if (own !== latest) return;
    known = found.error ? null : found;
    show(reader, ...(known ? ["This is ", make("strong", {}, known.name), ", certified by your deployment's authority. The name is the authority's word; what it does with your data is not checked."] : [failure(found.error)]));
  };
  file.addEventListener("change", async () => { text.value = await file.files[0].text(); await look(); });
  text.addEventListener("input", look);
  dialog({
    title: `Let somebody read everything from ${view.device}?`,
    body: make("div", {},
      means(
        `The reader sees ${view.readable} of these days: ${list(view.attributes.map((attribute) => attribute.label))}. No crowd and no noise protects you, and a pause does not hold it back.`,
        "Each day's key is handed out once the day is over (in UTC). A key that was handed out works for ever; not even erasing takes it back.",
        "You can end the access: later days' keys are then not handed out."),
      make("label", { for: "file" }, "The reader's certificate"), file,
      make("label", { for: "certificate" }, "or its text"), text, reader,
      make("div", { class: "pair" },
        make("div", {}, make("label", { for: "from" }, "First day"), from),
        make("div", {}, make("label", { for: "to" }, "Last day"), to))),
    sure: "I understand that handed-out keys cannot be taken back.",
    does: "Sign and give access", kind: "danger sure",
    act: () => {
      // Only whom the dialog names gets access.
      if (!known) throw new Error("Wait until the dialog says who the reader is.");
      return decide(place, "grants", { certificate: known.certificate, reader: known.reader, from: from.value, to: to.value }, `Access is given to ${known.name}.`);
    },
  });
}

export function endAccess(grant, view, place) {
  dialog({
    title: `End the access of ${named(grant)}?`,
    body: means(
      `${named(grant)} gets no further keys of ${view.device}.`,
      grant.handed.length ? `It keeps the keys that it has, of ${grant.handed.map(dates).join(", and ")}.` : "It has no key yet, so it will have read nothing."),
    does: "End access",
    act: () => decide(place, "grants/end", { reader: grant.reader }, `The access of ${named(grant)} has ended.`),
  });
}

