// Says what the scenarios of the conformance suite came to, a line each, and exits with
// 1 when one that has to pass did not. Usage: node conformance.mjs FOLDER, with the
// results of a server and a revision in FOLDER/SERVER/REVISION.
import fs from "node:fs";
import path from "node:path";

const root = process.argv[2];
const revisions = ["2025-06-18", "2025-11-25", "2026-07-28"];

// What has to pass against the fixtures; everything else has to pass against rye-mcp.
const fixtures = new Set([
  "tools-call-simple-text", "tools-call-error", "tools-call-image", "tools-call-with-progress", "tools-call-elicitation",
  "elicitation-sep1034-defaults", "elicitation-sep1330-enums", "json-schema-2020-12",
  "prompts-get-simple", "prompts-get-with-args", "prompts-get-embedded-resource", "prompts-get-with-image",
  "resources-read-text", "resources-read-binary", "resources-templates-read", "resources-subscribe", "resources-unsubscribe",
  "input-required-result-basic-elicitation", "input-required-result-request-state", "input-required-result-multi-round",
  "input-required-result-missing-input-response", "input-required-result-result-type", "input-required-result-tampered-state",
  "input-required-result-validate-input",
  "tasks-lifecycle", "tasks-capability-negotiation", "tasks-wire-fields", "tasks-request-state-removal", "tasks-mrtr-input",
  "tasks-request-headers", "tasks-dispatch-and-envelope", "tasks-mrtr-composition",
]);

// What is run against both: the fixtures have tools that some of the checks call.
const both = new Set(["server-stateless", "tools-list", "prompts-list", "resources-list", "completion-complete", "caching"]);

// What is left out, and why.
const leftOut = {
  "tools-call-audio": "no tool of rye-mcp returns sound",
  "tools-call-embedded-resource": "no tool of rye-mcp embeds resources: it names their URIs",
  "tools-call-mixed-content": "the same",
  "tools-call-sampling": "rye-mcp does not use the model of its client",
  "tools-call-with-logging": "tools report progress; log messages tell the outcome of a request, once",
  "server-sse-polling": "a stream is not closed while its call goes on",
  "http-custom-header-server-validation": "no tool has x-mcp-header in its schema",
  "input-required-result-basic-sampling": "rye-mcp does not use the model of its client",
  "input-required-result-basic-list-roots": "deprecated; the project is an argument or chosen at start",
  "input-required-result-multiple-input-requests": "it asks for sampling and roots",
  "input-required-result-capability-check": "it asks for sampling; that nobody is asked who cannot be is tested in mcp/server",
  "input-required-result-ignore-extra-params": "it answers a question that was never asked; such answers are not taken (the suite only warns)",
  "input-required-result-non-tool-request": "no prompt asks the person",
  "tasks-required-task-error": "no tool of rye-mcp can only be called by clients that take tasks",
  "tasks-status-notifications": "optional, and the suite does not test it yet",
};

// Checks that need a tool which wants sampling. They are excused only while the suite
// says that it could not test.
const needSampling = new Set(["sep-2575-server-rejects-undeclared-capability", "sep-2575-missing-capability-http-400"]);
// Checks that call tools which only the fixtures have.
const needTools = new Set(["sep-2575-http-server-no-independent-requests-on-stream", "sep-2575-server-no-log-without-loglevel"]);

// Inputs are closed on our side and clients are not told: some that see a closed schema
// refuse by themselves, and hide what was wrong.
const deliberate = new Set([
  "json-schema-2020-12-additionalProperties",
  "tasks-headers-tolerate-mcp-method-on-tools-call", // it wants a text where our tools answer with JSON; the headers are checked beside it
]);

function excused(server, check) {
  return deliberate.has(check.id) || check.errorMessage?.startsWith("Not testable") && (needSampling.has(check.id) || server === "rye-mcp" && needTools.has(check.id));
}

// checksOf are those of each scenario of a run, by name.
function checksOf(server, revision) {
  const folder = path.join(root, server, revision);
  const scenarios = {};
  for (const name of fs.readdirSync(folder)) {
    const scenario = /^server-(.*)-\d{4}-\d\d-\d\dT[-\dZ]+$/.exec(name)?.[1];
    if (scenario) scenarios[scenario] = JSON.parse(fs.readFileSync(path.join(folder, name, "checks.json"), "utf8"));
  }
  return scenarios;
}

let failed = false;
let out = 0;
for (const revision of revisions) {
  const results = { "rye-mcp": checksOf("rye-mcp", revision), fixtures: checksOf("fixtures", revision) };
  const names = [...new Set([...Object.keys(results["rye-mcp"]), ...Object.keys(results.fixtures)])].sort();
  if (names.length < 20) {
    failed = true;
    console.log(`FAIL  ${revision}: the suite has run ${names.length} scenarios`);
    console.log(fs.readFileSync(path.join(root, `rye-mcp-${revision}.log`), "utf8").slice(-2000));
  }
  for (const name of names) {
    if (leftOut[name]) {
      out++;
      continue;
    }
    const servers = both.has(name) ? ["rye-mcp", "fixtures"] : [fixtures.has(name) ? "fixtures" : "rye-mcp"];
    for (const server of servers) {
      const checks = results[server][name] ?? [];
      const passed = checks.filter((check) => check.status === "SUCCESS");
      const failures = checks.filter((check) => check.status === "FAILURE" && !excused(server, check));
      const bad = failures.length > 0 || !passed.some((check) => check.id !== "wire-schema-valid");
      failed ||= bad;
      console.log([bad ? "FAIL" : "ok  ", revision, server.padEnd(8), name.padEnd(46), `${passed.length} passed, ${failures.length} failed`].join("  "));
      for (const check of failures) console.log(`      ${check.id}: ${check.errorMessage ?? check.description}`);
    }
  }
}
console.log(`left out: ${out}`);
console.log(`checks left out: ${[...deliberate, ...needSampling].join(", ")}`);
for (const [name, why] of Object.entries(leftOut)) console.log(`      ${name}: ${why}`);
process.exit(failed ? 1 : 0);
