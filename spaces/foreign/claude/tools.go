package claude

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

// counterpart is what a tool of Claude Code is here. Task is the older name of Agent.
func counterpart(tool string) (capabilities []string, known bool) {
	const files = "rye.execute.tool.rye.file-system."
	switch tool {
	case "Read", "Write", "Glob", "Grep", "LS":
		return []string{files + strings.ToLower(tool)}, true
	case "Edit", "MultiEdit":
		return []string{files + "edit_lines"}, true
	case "Bash":
		return []string{shell}, true
	case "WebFetch":
		return []string{"rye.execute.tool.rye.web.fetch"}, true
	case "WebSearch":
		return []string{"rye.execute.tool.rye.web.search"}, true
	case "Agent", "Task": // which tells its model of all agents, so they can be looked for
		return []string{"rye.execute.directive.*", "rye.search.directive.*"}, true
	case "Skill", "SlashCommand":
		of := strings.ReplaceAll(folderOf(tool), "/", ".") + "*"
		return []string{"rye.execute.directive." + of, "rye.search.directive." + of}, true
	}
	return nil, false
}

// folderOf begins the ids of what a tool starts; empty for one that starts nothing.
func folderOf(tool string) string {
	switch tool {
	case "Agent", "Task":
		return Prefix + "agents/"
	case "Skill":
		return skills
	case "SlashCommand":
		return Prefix + "commands/"
	}
	return ""
}

// shell is the capability to run commands.
const shell = "rye.execute.tool.rye.bash"

// unmatched are the tools of Claude Code that have no counterpart here.
func unmatched() []string {
	return []string{
		"TodoWrite", "TodoRead", "NotebookEdit", "NotebookRead", "BashOutput", "KillShell", "KillBash", "AskUserQuestion", "EnterPlanMode",
		"ExitPlanMode", "EnterWorktree", "ExitWorktree", "TaskCreate", "TaskGet", "TaskList", "TaskOutput", "TaskStop", "TaskUpdate",
		"SendMessage", "ToolSearch", "MCPSearch", "ListMcpResources", "ListMcpResourcesTool", "ReadMcpResource", "ReadMcpResourceTool", "LSP",
		"Monitor", "PowerShell", "CronCreate", "CronDelete", "CronList",
	}
}

// matched are those that have one.
func matched() []string {
	return []string{"Read", "Write", "Edit", "MultiEdit", "Glob", "Grep", "LS", "Bash", "WebFetch", "WebSearch", "Agent", "Task", "Skill", "SlashCommand"}
}

// least is what a thread may do whose file names no tools: look at the project. In
// Claude Code such a file has all tools of its caller; here nothing that is not said
// is given.
func least() []string { return []string{"Read", "Glob", "Grep", "LS"} }

// ask is one entry of a list of tools: the tool, and the part of it in brackets.
type ask struct {
	tool, part string
	whole      bool // no brackets, or such as mean all of it
}

func askOf(entry string) (ask, bool) {
	name, part, restricted := strings.Cut(entry, "(")
	if !restricted {
		return ask{tool: name, whole: true}, true
	}
	part, closed := strings.CutSuffix(part, ")")
	part = strings.TrimSpace(part)
	return ask{tool: strings.TrimSpace(name), part: part, whole: part == "*" || part == ":*" || part == "*:*"}, closed
}

// grants are the capabilities that a list of tools comes to.
type grants struct {
	capabilities []string
	notes        []item.UnknownName
	key          string
	line         int
	without      []string // the tools that have no counterpart
}

// add takes over one entry.
func (g *grants) add(entry string) {
	a, ok := askOf(entry)
	capabilities, known := counterpart(a.tool)
	switch {
	case !ok:
		g.refuse("%s has an entry whose bracket is never closed", g.key)
	case strings.HasPrefix(a.tool, "mcp__"):
		g.server(a)
	case known && a.whole:
		g.capabilities = append(g.capabilities, capabilities...)
	case known && folderOf(a.tool) != "":
		g.some(a)
	case known:
		g.refuse("%[1]s asks for a part of %[2]s, which no thread can be held to here, and all of it would be more: use it inline, or name %[2]s without brackets", g.key, a.tool)
	case a.tool == "*":
		g.note("%s: * is not read as everything: name the tools", g.key)
	case slices.Contains(unmatched(), a.tool):
		g.without = append(g.without, a.tool)
	default:
		g.noteNear(a.tool)
	}
}

// server takes over a tool of an MCP server, or all of one server.
func (g *grants) server(a ask) {
	server, name, some := strings.Cut(strings.TrimPrefix(a.tool, "mcp__"), "__")
	switch {
	case !a.whole:
		g.refuse("%s asks for a part of %s, which no thread can be held to here", g.key, item.Shown(a.tool))
	case !plainName(server) || some && name != "*" && !plainName(name):
		g.note("%s: %s is no tool of an MCP server", g.key, item.Shown(a.tool))
	case server == "rye":
		g.note("%s: %s is this server: name Agent, Read, Bash and the like", g.key, item.Shown(a.tool))
	case !some || name == "*":
		g.capabilities = append(g.capabilities, "rye.execute.tool.mcp."+server+".*")
	default:
		g.capabilities = append(g.capabilities, "rye.execute.tool.mcp."+server+"."+name)
	}
}

