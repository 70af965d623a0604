// Package prompt offers the directives of a project as MCP prompts: a person picks one
// in the menu of a client, and the client's own model carries it out.
//
//	List → which directives are offered, under which names
//	Get → name to id → the composed text of an inline call
//	Complete → what an argument may be: values of an enum, files, ids
//
// It knows no transport: mcp/server decodes and encodes.
package prompt
