// Words for people: numbers, plurals, times in the reader's zone.

const LANGUAGE = navigator.language?.startsWith("en") ? navigator.language : "en-GB";
const format = (options) => new Intl.NumberFormat(LANGUAGE, options);
const whole = format({ maximumFractionDigits: 0 });
const date = (options) => new Intl.DateTimeFormat(LANGUAGE, options);
const hours = date({ hour: "numeric", minute: "2-digit" });
const seconds = date({ hour: "numeric", minute: "2-digit", second: "2-digit" });
const days = date({ weekday: "long", day: "numeric", month: "long", year: "numeric" });
const plainDay = date({ day: "numeric", month: "long", year: "numeric", timeZone: "UTC" });
const shortDay = date({ day: "numeric", month: "short" });
const zoneName = date({ timeZoneName: "longOffset" });

const UNITS = [["day", 86_400_000], ["hour", 3_600_000], ["minute", 60_000], ["second", 1000]];

/** `3`, `1,204`. */
export const count = (number) => whole.format(number);

/** `1 person`, `2 people`. */
export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

export const people = (number) => plural(number, "person", "people");

/** `a`, `a and b`, `a, b and c`. */
export function list(items, word = "and") {
  return items.length < 2 ? items.join("") : `${items.slice(0, -1).join(", ")} ${word} ${items.at(-1)}`;
}

/** A number as people read it: with an error, to the error's second digit; whole numbers whole. */
export const number = (value, margin) => digits(value, margin).replace(/^-/, "−");

function digits(value, margin) {
  if (value === null || value === undefined) return "–";
  if (typeof value === "boolean") return value ? "yes" : "no";
  const known = Number(value);
  if (!Number.isFinite(known)) return String(value);
  if (margin > 0) {
    const places = Math.min(6, Math.max(0, 1 - Math.floor(Math.log10(margin))));
    return fixed(known, places);
  }
  if (Number.isInteger(known)) return whole.format(known);
  if (Math.abs(known) < 1) return format({ maximumSignificantDigits: 3 }).format(known);
  return fixed(known, Math.abs(known) >= 1000 ? 1 : 2);
}

/** With so many decimal places, so that numbers below each other align. */
export const fixed = (value, places) => format({ minimumFractionDigits: places, maximumFractionDigits: places }).format(value).replace(/^-/, "−");

/** Number and unit; percent signs and degrees stand as they are. */
export const measured = (value, unit, margin) => `${number(value, margin)}${unit && value !== null && value !== undefined ? ` ${unit}` : ""}`;

/** `2 seconds`, `1 hour`, `90 seconds`, `1 year`. */
export function duration(milliseconds) {
  if (milliseconds === 365 * 86_400_000) return "1 year";
  for (const [name, length] of UNITS) {
    if (milliseconds >= length && milliseconds % length === 0) return plural(milliseconds / length, name);
  }
  return milliseconds < 1000 ? `${count(milliseconds)} ms` : `${number(milliseconds / 1000)} seconds`;
}

/** How long something lasts, roughly: `3 s`, `12 min`, `2 h`. */
export function roughly(milliseconds) {
  const s = Math.max(0, milliseconds / 1000);
  if (s < 10) return `${fixed(s, 1)} s`;
  if (s < 120) return `${Math.round(s)} s`;
  if (s < 7200) return `${Math.round(s / 60)} min`;
  return s < 172_800 ? `${Math.round(s / 3600)} h` : plural(Math.round(s / 86_400), "day");
}

const sameDay = (a, b) => new Date(a).toDateString() === new Date(b).toDateString();
const isFine = (milliseconds) => milliseconds % 60_000 !== 0;

/** A time of day; seconds only where they matter. */
export const clock = (time, fine = true) => (fine ? seconds : hours).format(time);

/** A time of day, with the day if that is not today. */
export const moment = (time, fine = true) => (sameDay(time, Date.now()) ? clock(time, fine) : `${shortDay.format(time)}, ${clock(time, fine)}`);

/** `second`, `10 minutes`: what comes after `every` and `in each`. */
export const each = (milliseconds) => duration(milliseconds).replace(/^1 /, "");

/** `from 10:00 to 10:10`. */
export function between(start, end) {
  const fine = isFine(start) || isFine(end);
  if (sameDay(start, end)) return `from ${clock(start, fine)} to ${clock(end, fine)}`;
  return `from ${shortDay.format(start)}, ${clock(start, fine)} to ${shortDay.format(end)}, ${clock(end, fine)}`;
}

/** `10:00 – 10:10`, for tables. */
export function range(start, end) {
  const format = isFine(start) || isFine(end) ? seconds : hours;
  const text = format.formatRange(start, end).replace(/\s*–\s*/, " – ");
  return sameDay(start, Date.now()) ? text : `${shortDay.format(start)}, ${text}`;
}

/** Days of the calendar, as they are written in certificates: `20 to 30 November 2026`. */
export function dates([first, last]) {
  const day = (text) => new Date(`${text}T00:00:00Z`);
  return first === last ? plainDay.format(day(first)) : plainDay.formatRange(day(first), day(last)).replace(/\s*–\s*/, " to ");
}

/** `Today`, `Yesterday`, `Tuesday, 24 November 2026`. */
export function day(time) {
  const now = new Date();
  if (sameDay(time, now)) return "Today";
  now.setDate(now.getDate() - 1);
  return sameDay(time, now) ? "Yesterday" : days.format(time);
}

/** The reader's zone: `Europe/Zurich, GMT+01:00`. */
export function zone() {
  const offset = zoneName.formatToParts(Date.now()).find((part) => part.type === "timeZoneName")?.value;
  const name = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return !offset || name === "UTC" || name === offset ? name : `${name}, ${offset}`;
}

/** First letter large. */
export const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);
