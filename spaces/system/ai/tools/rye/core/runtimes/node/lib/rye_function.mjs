// Calls the function that a tool exports: its parameters come as JSON on standard input, and
// what it returns is printed as JSON. What it prints is a log, and the result of one that
// returns nothing.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

export const __version__ = "1.0.0";
export const __tool_type__ = "library";
export const __category__ = "rye/core/runtimes/node/lib";
export const __tool_description__ = "Calls functions of JavaScript and TypeScript tools with what they take";

/** The function of a module, by its name or as the default, and what it belongs to. */
function exported(module) {
  for (const place of [module, module.default]) {
    for (const name of ["execute", "run", "main", "handler", "default"]) {
      if (typeof place?.[name] === "function") return [place[name], place];
    }
  }
  throw new TypeError("the tool exports no function execute(params, projectPath)");
}

/** The names of the parameters of a function, up to the first that has none. */
function namesOf(f) {
  const text = Function.prototype.toString.call(f).replace(/\/\*[^]*?\*\/|(?<!:)\/\/[^\n]*/g, "");
  const list = /^(?:async\s+)?(?:function\b\s*\*?\s*)?[\w$]*\s*\(([^(){[]*)/.exec(text) ?? /^(?:async\s+)?([\w$]+)\s*=>/.exec(text);
  const names = (list?.[1] ?? "").split(",").map((one) => /^\s*([\w$]+)/.exec(one)?.[1]);
  return names.slice(0, (names.indexOf(undefined) + 1 || names.length + 1) - 1);
}

/** What a function is called with: parameters and project, or what its parameters are named after. */
function argumentsOf(f, params, project) {
  const names = namesOf(f);
  if (!names.some((name) => name !== "params" && Object.hasOwn(params, name))) return [params, project];
  const lost = Object.keys(params).filter((name) => !names.includes(name) && name !== "resolved_config");
  if (lost.length > 0 && names.length === 1) return [params, project];
  if (lost.length > 0) {
    throw new TypeError(`${f.name}(${names.join(", ")}) cannot be called: it does not take ${lost.join(", ")}; write execute(params, projectPath), or give it the names of the declared parameters`);
  }
  return names.map((name) => (Object.hasOwn(params, name) ? params[name] : name === "projectPath" || name === "project_path" ? project : undefined));
}

const [, , tool, project] = process.argv;
const params = JSON.parse(readFileSync(0, "utf8"));
process.argv = [process.argv[0], tool, "--project-path", project];

const most = 1 << 20; // characters; more is a log
const answer = process.stdout.write.bind(process.stdout);
let printed = "";
process.stdout.write = (text, ...more) => {
  if (printed.length <= most) printed += text;
  return process.stderr.write(text, ...more);
};

const [execute, place] = exported(await import(pathToFileURL(tool).href));
const result = await Reflect.apply(execute, place, argumentsOf(execute, params, project));
const text = result === undefined && printed.length <= most && printed.trim();
answer(text || (JSON.stringify(result, (_, value) => (typeof value === "bigint" ? String(value) : value)) ?? "{}"), () => process.exit());
