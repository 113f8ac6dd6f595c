// Uses the pages of count, compare and reproduce as their reader would. See check-page.
"use strict";
const assert = require("node:assert/strict");
const { mkdtempSync, readdirSync, readFileSync, rmSync } = require("node:fs");
const { tmpdir } = require("node:os");
const { join } = require("node:path");
const { pathToFileURL } = require("node:url");
const vm = require("node:vm");
const { chromium } = require("playwright-core");

const [folder, screenshots] = process.argv.slice(2);
const QUIET = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync",
];

let checks = 0;
function same(have, want, what) {
  assert.deepEqual(have, want, what);
  checks++;
}
function holds(value, what) {
  assert.ok(value, what);
  checks++;
}

// Opens a file in a browser of its own; whatever it says or asks for is an error.
async function open(path, { fragment, ...options }, use) {
  const profile = mkdtempSync(join(tmpdir(), "check-page-"));
  const browser = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.CHROMIUM, headless: true, args: QUIET, ...options,
  });
  try {
    const page = await browser.newPage();
    const own = pathToFileURL(path).href;
    const trouble = [];
    page.on("console", (message) => trouble.push("console: " + message.text()));
    page.on("pageerror", (error) => trouble.push("error: " + error.message));
    page.on("dialog", (dialog) => { trouble.push("dialog: " + dialog.message()); dialog.dismiss(); });
    page.on("request", (request) => { if (request.url().split("#")[0] !== own) trouble.push("request: " + request.url()); });
    await page.goto(own + (fragment || ""));
    await use(page);
    same(trouble, [], "nothing is said, nothing goes wrong, nothing is asked for");
  } finally {
    await browser.close();
    rmSync(profile, { recursive: true, force: true });
  }
}

const seen = (page) => page.evaluate(() => {
  const text = (selector) => [...document.querySelectorAll(selector)].map((found) => found.textContent);
  return {
    title: document.title, heading: text("h1")[0], summary: text(".summary li"),
    figures: text("figure h3"), images: document.images.length, scripts: document.scripts.length,
    ground: getComputedStyle(document.body).backgroundColor,
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  };
});

