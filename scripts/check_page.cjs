// Uses the pages of count, compare and reproduce as their reader would. See check-page.
"use strict";
const assert = require("node:assert/strict");
const { mkdtempSync, readdirSync, rmSync } = require("node:fs");
const { tmpdir } = require("node:os");
const { join } = require("node:path");
const { pathToFileURL } = require("node:url");
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
async function open(path, options, use) {
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
    page.on("request", (request) => { if (request.url() !== own) trouble.push("request: " + request.url()); });
    await page.goto(own);
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
  const numbers = (texts) => texts.map((text) => Number(text.replaceAll(",", "")));
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

async function main() {
  const file = join(folder, "page.html");
  let light;
  await open(file, { ...wide, colorScheme: "light" }, async (page) => {
    await picture(page, "light");
    await use(page);
    light = await seen(page);
  });
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
  const filters = ["mdbf", "cmdbf", "bfm", "cbfm", "bloom", "subset", "subset-planned"];
  await pageOf("top", { "keys-over-time": [], "others-over-time": [] }, / has the most distinct destinations: \d+ /);
  await pageOf("compare", {
    "pair-over-time": ["mdbf", "cmdbf"],
    "counts-over-time": ["exact", ...filters, "hll"],
    "error-by-memory": null,
    "false-positives-apart": filters,
    "time-an-element": [...filters, "hll"],
    "skipped-packets": [],
    "origin-destination": null,
  }, / (nearer|equally near) to the truth .* at 512 B each/);
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
