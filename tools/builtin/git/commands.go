package git

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// revisionForm is the form of what names commits. A colon, which leads to objects
// past all paths, is not part of it.
var revisionForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9_@][A-Za-z0-9_./~^@{}+#-]{0,199}$`)
})

// revision checks a name of a commit; ranges are a..b and a...b.
func revision(name, given string, ranges bool) (string, error) {
	if revisionForm().MatchString(given) && (ranges || !strings.Contains(given, "..")) {
		return given, nil
	}
	return "", tool.Faultf(tool.CodeBadArguments, "%s is no name of a commit", name).
		WithHint("Valid are hashes, branches, tags and forms like HEAD~2. Find commits with rye/git/log.")
}

// commit is a name that means a commit and no other object.
func commit(name, given string) (string, error) {
	rev, err := revision(name, given, false)
	return rev + "^{commit}", err
}

// plainOutput are the options of every command that prints changes.
var plainOutput = []string{"--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty", "--submodule=short"}

type statusInput struct {
	Path   string `json:"path,omitempty" default:"." jsonschema:"file or directory"`
	Offset int    `json:"offset,omitempty" default:"1" minimum:"1" jsonschema:"first line"`
}

func statusTool(g *reader) tool.Tool {
	return tool.New(tool.Definition{
		ID:          "rye/git/status",
		Description: "Show the branch and the changed, staged and untracked files of the project, as git status --short does.",
		ReadOnly:    true, Paged: true,
	}, func(ctx context.Context, env tool.Env, in statusInput) (any, error) {
		r, specs, err := located(env, in.Path)
		if err != nil {
			return nil, err
		}
		args := []string{"status", "--porcelain=v1", "--branch", "--untracked-files=normal", "--ignore-submodules=dirty", "--no-ahead-behind"}
		return g.git(ctx, r, call{env: env, args: append(args, specs...), offset: in.Offset})
	})
}

// located is the repository of a call, and what it is limited to.
func located(env tool.Env, path string) (*repository, []string, error) {
	r, err := find(env.Project)
	if err != nil {
		return nil, nil, err
	}
	specs, err := r.pathspecs(path)
	return r, specs, err
}

type diffInput struct {
	Path    string `json:"path,omitempty" default:"." jsonschema:"file or directory"`
	Staged  bool   `json:"staged,omitempty" jsonschema:"what is staged, against from (default HEAD)"`
	From    string `json:"from,omitempty" jsonschema:"commit, branch or tag to compare with; default: the index"`
	To      string `json:"to,omitempty" jsonschema:"the other one; default: the files as they are"`
	Stat    bool   `json:"stat,omitempty" jsonschema:"only which files changed, and how much"`
	Context int    `json:"context,omitempty" default:"3" minimum:"0" maximum:"50" jsonschema:"lines around a change"`
	Offset  int    `json:"offset,omitempty" default:"1" minimum:"1" jsonschema:"first line"`
}

func diffTool(g *reader) tool.Tool {
	return tool.New(tool.Definition{
		ID:          "rye/git/diff",
		Description: "Show changes: of the files against the index, of the index (staged), or between two commits. Long ones come in parts: go on at next_offset.",
		ReadOnly:    true, Paged: true,
	}, func(ctx context.Context, env tool.Env, in diffInput) (any, error) {
		r, specs, err := located(env, in.Path)
		if err != nil {
			return nil, err
		}
		args := append([]string{"diff"}, plainOutput...)
		args = append(args, "--unified="+strconv.Itoa(in.Context))
		if in.Stat {
			args = append(args, "--stat=120")
		}
		if in.Staged {
			args = append(args, "--cached")
		}
		if in.To != "" && (in.Staged || in.From == "") {
			return nil, tool.Faultf(tool.CodeBadArguments, "to needs from, and nothing staged").WithHint("Give from and to, from alone, or staged.")
		}
		for _, given := range []struct{ name, rev string }{{"from", in.From}, {"to", in.To}} {
			if given.rev == "" {
				continue
			}
			rev, err := commit(given.name, given.rev)
			if err != nil {
				return nil, err
			}
			args = append(args, rev)
		}
		return g.git(ctx, r, call{env: env, args: append(args, specs...), offset: in.Offset})
	})
}

type logInput struct {
	Path   string `json:"path,omitempty" jsonschema:"only commits that changed this file or directory"`
	Rev    string `json:"rev,omitempty" default:"HEAD" jsonschema:"where to begin: commit, branch, tag, or a range a..b"`
	Limit  int    `json:"limit,omitempty" default:"20" minimum:"1" maximum:"500" jsonschema:"most commits"`
	Skip   int    `json:"skip,omitempty" minimum:"0" jsonschema:"commits to leave out first"`
	Author string `json:"author,omitempty" jsonschema:"only of authors whose name or address contains this"`
	Text   string `json:"text,omitempty" jsonschema:"only with messages that contain this"`
	Since  string `json:"since,omitempty" jsonschema:"only after this date"`
	Until  string `json:"until,omitempty" jsonschema:"only before this date"`
	Stat   bool   `json:"stat,omitempty" jsonschema:"with the changed files"`
}

