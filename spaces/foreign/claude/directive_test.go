package claude

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/parse"
)

const files = "rye.execute.tool.rye.file-system."

func read1(t *testing.T, id, src string) *item.DirectiveDoc {
	t.Helper()
	doc, err := Directive(Source{Path: "x.md", ID: id, Content: []byte(src)})
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// stops are the texts that keep a thread from being started, by their part.
func stops(doc *item.DirectiveDoc) map[item.Part]string {
	all := map[item.Part]string{}
	for _, name := range doc.Unknown {
		if name.Part != "" {
			all[name.Part] += name.String()
		}
	}
	return all
}

func notes(doc *item.DirectiveDoc) string {
	var b strings.Builder
	for _, name := range doc.Unknown {
		b.WriteString(name.String() + "\n")
	}
	return b.String()
}

func TestTools(t *testing.T) {
	t.Parallel()
	minimum := []string{files + "read", files + "glob", files + "grep", files + "ls"}
	for name, test := range map[string]struct {
		front string
		want  []string
		note  string // of what is named
		stop  string // of what keeps a thread from being started
	}{
		"none":        {"name: x", minimum, "names no tools", ""},
		"nothing":     {"tools:", minimum, "names no tools", ""},
		"no tools":    {"tools: []", nil, "", ""},
		"text":        {"tools: Read, Write,Grep", []string{files + "read", files + "write", files + "grep"}, "", ""},
		"list":        {"tools:\n  - Edit\n  - MultiEdit\n  - LS", []string{files + "edit_lines", files + "ls"}, "", ""},
		"blanks":      {"allowed-tools: Read Glob", []string{files + "read", files + "glob"}, "", ""},
		"shell":       {"tools: Bash", []string{"rye.execute.tool.rye.bash"}, "", ""},
		"web":         {"tools: WebFetch, WebSearch", []string{"rye.execute.tool.rye.web.fetch", "rye.execute.tool.rye.web.search"}, "", ""},
		"agents":      {"tools: Task", []string{"rye.execute.directive.*", "rye.search.directive.*"}, "", ""},
		"some agents": {"tools: Agent(a, b-c)", []string{"rye.execute.directive.claude.agents.a", "rye.search.directive.claude.agents.a", "rye.execute.directive.claude.agents.b-c", "rye.search.directive.claude.agents.b-c"}, "", ""},
		"one skill":   {"allowed-tools: Skill(pdf)", []string{"rye.execute.directive.claude.skills.pdf", "rye.search.directive.claude.skills.pdf"}, "", ""},
		"a server":    {"tools: mcp__github, mcp__files__*", []string{"rye.execute.tool.mcp.github.*", "rye.execute.tool.mcp.files.*"}, "", ""},
		"its tool":    {"tools: mcp__git-hub__create_issue", []string{"rye.execute.tool.mcp.git-hub.create_issue"}, "", ""},
		"no match":    {"tools: Read, TodoWrite, KillShell", []string{files + "read"}, "no counterpart here for TodoWrite, KillShell", ""},
		"misspelt":    {"tools: Read, Gerp", []string{files + "read"}, "no tool Gerp; did you mean Grep?", ""},
		"small":       {"tools: read", nil, "no tool read; did you mean Read?", ""},
		"everything":  {`tools: "*"`, nil, "* is not read as everything", ""},
		"a part":      {"allowed-tools: Read, Bash(git add:*), Bash(git commit -m:*)", []string{files + "read"}, "", "asks for a part of Bash"},
		"of reading":  {"tools: Read(./src/**)", nil, "", "asks for a part of Read"},
		"of a site":   {"tools: WebFetch(domain:example.com)", nil, "", "asks for a part of WebFetch"},
		"of a server": {"tools: mcp__a__b(x)", nil, "", "asks for a part of mcp__a__b"},
		"all of it":   {"tools: Bash(*), Read(*)", []string{"rye.execute.tool.rye.bash", files + "read"}, "", ""},
		"wild agents": {"tools: Agent(*.secret)", nil, "", "not a list of names"},
		"never ends":  {"tools: Bash(git add", nil, "", "never closed"},
		"a mapping":   {"tools:\n  bash: true", nil, "", "is no list of tools"},
		"nested":      {"tools:\n  - [Bash]", nil, "", "is no list of tools"},
		"denied":      {"tools: Read, Bash, Write\ndisallowedTools: Bash, Write", []string{files + "read"}, "", ""},
		"denied part": {"tools: Read, Bash\ndisallowedTools: Bash(rm:*)", []string{files + "read"}, "all of it is left out", ""},
		"older name":  {"tools: Read, Task\ndisallowedTools: Agent", []string{files + "read"}, "", ""},
		"of least":    {"disallowedTools: Read", minimum[1:], "names no tools", ""},
		"a server of": {"tools: mcp__a__b, mcp__a, mcp__c__d\ndisallowedTools: mcp__a", []string{"rye.execute.tool.mcp.c.d"}, "", ""},
		"all denied":  {"tools: Read\ndisallowedTools: '*'", nil, "", ""},
		"its servers": {"mcpServers: [a, b]", append(slices.Clone(minimum), "rye.execute.tool.mcp.a.*", "rye.execute.tool.mcp.b.*"), "", ""},
		"with a list": {"tools: Read\nmcpServers: [a]", []string{files + "read"}, "", ""},
		"described":   {"mcpServers:\n  - a: {command: x}", minimum, "are not started from here", ""},
		"denied one":  {"mcpServers: a, b\ndisallowedTools: mcp__a", append(slices.Clone(minimum), "rye.execute.tool.mcp.b.*"), "", ""},
		"ourselves":   {"tools: mcp__rye__rye_execute", nil, "is this server", ""},
		"a pattern":   {"tools: mcp__*__x, mcp__a.b__c", nil, "is no tool of an MCP server", ""},
		"a key":       {"tool: Read", minimum, "", "tool is no key of this format; did you mean tools?"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc := read1(t, "claude/agents/x", "---\n"+test.front+"\n---\nDo it.")
			if got := doc.Permissions.Capabilities; !slices.Equal(got, test.want) || !doc.Permissions.Declared {
				t.Errorf("capabilities %v, want %v", got, test.want)
			}
			if !strings.Contains(notes(doc), test.note) {
				t.Errorf("notes %q, want %q", notes(doc), test.note)
			}
			if got := stops(doc)[item.PartPermissions]; !strings.Contains(got, test.stop) || (test.stop == "") != (got == "") {
				t.Errorf("stops for %q, want %q", got, test.stop)
			}
		})
	}
}

