"use strict";
// Any part of the time of a page: which part is shown, and curves over it. Nothing here touches the document, but for
// `curveOf`, which makes texts of paths. Times are in microseconds since the epoch.

// Which part of the time a fragment such as `#from=2023-11-14T22:13:20Z&to=2023-11-14T22:13:25.5Z` names; null for none.
function parseRange(fragment) {
  const parts = new Map();
  for (const part of fragment.replace(/^#/, "").split("&")) {
    const [name, value] = part.split("=");
    if (value !== undefined) parts.set(name, parseTime(value));
  }
  const [from, to] = [parts.get("from"), parts.get("to")];
  return Number.isFinite(from) && Number.isFinite(to) && from < to ? [from, to] : null;
}

function writeRange([from, to]) {
  return "#from=" + writeTime(from) + "&to=" + writeTime(to);
}

// Date knows milliseconds: the digits behind them are taken and written apart.
function parseTime(text) {
  const found = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?Z$/.exec(text);
  return found ? Date.parse(found[1] + "Z") * 1000 + Number((found[2] || "").padEnd(6, "0")) : NaN;
}

function writeTime(time, decimals) {
  const second = Math.floor(time / 1e6);
  const micros = String(time - second * 1e6).padStart(6, "0");
  const tail = decimals === undefined ? micros.replace(/0+$/, "") : micros.slice(0, decimals);
  return new Date(second * 1000).toISOString().slice(0, 19) + (tail ? "." + tail : "") + "Z";
}

// By how much the clocks of a zone are ahead of UTC at a time: `offsets` has from when on by how much, in order.
function ahead(time, offsets) {
  const found = offsets.findLast(([from]) => from <= time);
  return (found || offsets[0])[1];
}

// What these clocks show, as a day and a time of day.
function writeClock(time, offsets, decimals) {
  return writeTime(time + ahead(time, offsets), decimals).slice(0, -1).split("T");
}

// A part of the whole: within it, no narrower than `least`, in whole microseconds. Null is the whole.
function within([from, to], [first, last], least) {
  const width = Math.max(to - from, least);
  if (width >= last - first) return null;
  const begin = Math.min(Math.max(Math.round((from + to - width) / 2), first), Math.floor(last - width));
  return [begin, Math.round(begin + width)];
}

// Places and values of a figure, from how the page has them.
function unpack(times) {
  const at = [times.first];
  for (const gap of times.gaps) at.push(at[at.length - 1] + gap * times.step);
  const texts = times.values.map((list) => list.split("|"));
  const values = texts.map((list) => list.map((text) => (text ? weight(text) : null)));
  const ends = texts.map((list, i) => list.map((text, row) => endsOf(text, values[i][row])));
  return { at, texts, values, ends };
}

// The ends of the error bar of a value: of `5 ± 1`, or of `5 (4 to 7)`.
function endsOf(text, value) {
  const found = / \((.+) to (.+)\)$/.exec(text);
  if (found) return [weight(found[1]), weight(found[2])];
  const error = weight(text.split("± ")[1] || "") || 0;
  return [value - error, value + error];
}

// Numbers of the places from one time to another, the last one not included.
function placesIn(at, [from, to]) {
  const first = at.findIndex((time) => time >= from);
  const end = at.findLastIndex((time) => time <= to);
  return first < 0 ? [0, 0] : [first, Math.max(first, end + 1)];
}

// The values from one place to another, with the ends of their bars of errors: what the vertical axis has room for.
function extents({ values, ends }, first, end) {
  const found = [];
  values.forEach((list, i) => {
    for (let row = first; row < end; row++) {
      if (list[row] !== null) found.push(...ends[i][row]);
    }
  });
  return found;
}

// The step of 1, 2 or 5 times a power of ten that gives at most five parts.
function stepOf(width) {
  const rough = width / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].find((factor) => factor * power >= rough * (1 - 1e-9)) * power;
}

// Ticks of a time axis: the least of the steps that gives at most six, else whole days, else beginnings of years, as
// clocks show them. Where clocks change, ticks go on with the other offset.
function timeTicks([from, to], { steps, offsets }) {
  const parts = offsets.map(([begin, ahead], i) => [i ? Math.max(begin, from) : from, offsets[i + 1] ? offsets[i + 1][0] - 1 : to, ahead]);
  const year = 365.25 * 86400e6;
  if (to - from > 3 * year) {
    const step = Math.max(1, stepOf((0.7 * (to - from)) / year));
    const ticks = [];
    for (let n = Math.floor((from / year + 1970) / step) * step; n <= to / year + 1971; n += step) {
      const local = Date.UTC(n, 0, 1) * 1000;
      const begin = local - ahead(local, offsets);
      if (begin >= from && begin <= to) ticks.push([begin, String(n)]);
    }
    return { ticks, day: "" };
  }
  const rough = (to - from) / 6e6;
  const day = 86400;
  const step = steps.find((step) => step >= rough) || Math.max(1, Math.ceil(rough / day)) * day;
  const ticks = [];
  const micros = Math.round(step * 1e6);
  const decimals = step < 1 ? Math.max(1, Math.ceil(-Math.log10(step) - 1e-9)) : 0;
  for (const [begin, end, ahead] of parts) {
    for (let local = Math.ceil((begin + ahead) / micros) * micros; local - ahead <= Math.min(end, to); local += micros) {
      const [date, clock] = writeClock(local - ahead, offsets, decimals);
      ticks.push([local - ahead, step >= day ? date : step >= 60 ? clock.slice(0, 5) : clock]);
    }
  }
  const [first, last] = [from, to].map((time) => writeClock(time, offsets, 0)[0]);
  return { ticks, day: step >= day ? "" : first === last ? first : first + " to " + last };
}

