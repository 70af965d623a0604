/**
 * A tool with every form of constant.
 */
import { readFile } from "node:fs/promises";
import type { Schema } from './schema';
import Ajv, * as rest from "ajv"

@sealed
class Sealed<T> { static PLAIN = "class"; re = /[/"'`]/g }
const decorated = (a: number = 1): string => { const PLAIN = 'local'; return `x${a ? `{"` : "}"}` }
type Named = { PLAIN: string; }
interface Deep { a: Map<string, Array<number>> }
enum Color { Red = 1, Green }

// Texts
export const PLAIN = 'ab'
export const ESCAPES = "\b\f\n\r\t\v\0\\\'\"\x41\xff\u00e9\u{1F600}\ud83d\ude00\d\
joined";
export const TEMPLATE = `first
 "second" \`third\` \${x} $y`
export const ADDED = "a" + 'b' +
  PLAIN
// Numbers
export const NUMBERS: readonly number[] = [0, 1_000, -5, +3, 0x1F, 0o17, 0b101, 1.5, .5, 1., 1e3, 9007199254740993]
export const WORDS = [true, false, null] as const
let unused: string
export let later: number = 1, also = { a: "x, y" }, last = [1,]
const M: Map<string, Array<number>> = new Map(), N: Record<string, number> = { n: 1 }
// Lists and objects
const OPERATIONS = ["hover", "definition"] as const;
export const CONFIG_SCHEMA = {
  type: "object",
  'properties': {
    operation: { type: "string", enum: [...OPERATIONS, "all"], default: OPERATIONS, },
    ["com" + "puted"]: { in: true }, // not here }
    1: { new: [] },
    PLAIN,
    /* nor here } */ "quoted-key": (1),
  },
  required: ["operation"],
} satisfies Schema as const;
export const MERGED = { ...CONFIG_SCHEMA, type: "changed", ...{ b: [3] } } as Record<string, unknown>
export const CAST = <const>["a"] as unknown as Array<Record<string, string>>
export const ENV_CONFIG: {
  a: string
} = { a: "b" }
const ratio = 4 / 2, other = 1 /
  2
if (ratio > 1) { console.log(/}/.test("x")) }
else console.log("y")
for (const item of []) { }
export async function execute(params: { a: string }, PLAIN = "x"): Promise<{ b: string }> {
  const CONFIG_SCHEMA = 1
  return { b: `${params.a}` }
}
export const __version__ = "1.2.3", __tool_type__ = "javascript"
export default execute
export const LAST = "no line end"