func TestModel(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]item.ModelChoice{
		"":                        {Inherit: true},
		"inherit":                 {Inherit: true},
		"sonnet":                  {Tier: "general"},
		"Opus":                    {Tier: "high"},
		"haiku":                   {Tier: "fast"},
		"opusplan":                {Tier: "high"},
		"sonnet[1m]":              {Tier: "general"},
		"claude-opus-4-1":         {ID: "claude-opus-4-1", Tier: "high"},
		"anthropic/claude-sonnet": {ID: "anthropic/claude-sonnet", Tier: "general"},
		"gpt-6":                   {ID: "gpt-6"},
	} {
		doc := read1(t, "claude/agents/x", "---\nmodel: "+model+"\n---\nDo it.")
		if doc.Model != want || len(stops(doc)) > 0 {
			t.Errorf("%q: %+v, want %+v; %v", model, doc.Model, want, stops(doc))
		}
	}
	for _, model := range []string{"[sonnet]", "{a: b}", "the best there is"} {
		if doc := read1(t, "claude/agents/x", "---\nmodel: "+model+"\n---\nDo it."); stops(doc)[item.PartModel] == "" {
			t.Errorf("%s is taken for a model: %+v", model, doc.Model)
		}
	}
}

func TestRest(t *testing.T) {
	t.Parallel()
	doc := read1(t, "claude/agents/review", `---
name: code-reviewer
description: "Reviews code. <example>Context: a user\nuser: review</example>"
maxTurns: 7
isolation: worktree
background: true
effort: high
permissionMode: bypassPermissions
mcpServers: [github]
skills: [pdf]
hooks:
  pre: echo
color: red
capabilities: [x]
sparc_phase: y
---
You review {input:prompt} and $ARGUMENTS.`)
	if doc.Name != "review" || doc.Title != "code-reviewer" || doc.Description != "Reviews code." || !strings.Contains(doc.Prose, "Context") {
		t.Errorf("%q, %q, %q", doc.Name, doc.Title, doc.Description)
	}
	if doc.Model.Effort != "high" {
		t.Errorf("effort %q", doc.Model.Effort)
	}
	if !reflect.DeepEqual(doc.Limits, item.LimitSet{"turns": 7}) || doc.Syntax != item.SyntaxNone || doc.Inputs[0].Name != InputPrompt || !doc.Inputs[0].Required {
		t.Errorf("%+v", doc)
	}
	if doc.Workspace != "worktree" {
		t.Errorf("workspace %q", doc.Workspace)
	}
	if doc := read1(t, "claude/agents/x", "---\nisolation: container\n---\nDo it."); stops(doc)[item.PartWorkspace] == "" {
		t.Error("an isolation that is not known starts a thread")
	}
	if !doc.Background || !slices.Contains(doc.Permissions.Capabilities, "rye.execute.tool.mcp.github.*") {
		t.Errorf("background %t, capabilities %q", doc.Background, doc.Permissions.Capabilities)
	}
	for _, want := range []string{"permissionMode", "skills", "hooks", "without effect here: capabilities, sparc_phase"} {
		if !strings.Contains(notes(doc), want) {
			t.Errorf("%s is not named: %s", want, notes(doc))
		}
	}
	if len(stops(doc)) > 0 || strings.Contains(notes(doc), "color") {
		t.Errorf("notes: %s", notes(doc))
	}
	if doc := read1(t, "claude/agents/x", "---\nmaxTurns: many\n---\nDo it."); stops(doc)[item.PartLimits] == "" {
		t.Error("a limit that is no number starts a thread")
	}
}

