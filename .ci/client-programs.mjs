// Runs one client program with rye-mcp and a model that follows a script, and checks
// what the program gives its model. Usage:
// node client-programs.mjs PROGRAM COMMAND RYE_MCP FOLDER VERSION [stdio|http|sse]
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import http from "node:http";
import path from "node:path";

const [program, command, rye, folder, version, transport = "stdio"] = process.argv.slice(2);
const project = path.join(folder, "project");
const env = {
  PATH: process.env.PATH, HOME: folder, USER_SPACE: folder, RYE_CACHE_DIR: path.join(folder, "cache"), TERM: "xterm-256color", COLORTERM: "truecolor",
};
const server = { command: rye, args: ["--stdio", "--log-file", path.join(folder, "server.log")] };

function write(name, text) {
  const file = path.join(folder, name);
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, typeof text === "string" ? text : JSON.stringify(text));
}

// What the threads do, and a directive that is a prompt and can be forked.
write(".ai/config/agent/agent.yaml", "provider:\n  default: scripted\n");
write(".ai/config/agent/scripts/demo.yaml", "turns:\n  - text: The thread is done.\n");
write("project/.ai/directives/team/greet.md", `# Greeting

\`\`\`xml
<directive name="greet" version="1.0.0">
  <metadata><description>Greets somebody</description><model tier="fast" /></metadata>
  <inputs><input name="who" type="string" required="true">Whom</input></inputs>
</directive>
\`\`\`

Greet {input:who}, please.
`);
execFileSync(rye, ["keys", "generate"], { env });
execFileSync(rye, ["sign", "--project", project, "--type", "directive", "team/greet"], { env });

// Over HTTP one server is there before the program.
let url;
if (transport !== "stdio") {
  const serving = spawn(rye, ["serve", "--http", "127.0.0.1:0", "--project", project, "--log-file", path.join(folder, "server.log")], { env, stdio: ["ignore", "pipe", "inherit"] });
  process.on("exit", () => serving.kill());
  const [line] = await once(serving.stdout, "data");
  url = line.toString().match(/http\S+/)[0];
  if (transport === "sse") url = url.replace(/mcp$/, "sse");
}

// The calls of the model, one a turn, and what their results must hold. The names of
// tools are what each program makes of them.
const ryeTool = { claude: "mcp__rye__", codex: "mcp__rye/", opencode: "rye_", gemini: "mcp_rye_" }[program];
const readTool = { claude: "ReadMcpResourceTool", codex: "read_mcp_resource", opencode: "read_mcp_resource", gemini: "read_mcp_resource" }[program];
const steps = [
  { name: `${ryeTool}rye_execute`, input: { item_id: "team/greet", thread: "fork", parameters: { who: "Ada" } }, want: /The thread is done\./ },
  { name: `${ryeTool}rye_search`, input: { query: "greet", scope: "directive" }, want: /team\/greet/ },
  // Gemini CLI reads what a server lists, and nothing that only a template names.
  program === "gemini"
    ? { name: readTool, input: { uri: "rye://threads" }, want: /team\/greet/ }
    : { name: readTool, input: { server: "rye", uri: "rye://items/directive/team/greet" }, want: /Greet \{input:who\}, please/ },
];

// Claude Code offers what it has not put into its first request through a search.
if (program === "claude") {
  steps.unshift({ name: "ToolSearch", input: { query: `select:${steps.map((s) => s.name).join(",")}` }, want: /mcp__rye__rye_search/ });
}

const { name: wire, ask } = {
  claude: { name: "messages", ask: messages },
  codex: { name: "responses", ask: responses },
  opencode: { name: "chat", ask: chat },
  gemini: { name: "generate", ask: generate },
}[program];

