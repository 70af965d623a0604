package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// Guides are the knowledge items rye/guides/* of the system space. Each block of code in
// them, and in the README, is run here, in a project of its own for each text, where "rye-mcp init" was run. The word after the fence says
// how; the text after it is the block's file, or "no-run: REASON".
//
//	console          "$ COMMAND" lines for a shell, each followed by what it shows; nothing: it
//	                 succeeds. "…" in a line stands for anything, a line "…" for any lines, and
//	                 a space for any number of them. A command that shows "Error:" fails, every
//	                 other succeeds
//	sh               commands that succeed, as they are copied to a shell
//	call             "TOOL JSON" lines, each a call of a tool of the server, followed by what
//	                 the answer has at least, as JSON; "…" in a string stands for anything, and
//	                 "<thread_id>" for the thread of the call before
//	xml              an element of a directive, which is put into one
//	LANGUAGE PATH    the file PATH of the project, or of the user's home where it begins with ~/.
//	                 Items are signed, and items and settings validated
//	json, toml       without a file: it parses
//	text             nothing that could be run
//
// A file testdata/guides/TOPIC.txtar has what the examples of a guide need beside: files of the
// project, model.yaml (what the model answers) and env (variables).

// Where the texts lie.
var (
	guidesDir  = filepath.Join("..", "..", "spaces", "system", "ai", "knowledge", "rye", "guides")
	readmePath = filepath.Join("..", "..", "README.md")
)

// Bounds of a guide.
const (
	mostOfGuide       = 12 << 10 // bytes, so that one fetch answers with all of it
	mostOfDescription = 140      // characters
	mostOfReadme      = 240      // lines
)

// guideModel answers where a guide has no model of its own.
const guideModel = `-- model.yaml --
turns:
  - text: "Hello, Ada."
`

// block is a block of code in a text.
type block struct {
	line     int
	language string
	about    string // what follows the language
	content  string
}

// codeBlocks finds the blocks of code that begin at the margin.
func codeBlocks(source string) []block {
	var (
		blocks []block
		fence  string
	)
	for i, line := range strings.SplitAfter(source, "\n") {
		text := strings.TrimRight(line, "\n")
		ticks := text[:len(text)-len(strings.TrimLeft(text, "`"))]
		switch {
		case fence != "" && text == fence:
			fence = ""
		case fence != "":
			blocks[len(blocks)-1].content += line
		case len(ticks) >= 3:
			language, about, _ := strings.Cut(text[len(ticks):], " ")
			fence = ticks
			blocks = append(blocks, block{line: i + 1, language: language, about: about})
		}
	}
	return blocks
}

// TestGuides runs what the guides and the README show.
func TestGuides(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for topic, source := range guides(t) {
		t.Run(topic, func(t *testing.T) {
			t.Parallel()
			newGuided(t, topic).follow(codeBlocks(source))
		})
	}
}

