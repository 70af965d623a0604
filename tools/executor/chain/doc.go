// Package chain makes of a tool item what a primitive can run.
//
// A tool names its executor by an item id: a runtime, which is an item too and
// names another executor, down to a primitive, which is Go:
//
//	my/tool.py → rye/core/runtimes/python/function → rye/core/primitives/subprocess
//
// [Builder.Build] follows the ids through the spaces and verifies every element.
// [Chain.Plan] merges what the elements say (the configuration of the runtimes,
// the tool's over it), finds the interpreter, and makes the environment. The
// [Primitive] at the end of the chain runs the [Plan].
package chain