// Each wire: the body of a request → what the model has been told so far, and how it
// answers with text or a call.
function messages(body) {
  const results = body.messages.flatMap((m) => (Array.isArray(m.content) ? m.content : [])).filter((c) => c.type === "tool_result");
  return {
    told: JSON.stringify(body.messages), results: results.map((r) => JSON.stringify(r.content)), tools: (body.tools ?? []).map((t) => t.name),
    say(send, n, text, call) {
      const event = (type, data) => send(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`);
      const usage = { input_tokens: 1, output_tokens: 1 };
      event("message_start", { message: { id: `m${n}`, type: "message", role: "assistant", model: "m", content: [], stop_reason: null, stop_sequence: null, usage } });
      event("content_block_start", { index: 0, content_block: call ? { type: "tool_use", id: `toolu_${n}`, name: call.name, input: {} } : { type: "text", text: "" } });
      event("content_block_delta", { index: 0, delta: call ? { type: "input_json_delta", partial_json: JSON.stringify(call.input) } : { type: "text_delta", text } });
      event("content_block_stop", { index: 0 });
      event("message_delta", { delta: { stop_reason: call ? "tool_use" : "end_turn", stop_sequence: null }, usage: { output_tokens: 1 } });
      event("message_stop", {});
    },
  };
}

function responses(body) {
  const results = body.input.filter((i) => i.type === "function_call_output");
  return {
    told: JSON.stringify(body.input), results: results.map((r) => JSON.stringify(r.output)),
    tools: (body.tools ?? []).flatMap((t) => (t.tools ? t.tools.map((inner) => `${t.name}/${inner.name}`) : [t.name])),
    say(send, n, text, call) {
      const event = (type, data) => send(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`);
      const [namespace, name] = call?.name.includes("/") ? call.name.split("/") : [undefined, call?.name];
      event("response.created", { response: { id: `r${n}` } });
      event("response.output_item.done", { output_index: 0, item: call
        ? { type: "function_call", id: `f${n}`, call_id: `c${n}`, namespace, name, arguments: JSON.stringify(call.input) }
        : { type: "message", role: "assistant", id: `i${n}`, content: [{ type: "output_text", text, annotations: [] }] } });
      event("response.completed", { response: { id: `r${n}`, usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 } } });
    },
  };
}

function chat(body) {
  const results = body.messages.filter((m) => m.role === "tool");
  return {
    told: JSON.stringify(body.messages), results: results.map((r) => JSON.stringify(r.content)), tools: (body.tools ?? []).map((t) => t.function.name),
    say(send, n, text, call) {
      const chunk = (delta, finish_reason = null) =>
        send(`data: ${JSON.stringify({ id: `c${n}`, object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta, finish_reason }] })}\n\n`);
      chunk(call
        ? { role: "assistant", tool_calls: [{ index: 0, id: `t${n}`, type: "function", function: { name: call.name, arguments: JSON.stringify(call.input) } }] }
        : { role: "assistant", content: text });
      chunk({}, call ? "tool_calls" : "stop");
      send("data: [DONE]\n\n");
    },
  };
}

function generate(body) {
  const results = (body.contents ?? []).flatMap((c) => c.parts ?? []).filter((p) => p.functionResponse);
  return {
    told: JSON.stringify(body.contents), results: results.map((r) => JSON.stringify(r.functionResponse.response)),
    tools: (body.tools ?? []).flatMap((t) => t.functionDeclarations ?? []).map((f) => f.name),
    say(send, n, text, call) {
      const parts = call ? [{ functionCall: { name: call.name, args: call.input } }] : [{ text }];
      send(`data: ${JSON.stringify({ candidates: [{ content: { role: "model", parts }, finishReason: "STOP", index: 0 }], usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 } })}\n\n`);
    },
  };
}

// The model: it answers those who offer it our tools with the next call, and others,
// who want a title or the like, with a word.
const seen = { told: "", results: [], first: [], tools: [] };
let requests = 0;
const model = http.createServer((req, res) => {
  let text = "";
  req.on("data", (data) => (text += data));
  req.on("end", () => {
    const asks = { messages: /\/messages(\?|$)/, responses: /\/responses$/, chat: /\/chat\/completions$/, generate: /:(stream)?generateContent/i }[wire].test(req.url);
    if (req.method !== "POST" || !asks) {
      res.writeHead(200, { "content-type": "application/json" });
      return res.end("{}");
    }
    const now = ask(JSON.parse(text));
    const ours = now.tools.length > 3; // those who want a title offer none
    if (ours) {
      seen.told ||= now.told;
      if (seen.first.length === 0) seen.first = now.tools;
      seen.tools = now.tools;
      if (now.results.length > seen.results.length) seen.results = now.results;
    }
    const call = ours ? steps.filter((s) => now.tools.includes(s.name))[now.results.length] : undefined;
    res.writeHead(200, { "content-type": "text/event-stream" });
    now.say((chunk) => res.write(chunk), ++requests, "All is done.", call);
    res.end();
  });
});

