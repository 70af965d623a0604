// Calls the function that a tool exports: the call comes as JSON on standard input, and what
// it returns is printed as JSON. What it prints is a log, and the result of one that
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

/** The names of the parameters of a function; undefined for one that is taken apart, or is the rest. */
function namesOf(f) {
  const text = Function.prototype.toString.call(f);
  const single = /^(?:async\s+)?([\p{ID_Continue}$]+)\s*=>/u.exec(text);
  if (single) return [single[1]];
  const parts = text.slice(text.indexOf("(") + 1).matchAll(/\/\*[^]*?\*\/|\/\/[^\n]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`(?:\\.|[^`\\])*`|[^]/g);
  const list = [];
  let one = "";
  for (let depth = 0; depth >= 0; ) {
    const [part] = parts.next().value ?? [")"];
    if ("([{".includes(part)) depth++;
    else if (")]}".includes(part)) depth--;
    if (depth < 0 || (depth === 0 && part === ",")) {
      if (one.trim() !== "") list.push(/^\s*([\p{ID_Continue}$]+)/u.exec(one)?.[1]);
      one = "";
    } else if (!part.startsWith("/*") && !part.startsWith("//")) one += part;
  }
  return list;
}

/** What a function is called with: parameters and project, or what its parameters are named after. */
function argumentsOf(f, { params, project, declared }) {
  const names = namesOf(f);
  const known = new Set([...(declared ?? []), ...Object.keys(params)]);
  if (!names.some((name) => !["params", "projectPath", "project_path"].includes(name) && known.has(name))) return [params, project];
  const whole = names.some((name) => name === undefined || (name === "params" && !known.has(name)));
  const lost = Object.keys(params).filter((name) => !names.includes(name) && name !== "resolved_config");
  if (lost.length > 0 && !whole) {
    throw new TypeError(`${f.name}(${names.join(", ")}) cannot be called: it does not take ${lost.join(", ")}; write execute(params, projectPath), or give it the names of the declared parameters`);
  }
  return names.map((name) => {
    if (name === undefined || (name === "params" && !known.has(name))) return params;
    if (!known.has(name) && /project/i.test(name)) return project;
    return Object.hasOwn(params, name) ? params[name] : undefined;
  });
}

const call = JSON.parse(readFileSync(0, "utf8"));
process.argv = [process.argv[0], call.tool, "--project-path", call.project];

const most = 1 << 20; // characters; more is a log
const answer = process.stdout.write.bind(process.stdout);
let printed = "";
process.stdout.write = (text, ...more) => {
  if (printed.length <= most) printed += text;
  return process.stderr.write(text, ...more);
};

const [execute, place] = exported(await import(pathToFileURL(call.tool).href));
const result = await Reflect.apply(execute, place, argumentsOf(execute, call));
const text = result === undefined && printed.length <= most && printed.trim();
answer(text || (JSON.stringify(result, (_, value) => (typeof value === "bigint" ? String(value) : value)) ?? "{}"), () => process.exit());
