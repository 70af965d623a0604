// Drives rye-mcp with the client of the TypeScript SDK, which most MCP clients
// are built on, over stdio, Streamable HTTP and HTTP with SSE. Usage: node mcp-clients.mjs BINARY PROJECT
//
// The SDK validates every structured result against the tool's output schema, which
// the server over HTTP is asked to tell.
// The project's model is scripted: "Be slow" takes 3.5 seconds, "Hang" never
// answers.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema, ListRootsRequestSchema, PromptListChangedNotificationSchema, ResourceUpdatedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";

const [binary, project] = process.argv.slice(2);

const env = { PATH: process.env.PATH, HOME: process.env.HOME, USER_SPACE: process.env.USER_SPACE, RYE_CACHE_DIR: process.env.RYE_CACHE_DIR };

const stdio = (args) => new StdioClientTransport({ command: binary, args, env, cwd: "/", stderr: "ignore" });

async function connect(transport, roots) {
  const client = new Client({ name: "ci", version: "1" }, { capabilities: { elicitation: {}, ...(roots ? { roots: {} } : {}) } });
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
    assert.match(params.message, /limit of turns: 1 of 1/);
    assert.ok(params.requestedSchema.properties.decision.enum.includes("raise"));
    return { action: "accept", content: { decision: "raise", turns: 3 } };
  });
  if (roots) {
    client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: roots.map((dir) => ({ uri: pathToFileURL(dir).href })) }));
  }
  await client.connect(transport);
  return client;
}

async function call(client, name, args, options) {
  const result = await client.callTool({ name, arguments: args }, undefined, options);
  assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent, `${name}: text and structured content`);
  return { isError: false, ...result, out: result.structuredContent };
}

const fork = (directive, more) => ({ item_type: "directive", item_id: directive, thread: "fork", ...more });

let keys = 0; // every run of the checks starts threads of its own

