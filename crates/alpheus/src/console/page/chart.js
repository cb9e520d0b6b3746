// Charts as SVG: a line over time with error bars, and bars by bucket. Drawn at the width that they have,
// so that text is never scaled.
import { make } from "/dom.js";
import { clock, fixed, number } from "/words.js";

const HEIGHT = 200;
const [TOP, BOTTOM] = [10, 26];
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 2_592_000].map((s) => s * 1000);
const shortDate = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

/** A round distance between marks, so that there are about so many. */
export function stepOf(low, high, wanted) {
  const rough = (high - low) / wanted || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((by) => by * power).find((by) => by >= rough * 0.85);
}

/** Times at round moments of the reader's clock. */
function times(start, end, wanted) {
  const step = STEPS.find((length) => (end - start) / length <= wanted) ?? STEPS.at(-1);
  const shift = -new Date(start).getTimezoneOffset() * 60_000;
  const found = [];
  for (let at = Math.ceil((start + shift) / step) * step - shift; at <= end; at += step) found.push(at);
  const text = (at) => (step >= 86_400_000 ? shortDate.format(at) : clock(at, step < 60_000));
  return found.map((at) => [at, text(at)]);
}

/** The vertical axis: its range and a function from values to pixels. */
function scale(values, hasZero) {
  let [low, high] = [Math.min(...values), Math.max(...values)];
  if (hasZero || (low > 0 && high - low > 0.5 * high)) low = Math.min(0, low);
  if (high <= low) [low, high] = low === 0 ? [0, 1] : [low - Math.abs(low) * 0.1, high + Math.abs(high) * 0.1];
  const step = stepOf(low, high, 4);
  [low, high] = [Math.floor(low / step + 1e-9) * step, Math.ceil(high / step - 1e-9) * step];
  const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - (value - low) / (high - low));
  const steps = Math.round((high - low) / step);
  return { ticks: Array.from({ length: steps + 1 }, (_, at) => Number((low + at * step).toPrecision(12))), y };
}