// The ends and ticks of an axis of these values: from zero, with round numbers, at least as far as `least`.
function levels(values, { least, whole, unit }) {
  let [low, high] = [0, 0];
  for (const value of values) [low, high] = [Math.min(low, value), Math.max(high, value)];
  if (Math.max(high, -low) < least) [low, high] = [low < 0 ? -least : 0, high > 0 || low === 0 ? least : 0];
  if (low === high) high = 1;
  const step = Math.max(stepOf(high - low), whole ? 1 : 0);
  [low, high] = [Math.floor(low / step) * step, Math.ceil(high / step) * step];
  const ticks = [];
  for (let i = 0; low + i * step <= high + step / 2; i++) {
    const number = Math.round((low + i * step) / step) * step;
    ticks.push([number, written(number, step) + unit]);
  }
  return { low, high, ticks };
}

// A number with the decimals of its step; thousands apart, millions as such.
function written(number, step) {
  const large = Math.max(Math.abs(number), step);
  const [by, name] = large >= 1e9 && step >= 1e7 ? [1e9, " G"] : large >= 1e6 && step >= 1e4 ? [1e6, " M"] : [1, ""];
  const decimals = Math.max(0, -Math.floor(Math.log10(step / by) + 1e-9));
  const [whole, rest] = (Math.abs(number) / by).toFixed(Math.min(decimals, 12)).split(".");
  const sign = number < 0 ? "−" : "";
  return sign + whole.replace(/\B(?=(\d{3})+$)/g, ",") + (rest ? "." + rest : "") + (number ? name : "");
}

// In each column the lowest, the median and the highest of the spots [x, y] (null is a gap), in parts between gaps that
// can be seen: as the static figure is drawn.
function columnsOf(spots, width) {
  const parts = [];
  let [last, gap] = [-Infinity, true];
  for (let i = 0; i < spots.length; ) {
    if (!spots[i]) {
      gap = true;
      i++;
      continue;
    }
    const number = Math.floor(spots[i][0] / width);
    const heights = [];
    let endsWithGap = false;
    for (; i < spots.length && (!spots[i] || Math.floor(spots[i][0] / width) === number); i++) {
      endsWithGap = !spots[i];
      if (spots[i]) heights.push(spots[i][1]);
    }
    heights.sort((a, b) => a - b);
    const middle = heights.length >> 1;
    const median = heights.length % 2 ? heights[middle] : (heights[middle - 1] + heights[middle]) / 2;
    const column = { x: (number + 0.5) * width, top: heights[0], median, bottom: heights[heights.length - 1] };
    if (parts.length === 0 || (gap && last + 1 < number)) parts.push([]);
    parts[parts.length - 1].push(column);
    [last, gap] = [number, endsWithGap];
  }
  return parts;
}

const px = (length) => String(Math.round(length * 10) / 10);

function polyline(points) {
  return points.map(([x, y], i) => (i ? "L" : "M") + px(x) + " " + px(y)).join("");
}

// What a curve of these spots is made of: paths by their class.
function curveOf(spots, { many, column, filled }, bottom) {
  if (spots.length > many) {
    const parts = columnsOf(spots, column);
    const round = (part) => [...part.map((c) => [c.x, c.top]), ...part.map((c) => [c.x, c.bottom]).reverse()];
    const line = (part) => polyline(part.map((c) => [c.x, c.median])) + (part.length > 1 ? "" : "h0.1");
    return { band: parts.map((part) => polyline(round(part)) + "z").join(""), line: parts.map(line).join("") };
  }
  const parts = [[]];
  for (const spot of spots) {
    if (spot) parts[parts.length - 1].push(spot);
    else parts.push([]);
  }
  const [area, line, lone] = [[], [], []];
  for (const part of parts.filter((part) => part.length)) {
    const along = polyline(part);
    line.push(part.length > 1 ? along : along + "h0.1");
    if (part.length === 1) lone.push(along + "h0.1");
    if (filled) area.push("M" + px(part[0][0]) + " " + px(bottom) + along.replace("M", "L") + "L" + px(part[part.length - 1][0]) + " " + px(bottom) + "z");
  }
  return { area: area.join(""), line: line.join(""), lone: lone.join("") };
}

// What a cell is sorted by: its number with its unit, else its text.
function weight(text) {
  const found = /^[<−-]?[\d,]*\.?\d+/.exec(text);
  if (!found) return null;
  const number = Number(found[0].replace(/[<,]/g, "").replace("−", "-"));
  const unit = text.slice(found[0].length).trim();
  const power = /^× 10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)/.exec(unit);
  if (power) return number * 10 ** Number([...power[1]].map((c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹".indexOf(c)).map((i) => (i ? i - 1 : "-")).join(""));
  return number * ({ KiB: 1024, MiB: 1048576, GiB: 1073741824 }[unit] || 1);
}
