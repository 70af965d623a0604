// Prints one line about what a conformance scenario came to, and exits with 1
// when a check failed. Usage: node conformance.mjs REVISION SCENARIO FOLDER
import fs from "node:fs";
import path from "node:path";

const [revision, scenario, folder] = process.argv.slice(2);

// Checks that call a tool made for the suite, which no real server has. They are
// excused only while the suite says that it could not test.
const needTools = new Set([
  "sep-2575-server-rejects-undeclared-capability",
  "sep-2575-missing-capability-http-400",
  "sep-2575-http-server-no-independent-requests-on-stream",
  "sep-2575-server-no-log-without-loglevel",
]);
const excused = (check) => needTools.has(check.id) && check.errorMessage?.startsWith("Not testable");

const found = fs.readdirSync(folder, { recursive: true }).filter((name) => path.basename(name) === "checks.json");
const checks = found.flatMap((name) => JSON.parse(fs.readFileSync(path.join(folder, name), "utf8")));
const passed = checks.filter((check) => check.status === "SUCCESS");
const failures = checks.filter((check) => check.status === "FAILURE" && !excused(check));
const bad = failures.length > 0 || passed.length === 0;
const untested = checks.filter(excused).length;

console.log([
  bad ? "FAIL" : "ok  ", revision, scenario.padEnd(42), `${passed.length} passed, ${failures.length} failed`,
].join("  ") + (untested ? `, ${untested} need special tools` : ""));
for (const check of failures) {
  console.log(`      ${check.id}: ${check.errorMessage ?? check.description}`);
}
if (passed.length === 0) {
  console.log(fs.readFileSync(path.join(folder, "log"), "utf8"));
}
process.exit(bad ? 1 : 0);
