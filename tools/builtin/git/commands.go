package git

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/rye-mcp/rye-mcp/spaces/item"
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
	Path   string `json:"path,omitempty" default:"."`
	Offset int    `json:"offset,omitempty" default:"1" minimum:"1"`
}

func statusTool(g *reader) tool.Tool {
	return tool.New(tool.Definition{
		ID:          "rye/git/status",
		Description: "As git status --short --branch.",
		ReadOnly:    true, Paged: true,
	}, func(ctx context.Context, env tool.Env, in statusInput) (any, error) {
		r, specs, err := located(env, in.Path)
		if err != nil {
			return nil, err
		}
		args := []string{"status", "--porcelain=v1", "--branch", "--untracked-files=normal", "--ignore-submodules=dirty", "--no-ahead-behind"}
		out, err := g.git(ctx, r, call{env: env, args: append(args, specs...), offset: in.Offset})
		return noted(out, env, in.Path), err
	})
}

// noted says of an answer without a line that its path is not there.
func noted(out *output, env tool.Env, path string) *output {
	if out == nil || out.Content != "" || out.Note != "" || path == "" {
		return out
	}
	at := env.Here(path)
	if !filepath.IsAbs(at) {
		at = filepath.Join(env.Dir(), at)
	}
	if _, err := os.Lstat(at); errors.Is(err, fs.ErrNotExist) {
		out.Note = "nothing was found, and there is no file or folder of that path"
	}
	return out
}

// located is the repository of a call, and what it is limited to.
func located(env tool.Env, path string) (repository, []string, error) {
	r, err := find(env)
	if err != nil {
		return r, nil, err
	}
	specs, err := r.pathspecs(env.Here(path))
	return r, specs, err
}

type diffInput struct {
	Path    string `json:"path,omitempty" default:"."`
	Staged  bool   `json:"staged,omitempty" jsonschema:"against from or HEAD"`
	From    string `json:"from,omitempty" jsonschema:"commit; default: the index"`
	To      string `json:"to,omitempty" jsonschema:"commit; default: the files"`
	Stat    bool   `json:"stat,omitempty" jsonschema:"only how much"`
	Context int    `json:"context,omitempty" default:"3" minimum:"0" maximum:"50"`
	Offset  int    `json:"offset,omitempty" default:"1" minimum:"1"`
}

func diffTool(g *reader) tool.Tool {
	return tool.New(tool.Definition{
		ID:          "rye/git/diff",
		Description: "As git diff: files against the index, the index (staged), or two commits. Go on at next_offset.",
		ReadOnly:    true, Paged: true,
	}, func(ctx context.Context, env tool.Env, in diffInput) (any, error) {
		r, specs, err := located(env, in.Path)
		if err != nil {
			return nil, err
		}
		args := append([]string{"diff"}, plainOutput...)
		if in.Stat {
			args = append(args, "--stat=120")
		} else { // which asks for the changes themselves
			args = append(args, "--unified="+strconv.Itoa(in.Context))
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
		out, err := g.git(ctx, r, call{env: env, args: append(args, specs...), offset: in.Offset})
		return noted(out, env, in.Path), err
	})
}

type logInput struct {
	Path   string `json:"path,omitempty" jsonschema:"only commits that changed it"`
	Rev    string `json:"rev,omitempty" default:"HEAD" jsonschema:"or a range a..b"`
	Limit  int    `json:"limit,omitempty" default:"20" minimum:"1" maximum:"500"`
	Skip   int    `json:"skip,omitempty" minimum:"0"`
	Author string `json:"author,omitempty"`
	Text   string `json:"text,omitempty" jsonschema:"in the message"`
	Since  string `json:"since,omitempty"`
	Until  string `json:"until,omitempty"`
	Stat   bool   `json:"stat,omitempty"`
}

func logTool(g *reader) tool.Tool {
	return tool.New(tool.Definition{
		ID:          "rye/git/log",
		Description: "List commits: hash, date, author, subject.",
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
		if err := checkDates(in.Since, in.Until); err != nil {
			return nil, err
		}
		args := append([]string{"log"}, plainOutput...)
		args = append(args, "--no-show-signature", "--no-notes", "--no-mailmap", "--no-decorate", "--format="+recordMark+"%h %as %an: %s", "--fixed-strings", "--regexp-ignore-case",
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
		if in.Path != "" || in.Stat || r.Prefix != "" { // else commits that change nothing count too
			args = append(args, specs...)
		}
		out, err := g.git(ctx, r, call{env: env, args: args, by: bySkip, before: in.Skip})
		return noted(out, env, in.Path), err
	})
}

// checkDates refuses what git takes for now, because nothing in it is a time.
func checkDates(dates ...string) error {
	for _, given := range dates {
		if given != "" && !timeForm().MatchString(given) {
			return tool.Faultf(tool.CodeBadArguments, "%s is no date", item.Shown(given)).
				WithHint("Valid are forms like 2026-01-31, 2026-01-31T12:00:00Z, 2 weeks ago and yesterday.")
		}
	}
	return nil
}

// timeForm is what makes a time of a text for git: a number, or one of its words.
var timeForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)[0-9]|\b(now|today|yesterday|midnight|noon|tea|never|last|one|two|three|four|five|six|seven|eight|nine|ten|` +
		`(sun|mon|tues?|wednes|wed|thurs?|fri|satur|sat)(day)?|` +
		`jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?|sept?(ember)?|oct(ober)?|nov(ember)?|dec(ember)?)\b`)
})

type showInput struct {
	Rev    string `json:"rev,omitempty" default:"HEAD"`
	Path   string `json:"path,omitempty" jsonschema:"a file as it was then"`
	Stat   bool   `json:"stat,omitempty"`
	Offset int    `json:"offset,omitempty" default:"1" minimum:"1"`
}

func showTool(g *reader) tool.Tool {
	return tool.New(tool.Definition{
		ID:          "rye/git/show",
		Description: "Show a commit, or a file as it was in it. Go on at next_offset.",
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
			path, err := r.path(env.Here(in.Path))
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
	Path  string `json:"path"`
	Rev   string `json:"rev,omitempty" jsonschema:"default: the file as it is"`
	First int    `json:"first_line,omitempty" default:"1" minimum:"1"`
	Last  int    `json:"last_line,omitempty" minimum:"1"`
}

func blameTool(g *reader) tool.Tool {
	return tool.New(tool.Definition{
		ID:          "rye/git/blame",
		Description: "Which commit and author changed each line last.",
		ReadOnly:    true, Paged: true,
	}, func(ctx context.Context, env tool.Env, in blameInput) (any, error) {
		r, _, err := located(env, in.Path)
		if err != nil {
			return nil, err
		}
		path, err := r.path(env.Here(in.Path))
		if err != nil {
			return nil, err
		}
		lines := strconv.Itoa(in.First) + ","
		if in.Last > 0 {
			lines += strconv.Itoa(in.Last)
		}
		if in.Last > 0 && in.Last < in.First {
			return nil, tool.Faultf(tool.CodeBadArguments, "last_line %d is before first_line %d", in.Last, in.First).
				WithHint("Give the first line that you want as first_line, the last one as last_line.")
		}
		args := []string{"blame", "--no-progress", "--date=short", "-L", lines}
		if in.Rev != "" {
			rev, err := commit("rev", in.Rev)
			if err != nil {
				return nil, err
			}
			args = append(args, rev)
		}
		return g.git(ctx, r, call{env: env, args: append(args, "--", path), by: byFirstLine, before: in.First - 1})
	})
}