// guides are all guides, and the README, by topic.
func guides(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	paths, err := filepath.Glob(filepath.Join(guidesDir, "*.md"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d guides, %v", len(paths), err)
	}
	for _, path := range append(paths, readmePath) {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := string(source)
		if path != readmePath {
			_, text, _ = strings.Cut(text, "\n```\n") // its metadata
		}
		texts[strings.TrimSuffix(filepath.Base(path), ".md")] = text
	}
	return texts
}

// guided is a project in which the examples of a text are followed.
type guided struct {
	*place
	home     string
	unsigned []string // items that were written since the last signing
	checked  bool     // files were written that can be validated
	host     *host    // of calls
	thread   string   // of the last call that named one
	examples int      // elements that were put into directives
}

func newGuided(t *testing.T, topic string) *guided {
	t.Helper()
	beside, err := os.ReadFile(filepath.Join("testdata", "guides", topic+".txtar"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	archive, env := txtar.Parse([]byte(guideModel+string(beside))), []string(nil)
	archive.Files = slices.DeleteFunc(archive.Files, func(f txtar.File) bool {
		if f.Name == "env" {
			env = strings.Fields(string(f.Data))
		}
		return f.Name == "env"
	})
	if named := slices.IndexFunc(archive.Files[1:], func(f txtar.File) bool { return f.Name == "model.yaml" }); named >= 0 {
		archive.Files = archive.Files[1:]
	}
	g := &guided{place: newPlace(t, string(txtar.Format(archive)))}
	g.home = filepath.Join(filepath.Dir(g.dir), "home")
	g.noError(os.RemoveAll(filepath.Join(g.home, ".ai"))) // signatures count here
	g.env = append(g.env, env...)
	return g
}

// follow does what the blocks of a text show, in their order.
func (g *guided) follow(blocks []block) {
	if !slices.ContainsFunc(blocks, func(b block) bool { return strings.Contains(b.content, "rye-mcp init") }) {
		g.shell("rye-mcp init", "…", 0)
	}
	for _, b := range blocks {
		reason, skipped := strings.CutPrefix(b.about, "no-run:")
		switch {
		case skipped && strings.TrimSpace(reason) == "":
			g.Errorf("line %d: no reason why it is not run", b.line)
		case skipped, b.language == "text":
		case b.about != "":
			g.keep(b.about, b.content)
		default:
			g.run(b)
		}
	}
	g.sign()
	if g.checked {
		g.shell("rye-mcp validate --all", "…", 0)
	}
}

// run does what a block without a file shows.
func (g *guided) run(b block) {
	switch b.language {
	case "console":
		g.sign()
		for command, shown := range examples(b, "$ ") {
			g.shell(command, shown, b.line)
		}
	case "sh":
		g.sign()
		g.shell("set -eu\n"+b.content, "…", b.line)
	case "call":
		g.sign()
		for call, shown := range examples(b, "") {
			g.call(call, shown, b.line)
		}
	case "xml":
		g.examples++
		g.keep(fmt.Sprintf(".ai/directives/example-%d.md", g.examples), inDirective(fmt.Sprintf("example-%d", g.examples), b.content))
	case "json":
		if !json.Valid([]byte(b.content)) {
			g.Errorf("line %d is no JSON", b.line)
		}
	case "toml":
		if _, err := toml.Decode(b.content, &map[string]any{}); err != nil {
			g.Errorf("line %d: %v", b.line, err)
		}
	default:
		g.Errorf("line %d: a block %q without a file; see guides_test.go for what there is", b.line, b.language)
	}
}

// examples are the commands of a block with what is shown below each.
func examples(b block, mark string) func(yield func(string, string) bool) {
	return func(yield func(string, string) bool) {
		var command, shown string
		for line := range strings.Lines(b.content) {
			next, begins := strings.CutPrefix(line, mark)
			if mark == "" { // a call begins with the name of a tool
				begins = line[0] >= 'a' && line[0] <= 'z'
			}
			if !begins {
				shown += line
				continue
			}
			if command != "" && !yield(command, shown) {
				return
			}
			command, shown = strings.TrimSuffix(next, "\n"), ""
		}
		if command != "" {
			yield(command, shown)
		}
	}
}

// keep writes a file that a text shows.
func (g *guided) keep(path, content string) {
	below, atHome := strings.CutPrefix(path, "~/")
	if atHome {
		path := filepath.Join(g.home, filepath.FromSlash(below))
		g.noError(os.MkdirAll(filepath.Dir(path), 0o700))
		g.noError(os.WriteFile(path, []byte(content), 0o600))
	} else {
		g.write(path, []byte(content))
	}
	if !strings.HasPrefix(below, ".ai/") && !strings.HasPrefix(path, ".ai/") {
		return
	}
	g.checked = true
	if !strings.Contains(path, ".ai/config/") || filepath.Base(path) == "hooks.yaml" {
		g.unsigned = append(g.unsigned, "'"+path+"'")
	}
}

// sign signs what was written since the last time.
func (g *guided) sign() {
	if len(g.unsigned) == 0 {
		return
	}
	g.shell("rye-mcp sign "+strings.ReplaceAll(strings.Join(g.unsigned, " "), "'~/", "~/'"), "…", 0)
	g.unsigned = nil
}

// shell runs a command of the text and compares what it shows.
func (g *guided) shell(command, shown string, line int) {
	g.Helper()
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir, cmd.Env = g.dir, g.env
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		g.Fatal(err)
	}
	if fails := regexp.MustCompile(`(?m)^Error:`).MatchString(shown); fails != (err != nil) {
		g.Fatalf("line %d: %s\nended with %v and showed\n%s", line, command, err, out)
	}
	if shown != "" && !likeText(shown, string(out)) {
		g.Errorf("line %d: %s\nshowed\n%s\nand not\n%s", line, command, out, shown)
	}
}

var manySpaces = regexp.MustCompile(` +`)

// likeText reports whether a text is the one that is shown, in which "…" stands for anything.
func likeText(shown, text string) bool {
	lines := strings.Split(strings.TrimRight(shown, "\n"), "\n")
	for i, line := range lines {
		if strings.TrimSpace(line) == "…" {
			lines[i] = `(?s:.*)`
			continue
		}
		line = regexp.QuoteMeta(strings.TrimRight(line, " "))
		lines[i] = manySpaces.ReplaceAllString(strings.ReplaceAll(line, "…", ".*"), " +") + " *"
	}
	// A line that stands for any number of lines stands for none, too.
	pattern := strings.NewReplacer(`(?s:.*)`+"\n", `(?s:.*)`, "\n"+`(?s:.*)`, `(?s:.*)`).Replace(strings.Join(lines, "\n"))
	return regexp.MustCompile(`^` + pattern + `\s*$`).MatchString(text)
}

// call makes a call of the text and compares the answer.
func (g *guided) call(call, shown string, line int) {
	g.Helper()
	if g.host == nil {
		g.host = g.serve()
	}
	name, text, _ := strings.Cut(strings.ReplaceAll(call, "<thread_id>", g.thread), " ")
	var arguments args
	if err := json.Unmarshal([]byte(text), &arguments); err != nil {
		g.Fatalf("line %d: %s: %v", line, call, err)
	}
	answer, err := ask[map[string]any](g.host, name, arguments)
	var fault *refused
	if errors.As(err, &fault) {
		err = json.Unmarshal([]byte(fault.text), &answer)
	}
	g.noError(err)
	if id, named := answer["thread_id"].(string); named {
		g.thread = id
	}
	want := any(args{"success": true})
	if shown != "" {
		if err := json.Unmarshal([]byte(strings.ReplaceAll(shown, "<thread_id>", g.thread)), &want); err != nil {
			g.Fatalf("line %d: what is shown is no JSON: %v", line, err)
		}
	}
	if !likeJSON(want, answer) {
		g.Errorf("line %d: %s\nwas answered with\n%v\nand not\n%v", line, call, answer, want)
	}
}

// likeJSON reports whether an answer has at least what is shown.
func likeJSON(shown, answer any) bool {
	switch want := shown.(type) {
	case map[string]any:
		got, _ := answer.(map[string]any)
		for key, value := range want {
			if has, ok := got[key]; !ok || !likeJSON(value, has) {
				return false
			}
		}
		return got != nil
	case []any:
		got, _ := answer.([]any)
		return len(got) == len(want) && !slices.ContainsFunc(want, func(w any) bool {
			return !slices.ContainsFunc(got, func(g any) bool { return likeJSON(w, g) })
		})
	case string:
		if want == "…" {
			return true
		}
		got, isText := answer.(string)
		return isText && likeText(want, got)
	default:
		return shown == answer
	}
}

// inDirective is a directive that has the element.
func inDirective(name, element string) string {
	metadata, beside := element, ""
	if strings.HasPrefix(element, "<inputs") || strings.HasPrefix(element, "<outputs") {
		metadata, beside = "", element
	}
	return fmt.Sprintf("# Example\n\n```xml\n<directive name=%q version=\"1.0.0\">\n<metadata>\n<description>An example</description>\n%s</metadata>\n%s</directive>\n```\n\nDo it.\n",
		name, metadata, beside)
}

// TestGuideForm holds guides to their form: metadata, length, and where to go next.
func TestGuideForm(t *testing.T) {
	t.Parallel()
	for topic, text := range guides(t) {
		if lines := strings.Count(text, "\n"); topic == "README" {
			if lines > mostOfReadme {
				t.Errorf("the README has %d lines, %d at most", lines, mostOfReadme)
			}
			continue
		}
		source, err := os.ReadFile(filepath.Join(guidesDir, topic+".md"))
		if err != nil {
			t.Fatal(err)
		}
		if len(source) > mostOfGuide {
			t.Errorf("%s has %d bytes, %d at most", topic, len(source), mostOfGuide)
		}
		for _, want := range []string{"name: " + topic, "category: rye/guides", "entry_type: guide"} {
			if head, _, _ := strings.Cut(string(source), "\n```\n"); !strings.Contains(head+"\n", "\n"+want+"\n") {
				t.Errorf("%s: its metadata has no %q", topic, want)
			}
		}
		description := regexp.MustCompile(`(?m)^description: (.*)$`).FindStringSubmatch(string(source))
		if description == nil || len([]rune(description[1])) > mostOfDescription {
			t.Errorf("%s: a description is one line of at most %d characters", topic, mostOfDescription)
		}
		sections := regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(string(source), -1)
		if len(sections) == 0 || sections[len(sections)-1][1] != "Next" {
			t.Errorf("%s: the last section is called Next", topic)
		}
	}
}

// A model reads a guide with one call.
func TestGuidesAreFetchedWhole(t *testing.T) {
	t.Parallel()
	h := newPlace(t, guideModel).serve()
	for topic := range guides(t) {
		if topic == "README" {
			continue
		}
		got := must[map[string]any](h, "rye_fetch", args{"item_type": "knowledge", "item_id": "rye/guides/" + topic})
		if content, _ := got["content"].(string); !strings.Contains(content, "\n## Next\n") || got["next_offset"] != nil {
			t.Errorf("%s: %d bytes of it, next_offset %v", topic, len(content), got["next_offset"])
		}
	}
}

// TestGuideComparison: the text shown is compared, so that an example that is wrong is found.
func TestGuideComparison(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		shown, text string
		like        bool
	}{
		{"a\n", "a\n", true},
		{"a\n", "b\n", false},
		{"a\n", "a\nb\n", false},
		{"a …\n", "a b\n", true},
		{"a …\n", "b c\n", false},
		{"…\nb\n…\n", "b\n", true},
		{"…\nb\n…\n", "a\nd\nb\nc\n", true},
		{"…\nb\n…\n", "a\n", false},
		{"a.c\n", "abc\n", false},
		{"a c\n", "a   c\n", true},
	} {
		if got := likeText(c.shown, c.text); got != c.like {
			t.Errorf("%q and %q: %t", c.shown, c.text, got)
		}
	}
	answer := map[string]any{"success": true, "thread_id": "hello-1", "list": []any{"a", map[string]any{"b": 1.0}}}
	for shown, like := range map[string]bool{
		`{"success": true}`:         true,
		`{"success": false}`:        false,
		`{"thread_id": "hello-…"}`:  true,
		`{"thread_id": "other-…"}`:  false,
		`{"missing": "…"}`:          false,
		`{"list": ["a", {"b": 1}]}`: true,
		`{"list": ["a"]}`:           false,
		`{"list": ["a", {"b": 2}]}`: false,
	} {
		var want any
		if err := json.Unmarshal([]byte(shown), &want); err != nil {
			t.Fatal(err)
		}
		if got := likeJSON(want, answer); got != like {
			t.Errorf("%s: %t", shown, got)
		}
	}
	blocks := codeBlocks("```console\n$ a\nb\n\n$ c\n```\ntext\n````markdown .ai/x.md\n```xml\n```\n````\n")
	if len(blocks) != 2 || blocks[1].about != ".ai/x.md" || blocks[1].content != "```xml\n```\n" || blocks[1].line != 8 {
		t.Errorf("blocks %+v", blocks)
	}
	var commands []string
	for command, shown := range examples(blocks[0], "$ ") {
		commands = append(commands, command+"|"+shown)
	}
	if !slices.Equal(commands, []string{"a|b\n\n", "c|"}) {
		t.Errorf("commands %q", commands)
	}
}