async function use(page) {
  const all = await seen(page);
  holds(all.heading.includes("<img src=x onerror=alert(1)>\"'&amp;<script>alert(2)<"), "the name is shown as it is");
  same(all.title, all.heading, "title");
  same([all.images, all.scripts], [0, 2], "a hostile name is no element");
  holds(all.summary.length >= 3 && /\d+ to \d+ distinct host pairs a slice/.test(all.summary[0]), all.summary[0]);
  same(all.overflow, 0, "nothing sticks out");
  same(all.figures.slice(0, 3), ["Distinct host pairs in each slice", "How far from exact", "Packets in each slice"], "figures");

  const figure = page.locator("figure").first();
  const buttons = figure.locator(".legend button");
  same(await buttons.allTextContents(), ["exact", "estimate", "raw count (first)"], "legend");
  same(await figure.locator("svg [data-series]").count(), 3, "a group for each series");
  const lines = await figure.locator("svg .line").evaluateAll((paths) =>
    paths.filter((path) => path.closest(".plot")).map((path) => path.getTotalLength()));
  same(lines.length, 3, "a line for each series");
  holds(lines.every((length) => length > 300), "the lines cross the plot: " + lines);

  // Pointer.
  const svg = figure.locator(".plot svg");
  const tip = figure.locator(".tip");
  await svg.scrollIntoViewIfNeeded();
  const box = await svg.boundingBox();
  holds(!(await tip.isVisible()), "no values without a pointer");
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  holds(await tip.isVisible(), "values under the pointer");
  const [shown, table] = await figure.evaluate((figure) => {
    const tip = figure.querySelector(".tip");
    const values = [...tip.querySelectorAll("span + span")].map((value) => value.textContent);
    const rows = [...figure.querySelector("tbody").rows].map((row) => [...row.cells].map((cell) => cell.textContent));
    return [[tip.querySelector("b").textContent, ...values], rows];
  });
  same(shown.length, 4, "a place and a value of each series");
  same(shown, table.find((row) => row[0] === shown[0]), "they are those of the table");
  same(await svg.locator(".dot").count(), 3, "a dot on each series");

  // Legend, by pointer and by keyboard.
  const line = figure.locator("svg [data-series='1']");
  await buttons.nth(1).click();
  holds(!(await line.isVisible()), "a click hides the series");
  same(await buttons.nth(1).getAttribute("aria-pressed"), "false", "the button says so");
  holds(await figure.locator("svg [data-series='0']").isVisible(), "the others stay");
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  same(await tip.locator("div").count(), 2, "a hidden series has no value");
  for (const [key, visible] of [["Enter", true], ["Space", false], ["Space", true]]) {
    await buttons.nth(1).focus();
    await page.keyboard.press(key);
    same(await line.isVisible(), visible, key + " on the legend");
  }

  // Values by keyboard: the plot comes after the legend.
  await buttons.nth(2).focus();
  await page.keyboard.press("Tab");
  same(await page.evaluate(() => document.activeElement.className), "plot", "the plot can be reached");
  const at = () => tip.locator("b").textContent();
  await page.keyboard.press("Home");
  same(await at(), table[0][0], "Home");
  await page.keyboard.press("ArrowRight");
  same(await at(), table[1][0], "right");
  await page.keyboard.press("ArrowLeft");
  same(await at(), table[0][0], "left");
  await page.keyboard.press("End");
  same(await at(), table[table.length - 1][0], "End");
  holds((await figure.locator("[aria-live]").textContent()).includes("exact"), "screen readers are told");
  await page.keyboard.press("Escape");
  holds(!(await tip.isVisible()), "Escape");

  // The table behind it, and its order.
  await figure.locator("summary").focus();
  await page.keyboard.press("Enter");
  holds(await figure.locator("table").isVisible(), "the table opens");
  const column = () => figure.locator("tbody td:nth-child(2)").allTextContents();
  // Slices that the capture covers only in part have no value.
  const numbers = (texts) => texts.filter((text) => text !== "").map((text) => Number(text.replaceAll(",", "")));
  await figure.locator("th button").nth(1).click();
  const sorted = numbers(await column());
  same(sorted, [...sorted].sort((a, b) => a - b), "ascending");
  await figure.locator("th button").nth(1).click();
  same(numbers(await column()), sorted.toReversed(), "descending");
  await page.keyboard.press("Escape");
  await svg.scrollIntoViewIfNeeded();
  await page.locator("figure .plot").first().focus();
  await page.keyboard.press("Home");
  same(await at(), table[0][0], "the drawing keeps its own order");

  // Heat map.
  const matrix = page.locator("figure", { has: page.locator("#origin-destination") });
  const cell = matrix.locator("svg .cell").first();
  await cell.scrollIntoViewIfNeeded();
  await cell.hover();
  const words = await matrix.locator(".tip").textContent();
  holds(/\/24 → .*\/24packets[\d,]+$/.test(words), words);
}

// What the page's script computes, without a page.
const script = readFileSync(join(__dirname, "../src/report/html/time.js"), "utf8");
const names = "parseRange, writeRange, parseTime, writeTime, within, unpack, extents, placesIn, timeTicks, levels, columnsOf, curveOf, weight";
const time = vm.runInThisContext("(() => {" + script + "; return {" + names + "}; })()");

function numbers() {
  const second = time.parseTime("2023-11-14T22:13:20Z");
  same(second, 1_700_000_000_000_000, "a time");
  for (const range of [[second, second + 1], [second + 500_000, second + 9_000_000], [-62_135_596_800_000_000, 0]]) {
    same(time.parseRange(time.writeRange(range)), range, "a range comes back");
  }
  for (const fragment of ["", "#", "#elements-over-time", "#from=1&to=2", "#from=2023-11-14T22:13:20Z", "#to=x&from=<img>",
    "#from=2023-11-14T22:13:20Z&to=2023-11-14T22:13:20Z", "#from=2023-99-99T22:13:20Z&to=2024-11-14T22:13:20Z"]) {
    same(time.parseRange(fragment), null, fragment + " is no range");
  }
  const whole = [0, 1000];
  same(time.within([100, 200], whole, 10), [100, 200], "a part");
  same(time.within([-500, 200], whole, 10), [0, 700], "no part begins before the whole");
  same(time.within([500, 502], whole, 10), [496, 506], "no part is narrower than some slices");
  same(time.within([-10, 2000], whole, 10), null, "the whole");
  same(["1,234", "−0.5 %", "1.25 × 10⁻⁷", "64 KiB", "12 ± 3", "–"].map(time.weight), [1234, -0.5, 1.25e-7, 65536, 12, null], "texts");
  // Columns, by going through all spots for each.
  let state = 1;
  const random = () => (state = (state * 48271) % 2147483647) / 2147483647;
  const spots = Array.from({ length: 5000 }, (_, i) => (random() < 0.1 ? null : [i * 0.137, random() * 100]));
  const columns = time.columnsOf(spots, 3).flat();
  for (let number = 0; number <= 228; number++) {
    const heights = spots.filter((spot) => spot && Math.floor(spot[0] / 3) === number).map((spot) => spot[1]).sort((a, b) => a - b);
    const middle = heights.length / 2;
    const median = heights.length % 2 ? heights[Math.floor(middle)] : (heights[middle - 1] + heights[middle]) / 2;
    const want = heights.length ? [heights[0], median, heights[heights.length - 1]] : undefined;
    const column = columns.find((column) => Math.floor(column.x / 3) === number);
    assert.deepEqual(column && [column.top, column.median, column.bottom], want, "column " + number);
  }
  same(columns.length, new Set(columns.map((column) => column.x)).size, "each column once");
}