const checks = {
  async "lists tools with titles, texts, schemas and annotations"(client) {
    const { tools } = await client.listTools();
    assert.ok(tools.length >= 12, `${tools.length} tools`);
    for (const tool of tools) {
      assert.ok(tool.title && tool.description && tool.inputSchema && tool.annotations, tool.name);
    }
    assert.equal(client.getServerVersion().name, "rye");
    assert.match(client.getInstructions(), /wait_threads/);
  },

  async "forks, waits with progress that resets the time-out, reads the result"(client) {
    const key = `once ${keys++}`;
    const { out } = await call(client, "rye_execute", fork("slow", { async: true, request_key: key }));
    assert.match(out.status, /^(created|running)$/);
    const again = await call(client, "rye_execute", fork("slow", { async: true, request_key: key }));
    assert.deepEqual([again.out.thread_id, again.out.existing], [out.thread_id, true]);

    const messages = [];
    const waited = await call(client, "wait_threads", { thread_ids: [out.thread_id] }, {
      timeout: 2500, // shorter than the thread takes
      resetTimeoutOnProgress: true,
      onprogress: (p) => messages.push(p),
    });
    assert.equal(waited.out.results[out.thread_id].result, "It took a while.");
    assert.ok(messages.length >= 2, `${messages.length} progress messages`);
    assert.match(messages[0].message, /0 of 1 ended/);
    assert.ok(messages.every((p, i) => i === 0 || p.progress > messages[i - 1].progress), "progress grows");

    const page = await call(client, "read_transcript", { thread_id: out.thread_id, format: "jsonl" });
    assert.match(page.out.content, /"event_type":"thread_completed"/);
  },

  async "tells failures as results, and protocol errors as errors"(client) {
    const missing = await call(client, "rye_execute", { item_type: "directive", item_id: "slwo" });
    assert.deepEqual([missing.isError, missing.out.success, missing.out.code], [true, false, "not_found"]);
    assert.deepEqual(missing.out.nearest_ids, ["slow"]);
    const meant = await call(client, "wait_threads", { id: "x", timeout: "1" });
    assert.deepEqual([meant.isError, meant.out.code], [true, "not_found"]);
    const wrong = await call(client, "wait_threads", { mode: "all" });
    assert.deepEqual([wrong.isError, wrong.out.code], [true, "bad_arguments"]);
    await assert.rejects(client.callTool({ name: "no_such_tool", arguments: {} }), { code: -32602 });
  },

  async "an aborted wait leaves the thread at work"(client) {
    const { out } = await call(client, "rye_execute", fork("hang", { async: true }));
    await abortAtProgress(client, "wait_threads", { thread_ids: [out.thread_id] });
    const status = await call(client, "get_status", { thread_id: out.thread_id });
    assert.equal(status.out.status, "running");
    const stopped = await call(client, "cancel_thread", { thread_id: out.thread_id });
    assert.equal(stopped.out.receipts[0].status, "cancelled");
  },

  async "an aborted synchronous fork cancels its thread"(client) {
    await abortAtProgress(client, "rye_execute", fork("hang"));
    const { out } = await call(client, "list_threads", { limit: 1 });
    const id = out.threads[0].thread_id;
    const waited = await call(client, "wait_threads", { thread_ids: [id], timeout: 30 });
    assert.equal(waited.out.results[id].status, "cancelled");
  },

  async "a limit is a question to the person"(client) {
    const { out } = await call(client, "rye_execute", fork("asking", { request_key: `asked ${keys++}` }));
    assert.deepEqual([out.error, out.status, out.result, out.cost.turns], [undefined, "completed", "Done.", 2]);
  },

  async "resumes a thread, and shows and searches the chain"(client) {
    const first = (await call(client, "rye_execute", fork("quick"))).out.thread_id;
    const resumed = await call(client, "resume_thread", { thread_id: first, message: "Be quick again." });
    const second = resumed.out.new_thread_id;
    assert.deepEqual([resumed.out.old_thread_id, resumed.out.original_thread_id, resumed.out.reconstructed_turns], [first, null, 1]);
    const waited = await call(client, "wait_threads", { thread_ids: [first], timeout: 30 });
    assert.deepEqual([waited.out.success, waited.out.results[first].resolved_thread_id], [true, second]);
    const chain = await call(client, "get_chain", { thread_id: first });
    assert.deepEqual(chain.out.chain.map((link) => link.thread_id), [first, second]);
    const operation = { operation: "get_chain", thread_id: second };
    const same = await call(client, "rye_execute", { item_id: "rye/agent/threads/orchestrator", parameters: operation });
    assert.deepEqual(same.out.chain, chain.out.chain);
    const found = await call(client, "chain_search", { thread_id: second, query: "QUICK AGAIN" });
    assert.ok(found.out.matches.some((match) => match.thread_id === second), JSON.stringify(found.out));
    const refused = await call(client, "resume_thread", { thread_id: "quick-1", message: "Go on." });
    assert.deepEqual([refused.isError, refused.out.code], [true, "not_found"]);
  },

  async "five calls at once"(client) {
    const ids = await Promise.all([1, 2, 3, 4, 5].map(async () =>
      (await call(client, "rye_execute", fork("quick", { async: true }))).out.thread_id));
    assert.equal(new Set(ids).size, 5);
    const { out } = await call(client, "wait_threads", { thread_ids: ids, timeout: 30 });
    assert.deepEqual([out.success, out.pending], [true, []]);
    const sum = await call(client, "aggregate_results", { thread_ids: ids });
    assert.equal(sum.out.totals.by_status.completed, 5);
  },
};

