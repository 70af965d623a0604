// The page in Firefox. Usage: firefox.mjs RYE-MCP PROJECT FIREFOX PUPPETEER-CORE
import {spawn} from "node:child_process";
import {createInterface} from "node:readline";
import {createRequire} from "node:module";

const [rye, project, firefox, driver] = process.argv.slice(2);
const puppeteer = createRequire(import.meta.url)(driver);
const patience = 30000;

const server = spawn(rye, ["ui", "--no-open", "--project", project], {stdio: ["ignore", "pipe", "ignore"]});
const address = await new Promise((found, lost) => {
  createInterface({input: server.stdout}).on("line", (line) => {
    const at = line.match(/http:\S+#token=\S+/);
    if (at) found(at[0]);
  });
  server.on("exit", () => lost(new Error("the server has ended")));
});
const browser = await puppeteer.launch({browser: "firefox", executablePath: firefox, headless: true});
let failed = 0;
const check = (what, good, more = "") => {
  console.log(`${good ? "ok   " : "FAIL "} firefox: ${what}${good ? "" : " " + more}`);
  if (!good) failed = 1;
};

try {
  const page = await browser.newPage();
  const wrong = [];
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("console", (message) => ["error", "warn"].includes(message.type()) && wrong.push(message.text()));
  page.on("request", (request) => new URL(request.url()).origin === new URL(address).origin || /^(data|blob):/.test(request.url()) || wrong.push("a request to " + request.url()));
  const says = (words) => page.waitForFunction((text) => document.body.innerText.includes(text), {timeout: patience}, words);
  const press = (role, name) => page.locator(`::-p-aria([name="${name}"][role="${role}"])`).setTimeout(patience).click();

  await page.goto(address);
  await says("No threads yet");
  check("opens, and keeps no token in its address", !page.url().includes("token="), page.url());
  await page.evaluate(() => { location.hash = "#/start/rye/demo/orchestrate"; });
  await press("button", "Start");
  await page.waitForFunction(() => document.querySelectorAll("[role=treeitem][data-state=completed]").length === 4, {timeout: patience});
  check("a directive is started from its form, and four threads come and end as a stream", true);

  for (const tab of await page.$$eval("[role=tab]", (all) => all.map((one) => one.textContent))) {
    await press("tab", tab);
    await page.waitForFunction((name) => document.querySelector("[role=tab][aria-selected=true]").textContent === name
      && document.querySelector("[role=tabpanel]").innerText.length > 20 && !/^Loading/.test(document.querySelector("[role=tabpanel]").innerText), {timeout: patience}, tab);
    check(`${tab} is shown`, await page.$(".fault") === null, await page.$$eval(".fault", (all) => all.map((one) => one.innerText).join()));
  }
  await page.keyboard.press("Escape");
  await page.keyboard.press("?");
  await page.waitForSelector("dialog[open]", {timeout: patience});
  await page.keyboard.press("Escape");
  await page.waitForSelector("dialog[open]", {hidden: true, timeout: patience});
  check("keys open and close the help", true);
  await page.setViewport({width: 360, height: 740});
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  check("nothing is wider than a phone", wide <= 0, `by ${wide} pixels`);
  check("nothing is wrong on the console, and nothing is asked for elsewhere", wrong.length === 0, wrong.join("\n"));
} catch (error) {
  check("goes through the page", false, error.stack);
} finally {
  await browser.close();
  server.kill();
}
process.exit(failed);
