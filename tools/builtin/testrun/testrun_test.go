package testrun

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// scene is a project with declared commands.
type scene struct {
	t       *testing.T
	home    string
	project string
	tests   map[string]map[string]config.TestCommand
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{t: t, home: t.TempDir(), tests: map[string]map[string]config.TestCommand{}}
	s.project = filepath.Join(s.home, "app")
	if err := os.MkdirAll(filepath.Join(s.project, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *scene) declare(tests map[string]config.TestCommand) { s.tests["~/app"] = tests }

func (s *scene) run(env tool.Env, args string) (any, error) {
	s.t.Helper()
	run := New(Deps{
		Tests: func() (map[string]map[string]config.TestCommand, error) { return s.tests, nil },
		Home:  func() (string, error) { return s.home, nil }, Environ: append(os.Environ(), "SECRET_KEY=x"),
	})
	if env.Project == "" {
		env.Project = s.project
	}
	return run.Call(s.t.Context(), env, json.RawMessage(args))
}

func (s *scene) ran(args string) output {
	s.t.Helper()
	got, err := s.run(tool.Env{}, args)
	if err != nil {
		s.t.Fatalf("%s: %v", args, err)
	}
	out, ok := got.(output)
	if !ok {
		s.t.Fatalf("a result of type %T", got)
	}
	return out
}

func (s *scene) refused(env tool.Env, args string, code tool.Code) {
	s.t.Helper()
	got, err := s.run(env, args)
	if f, ok := errors.AsType[*tool.Fault](err); !ok || f.Code != code || f.Hint == "" {
		s.t.Errorf("%s: %v, %v; want %s with a hint", args, got, err, code)
	}
}

func command(words ...string) config.TestCommand { return config.TestCommand{Command: words} }

func TestRun(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	if err := os.WriteFile(filepath.Join(s.project, "sub", "check"), []byte("#!/bin/sh\necho in $(basename \"$PWD\") $LEVEL $SECRET_KEY\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.declare(map[string]config.TestCommand{
		"unit":   command("printf", `\033[31mred\033[0m %s\n`, "$HOME; $(id) *"),
		"script": {Command: []string{"./check"}, WorkingDir: "sub", Env: map[string]string{"LEVEL": "7"}},
		"order":  command("sh", "-c", "for i in 1 2 3; do echo out $i; echo err $i >&2; done"),
		"long":   command("sh", "-c", "seq 1 20000; exit 1"),
		"slow":   {Command: []string{"sh", "-c", "echo begun; sleep 60"}, Timeout: 0.5},
		"none":   command("no-such-program-anywhere"), "gone": command("./gone"), "outside": {Command: []string{"true"}, WorkingDir: "../.."},
	})
	if got, err := s.run(tool.Env{}, `{}`); err != nil || len(got.(list).Tests) != 8 || got.(list).Tests[0] != "gone" {
		t.Errorf("%v, %v", got, err)
	}
	if out := s.ran(`{"name": "unit"}`); !out.Passed || out.Output != "red $HOME; $(id) *\n" {
		t.Errorf("%+v", out)
	}
	if out := s.ran(`{"test": "script"}`); out.Passed || out.ExitCode != 3 || out.Output != "in sub 7\n" {
		t.Errorf("%+v", out)
	}
	if out := s.ran(`{"name": "order"}`); out.Output != "out 1\nerr 1\nout 2\nerr 2\nout 3\nerr 3\n" {
		t.Errorf("%+v", out)
	}
	out := s.ran(`{"name": "long"}`)
	if !strings.HasSuffix(out.Output, "19999\n20000\n") || len(out.Output) > tailBytes || out.LeftOut == 0 || out.attachment != nil {
		t.Errorf("%d bytes, %d left out", len(out.Output), out.LeftOut)
	}
	got, err := s.run(tool.Env{Keeps: true}, `{"name": "long"}`)
	if kept := tool.AttachmentsOf(got); err != nil || len(kept) != 1 || !strings.HasPrefix(string(kept[0].Data), "1\n2\n") {
		t.Errorf("%v, %d attachments", err, len(kept))
	}
	s.refused(tool.Env{}, `{"name": "slow"}`, tool.CodeTimeout)
	s.refused(tool.Env{}, `{"name": "missing"}`, tool.CodeNotFound)
	for _, name := range []string{"none", "gone", "outside"} {
		s.refused(tool.Env{}, `{"name": "`+name+`"}`, tool.CodeInvalidConfig)
	}
}

// TestAttackUndeclaredTest: a model names a command line, a declared one with more words, or that of another project, or works in a folder that the person has not named. Nothing runs.
func TestAttackUndeclaredTest(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	ran := filepath.Join(s.home, "ran")
	s.declare(map[string]config.TestCommand{"unit": command("touch", ran)})
	s.tests["~/other"] = map[string]config.TestCommand{"deploy": command("touch", ran)}
	s.tests["app"] = map[string]config.TestCommand{"relative": command("touch", ran)}
	for _, name := range []string{"touch " + ran, "unit; touch " + ran, "unit -x", "deploy", "relative", "../other/deploy", "Unit"} {
		raw, err := json.Marshal(map[string]string{"name": name})
		if err != nil {
			t.Fatal(err)
		}
		s.refused(tool.Env{}, string(raw), tool.CodeNotFound)
	}
	s.refused(tool.Env{}, `{"name": "unit", "args": ["x"]}`, tool.CodeBadArguments)
	stranger := t.TempDir()
	s.refused(tool.Env{Project: stranger}, `{"name": "unit"}`, tool.CodeUnsupported)
	if err := os.Symlink(s.project, filepath.Join(stranger, "app")); err != nil {
		t.Fatal(err)
	}
	s.refused(tool.Env{Project: stranger}, `{"name": "unit"}`, tool.CodeUnsupported)
	if _, err := os.Stat(ran); err == nil {
		t.Error("it ran")
	}
}