func TestFrontMatter(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		src         string
		description string
		tools       int
		loose       bool
	}{
		"none":               {"# Helper\n\nYou help.", "Helper", 4, false},
		"CRLF and BOM":       {"\xef\xbb\xbf---\r\ndescription: A\r\ntools: Read\r\n---\r\nDo it.\r\n", "A", 1, false},
		"empty":              {"---\n---\nDo it.", "Do it.", 4, false},
		"comments only":      {"---\n# nothing\n---\nDo it.", "Do it.", 4, false},
		"colon":              {"---\ndescription: Use this: always\ntools: Read\n---\nDo it.", "Use this: always", 1, true},
		"dialogue":           {"---\ndescription: Use it.\n  Context: x: y\n\nuser: \"hi\"\nassistant: \"ho\"\ntools: Read, Bash\n---\nDo it.", `Use it. Context: x: y user: "hi" assistant: "ho"`, 2, true},
		"a list":             {"---\ndescription: a: b\ntools:\n  - Read\n  - \"Grep\"\n---\nDo it.", "a: b", 2, true},
		"a flow list":        {"---\ndescription: a: b\ntools: [Read, 'Bash']\n---\nDo it.", "a: b", 2, true},
		"folded":             {"---\ndescription: >\n  A\n  B\ntools: Read\n---\nDo it.", "A B", 1, false},
		"no mapping":         {"---\njust words\n---\nDo it.", "Do it.", 4, true},
		"two documents":      {"---\ndescription: A\n...\ntools: Bash\n---\nDo it.", "A ...", 1, true},
		"a line in the body": {"---\ndescription: A\n---\nDo it.\n---\ntools: Bash\n---\n", "A", 4, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc := read1(t, "claude/agents/x", test.src)
			if doc.Description != test.description || len(doc.Permissions.Capabilities) != test.tools {
				t.Errorf("%q, %v", doc.Description, doc.Permissions.Capabilities)
			}
			if loose := strings.Contains(notes(doc), "read line by line"); loose != test.loose {
				t.Errorf("loose: %v", loose)
			}
		})
	}
}

func TestBadFiles(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		src, want string
		line      int
	}{
		"never closed":   {"---\nname: x\nDo it.", "never ends", 1},
		"long":           {"---\n" + strings.Repeat("x: "+strings.Repeat("y", 1000)+"\n", 100) + "---\nDo it.", "64 KiB", 1},
		"one long line":  {"---\nx: " + strings.Repeat("y", 1<<20) + "\n---\nDo it.", "64 KiB", 1},
		"no text":        {"---\nname: x\n---\n \n", "no text", 4},
		"UTF-16":         {"\xff\xfe-\x00-\x00", "UTF-8", 1},
		"NUL":            {"a\nb\x00", "NUL", 2},
		"ten megabytes":  {strings.Repeat("x", 10<<20), "an item may have", 1},
		"twice":          {"---\ntools: Read\ntools: Bash\n---\nDo it.", "already stands on line 2", 3},
		"twice, no YAML": {"---\ndescription: a: b\ntools: Read\ntools: Bash\n---\nDo it.", "already stands on line 3", 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Directive(Source{Path: "x.md", ID: "claude/agents/x", Content: []byte(test.src)})
			var e *parse.Error
			if !errors.As(err, &e) || !strings.Contains(e.Reason, test.want) || e.Line != test.line {
				t.Errorf("%v, want %q on line %d", err, test.want, test.line)
			}
		})
	}
	if _, err := Directive(Source{Path: "x.md", ID: "team/x", Content: []byte("x")}); err == nil {
		t.Error("an id of ours is read")
	}
}

