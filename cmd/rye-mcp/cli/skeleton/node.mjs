import { text } from "node:stream/consumers";

export const __version__ = "1.0.0";
export const __tool_type__ = "javascript";
export const __executor_id__ = "rye/core/runtimes/node/node";
export const __category__ = "@CATEGORY@";
export const __tool_description__ = "What it does and what it returns, in one line that models read";

export const CONFIG_SCHEMA = {
  type: "object",
  properties: {
    text: { type: "string", description: "The text to count the words of" },
  },
  required: ["text"],
};

const params = JSON.parse((await text(process.stdin)) || "{}");
const words = params.text.split(/\s+/).filter(Boolean).length;
console.log(JSON.stringify({ success: true, words }));
