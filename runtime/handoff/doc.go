// Package handoff decides what of a conversation a successor is given when the
// context window of a thread is nearly full: a manifest of what there is, the
// summary if somebody wrote one, and the trailing messages, within a number of
// tokens. Pure functions over messages; the orchestrator makes the successor.
package handoff