function frame(label, width, { ticks, y }) {
  const places = Math.max(...ticks.map((tick) => String(tick).split(".")[1]?.length ?? 0));
  const texts = ticks.map((tick) => fixed(tick, Math.min(places, 6)));
  const left = 10 + 6.8 * Math.max(...texts.map((text) => text.length));
  const svg = make("svg", { class: "chart", viewBox: `0 0 ${width} ${HEIGHT}`, height: HEIGHT, role: "img", "aria-label": label });
  ticks.forEach((tick, at) => svg.append(
    make("line", { class: "grid", x1: left, x2: width - 6, y1: y(tick), y2: y(tick) }),
    make("text", { x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, texts[at])));
  svg.append(make("line", { class: "axis", x1: left, x2: width - 6, y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM }));
  return { svg, left, right: width - 10 };
}

/** A mark on the horizontal axis, with its text unless that would touch the one before. Where that one ends. */
function under(svg, x, text, [from, to], before = 0) {
  const half = text.length * 3.4;
  const anchor = x - half < from ? "start" : x + half > to ? "end" : "middle";
  const start = { start: x, middle: x - half, end: x - 2 * half }[anchor];
  svg.append(make("line", { class: "axis", x1: x, x2: x, y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM + 4 }));
  if (start < before) return before;
  svg.append(make("text", { x, y: HEIGHT - 7, "text-anchor": anchor }, text));
  return start + 2 * half + 10;
}

/** Values over time. A point is `{ time, value, margin }`; without a value the line breaks. */
export function timeChart({ label, points, chosen, onChoose, width, hasZero }) {
  const known = points.filter((point) => point.value !== null);
  const ends = known.flatMap(({ value, margin }) => [value - (margin ?? 0), value + (margin ?? 0)]);
  const axis = scale(ends.length ? ends : [0], hasZero);
  const { svg, left, right } = frame(label, width, axis);
  const [start, end] = [points[0].time, points.at(-1).time];
  const pad = points.length > 1 ? 8 : (right - left) / 2;
  const x = (time) => left + pad + (right - left - 2 * pad) * (end > start ? (time - start) / (end - start) : 0);
  times(start, end, Math.max(2, (right - left) / 95)).reduce((before, [at, text]) => under(svg, x(at), text, [0, width], before), 0);
  const room = (right - left) / points.length;
  const [crowded, cap] = [room < 5, Math.min(3, room / 3)];
  const runs = [[]];
  for (const point of points) {
    if (point.value === null) {
      runs.push([]);
      const at = x(point.time);
      svg.append(make("path", { class: "gap", d: `M${at - 3} ${HEIGHT - BOTTOM - 9}l6 6m0-6l-6 6` }, make("title", {}, point.why ?? "no result")));
    } else runs.at(-1).push(point);
  }
  const spot = (point, by = 0) => `${x(point.time).toFixed(1)},${axis.y(point.value + by).toFixed(1)}`;
  for (const run of runs.filter((each) => each.length)) {
    if (crowded && run[0].margin) {
      const edge = [...run.map((point) => spot(point, point.margin)), ...run.toReversed().map((point) => spot(point, -point.margin))];
      svg.append(make("polygon", { class: "band", points: edge.join(" ") }));
    } else {
      run.filter((point) => point.margin).forEach((point) => {
        const [at, from, to] = [x(point.time), axis.y(point.value - point.margin), axis.y(point.value + point.margin)];
        svg.append(make("path", { class: "error", d: `M${at - cap} ${from}h${2 * cap}M${at - cap} ${to}h${2 * cap}M${at} ${from}V${to}` }));
      });
    }
    if (run.length > 1) svg.append(make("polyline", { class: "path", points: run.map((point) => spot(point)).join(" ") }));
    if (!crowded || run.length === 1) run.forEach((point) => svg.append(make("circle", { class: "mark", cx: x(point.time), cy: axis.y(point.value), r: Math.min(2.75, cap) })));
  }
  const point = points[chosen];
  if (point) {
    svg.append(make("line", { class: "cursor", x1: x(point.time), x2: x(point.time), y1: TOP, y2: HEIGHT - BOTTOM }));
    if (point.value !== null) svg.append(make("circle", { class: "chosen", cx: x(point.time), cy: axis.y(point.value), r: 4.5 }));
  }
  if (onChoose) {
    const near = (event) => {
      const at = event.offsetX * width / svg.clientWidth;
      const far = points.map((each) => Math.abs(x(each.time) - at));
      onChoose(far.indexOf(Math.min(...far)));
    };
    svg.addEventListener("pointerdown", near);
    svg.addEventListener("pointermove", (event) => event.buttons && near(event));
  }
  return svg;
}

/** A value for each bucket, `{ name, value, margin }`. Names of buckets are their lower edges. */
export function barChart({ label, bars, width }) {
  const axis = scale(bars.flatMap(({ value, margin }) => [0, value, value + (margin ?? 0)]), true);
  const { svg, left, right } = frame(label, width, axis);
  const step = (right - left) / bars.length;
  const room = Math.max(1, Math.ceil((Math.max(...bars.map((bar) => bar.name.length)) * 7 + 12) / step));
  bars.forEach(({ name, value, margin }, at) => {
    const [from, middle] = [left + at * step, left + (at + 0.5) * step];
    const [high, zero] = [axis.y(Math.max(0, value)), axis.y(Math.min(0, value))];
    svg.append(make("rect", { class: "bar", x: from + 0.5, width: Math.max(1, step - 1.5), y: high, height: Math.max(0.5, zero - high) }, make("title", {}, `${name}: ${number(value)}`)));
    if (margin) svg.append(make("path", { class: "error", d: `M${middle} ${axis.y(value - margin)}V${axis.y(value + margin)}` }));
    if (at % room === 0) under(svg, from, name, [left - 4, width]);
  });
  return svg;
}

/** A place for a chart, which draws it again when its width changes. */
export function place(draw) {
  const holder = make("div", { class: "place" });
  let width = 0;
  holder.draw = () => { if (width > 0) holder.replaceChildren(draw(width)); };
  new ResizeObserver(([entry]) => {
    const now = Math.round(entry.contentRect.width);
    if (now !== width) {
      width = now;
      holder.draw();
    }
  }).observe(holder);
  return holder;
}