// What an MCP client offers the person who uses it.
Object.assign(checks, {
  async "lists directives as prompts, gets one, completes an argument"(client) {
    const { prompts } = await client.listPrompts();
    const review = prompts.find((p) => p.name === "team-review");
    assert.deepEqual(review.arguments.map((a) => [a.name, !!a.required]), [["path", true], ["depth", false]]);
    const { messages } = await client.getPrompt({ name: "team-review", arguments: { path: "src/main.go" } });
    assert.deepEqual(messages.map((m) => [m.role, m.content.text]), [["user", "Review src/main.go, quick."]]);
    await assert.rejects(client.getPrompt({ name: "team-review" }), (e) => e.code === -32602 && /path is required\. Try: the arguments path/.test(e.message));
    await assert.rejects(client.getPrompt({ name: "team-review", arguments: { path: "x".repeat(1 << 20) } }), { code: -32602 });
    const ref = { type: "ref/prompt", name: "team-review" };
    const complete = async (name, value) => (await client.complete({ ref, argument: { name, value } })).completion.values;
    assert.deepEqual(await complete("depth", "tho"), ["thorough"]);
    assert.deepEqual(await complete("path", "src/"), ["src/main.go"]);
    assert.deepEqual(await complete("path", ".git"), []);
  },

  async "hears that the list of prompts has changed"(client) {
    await client.listPrompts();
    const id = `team/new${keys++}`;
    const changed = new Promise((resolve) => client.setNotificationHandler(PromptListChangedNotificationSchema, resolve));
    const text = fs.readFileSync(path.join(project, ".ai/directives/team/review.md"), "utf8").replace(/^.*rye:signed.*\n/, "").replace('"review"', `"${path.basename(id)}"`);
    fs.writeFileSync(path.join(project, `.ai/directives/${id}.md`), text);
    await call(client, "rye_sign", { item_type: "directive", item_id: id });
    await changed;
    const { prompts } = await client.listPrompts();
    assert.ok(prompts.some((p) => p.name === id.replace("/", "-")), JSON.stringify(prompts.map((p) => p.name)));
  },

  async "lists, reads and completes resources, and follows a thread"(client) {
    const { resources } = await client.listResources();
    assert.ok(resources.some((r) => r.uri === "rye://threads"), JSON.stringify(resources));
    const { resourceTemplates } = await client.listResourceTemplates();
    const transcript = resourceTemplates.find((t) => t.uriTemplate.includes("transcript")).uriTemplate;
    const { contents } = await client.readResource({ uri: "rye://items/directive/team/review" });
    assert.match(contents[0].text, /Review \{input:path\}/);
    await assert.rejects(client.readResource({ uri: "rye://threads/nobody-1/result" }), (e) => e.code === -32002 || e.code === -32602);

    const { out } = await call(client, "rye_execute", fork("slow", { async: true }));
    const result = `rye://threads/${out.thread_id}/result`;
    const ended = new Promise((resolve) => client.setNotificationHandler(ResourceUpdatedNotificationSchema, async ({ params }) => {
      const read = params.uri === result && (await client.readResource({ uri: result })).contents[0].text;
      if (read && read.includes("It took a while.")) resolve(read);
    }));
    await client.subscribeResource({ uri: result });
    await ended;
    await client.unsubscribeResource({ uri: result });
    const { completion } = await client.complete({ ref: { type: "ref/resource", uri: transcript }, argument: { name: "id", value: out.thread_id.slice(0, -1) } });
    assert.ok(completion.values.includes(out.thread_id), JSON.stringify(completion));
  },
});

// abortAtProgress cancels a call when the first progress of it comes.
async function abortAtProgress(client, name, args) {
  const abort = new AbortController();
  await assert.rejects(client.callTool({ name, arguments: args }, undefined, {
    signal: abort.signal, timeout: 30_000, onprogress: () => abort.abort("not wanted any more"),
  }), /not wanted any more/);
}

async function runChecks(client, how) {
  for (const [name, check] of Object.entries(checks)) {
    await check(client);
    console.log(`ok  ${how}: ${name}`);
  }
}

const client = await connect(stdio(["--stdio", "--project", project]));
await runChecks(client, "stdio");

// The server's end is not the threads': another server finds the result. It
// learns the project from the client's only root.
const left = (await call(client, "rye_execute", fork("slow", { async: true }))).out.thread_id;
await client.close();
const other = await connect(stdio(["--stdio"]), [project]);
await other.listTools();
const { out } = await call(other, "wait_threads", { thread_ids: [left], timeout: 30 });
assert.equal(out.results[left].status, "completed");
await other.close();
console.log("ok  threads outlive the server; the client's root is the project");

// The same over HTTP, where one server has all the clients.
const server = spawn(binary, ["serve", "--http", "127.0.0.1:0", "--project", project, "--output-schemas"], { env, stdio: ["ignore", "pipe", "ignore"] });
const [line] = await once(server.stdout, "data");
const url = new URL(line.toString().match(/http\S+/)[0]);
const streamable = new StreamableHTTPClientTransport(url);
const overHTTP = await connect(streamable);
await runChecks(overHTTP, "Streamable HTTP");
const overSSE = await connect(new SSEClientTransport(new URL("/sse", url)));
await runChecks(overSSE, "SSE");
await streamable.terminateSession();
await overHTTP.close();
await overSSE.close();
server.kill("SIGTERM");
assert.deepEqual(await once(server, "exit"), [0, null]);
console.log("ok  serve ends in order");