// What the script makes of the whole time is what the page has without it.
async function redrawn(page) {
  const figures = await page.evaluate(() => {
    const places = JSON.parse(document.getElementById("places").textContent);
    return Object.entries(places).filter(([, at]) => at.times).map(([name, at]) => {
      const svg = document.getElementById(name).querySelector(".plot svg");
      const texts = (part) => [...svg.querySelectorAll(part + " text")].map((text) => text.textContent);
      const groups = [...svg.querySelectorAll("[data-series]")];
      const path = (group, part) => [...group.querySelectorAll("path." + part)].map((path) => path.getAttribute("d"));
      return { at, up: texts(".axis-y"), across: texts(".axis-x"), curves: groups.map((group) => ({ band: path(group, "band"), line: path(group, "line") })) };
    });
  });
  const lengths = (text) => text.match(/[A-Za-z]|-?[\d.]+/g);
  for (const { at, up, across, curves } of figures) {
    const { times } = at;
    const data = time.unpack(times);
    const found = time.levels(time.extents(data, 0, data.at.length), times);
    const ticks = found.ticks.map(([, text]) => text);
    same([...new Set(up)].sort(), [...new Set(times.strips ? [ticks[0], ticks[ticks.length - 1]] : ticks)].sort(), "the vertical axis");
    const { ticks: clock, day } = time.timeTicks([times.from, times.to], times);
    const name = across.pop();
    same(name, times.label + (day ? " (" + day + ")" : ""), "the name of the axis");
    holds(across.length > 0 && across.every((text) => clock.some(([, other]) => other === text)), "the time axis: " + across);
    curves.forEach(({ band, line }, i) => {
      const [top, height] = times.panels[i][0];
      const spots = data.values[i].map((value, row) => value === null ? null : [
        at.left + ((data.at[row] - times.from) / (times.to - times.from)) * at.width,
        top + height - ((value - found.low) / (found.high - found.low)) * height,
      ]);
      const made = time.curveOf(spots, times, top + height);
      for (const [there, here] of [[band[0] || "", made.band || ""], [line[0] || "", made.line]]) {
        const [a, b] = [lengths(there) || [], lengths(here) || []];
        assert.equal(a.length, b.length, "as many points");
        a.forEach((length, n) => assert.ok(length === b[n] || Math.abs(length - b[n]) < 0.16, `${length} is ${b[n]}`));
      }
      checks++;
    });
  }
  return figures.length;
}

