// Adds to a page that is complete without it: values under the pointer, series that can be hidden, sorting, and any part
// of the time at full width (time.js has the numbers behind that).
// Texts are taken from the page's own tables and put back as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

// Rows of a table that is made for a part of the time, at most.
const MOST_ROWS = 1000;

// Values up to which each has a marker.
const FEW = 40;

function element(name, text, parent) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}

function shape(name, attributes, parent) {
  const made = document.createElementNS(SVG, name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  parent.append(made);
  return made;
}

// Where an event is, in units of the drawing.
function placeOf(event, svg) {
  const box = svg.getBoundingClientRect();
  const view = svg.viewBox.baseVal;
  return [((event.clientX - box.left) * view.width) / box.width, ((event.clientY - box.top) * view.height) / box.height];
}

// Calls back with both ends of what is dragged over, in units of the drawing; `begins` says whether a drag may begin.
function draggable(svg, begins, moves, ends) {
  let start = null;
  svg.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || !begins(event)) return;
    start = placeOf(event, svg)[0];
    svg.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  svg.addEventListener("pointermove", (event) => {
    if (start !== null) moves(start, placeOf(event, svg)[0]);
  });
  svg.addEventListener("pointerup", (event) => {
    if (start !== null) ends(start, placeOf(event, svg)[0]);
    start = null;
  });
  svg.addEventListener("pointercancel", () => {
    if (start !== null) ends(0, 0);
    start = null;
  });
  return () => start !== null;
}

// The part of the time that all figures show. It stands in the address, so that a link shows the same part.
class Zoom {
  constructor(all) {
    this.whole = [Math.min(...all.map((times) => times.from)), Math.max(...all.map((times) => times.to))];
    // A few slices at least.
    this.least = Math.min(this.whole[1] - this.whole[0], ...all.map((times) => 4 * times.step * Math.min(...times.gaps)));
    this.range = null;
    this.followers = [];
  }

  get shown() {
    return this.range || this.whole;
  }

  // Shows this part; null is the whole.
  set(range, write = true) {
    this.range = range && within(range, this.whole, this.least);
    if (write) this.write();
    for (const follower of this.followers) follower(this.range);
  }

  write() {
    try {
      history.replaceState(null, "", this.range ? writeRange(this.range) : location.pathname + location.search);
    } catch {
      // A page within another one may have no address of its own.
    }
  }

  // Shows what the address names; where it names something else, nothing changes.
  read() {
    const range = parseRange(location.hash);
    if (range && range[0] < this.whole[1] && range[1] > this.whole[0]) this.set(range, false);
    else if (location.hash === "" && this.range) this.set(null, false);
  }

  // Larger (a factor below 1) or smaller, around a time.
  scale(factor, around) {
    const [from, to] = this.shown;
    const middle = around === null || around < from || around > to ? (from + to) / 2 : around;
    this.set([middle - (middle - from) * factor, middle + (to - middle) * factor]);
  }

  // Moves the part by so many of its widths. Says whether there was anywhere to go.
  move(parts) {
    const [from, to] = this.shown;
    const way = parts * (to - from);
    const free = way < 0 ? from - this.whole[0] : this.whole[1] - to;
    if (!this.range || free <= 0) return false;
    const step = Math.sign(way) * Math.min(Math.abs(way), free);
    this.set([from + step, to + step]);
    return true;
  }

  // What the keys +, - and 0 do. Says whether it was one of them.
  key(event, around) {
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    if (event.key === "+" || event.key === "=") this.scale(0.5, around);
    else if (event.key === "-") this.scale(2, around);
    else if (event.key === "0") this.set(null);
    else return false;
    event.preventDefault();
    return true;
  }
}

