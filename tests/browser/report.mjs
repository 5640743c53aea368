// Opens a report in headless Chromium and checks what a reader would see. Speaks the browser's own protocol over a
// pipe, so it needs Node and Chromium and nothing else.
//
//     node report.mjs <chromium> <report.html> <manifest.json> <folder for screenshots>

import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [chromium, report, manifestPath, shots] = process.argv.slice(2);
const manifest = JSON.parse(readFileSync(manifestPath, "utf8"));
const address = pathToFileURL(resolve(report)).href;

class Browser {
  constructor(profile) {
    const flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
      "--disable-component-update", "--disable-background-networking", `--user-data-dir=${profile}`,
      "--remote-debugging-pipe", "about:blank"];
    this.process = spawn(chromium, flags, { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
    this.next = 1;
    this.waiting = new Map();
    this.listeners = [];
    let buffer = "";
    this.process.stdio[4].setEncoding("utf8");
    this.process.stdio[4].on("data", (part) => {
      buffer += part;
      for (let end; (end = buffer.indexOf("\0")) >= 0; buffer = buffer.slice(end + 1)) this.receive(JSON.parse(buffer.slice(0, end)));
    });
    this.process.on("exit", () => this.waiting.forEach(({ reject }) => reject(new Error("the browser has ended"))));
  }

  receive(message) {
    const asked = this.waiting.get(message.id);
    this.waiting.delete(message.id);
    if (asked) message.error ? asked.reject(new Error(message.error.message)) : asked.resolve(message.result);
    else this.listeners.forEach((listener) => listener(message.method, message.params));
  }

  call(method, params = {}, sessionId = this.session) {
    const id = this.next++;
    this.process.stdio[3].write(JSON.stringify({ id, method, params, sessionId }) + "\0");
    return new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
  }

  event(name) {
    return new Promise((resolve) => this.listeners.push((method, params) => method === name && resolve(params)));
  }

  async evaluate(what) {
    const { result, exceptionDetails } = await this.call("Runtime.evaluate", { expression: `(${what})()`, returnByValue: true, awaitPromise: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }
}

const failures = [];
const expect = (holds, what) => holds || failures.push(what);
const equal = (found, wanted, what) => expect(found === wanted, `${what}: the page says ${JSON.stringify(found)}, the manifest ${JSON.stringify(wanted)}`);

const count = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, ",");
const share = (part) => (part === 0 ? "0 %" : part * 100 < 0.1 ? "< 0.1 %" : `${(part * 100).toFixed(1)} %`);

async function look(browser, name, width, height, scheme, mobile) {
  await browser.call("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: mobile ? 2 : 1, mobile });
  await browser.call("Emulation.setEmulatedMedia", { media: "screen", features: [{ name: "prefers-color-scheme", value: scheme }] });
  const loaded = browser.event("Page.loadEventFired");
  await browser.call("Page.navigate", { url: address });
  await loaded;
  const overflow = await browser.evaluate("() => document.documentElement.scrollWidth - window.innerWidth");
  expect(overflow <= 0, `${name}: the page is ${overflow} pixels wider than the screen`);
  const cut = await browser.evaluate("() => [...document.querySelectorAll('.chart')].filter((chart) => chart.scrollWidth > chart.clientWidth + 1).length");
  expect(cut === 0, `${name}: ${cut} charts are wider than their place`);
  const small = await browser.evaluate("() => Math.min(...[...document.querySelectorAll('.chart svg')].map((svg) => parseFloat(getComputedStyle(svg.querySelector('text')).fontSize) * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width))");
  expect(small >= 9, `${name}: text of ${small.toFixed(1)} pixels in a chart`);
  // Contrast of text against what lies behind it, as WCAG 2 counts it.
  const faint = await browser.evaluate(`() => {
    const channel = (c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    const parse = (text) => text.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
    const behind = (node) => { for (; node; node = node.parentElement) { const c = parse(getComputedStyle(node).backgroundColor); if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
    const faint = [];
    for (const node of document.querySelectorAll("h1,h2,h3,p,a,dt,dd,th,td,summary,strong,code,svg text,footer")) {
      if (!node.textContent.trim() || node.closest("details:not([open])") && node.tagName !== "SUMMARY") continue;
      const style = getComputedStyle(node);
      const a = light(parse(node instanceof SVGElement ? style.fill : style.color)), b = light(behind(node));
      const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      if (ratio < 4.5) faint.push(node.tagName + " " + ratio.toFixed(2) + " " + node.textContent.slice(0, 30));
    }
    return faint;
  }`);
  expect(faint.length === 0, `${name}: too little contrast: ${faint.slice(0, 5).join("; ")}`);
  const { cssContentSize } = await browser.call("Page.getLayoutMetrics");
  const clip = { x: 0, y: 0, width, height: Math.min(cssContentSize.height, 12000), scale: 1 };
  const { data } = await browser.call("Page.captureScreenshot", { format: "png", captureBeyondViewport: true, clip });
  writeFileSync(join(shots, `${name}.png`), Buffer.from(data, "base64"));
}

async function check(browser) {
  const text = (id) => browser.evaluate(`() => document.getElementById("${id}")?.textContent`);
  equal(await text("rows"), count(manifest.rows), "rows");
  equal(await text("suppressed"), count(manifest.suppressed), "suppressed rows");
  equal(await text("smallest"), count(manifest.verification.classes.smallest), "smallest class");
  equal(await text("classes"), count(manifest.verification.classes.count), "classes");
  equal(await text("risk-max"), share(manifest.scores.risk_max), "largest risk");
  for (const name of ["gcp", "um", "wgu", "mpm", "wgp"]) {
    if (manifest.scores[name] != null) equal(await text(`m-${name}`), manifest.scores[name].toFixed(4), name);
  }
  const queries = manifest.scores.queries;
  for (const name of ["median", "mean", "worst"]) equal(await text(`q-${name}`), share(queries[name]), `${name} query error`);
  equal(await text("q-count"), count(queries.count), "queries");
  equal(await text("query-error"), share(queries.median), "query error in the summary");
  const links = await browser.evaluate("() => [...document.querySelectorAll('nav a')].map((link) => [link.hash, !!document.querySelector(link.hash)])");
  expect(links.length >= 6 && links.every(([, there]) => there), `a link leads nowhere: ${JSON.stringify(links)}`);
  const losses = await browser.evaluate("() => Object.fromEntries([...document.querySelectorAll('#losses tbody tr')].map((row) => [row.cells[0].textContent, row.cells[1].textContent]))");
  for (const [column, loss] of Object.entries(manifest.scores.by_column)) equal(losses[column], loss.toFixed(4), `loss of ${column}`);
  const charts = await browser.evaluate(`() => [...document.querySelectorAll("svg[role=img]")].map((svg) => {
    const marks = [...svg.querySelectorAll("rect, polyline")].map((mark) => mark.getBBox());
    const box = svg.getBoundingClientRect();
    return {
      title: svg.querySelector("title")?.textContent ?? "", description: svg.querySelector("desc")?.textContent ?? "",
      named: svg.getAttribute("aria-labelledby").split(" ").every((id) => svg.querySelector("#" + id)),
      shown: box.width > 100 && box.height > 20, marks: marks.filter((mark) => mark.width > 0.4 && mark.height > 0.4).length,
      inside: [...svg.querySelectorAll("text")].every((t) => { const b = t.getBBox(); return b.x > -2 && b.x + b.width < svg.viewBox.baseVal.width + 2; }),
      rows: svg.parentElement.querySelectorAll("details tbody tr").length,
    };
  })`);
  const columns = await browser.evaluate("() => document.querySelectorAll('article.column').length");
  expect(charts.length >= 3, `only ${charts.length} charts`);
  expect(columns >= manifest.class_columns.length, `only ${columns} columns of ${manifest.class_columns.length}`);
  for (const chart of charts) {
    expect(chart.title && chart.description && chart.named, `a chart has no name: ${JSON.stringify(chart)}`);
    expect(chart.shown && chart.marks > 0, `${chart.title}: the chart is empty`);
    expect(chart.rows > 0, `${chart.title}: there is no table of its numbers`);
    expect(chart.inside, `${chart.title}: a label is cut off`);
  }
  console.log(`${charts.length} charts, ${columns} columns`);
}

const profile = mkdtempSync(join(tmpdir(), "report-"));
const browser = new Browser(profile);
const deadline = setTimeout(() => { console.error("the browser does not answer"); browser.process.kill("SIGKILL"); process.exit(1); }, 120_000);
try {
  const requests = [];
  const complaints = [];
  browser.listeners.push((method, params) => {
    if (method === "Network.requestWillBeSent") requests.push(params.request.url);
    if (method === "Runtime.consoleAPICalled" && ["error", "warning", "assert"].includes(params.type)) complaints.push(JSON.stringify(params.args));
    if (method === "Runtime.exceptionThrown") complaints.push(params.exceptionDetails.text);
    if (method === "Log.entryAdded" && params.entry.level === "error") complaints.push(params.entry.text);
  });
  const { targetInfos } = await browser.call("Target.getTargets", {}, undefined);
  const { targetId } = targetInfos.find((target) => target.type === "page");
  browser.session = (await browser.call("Target.attachToTarget", { targetId, flatten: true }, undefined)).sessionId;
  for (const domain of ["Page", "Runtime", "Network", "Log"]) await browser.call(`${domain}.enable`);
  await look(browser, "light", 1200, 900, "light", false);
  await check(browser);
  await look(browser, "dark", 1200, 900, "dark", false);
  await look(browser, "phone", 390, 844, "light", true);
  await look(browser, "phone-dark", 390, 844, "dark", true);
  // Paper is neither a screen nor dark.
  await browser.call("Emulation.setEmulatedMedia", { media: "", features: [] });
  await browser.call("Emulation.clearDeviceMetricsOverride");
  const { data } = await browser.call("Page.printToPDF", { printBackground: false, preferCSSPageSize: true });
  writeFileSync(join(shots, "paper.pdf"), Buffer.from(data, "base64"));
  const outside = requests.filter((url) => url !== address && !url.startsWith("data:"));
  expect(outside.length === 0, `the page asks for ${outside.join(", ")}`);
  expect(complaints.length === 0, `the console complains: ${complaints.join("; ")}`);
} finally {
  clearTimeout(deadline);
  const ended = new Promise((resolve) => browser.process.on("exit", resolve));
  browser.call("Browser.close", {}, undefined).catch(() => {});
  await ended;
  rmSync(profile, { recursive: true, force: true });
}
failures.forEach((failure) => console.error(`failed: ${failure}`));
process.exit(failures.length ? 1 : 0);