// Dragging, keys, the overview and the address: which part of the time is shown.
async function zoom(page) {
  const plots = page.locator("figure", { has: page.locator("svg.zoomable") });
  const count = await plots.count();
  holds(count >= 2, "several figures over time");
  const first = plots.first();
  const svg = first.locator(".plot svg");
  const overview = page.locator(".overview");
  const drawing = () => plots.evaluateAll((figures) => figures.map((figure) => [...figure.querySelectorAll(".axis-x, .axis-y, [data-series]")].map((part) => part.innerHTML).join()));
  const axes = () => plots.evaluateAll((figures) => figures.map((figure) => [...figure.querySelectorAll(".axis-x text")].map((text) => text.textContent).join(" ")));
  const rows = () => first.locator("tbody tr").evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
  const fragment = () => page.evaluate(() => location.hash);
  await first.locator("summary").click();
  const [before, axesBefore, all] = [await drawing(), await axes(), await rows()];
  holds((await overview.textContent()).startsWith("Whole time: "), "the overview says what is shown");

  const drag = async (from, to) => {
    await svg.scrollIntoViewIfNeeded();
    const box = await svg.boundingBox();
    const at = (part) => [box.x + box.width * part, box.y + box.height / 2];
    await page.mouse.move(...at(from));
    await page.mouse.down();
    await page.mouse.move(...at((from + to) / 2));
    await page.mouse.move(...at(to));
    await page.mouse.up();
    await page.mouse.move(...at((from + to) / 2));
  };
  await drag(0.3, 0.6);
  const range = time.parseRange(await fragment());
  holds(range && range[0] < range[1], "the address has the range: " + (await fragment()));
  (await axes()).forEach((axis, i) => holds(axis !== axesBefore[i], "every figure follows: " + axis));
  const isInside = (place) => {
    const at = time.parseTime(place.replace(" ", "T") + "Z");
    return at >= range[0] && at <= range[1];
  };
  const part = await rows();
  holds(part.length > 1 && part.every(([place]) => isInside(place)), "the table has rows of the range alone");
  // A long table has a choice of all rows; that of a part has them all.
  const known = new Set(part.map((row) => row.join()));
  holds(all.filter(([place]) => isInside(place)).every((row) => known.has(row.join())), "and all that were there before");
  holds(isInside(await first.locator(".tip b").textContent()), "values of the part under the pointer");
  const width = ([from, to]) => to - from;
  const now = async () => time.parseRange(await fragment());

  await first.locator(".plot").focus();
  await page.keyboard.press("+");
  holds(width(await now()) < width(range) * 0.7, "+ shows a smaller part");
  await page.keyboard.press("-");
  holds(width(await now()) > width(range) * 0.8, "- shows a larger one");
  await page.keyboard.press("0");
  same(await fragment(), "", "0 shows the whole");
  same(await drawing(), before, "which is drawn as before");
  same(await rows(), all, "with its table");

  await drag(0.6, 0.3);
  const other = await now();
  await overview.focus();
  await page.keyboard.press("ArrowRight");
  const moved = await now();
  holds(moved[0] > other[0] && Math.abs(width(moved) - width(other)) <= 2, "arrows move the part");
  await page.keyboard.press("Home");
  await page.keyboard.press("ArrowLeft");
  holds((await now())[0] < other[0], "not beyond the beginning");
  // Where values end in a plot, the next part comes.
  await first.locator(".plot").focus();
  await page.keyboard.press("End");
  const end = await first.locator(".tip b").textContent();
  await page.keyboard.press("ArrowRight");
  holds((await first.locator(".tip b").textContent()) > end, "the next value, beyond the part");
  const link = new URL(await page.evaluate(() => location.href)).hash;
  await svg.dblclick();
  same(await fragment(), "", "a double click shows the whole");
  same(await drawing(), before, "as before");
  const follow = async (hash) => {
    await page.evaluate((hash) => new Promise((done) => {
      addEventListener("hashchange", () => setTimeout(done), { once: true });
      location.hash = hash;
    }), hash);
  };
  for (const nonsense of ["#from=<img src=x>&to=1", "#from=2099-01-01T00:00:00Z&to=2099-01-01T00:00:09Z", "#nothing"]) {
    await follow(nonsense);
    same(await drawing(), before, nonsense + " changes nothing");
  }
  await follow(link);
  holds((await drawing())[0] !== before[0], "a link shows its part");
  await page.getByRole("button", { name: "Show the whole time" }).click();
  same(await drawing(), before, "a button shows the whole");
  return link;
}

const wide = { viewport: { width: 1100, height: 900 } };
const picture = async (page, name) => {
  if (screenshots) await page.screenshot({ path: join(screenshots, name + ".png"), fullPage: true });
};