func logTool(g *reader) tool.Tool {
	return tool.New(tool.Definition{
		ID:          "rye/git/log",
		Description: "List commits, newest first: hash, date, author, subject. See one whole with rye/git/show.",
		ReadOnly:    true, Paged: true,
	}, func(ctx context.Context, env tool.Env, in logInput) (any, error) {
		r, specs, err := located(env, in.Path)
		if err != nil {
			return nil, err
		}
		rev, err := revision("rev", in.Rev, true)
		if err != nil {
			return nil, err
		}
		args := append([]string{"log"}, plainOutput...)
		args = append(args, "--no-show-signature", "--no-notes", "--no-mailmap", "--no-decorate", "--format=%h %as %an: %s", "--fixed-strings", "--regexp-ignore-case",
			"--max-count="+strconv.Itoa(in.Limit), "--skip="+strconv.Itoa(in.Skip))
		for option, value := range map[string]string{"--author=": in.Author, "--grep=": in.Text, "--since=": in.Since, "--until=": in.Until} {
			if strings.ContainsAny(value, "\x00\n") {
				return nil, tool.Faultf(tool.CodeBadArguments, "author, text, since and until are one line each").WithHint("Leave line breaks out.")
			}
			if value != "" {
				args = append(args, option+value)
			}
		}
		if in.Stat {
			args = append(args, "--stat=120")
		}
		args = append(args, "--end-of-options", rev)
		if in.Path != "" || in.Stat || r.prefix != "" { // else commits that change nothing count too
			args = append(args, specs...)
		}
		return g.git(ctx, r, call{env: env, args: args})
	})
}

type showInput struct {
	Rev    string `json:"rev,omitempty" default:"HEAD" jsonschema:"commit, branch or tag"`
	Path   string `json:"path,omitempty" jsonschema:"show this file as it was then"`
	Stat   bool   `json:"stat,omitempty" jsonschema:"only which files changed, and how much"`
	Offset int    `json:"offset,omitempty" default:"1" minimum:"1" jsonschema:"first line"`
}

func showTool(g *reader) tool.Tool {
	return tool.New(tool.Definition{
		ID:          "rye/git/show",
		Description: "Show a commit with its message and changes, or a file as it was in a commit. Long ones come in parts: go on at next_offset.",
		ReadOnly:    true, Paged: true,
	}, func(ctx context.Context, env tool.Env, in showInput) (any, error) {
		rev, err := commit("rev", in.Rev)
		if err != nil {
			return nil, err
		}
		r, specs, err := located(env, "")
		if err != nil {
			return nil, err
		}
		if in.Path != "" {
			path, err := r.path(in.Path)
			if err != nil {
				return nil, err
			}
			return g.git(ctx, r, call{env: env, args: []string{"cat-file", "blob", rev + ":" + path}, offset: in.Offset})
		}
		args := append([]string{"show"}, plainOutput...)
		args = append(args, "--no-show-signature", "--no-notes", "--no-mailmap", "--no-decorate", "--format=fuller")
		if in.Stat {
			args = append(args, "--stat=120")
		}
		args = append(args, "--end-of-options", rev)
		return g.git(ctx, r, call{env: env, args: append(args, specs...), offset: in.Offset})
	})
}

type blameInput struct {
	Path  string `json:"path" jsonschema:"file"`
	Rev   string `json:"rev,omitempty" jsonschema:"as of this commit, branch or tag; default: the file as it is"`
	First int    `json:"first_line,omitempty" default:"1" minimum:"1" jsonschema:"first line"`
	Last  int    `json:"last_line,omitempty" minimum:"1" jsonschema:"last line"`
}

func blameTool(g *reader) tool.Tool {
	return tool.New(tool.Definition{
		ID:          "rye/git/blame",
		Description: "Show for each line of a file which commit and author changed it last, and when.",
		ReadOnly:    true, Paged: true,
	}, func(ctx context.Context, env tool.Env, in blameInput) (any, error) {
		r, _, err := located(env, in.Path)
		if err != nil {
			return nil, err
		}
		path, err := r.path(in.Path)
		if err != nil {
			return nil, err
		}
		lines := strconv.Itoa(in.First) + ","
		if in.Last > 0 {
			lines += strconv.Itoa(max(in.First, in.Last))
		}
		args := []string{"blame", "--no-progress", "--date=short", "-L", lines}
		if in.Rev != "" {
			rev, err := commit("rev", in.Rev)
			if err != nil {
				return nil, err
			}
			args = append(args, rev)
		}
		out, err := g.git(ctx, r, call{env: env, args: append(args, "--", path)})
		if err == nil && out.NextOffset > 0 {
			out.NextOffset += in.First - 1
			out.Note = "there is more; go on with first_line " + strconv.Itoa(out.NextOffset)
		}
		return out, err
	})
}