// A figure: its drawing, the table behind it, and where things are.
function chart(figure, at, zoom) {
  const plot = figure.querySelector(".plot");
  const svg = plot.querySelector("svg");
  const table = figure.querySelector("table");
  const names = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
  const groups = [...svg.querySelectorAll("[data-series]")];
  const hidden = new Set();
  const marks = shape("g", {}, svg);
  const tip = element("div", undefined, plot);
  const said = element("p", undefined, figure);
  tip.className = "tip";
  tip.hidden = true;
  said.className = "unseen";
  said.setAttribute("aria-live", "polite");
  let spot = null; // [row, column] that is shown
  // What can be pointed at: rows of texts in the order of the drawing, however the table is sorted, and their places.
  const whole = { x: at.x, y: at.y, rows: [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.textContent)) };
  let view = whole;
  let isDragged = () => false;

  function clear() {
    spot = null;
    tip.hidden = true;
    marks.replaceChildren();
  }

  // Shows the values of a row (of one cell of it for a heat map) beside the place (x, y).
  function show(row, column, x, y) {
    spot = [row, column];
    marks.replaceChildren();
    tip.replaceChildren();
    const cells = view.rows[row];
    const words = [];
    function line(name, value) {
      const div = element("div", undefined, tip);
      element("span", name, div);
      element("span", value, div);
      words.push(name + " " + value);
    }
    if (at.shape === "heat") {
      element("b", cells[0] + " → " + names[column + 1], tip);
      line(figure.dataset.unit, cells[column + 1] || "0");
    } else {
      element("b", cells[0], tip);
      for (let i = 1; i < cells.length; i++) {
        if (!hidden.has(i - 1)) line(names[i], cells[i] || "–");
      }
    }
    if (at.shape === "lines") {
      shape("path", { class: "cross", d: `M${x} ${at.top}v${at.height}` }, marks);
      groups.forEach((group, i) => {
        const height = view.y[i][row];
        if (hidden.has(i) || height === null) return;
        const dot = shape("circle", { class: "dot", r: 4, cx: x, cy: height }, marks);
        dot.style.color = getComputedStyle(group).color;
      });
    } else {
      const [down, across] = at.bands;
      const lying = at.shape === "heat" || at.horizontal;
      const high = lying ? at.height / down : at.height;
      const wide = at.shape === "heat" ? at.width / across : at.horizontal ? at.width : at.width / down;
      const left = at.left + (at.shape === "heat" ? column * wide : at.horizontal ? 0 : row * wide);
      const top = at.top + (lying ? row * high : 0);
      shape("rect", { class: "cross", x: left, y: top, width: wide, height: high }, marks);
    }
    tip.hidden = false;
    const scale = svg.clientWidth / svg.viewBox.baseVal.width;
    const room = plot.scrollLeft + plot.clientWidth - tip.offsetWidth - 4;
    const right = x * scale + 14;
    const beside = right > room ? Math.max(plot.scrollLeft, x * scale - tip.offsetWidth - 14) : right;
    tip.style.left = beside + "px";
    const low = svg.clientHeight - tip.offsetHeight - 4;
    tip.style.top = Math.max(0, Math.min(low, y * scale + 12)) + "px";
    said.textContent = tip.firstChild.textContent + ": " + words.join(", ");
  }

  // The row nearest to x: rows of lines are in the order of x.
  function nearest(x) {
    let best = 0;
    view.x.forEach((place, i) => {
      if (place !== null && Math.abs(place - x) < Math.abs(view.x[best] - x)) best = i;
    });
    return best;
  }

  function visit(row, column) {
    const [down, across] = at.bands;
    if (at.shape === "lines") {
      if (view.x[row] !== null) show(row, 0, view.x[row], at.top);
    } else if (at.shape === "heat") {
      show(row, column, at.left + ((column + 0.5) * at.width) / across, at.top + ((row + 0.5) * at.height) / down);
    } else if (at.horizontal) {
      show(row, 0, at.left + at.width / 3, at.top + ((row + 0.5) * at.height) / down);
    } else {
      show(row, 0, at.left + ((row + 0.5) * at.width) / down, at.top);
    }
  }

  const isInside = (x, y) => x >= at.left - 4 && x <= at.left + at.width + 4 && y >= at.top - 4 && y <= at.top + at.height + 4;
  svg.addEventListener("pointermove", (event) => {
    if (isDragged()) return;
    const [x, y] = placeOf(event, svg);
    const [down, across] = at.bands;
    if (!isInside(x, y) || view.rows.length === 0) return clear();
    const within = (part, count) => Math.max(0, Math.min(count - 1, Math.floor(part * count)));
    const right = (x - at.left) / at.width;
    const below = (y - at.top) / at.height;
    if (at.shape === "lines") {
      const row = nearest(x);
      show(row, 0, view.x[row], y);
    } else if (at.shape === "heat") {
      show(within(below, down), within(right, across), x, y);
    } else {
      show(within(at.horizontal ? below : right, down), 0, x, y);
    }
  });
  svg.addEventListener("pointerleave", clear);
  plot.addEventListener("blur", clear);
  plot.addEventListener("keydown", (event) => {
    if (at.times && zoom.key(event, spot ? view.time(view.x[spot[0]]) : null)) return;
    const last = view.rows.length - 1;
    const columns = at.shape === "heat" ? at.bands[1] : 1;
    if (last < 0 || columns < 1) return;
    let [row, column] = spot || [-1, 0];
    const back = { ArrowLeft: 1, ArrowUp: 1 }[event.key];
    const sideways = event.key === "ArrowLeft" || event.key === "ArrowRight";
    if (event.key === "Escape") return clear();
    else if (event.key === "Home") row = 0;
    else if (event.key === "End") row = last;
    else if (!event.key.startsWith("Arrow")) return;
    else if (row < 0) row = 0;
    else if (at.shape === "heat" && sideways) column += back ? -1 : 1;
    else row += back ? -1 : 1;
    event.preventDefault();
    if (at.times && (row < 0 || row > last)) {
      // Beyond the end of what is shown comes the next part.
      const time = view.time(view.x[spot[0]]);
      if (zoom.move(back ? -0.5 : 0.5)) row = nearest(view.place(time)) + (back ? -1 : 1);
    }
    visit(Math.max(0, Math.min(view.rows.length - 1, row)), Math.max(0, Math.min(columns - 1, column)));
  });

  figure.querySelectorAll(".legend button").forEach((button, i) => {
    button.addEventListener("click", () => {
      const shown = hidden.delete(i);
      if (!shown) hidden.add(i);
      button.setAttribute("aria-pressed", String(shown));
      if (shown) groups[i].removeAttribute("display");
      else groups[i].setAttribute("display", "none");
      clear();
    });
  });
  if (at.times) overTime();

  // Draws any part of the time.
  function overTime() {
    const times = at.times;
    const data = unpack(times);
    const { at: places, texts, values } = data;
    const dense = figure.querySelector(".dense");
    const redrawn = [svg.querySelector(".axis-x"), svg.querySelector(".axis-y"), ...groups];
    const before = redrawn.map((part) => [...part.childNodes]);
    const keys = [...figure.querySelectorAll(".legend button")].map((button) => button.querySelector(".mark, .open"));
    const details = figure.querySelector("details");
    const body = table.tBodies[0];
    const rowsBefore = [...body.rows];
    const count = details.querySelector(".rows");
    const countBefore = count && count.textContent;
    const note = element("p");
    details.querySelector(".scroll").before(note);
    // Between times and places on the drawing.
    const scaled = ([from, to]) => ({
      place: (time) => at.left + ((time - from) / (to - from)) * at.width,
      time: (x) => from + ((x - at.left) / at.width) * (to - from),
    });
    Object.assign(whole, scaled([times.from, times.to]));

    function axes(range, found) {
      const [across, up] = redrawn;
      const bottom = at.top + at.height;
      across.replaceChildren();
      up.replaceChildren();
      const label = (parent, x, y, anchor, text) => {
        shape("text", { class: "quiet", x: px(x), y: px(y), "text-anchor": anchor }, parent).textContent = text;
      };
      const { ticks, day } = timeTicks(range, times);
      let path = "";
      for (const [time, text] of ticks) {
        const x = view.place(time);
        const half = text.length * 3.3;
        path += "M" + px(x) + " " + px(bottom) + "v5";
        label(across, Math.max(half + 2, Math.min(svg.viewBox.baseVal.width - half - 2, x)), bottom + 19, "middle", text);
      }
      shape("path", { class: "base", d: path }, across);
      label(across, at.left + at.width / 2, bottom + 39, "middle", times.label + (day ? " (" + day + ")" : ""));
      const shown = times.strips ? [found.ticks[0], found.ticks[found.ticks.length - 1]] : found.ticks;
      for (const [top, height] of new Map(times.panels.flat().map((panel) => [panel[0], panel])).values()) {
        const level = (number) => top + height - ((number - found.low) / (found.high - found.low)) * height;
        const line = (number) => "M" + px(at.left) + " " + px(level(number)) + "h" + px(at.width);
        for (const [number, text] of shown) label(up, at.left - 8, level(number) + 4, "end", text);
        shape("path", { class: "grid", d: shown.map(([number]) => line(number)).join("") }, up);
        if (!times.strips) shape("path", { class: "base", d: line(0) }, up);
      }
    }

    function curves(first, end, found) {
      view.y = groups.map((group, i) => {
        const parts = times.panels[i].map(([top, height]) => {
          const level = (number) => top + height - ((number - found.low) / (found.high - found.low)) * height;
          const spots = [];
          for (let row = first; row < end; row++) spots.push(values[i][row] === null ? null : [view.place(places[row]), level(values[i][row])]);
          const made = document.createElementNS(SVG, "g");
          if (spots.length <= times.many) (times.bands[i] ? band : errors)(made, data.ends[i].slice(first), spots, level);
          const paths = curveOf(spots, times, top + height);
          for (const name in paths) if (paths[name]) shape("path", { class: name, d: paths[name] }, made);
          const isMarked = spots.length <= FEW && !group.classList.contains("ref") && (keys.length === 0 || keys[i]);
          if (isMarked) for (const place of spots) if (place) mark(made, keys[i], place);
          return [made, spots];
        });
        group.replaceChildren(...parts.map(([made]) => made));
        return parts.length ? parts[0][1].map((place) => place && place[1]) : [];
      });
    }

    function band(made, ends, spots, level) {
      let path = "";
      for (let row = 0; row + 1 < spots.length; row++) {
        const [from, to] = [spots[row], spots[row + 1]];
        if (!from || !to) continue;
        const [[low, high], [nextLow, nextHigh]] = [ends[row], ends[row + 1]];
        path += "M" + px(from[0]) + " " + px(level(low)) + "L" + px(to[0]) + " " + px(level(nextLow)) + "V" + px(level(nextHigh)) + "L" + px(from[0]) + " " + px(level(high)) + "z";
      }
      if (path) shape("path", { class: "interval", d: path }, made);
    }

    function errors(made, ends, spots, level) {
      let path = "";
      spots.forEach((place, row) => {
        const [low, high] = ends[row];
        if (!place || level(low) - level(high) < 0.5) return;
        path += "M" + px(place[0]) + " " + px(level(low)) + "V" + px(level(high));
      });
      if (path) shape("path", { class: "errors", d: path }, made);
    }

    function mark(made, key, [x, y]) {
      if (!key) return shape("circle", { class: "mark", r: 3.5, cx: px(x), cy: px(y) }, made);
      shape("path", { class: key.getAttribute("class"), d: key.getAttribute("d").replace(/^M\S+ \S+?(?=[a-z])/, "M" + px(x) + " " + px(y)) }, made);
    }

    // The table of what is shown.
    function fill() {
      for (const head of table.tHead.rows[0].cells) head.removeAttribute("aria-sort");
      const numbers = view.rows.filter((row) => row.some((text, i) => i > 0 && text));
      const rows = view === whole ? rowsBefore : numbers.slice(0, MOST_ROWS).map((texts) => {
        const row = document.createElement("tr");
        texts.forEach((text, i) => { element("td", text, row).className = table.tHead.rows[0].cells[i].className; });
        return row;
      });
      body.replaceChildren(...rows);
      const all = numbers.length.toLocaleString("en");
      const some = numbers.length > MOST_ROWS ? `The first ${MOST_ROWS.toLocaleString("en")} of ${all} places in this part of the time; a smaller part has all.` : "";
      note.textContent = view === whole ? "" : some;
      if (count) count.textContent = view === whole ? countBefore : rows.length.toLocaleString("en") + " rows";
    }

    function follow(range) {
      clear();
      if (range) {
        const [first, end] = placesIn(places, range);
        const found = levels(extents(data, first, end), times);
        view = scaled(range);
        view.x = places.slice(first, end).map((time) => Math.round(view.place(time) * 10) / 10);
        view.rows = view.x.map((_, i) => [tableTime(places[first + i], times), ...texts.map((list) => list[first + i])]);
        if (dense) dense.hidden = end - first <= times.many;
        axes(range, found);
        curves(first, end, found);
      } else if (view !== whole) {
        view = whole;
        if (dense) dense.hidden = false;
        redrawn.forEach((part, i) => part.replaceChildren(...before[i]));
      }
      if (details.open) fill();
    }
    zoom.followers.push(follow);
    details.addEventListener("toggle", () => { if (details.open) fill(); });

    const brush = shape("rect", { class: "brush", y: at.top, height: at.height, width: 0 }, svg);
    const ordered = (a, b) => {
      const clamp = (x) => Math.max(at.left, Math.min(at.left + at.width, x));
      return [clamp(Math.min(a, b)), clamp(Math.max(a, b))];
    };
    isDragged = draggable(
      svg,
      (event) => event.pointerType !== "touch" && isInside(...placeOf(event, svg)),
      (a, b) => {
        clear();
        const [left, right] = ordered(a, b);
        brush.setAttribute("x", left);
        brush.setAttribute("width", right - left);
      },
      (a, b) => {
        brush.setAttribute("width", 0);
        plot.focus({ preventScroll: true });
        const [left, right] = ordered(a, b);
        if (right - left > 4) zoom.set([view.time(left), view.time(right)]);
      },
    );
    svg.addEventListener("dblclick", () => zoom.set(null));
    svg.classList.add("zoomable");
  }
}