// some takes over what starts some agents, skills or commands only.
func (g *grants) some(a ask) {
	for _, name := range entries(a.part) {
		name = strings.TrimPrefix(name, "/")
		if !plainName(name) {
			g.refuse("%s asks for a part of %s that is not a list of names", g.key, a.tool)
			return
		}
		id := strings.ReplaceAll(folderOf(a.tool)+name, "/", ".")
		g.capabilities = append(g.capabilities, "rye.execute.directive."+id, "rye.search.directive."+id)
	}
}

// plainName reports whether a name can stand in a capability and means itself there.
func plainName(name string) bool {
	return name != "" && len(name) <= item.MaxShown && strings.IndexFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	}) < 0
}

func (g *grants) note(format string, args ...any) {
	g.notes = append(g.notes, item.UnknownName{Line: g.line, Text: fmt.Sprintf(format, args...)})
}

// refuse notes what a thread is not started with.
func (g *grants) refuse(format string, args ...any) {
	g.notes = append(g.notes, item.UnknownName{Line: g.line, Part: item.PartPermissions, Text: fmt.Sprintf(format, args...)})
}

func (g *grants) noteNear(name string) {
	g.notes = append(g.notes, item.UnknownName{
		Line: g.line, Text: fmt.Sprintf("%s: there is no tool %s", g.key, item.Shown(name)), Nearest: nearTool(name, slices.Concat(matched(), unmatched())),
	})
}

func nearTool(name string, known []string) string {
	for _, tool := range known {
		if strings.EqualFold(tool, name) {
			return tool
		}
	}
	return item.Nearest(name, known)
}

// toolsOf are the capabilities that a file comes to.
func toolsOf(f front) grants {
	given, there := f.get("tools", "allowed-tools", "allowed_tools")
	g := grants{key: given.key, line: given.line}
	asked := least()
	switch {
	case !there || given.shape == isNothing:
		g.line = max(1, given.line)
		servers := serversOf(f)
		asked = append(asked, servers...)
		if len(servers) == 0 {
			g.note("the file names no tools, so its thread can read files of the project and nothing else")
		}
	case given.shape == isOther:
		g.refuse("%s is no list of tools", given.key)
		asked = nil
	case given.shape == isList:
		asked = given.list
	default:
		asked = entries(given.text)
	}
	for _, entry := range g.left(f, asked) {
		g.add(entry)
	}
	if len(g.without) > 0 {
		g.note("%s: no counterpart here for %s", g.key, shownList(once(g.without)))
	}
	g.capabilities = once(g.capabilities)
	return g
}

// serversOf are the MCP servers that a file without a list of tools names, each as all
// of its tools. Where there is a list, it alone counts, as in Claude Code.
func serversOf(f front) (tools []string) {
	given, there := f.get("mcpServers")
	if !there || given.shape == isOther || given.shape == isNothing {
		return nil
	}
	names := given.list
	if given.shape == isText {
		names = entries(given.text)
	}
	for _, name := range names {
		tools = append(tools, "mcp__"+name)
	}
	return tools
}

// noteServers names servers that a file describes itself, which are not started.
func noteServers(doc *item.DirectiveDoc, f front) {
	if given, there := f.get("mcpServers"); there && given.shape == isOther {
		doc.Unknown = append(doc.Unknown, item.UnknownName{
			Line: given.line, Text: "mcpServers describes servers, which are not started from here: add them with rye-mcp mcp add, and name them",
		})
	}
}

// left leaves out what a file does not want to have. A part of a tool cannot be
// kept from a thread, so all of the tool is.
func (g *grants) left(f front, asked []string) []string {
	denied, there := f.get("disallowedTools", "disallowed-tools")
	var list []string
	switch {
	case !there || denied.shape == isNothing:
		return asked
	case denied.shape == isOther:
		g.notes = append(g.notes, item.UnknownName{Line: denied.line, Part: item.PartPermissions, Text: denied.key + " is no list of tools"})
		return nil
	case denied.shape == isList:
		list = denied.list
	default:
		list = entries(denied.text)
	}
	kept := asked
	for _, entry := range list {
		not, _ := askOf(entry)
		if !not.whole {
			g.notes = append(g.notes, item.UnknownName{Line: denied.line,
				Text: fmt.Sprintf("%s names a part of %s: all of it is left out", denied.key, item.Shown(not.tool))})
		}
		kept = slices.DeleteFunc(slices.Clone(kept), func(entry string) bool {
			a, _ := askOf(entry)
			return denies(not.tool, a.tool)
		})
	}
	return kept
}

// denies reports whether a tool that is not wanted is, or holds, one that is asked
// for, or is held by it.
func denies(not, tool string) bool {
	older := strings.NewReplacer("Task", "Agent", "MultiEdit", "Edit")
	if not == "*" || older.Replace(not) == older.Replace(tool) {
		return true
	}
	not, tool = strings.TrimSuffix(not, "__*"), strings.TrimSuffix(tool, "__*")
	return strings.HasPrefix(not, "mcp__") && strings.HasPrefix(tool, "mcp__") &&
		(not == tool || strings.HasPrefix(tool, not+"__") || strings.HasPrefix(not, tool+"__"))
}

// once leaves out what has been there before.
func once(list []string) []string {
	var kept []string
	for _, s := range list {
		if !slices.Contains(kept, s) {
			kept = append(kept, s)
		}
	}
	return kept
}
