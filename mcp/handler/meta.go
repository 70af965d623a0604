package handler

// Keys of a tool's _meta that clients act on, each with what it does, and the client
// and version it was tried on.
const (
	// keyAlwaysLoad puts a tool into the first request to the model. Claude Code 2.1.197:
	// the first request has the tools with the key, and without it none of a server that
	// its tool search defers.
	keyAlwaysLoad = "anthropic/alwaysLoad"
	// keySearchHint is matched by the tool search beside name and description. Claude
	// Code 2.1.197: a search for "subagent log" finds read_transcript.
	keySearchHint = "anthropic/searchHint"
	// keyMaxResult is how many characters of an answer stay in the conversation. Claude
	// Code 2.1.197: without it what is above 50 000 goes to a file, with a preview of 2 KB;
	// 500 000 is the most it takes.
	keyMaxResult = "anthropic/maxResultSizeChars"
)

// maxResultChars is for tools whose caller can ask for a long answer with max_bytes.
const maxResultChars = 500_000

// metaOf is the _meta of a tool.
func metaOf(name string) map[string]any {
	meta := map[string]any{}
	switch name {
	case "rye_execute", "wait_threads":
		meta[keyAlwaysLoad] = true
	default:
		if hint := searchHint(name); hint != "" {
			meta[keySearchHint] = hint
		}
	}
	switch name {
	case "rye_execute", "rye_fetch", "rye_search", "wait_threads", "aggregate_results", "read_transcript":
		meta[keyMaxResult] = maxResultChars
	}
	return meta
}

// searchHint has the words that models look for a tool with and that stand neither in
// its name nor in its description.
func searchHint(name string) string {
	switch name {
	case "rye_search":
		return "find agent, prompt, skill, command, workflow"
	case "rye_fetch":
		return "open agent, prompt, skill, documentation, guide"
	case "rye_sign":
		return "trust, approve a file"
	case "get_status":
		return "check on background agent, task, job, progress"
	case "list_active", "list_threads":
		return "background agents, subagents, tasks, jobs"
	case "read_transcript":
		return "subagent log, output, conversation, history"
	case "cancel_thread", "kill_thread":
		return "stop, abort, interrupt background agent, subagent, task, job"
	case "resume_thread":
		return "send message to agent, subagent; continue, follow up"
	case "approve_thread":
		return "answer question, raise limit, budget of agent"
	case "aggregate_results":
		return "collect outputs, totals of agents, tasks"
	case "get_budget":
		return "money, spend, cost of agent"
	case "get_chain", "chain_search":
		return "history of agent, grep conversation"
	}
	return ""
}