// What every page has: figures with their series, a legend that hides each, a table behind each.
async function pageOf(name, figures, summary) {
  const file = join(folder, name + ".html");
  await open(file, { ...wide, colorScheme: "light" }, async (page) => {
    await picture(page, name + "-light");
    const all = await seen(page);
    same([all.images, all.overflow], [0, 0], name + ": no foreign element, nothing sticks out");
    await redrawn(page);
    holds(summary.test(all.summary[0]), name + ": " + all.summary[0]);
    for (const [id, series] of Object.entries(figures)) {
      const figure = page.locator("figure", { has: page.locator("[id='" + id + "']") });
      same(await figure.count(), 1, name + " has " + id);
      const buttons = figure.locator(".legend button");
      const names = await buttons.allTextContents();
      if (series) same(names, series, name + ", " + id + ": legend");
      const groups = await figure.locator("svg [data-series]").count();
      const cells = await figure.locator("svg .cell").count();
      // Strips have their names beside them, and no legend.
      const expected = names.length ? groups === names.length : groups > 0;
      holds(cells > 0 || expected, id + ": cells, or a group for each series");
      for (let i = 0; i < names.length; i++) {
        const shown = () => figure.locator("svg [data-series='" + i + "']").evaluate((group) => getComputedStyle(group).display !== "none");
        holds(await shown(), names[i] + " is there");
        await buttons.nth(i).click();
        holds(!(await shown()), "a click hides " + names[i]);
        await buttons.nth(i).click();
        holds(await shown(), "another shows " + names[i]);
      }
      await figure.locator("summary").click();
      holds(await figure.locator("tbody tr").count() > 0, id + ": a table behind it");
    }
  });
  await open(file, { ...wide, colorScheme: "dark" }, (page) => picture(page, name + "-dark"));
  await open(file, { viewport: { width: 360, height: 700 } }, async (page) => {
    await picture(page, name + "-narrow");
    same((await seen(page)).overflow, 0, name + ": a telephone shows it without scrolling sideways");
  });
  for (const figure of Object.keys(figures).filter((id) => id !== "origin-destination")) {
    await open(join(folder, name + "-figures", figure + ".svg"), wide, async (page) => {
      same(await page.evaluate(() => document.documentElement.tagName), "svg", figure);
    });
  }
}

// A long trace: columns of many seconds, and the seconds of a part.
async function long() {
  const file = join(folder, "long.html");
  const bytes = readFileSync(file).length;
  holds(bytes < 600_000, "the page stays small: " + bytes);
  await open(file, wide, async (page) => {
    await picture(page, "long");
    holds((await redrawn(page)) >= 2, "figures over time");
    const figure = page.locator("figure").first();
    same(await figure.locator("svg .band").count(), 3, "a band for each series");
    holds(await figure.locator(".dense").isVisible(), "the caption says what bands are");
    await zoom(page);
  });
  await open(file, { ...wide, fragment: "#from=2023-11-14T22:20:00Z&to=2023-11-14T22:21:00Z" }, async (page) => {
    await picture(page, "long-part");
    const figure = page.locator("figure").first();
    same(await figure.locator("svg .band").count(), 0, "a minute has no bands");
    holds(!(await figure.locator(".dense").isVisible()), "nor does the caption speak of them");
    await figure.locator("summary").click();
    same(await figure.locator("tbody tr").count(), 61, "each second has its row");
  });
}

// The same capture in the time of a zone: what a reader sees is what clocks there show.
async function zoned() {
  await open(join(folder, "zoned.html"), { ...wide, fragment: "#from=2023-11-14T22:13:22Z&to=2023-11-14T22:13:25Z" }, async (page) => {
    await picture(page, "zoned");
    const figure = page.locator("figure", { has: page.locator("svg.zoomable") }).first();
    holds((await page.title()).includes("Europe/Berlin"), "the title names the zone: " + await page.title());
    const axis = await figure.locator(".axis-x").textContent();
    holds(/23:13:2/.test(axis) && !/22:13/.test(axis), "the axis has local times: " + axis);
    await figure.locator("summary").click();
    const places = await figure.locator("tbody tr").evaluateAll((rows) => rows.map((row) => row.cells[0].textContent));
    holds(places.length > 1 && places.every((place) => /23:13:2[2-5]/.test(place)), "the table of the part, too: " + places[0]);
    await figure.locator(".plot").focus();
    await page.keyboard.press("0");
    same(await page.evaluate(() => location.hash), "", "0 shows the whole");
    await page.keyboard.press("+");
    holds(/from=2023-11-1[45]T2[23]/.test(await page.evaluate(() => location.hash)), "the address has a range");
  });
}