// TestAttackHiddenTools: an agent's front matter hides tools behind anchors, tags, merge keys, documents and line breaks that no reader shows.
// It is refused, or read as what it shows, and never has a tool that stands nowhere in sight.
func TestAttackHiddenTools(t *testing.T) {
	t.Parallel()
	for name, front := range map[string]string{
		"an anchor":      "description: &x Bash\ntools: *x",
		"a merge key":    "base: &b {tools: Bash}\n<<: *b",
		"a tag":          "tools: !!str Bash",
		"a binary tag":   "tools: !!binary QmFzaA==",
		"a line of YAML": "description: fine\u2028tools: Bash",
		"a paragraph":    "description: fine\u2029tools: Bash",
		"a next line":    "description: fine\u0085tools: Bash",
		"a return":       "description: fine\rtools: Bash",
		"a bomb":         "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\ntools: *c",
		"a key of lists": "? [tools]\n: Bash",
		"twice":          "tools: Read\n\"tools\": Bash",
	} {
		doc, err := Directive(Source{Path: "x.md", ID: "claude/agents/x", Content: []byte("---\n" + front + "\n---\nDo it.")})
		if err == nil && slices.Contains(doc.Permissions.Capabilities, shell) {
			t.Errorf("%s: it has the shell", name)
		}
		if err == nil {
			t.Errorf("%s: it is read as %+v", name, doc.Permissions)
		}
	}
	// In sight, however it is quoted.
	for _, front := range []string{`"tools": "Bash"`, "{tools: [Bash]}", "tools: |\n  Bash", "tools: 'Bash'"} {
		if doc := read1(t, "claude/agents/x", "---\n"+front+"\n---\nDo it."); !slices.Contains(doc.Permissions.Capabilities, shell) {
			t.Errorf("%s: %v", front, doc.Permissions.Capabilities)
		}
	}
	// Names that look alike are others.
	if doc := read1(t, "claude/agents/x", "---\ntools: B\u0430sh, Bash\u200b\n---\nDo it."); len(doc.Permissions.Capabilities) > 0 {
		t.Errorf("%v", doc.Permissions.Capabilities)
	}
}

func TestSkillFiles(t *testing.T) {
	t.Parallel()
	doc, err := Directive(Source{
		Path: "SKILL.md", ID: "claude/skills/pdf", Folder: "/p/.claude/skills/pdf", Files: []string{"a.md", "scripts/b.py"},
		Content: []byte("---\nname: pdf\ndescription: PDFs\nallowed-tools: Read\n---\nRead a.md in ${CLAUDE_SKILL_DIR}."),
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{files + "read", "rye.fetch.knowledge.claude.skills.pdf.*"}; !slices.Equal(doc.Permissions.Capabilities, want) {
		t.Errorf("%v", doc.Permissions.Capabilities)
	}
	if !strings.Contains(doc.After, "a.md, scripts/b.py") || doc.Folder != "/p/.claude/skills/pdf" || doc.Inputs[0].Required {
		t.Errorf("%+v", doc)
	}
}

func TestShellNeedsBash(t *testing.T) {
	t.Parallel()
	const body = "State: !`git status`"
	if doc := read1(t, "claude/commands/x", "---\nallowed-tools: Read\n---\n"+body); stops(doc)[item.PartPermissions] == "" {
		t.Error("a command without Bash is started")
	}
	if doc := read1(t, "claude/commands/x", "---\nallowed-tools: Bash\n---\n"+body); len(stops(doc)) > 0 {
		t.Errorf("%v", stops(doc))
	}
	if doc := read1(t, "claude/agents/x", body); len(stops(doc)) > 0 { // an agent's text is text
		t.Errorf("%v", stops(doc))
	}
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	for _, p := range Places() {
		for name, id := range map[string]string{
			"a.md": "a", "deep/er/a.md": "deep/er/a", "README.md": "", "deep/readme.md": "", "a.txt": "", ".md": "",
			"pdf/SKILL.md": "pdf", "pdf/deep/SKILL.md": "deep", "SKILL.md": "SKILL", "pdf/skill.md": "pdf/skill",
		} {
			got, ok := p.ID(name)
			skill := strings.HasSuffix(name, "pdf/SKILL.md")
			if want := id != "" && (p.Form == Skill) == skill; p.Form == Skill && ok != want || p.Form != Skill && ok != (id != "") {
				t.Errorf("%s %s: %q, %v", p.Folder, name, got, ok)
				continue
			}
			if file, back := p.File(got); ok && (!back || file != name) {
				t.Errorf("%s: %s is %q, which is %s", p.Folder, name, got, file)
			}
		}
	}
	if skill, file, ok := SplitSkill("claude/skills/pdf/forms/a.md"); !ok || skill != "claude/skills/pdf" || file != "forms/a.md" {
		t.Error(skill, file, ok)
	}
}
