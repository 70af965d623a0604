// Generates ../catalog.jsonl and ../LICENSE.genai-prices from the npm package
// @pydantic/genai-prices. Run it with "go generate ./runtime/llm/catalog"; it
// needs node and npm and fetches the package into a temporary folder. To update
// the data, change the version below, run it, and read the tests' complaints.

import { execFileSync } from "node:child_process";
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const name = "@pydantic/genai-prices";
const version = "0.1.8";

// Anthropic, OpenAI, and whoever offers OpenAI's protocol.
const providers = [
  "anthropic", "openai", "google", "openrouter", "azure", "cerebras", "deepseek", "fireworks", "groq",
  "mistral", "minimax", "moonshotai", "novita", "perplexity", "together", "x-ai", "zai",
];

// A model billed for any of these costs more than tokens tell, so its price
// counts as unknown.
const beyondTokens = ["requests_kcount", "output_reasoning_mtok", "output_citation_mtok"];

// Dollars to micro-dollars, in favour of the higher price.
const micros = (dollars) => Math.ceil(Math.round(dollars * 1e9) / 1e3);

const base = (p) => (typeof p === "object" ? p.base : p);
const highest = (p) => (typeof p === "object" ? Math.max(p.base, ...p.tiers.map((t) => t.price)) : p);

// [input, output, cache read, cache write]; a cache without a price of its own
// is billed as input, and so is what a model for embeddings gives, which has none.
function rates(prices, of) {
  const input = of(prices.input_mtok);
  return [input, of(prices.output_mtok ?? input), of(prices.cache_read_mtok ?? input), of(prices.cache_write_mtok ?? input)].map(micros);
}

const maximum = (a, b) => a.map((x, i) => Math.max(x, b[i]));

// A price by the length of the context is kept as two: up to the first step,
// and the highest above it.
function price(prices) {
  const steps = Object.values(prices).filter((p) => typeof p === "object").flatMap((p) => p.tiers.map((t) => t.start));
  const out = { rates: rates(prices, base) };
  if (steps.length > 0) out.long = { above: Math.min(...steps), rates: rates(prices, highest) };
  return out;
}

const embeds = (model) => /embed/.test(model.id);

const priced = (model, prices) =>
  prices.input_mtok !== undefined && (prices.output_mtok !== undefined || embeds(model)) && !beyondTokens.some((k) => k in prices);

// A price by the time of day counts with the highest of the day.
function dayMaximum(price, byHour) {
  const out = { ...price, rates: byHour.reduce((r, p) => maximum(r, p.rates), price.rates) };
  if (out.long) out.long = { above: out.long.above, rates: byHour.reduce((r, p) => maximum(r, p.rates), out.long.rates) };
  return out;
}

function priceList(model) {
  const list = Array.isArray(model.prices) ? model.prices : [{ prices: model.prices }];
  if (model.id.endsWith(":free") && list.every((p) => Object.keys(p.prices).length === 0)) return [{ rates: [0, 0, 0, 0] }];
  if (!list.every((p) => priced(model, p.prices))) return undefined;
  const byHour = list.filter((p) => p.constraint?.type === "time_of_date").map((p) => price(p.prices));
  return list
    .filter((p) => p.constraint?.type !== "time_of_date")
    .map((p) => ({ from: p.constraint?.start_date, ...dayMaximum(price(p.prices), byHour) }));
}

// Go has no lookahead: ^(?!x) becomes "not ^x".
function rule(match) {
  if (match.or) return { or: match.or.map(rule) };
  if (match.and) return { and: match.and.map(rule) };
  const negated = match.regex?.match(/^\^\(\?!(.*)\)$/);
  return negated ? { not: { regex: "^" + negated[1] } } : match;
}

function model(m) {
  return { id: m.id, match: rule(m.match), window: m.context_window, prices: priceList(m) };
}

const folder = mkdtempSync(join(tmpdir(), "genai-prices-"));
try {
  const npm = (...args) => execFileSync("npm", args, { cwd: folder, encoding: "utf8" });
  const archive = npm("pack", "--silent", `${name}@${version}`).trim();
  execFileSync("tar", ["xzf", archive], { cwd: folder });
  const date = JSON.parse(npm("view", name, "time", "--json"))[version].slice(0, 10);
  const { findProvider } = await import(pathToFileURL(join(folder, "package/dist/index.js")));

  const found = providers.map((id) => findProvider({ providerId: id }));
  const head = {
    source: `npm ${name}`,
    version,
    date,
    providers: found.map((p) => ({
      id: p.id, api: p.api_pattern, match: p.provider_match && rule(p.provider_match), fallback: p.fallback_model_providers,
    })),
  };
  const out = join(dirname(fileURLToPath(import.meta.url)), "..");
  // One line for the head and each provider's models, so that one can be read without the
  // others.
  const lines = [head, ...found.map((p) => p.models.map(model))];
  writeFileSync(join(out, "catalog.jsonl"), lines.map((line) => JSON.stringify(line) + "\n").join(""));
  copyFileSync(join(folder, "package/LICENSE"), join(out, "LICENSE.genai-prices"));
} finally {
  rmSync(folder, { recursive: true });
}