// With a finger: the overview chooses a part, a figure scrolls, and two taps show the whole again.
async function touched() {
  await open(join(folder, "page.html"), { viewport: { width: 400, height: 800 }, hasTouch: true, isMobile: true }, async (page) => {
    const finger = await page.context().newCDPSession(page);
    const touch = (type, at) => finger.send("Input.dispatchTouchEvent", {
      type, touchPoints: at ? [{ x: at[0], y: at[1] }] : [],
    });
    const drag = async (from, to) => {
      await touch("touchStart", from);
      for (const part of [0.25, 0.5, 0.75, 1]) {
        await touch("touchMove", from.map((start, i) => start + (to[i] - start) * part));
        await page.waitForTimeout(30);
      }
      await touch("touchEnd");
      await page.waitForTimeout(100);
    };
    const fragment = () => page.evaluate(() => location.hash);
    const overview = page.locator(".overview svg");
    await overview.scrollIntoViewIfNeeded();
    let box = await overview.boundingBox();
    const middle = box.y + box.height / 2;
    await drag([box.x + box.width * 0.3, middle], [box.x + box.width * 0.7, middle]);
    const range = time.parseRange(await fragment());
    holds(range && range[0] < range[1], "a finger on the overview chooses a part: " + (await fragment()));
    const svg = page.locator("svg.zoomable").first();
    await svg.scrollIntoViewIfNeeded();
    box = await svg.boundingBox();
    const at = [Math.min(box.x + 150, 350), box.y + box.height / 2];
    const scrolled = () => page.evaluate(() => scrollY);
    const before = await scrolled();
    await drag(at, [at[0], at[1] - 150]);
    holds((await scrolled()) > before, "a finger on a figure scrolls");
    same(time.parseRange(await fragment()), range, "and leaves the part as it is");
    await svg.scrollIntoViewIfNeeded();
    box = await svg.boundingBox();
    const tap = [Math.min(box.x + 150, 350), box.y + box.height / 2];
    for (let taps = 0; taps < 2; taps++) {
      await touch("touchStart", tap);
      await touch("touchEnd");
      await page.waitForTimeout(80);
    }
    await page.waitForTimeout(400);
    same(await fragment(), "", "two taps show the whole");
    await picture(page, "touched");
  });
}

async function main() {
  numbers();
  await long();
  await zoned();
  await touched();
  const file = join(folder, "page.html");
  let light;
  await open(file, { ...wide, colorScheme: "light" }, async (page) => {
    await picture(page, "light");
    await redrawn(page);
    await use(page);
    light = await seen(page);
  });
  await open(file, wide, zoom);
  await open(file, { ...wide, colorScheme: "dark" }, async (page) => {
    await picture(page, "dark");
    const sum = (colour) => colour.match(/\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0);
    holds(sum((await seen(page)).ground) < 200 && sum(light.ground) > 600, "dark is dark and light is light");
    const line = (colour) => page.locator("svg [data-series='1']").first().evaluate((group) => getComputedStyle(group).color);
    holds(sum(await line()) > 300, "lines are light on dark");
    await page.emulateMedia({ media: "print" });
    const ink = await page.evaluate(() => getComputedStyle(document.body).color);
    holds(sum(ink) < 300, "printed dark on light: " + ink);
  });
  await open(file, { viewport: { width: 360, height: 700 } }, async (page) => {
    await picture(page, "narrow");
    same((await seen(page)).overflow, 0, "a telephone shows it without scrolling sideways");
  });
  await open(file, { ...wide, javaScriptEnabled: false }, async (page) => {
    same(await page.locator("figure svg [data-series='0']").first().isVisible(), true, "without scripts the figures are there");
  });
  const figures = readdirSync(join(folder, "figures"));
  holds(figures.includes("elements-over-time.svg"), "figures: " + figures);
  for (const name of figures) {
    await open(join(folder, "figures", name), wide, async (page) => {
      same(await page.evaluate(() => document.documentElement.tagName), "svg", name);
    });
  }
  await pageOf("top", { "keys-over-time": [], "others-over-time": [] }, / has the most distinct destinations: \d+ /);
  await pageOf("compare", {
    "error-by-memory": null,
    "counts-over-time": null,
    "difference-by-load": ["240 B", "480 B", "960 B"],
    "skipped-packets": [],
    "origin-destination": null,
  }, / (raw count is nearer|no difference that matters|both counts are the same|not decide)/);
  await pageOf("reproduce", {
    "cbfm-fig-11": null,
    "cbfm-memory": ["BFM", "CBFM"],
  }, /^3 experiments .* 0 leave it by more than 4 standard errors\.$/);
  console.log(`${checks} checks in Chromium, all well`);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
