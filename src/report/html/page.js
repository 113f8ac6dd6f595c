"use strict";
// Adds to a page that is complete without it: values under the pointer, series that can be hidden, sorting.
// Texts are taken from the page's own tables and put back as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

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

// A figure: its drawing, the table behind it, and where things are.
function chart(figure, at) {
  const plot = figure.querySelector(".plot");
  const svg = plot.querySelector("svg");
  const table = figure.querySelector("table");
  const names = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
  const rows = [...table.tBodies[0].rows]; // in the order of the drawing, however they are sorted
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
    const cells = rows[row].cells;
    const words = [];
    function line(name, value) {
      const div = element("div", undefined, tip);
      element("span", name, div);
      element("span", value, div);
      words.push(name + " " + value);
    }
    if (at.shape === "heat") {
      element("b", cells[0].textContent + " → " + names[column + 1], tip);
      line(figure.dataset.unit, cells[column + 1].textContent || "0");
    } else {
      element("b", cells[0].textContent, tip);
      for (let i = 1; i < cells.length; i++) {
        if (!hidden.has(i - 1)) line(names[i], cells[i].textContent || "–");
      }
    }
    if (at.shape === "lines") {
      shape("path", { class: "cross", d: `M${x} ${at.top}v${at.height}` }, marks);
      groups.forEach((group, i) => {
        const height = at.y[i][row];
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
    at.x.forEach((place, i) => {
      if (place !== null && Math.abs(place - x) < Math.abs(at.x[best] - x)) best = i;
    });
    return best;
  }

  function visit(row, column) {
    const [down, across] = at.bands;
    if (at.shape === "lines") {
      if (at.x[row] !== null) show(row, 0, at.x[row], at.top);
    } else if (at.shape === "heat") {
      show(row, column, at.left + ((column + 0.5) * at.width) / across, at.top + ((row + 0.5) * at.height) / down);
    } else if (at.horizontal) {
      show(row, 0, at.left + at.width / 3, at.top + ((row + 0.5) * at.height) / down);
    } else {
      show(row, 0, at.left + ((row + 0.5) * at.width) / down, at.top);
    }
  }

  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const scale = svg.viewBox.baseVal.width / box.width;
    const x = (event.clientX - box.left) * scale;
    const y = (event.clientY - box.top) * scale;
    const [down, across] = at.bands;
    const inside = x >= at.left - 4 && x <= at.left + at.width + 4 && y >= at.top - 4 && y <= at.top + at.height + 4;
    if (!inside || rows.length === 0) return clear();
    const within = (part, count) => Math.max(0, Math.min(count - 1, Math.floor(part * count)));
    const right = (x - at.left) / at.width;
    const below = (y - at.top) / at.height;
    if (at.shape === "lines") {
      const row = nearest(x);
      show(row, 0, at.x[row], y);
    } else if (at.shape === "heat") {
      show(within(below, down), within(right, across), x, y);
    } else {
      show(within(at.horizontal ? below : right, down), 0, x, y);
    }
  });
  svg.addEventListener("pointerleave", clear);
  plot.addEventListener("blur", clear);
  plot.addEventListener("keydown", (event) => {
    const last = rows.length - 1;
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
    visit(Math.max(0, Math.min(last, row)), Math.max(0, Math.min(columns - 1, column)));
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

function sortable(table) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
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
for (const name in places) chart(document.getElementById(name), places[name]);
document.querySelectorAll("table").forEach(sortable);
