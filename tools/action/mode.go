package action

import (
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// mode is how an item is to be executed. Any mode may be tried with dry_run.
type mode struct {
	fork  bool // in a thread of its own
	async bool // without waiting
}

// modeOf reads the mode of a request. Without thread, a directive is forked
// from within threads and when something is asked for that only a fork can do;
// everything else is inline.
func modeOf(kind item.Kind, c Caller, r ExecuteRequest) mode {
	m := mode{fork: r.Thread == ThreadFork, async: r.Async}
	if r.Thread == "" && kind == item.Directive {
		m.fork = c.InThread || r.Async || len(forkOnly(r)) > 0
	}
	return m
}

// forkOnly names the given arguments that mean something for forked directives.
func forkOnly(r ExecuteRequest) []string {
	var names []string
	if r.Model != "" {
		names = append(names, "model")
	}
	if len(r.Limits) > 0 {
		names = append(names, "limits")
	}
	if r.WaitSeconds != nil {
		names = append(names, "wait_seconds")
	}
	if r.Workspace != "" {
		names = append(names, "workspace")
	}
	if r.RequestKey != "" {
		names = append(names, "request_key")
	}
	return names
}

// checkMode refuses what an item of that kind cannot do, and arguments that
// would have no effect.
func checkMode(kind item.Kind, m mode, r ExecuteRequest) error {
	if reason, instead := impossible(kind, m); reason != "" {
		return tool.Faultf(tool.CodeUnsupported, "%s", reason).WithHint("%s", instead)
	}
	if m.fork {
		if m.async && r.WaitSeconds != nil {
			return tool.Faultf(tool.CodeUnsupported, "wait_seconds has no effect with async: nothing is waited for").
				WithHint("Leave one of them out; wait_threads waits for a thread later.")
		}
		return nil
	}
	names := forkOnly(r)
	if m.async && kind == item.Tool && r.RequestKey != "" {
		names = names[:len(names)-1] // request_key, the last, also names a background run
	}
	if len(names) == 0 {
		return nil
	}
	return tool.Faultf(tool.CodeUnsupported, "%s: only for directives in a thread of their own", strings.Join(names, ", ")).
		WithHint("%s", insteadOf(kind, names))
}

// insteadOf is what to do where arguments mean nothing. Callers take wait_seconds, which is
// timeout too, for the time that a tool may take.
func insteadOf(kind item.Kind, names []string) string {
	switch {
	case kind == item.Directive:
		return `Use thread "fork", or leave them out.`
	case kind == item.Tool && slices.Contains(names, "request_key"):
		return "Leave them out; with async, request_key names a tool's run in the background, too."
	case kind == item.Tool && slices.Contains(names, "wait_seconds"):
		return "Leave them out; the time that a tool may take stands in its parameters, if it can be chosen."
	default:
		return "Leave them out."
	}
}

// impossible is the table of what cannot be combined, with the reason and what
// to do instead; both are empty for what can.
func impossible(kind item.Kind, m mode) (reason, instead string) {
	switch kind {
	case item.Directive:
		if m.async && !m.fork {
			return "an inline directive comes back as text for you to carry out: there is nothing to detach",
				`Use thread "fork" with async to run it in the background, or leave async out.`
		}
	case item.Tool:
		if m.fork {
			return "a tool cannot be forked: it has no conversation that could run in a thread",
				"Leave thread out to get its result, or use async to run it in the background."
		}
	case item.Knowledge:
		switch {
		case m.fork:
			return "knowledge cannot be forked: it is text, and there is nothing to run", "Leave thread and async out to read it."
		case m.async:
			return "knowledge comes back at once: there is nothing to detach", "Leave async out."
		}
	}
	return "", ""
}