// A time as the tables have it.
const tableTime = (time, { offsets }) => writeClock(time, offsets).join(" ");

// The whole time in small, above all figures: which part of it they show.
function overview(main, zoom, times) {
  const [width, height] = [1000, 40];
  const box = document.createElement("div");
  box.className = "overview";
  box.tabIndex = 0;
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", "The part of the time that figures show; arrow keys move it, plus and minus change it, 0 shows the whole");
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", class: "fs", "aria-hidden": "true" }, box);
  const line = element("p", undefined, box);
  const words = element("span", undefined, line);
  words.setAttribute("aria-live", "polite");
  const button = (text, name, does) => {
    const made = element("button", text, line);
    made.type = "button";
    made.setAttribute("aria-label", name);
    made.addEventListener("click", does);
    return made;
  };
  button("−", "Show a larger part", () => zoom.scale(2, null));
  button("+", "Show a smaller part", () => zoom.scale(0.5, null));
  const back = button("Whole time", "Show the whole time", () => zoom.set(null));

  const [from, to] = zoom.whole;
  const place = (time) => ((time - from) / (to - from)) * width;
  const { at, values } = unpack(times);
  const found = levels(values[0].filter((value) => value !== null), times);
  const spots = values[0].map((value, i) => (value === null ? null : [place(at[i]), height - 2 - ((value - found.low) / (found.high - found.low)) * (height - 4)]));
  const drawn = shape("g", { class: "s0" }, svg);
  const paths = curveOf(spots, { many: 300, column: 3, filled: true }, height);
  for (const name of ["area", "band", "line", "lone"]) if (paths[name]) shape("path", { class: name, d: paths[name] }, drawn);
  const [before, behind, frame] = ["off", "off", "window"].map((name) => shape("rect", { class: name, y: 0, height }, svg));

  function mark([left, right]) {
    for (const [rect, x, end] of [[before, 0, left], [behind, right, width], [frame, left, right]]) {
      rect.setAttribute("x", x);
      rect.setAttribute("width", Math.max(0, end - x));
    }
  }

  function follow(range) {
    const shown = range || zoom.whole;
    mark(shown.map(place));
    const text = shown.map((time) => tableTime(time, times));
    const sameDay = text[0].slice(0, 10) === text[1].slice(0, 10);
    words.textContent = (range ? "" : "Whole time: ") + text[0] + " to " + (sameDay ? text[1].slice(11) : text[1]) + " " + times.zone + (range ? "" : "; drag here or over a figure to see a part of it");
    back.hidden = !range;
    box.classList.toggle("zoomed", Boolean(range));
  }
  zoom.followers.push(follow);

  const timeOf = (x) => from + (Math.max(0, Math.min(width, x)) / width) * (to - from);
  let grabbed = null; // the part that is moved
  draggable(
    svg,
    (event) => {
      const time = timeOf(placeOf(event, svg)[0]);
      grabbed = zoom.range && time > zoom.range[0] && time < zoom.range[1] ? zoom.range : null;
      return true;
    },
    (a, b) => {
      if (grabbed) zoom.set(grabbed.map((time) => time + ((b - a) / width) * (to - from)), false);
      else mark([Math.max(0, Math.min(a, b)), Math.min(width, Math.max(a, b))]);
    },
    (a, b) => {
      if (grabbed || Math.abs(b - a) <= 4) zoom.set(zoom.range);
      else zoom.set([timeOf(Math.min(a, b)), timeOf(Math.max(a, b))]);
    },
  );
  svg.addEventListener("dblclick", () => zoom.set(null));
  box.addEventListener("keydown", (event) => {
    if (zoom.key(event, null)) return;
    const parts = { ArrowLeft: -0.25, ArrowRight: 0.25, PageUp: -1, PageDown: 1, Home: -Infinity, End: Infinity }[event.key];
    if (parts === undefined) return;
    event.preventDefault();
    zoom.move(parts);
  });
  main.prepend(box);
  follow(null);
}

function sortable(table) {
  [...(table.tHead?.rows[0].cells ?? [])].forEach((head, column) => {
    head.querySelector("button").addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const numeric = head.className === "number";
      const key = (row) => {
        const text = row.cells[column].textContent;
        return numeric ? weight(text) : text;
      };
      const body = table.tBodies[0];
      const rows = [...body.rows].map((row) => [key(row), row]);
      const order = (a, b) => (numeric ? a - b : a < b ? -1 : a > b ? 1 : 0);
      rows.sort(([a], [b]) => {
        if (a === null || b === null) return (a === null) - (b === null); // what is missing comes last
        return down ? -order(a, b) : order(a, b);
      });
      body.append(...rows.map(([, row]) => row));
    });
  });
}

const places = JSON.parse(document.getElementById("places").textContent);
const overTime = Object.values(places).map((at) => at.times).filter(Boolean);
const zoom = overTime.length ? new Zoom(overTime) : null;
for (const name in places) chart(document.getElementById(name), places[name], zoom);
document.querySelectorAll("table").forEach(sortable);
if (zoom) {
  overview(document.querySelector("main"), zoom, overTime[0]);
  addEventListener("hashchange", () => zoom.read());
  zoom.read();
}