// How each program is told of server and model, and started with a prompt. Codex has
// no prompts of servers, and is given a text.
const starts = {
  claude(model) {
    write("mcp.json", { mcpServers: { rye: url ? { type: transport, url } : server } });
    return {
      args: ["-p", "/mcp__rye__team-greet Ada", "--mcp-config", path.join(folder, "mcp.json"), "--strict-mcp-config",
        "--allowedTools", "mcp__rye,ReadMcpResourceTool"],
      env: { ANTHROPIC_BASE_URL: model, ANTHROPIC_API_KEY: "none", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1" },
    };
  },
  codex(model) {
    const how = url ? `url = "${url}"\n` : `command = ${JSON.stringify(server.command)}\nargs = ${JSON.stringify(server.args)}\nenv_vars = ["USER_SPACE", "RYE_CACHE_DIR"]\n`;
    write(".codex/config.toml", `model = "m"\nmodel_provider = "here"\n[model_providers.here]\nname = "here"\nbase_url = "${model}/v1"\nwire_api = "responses"\n` +
      `env_key = "HERE_KEY"\n[mcp_servers.rye]\n${how}`);
    return { args: ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "Greet Ada, please."], env: { HERE_KEY: "none" } };
  },
  opencode(model) {
    write("project/opencode.json", {
      model: "here/m", small_model: "here/m", autoupdate: false, share: "disabled",
      provider: { here: { npm: "@ai-sdk/openai-compatible", name: "here", options: { baseURL: `${model}/v1`, apiKey: "none" }, models: { m: { name: "m", tool_call: true } } } },
      mcp: { rye: url ? { type: "remote", url, enabled: true } : { type: "local", command: [server.command, ...server.args], enabled: true } },
    });
    return { args: ["run", "--command", "rye:team-greet", "Ada"], env: { OPENCODE_DISABLE_MODELS_FETCH: "1", OPENCODE_DISABLE_AUTOUPDATE: "1" } };
  },
  gemini(model) {
    write("project/.gemini/settings.json", {
      mcpServers: { rye: { ...(url ? { [transport === "http" ? "httpUrl" : "url"]: url } : server), trust: true } }, security: { auth: { selectedType: "gemini-api-key" } },
      privacy: { usageStatisticsEnabled: false }, general: { disableAutoUpdate: true },
    });
    return {
      args: ["-m", "gemini-2.5-flash", "--skip-trust", "--yolo", "-p", '/team-greet --who="Ada"'],
      env: { GOOGLE_GEMINI_BASE_URL: model, GEMINI_API_KEY: "none", GEMINI_CLI_TRUST_WORKSPACE: "true" },
    };
  },
};

let failed = false;
function check(what, holds, otherwise) {
  failed ||= !holds;
  console.log(`${holds ? "ok  " : "FAIL"}  ${program} ${version}, ${transport}: ${what}`);
  if (!holds) console.log(`      ${otherwise}`);
}

model.listen(0, "127.0.0.1", () => {
  const { args, env: more } = starts[program](`http://127.0.0.1:${model.address().port}`);
  const child = spawn(command, args, { cwd: project, env: { ...env, ...more }, stdio: ["ignore", "pipe", "pipe"] });
  let out = "";
  child.stdout.on("data", (data) => (out += data));
  child.stderr.on("data", (data) => (out += data));
  const late = setTimeout(() => child.kill("SIGKILL"), 120_000);
  child.on("close", (code) => {
    clearTimeout(late);
    check("it ends, with what the model says last", code === 0 && out.includes("All is done."), `exit code ${code}: ${out.slice(-1500)}`);
    check(program === "codex" ? "its model is told what the person says" : "its model is told the text of a prompt", seen.told.includes("Greet Ada, please."), seen.told.slice(-1000));
    check("its first request has the tools that delegate", [steps.at(program === "claude" ? 1 : 0).name, `${ryeTool}wait_threads`].every((name) => seen.first.includes(name)), seen.first.join(" "));
    check("its model is offered the tools", steps.every((step) => seen.tools.includes(step.name)), seen.tools.join(" "));
    steps.filter((s) => seen.tools.includes(s.name)).forEach((step, i) => {
      check(`its model is told the result of ${step.name}`, step.want.test(seen.results[i] ?? ""), (seen.results[i] ?? "no result").slice(0, 1500));
    });
    model.closeAllConnections();
    model.close();
    process.exit(failed ? 1 : 0);
  });
});
