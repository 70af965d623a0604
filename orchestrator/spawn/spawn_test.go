package spawn_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/rye-mcp/rye-mcp/orchestrator/spawn"
	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// program says what it was started with.
const program = `#!/bin/sh
echo "$@"
env | grep RYE_ | sort
pwd
[ -e "$LOCK" ] && [ -e /dev/fd/3 ] && echo "has the lock"
tr '\0' ';' <&4
echo
env | grep -c secret
`

func TestLaunch(t *testing.T) {
	t.Parallel()
	project, id := t.TempDir(), thread.ID("a/b-1")
	executable := filepath.Join(project, "program")
	if err := os.WriteFile(executable, []byte(program), 0o700); err != nil {
		t.Fatal(err)
	}
	dir := folder.Of(placetest.Dir(project), id)
	if err := dir.Make(); err != nil {
		t.Fatal(err)
	}
	home := folder.Home{Dir: placetest.Dir(project)}.Always()
	lives := life.Local{Project: project, Home: home}
	run := thread.NewRun()
	lock, err := lives.Claim(life.Key{Thread: id, Run: run})
	if err != nil {
		t.Fatal(err)
	}
	env := append(make([]string, 0, 9),
		"PATH="+os.Getenv("PATH"), "LOCK="+dir.Lock(run), "RYE_PARENT_THREAD_ID=the/spawner", "RYE_LOG_LEVEL=warn", "RYE_TOKEN=x secret")
	l := spawn.Launcher{Executable: executable, Project: project, Home: home, Outer: func() []string {
		return []string{"PATH=/other", "LAB_KEY=other", "FORECAST_KEY=for=tools", "RYE_TOKEN=x secret"}
	}, Environ: func(keys []string) ([]string, []string) {
		return env, []string{keys[0] + "=secret", keys[1] + "=https://secret.example"}
	}}
	started, err := l.Launch(spawn.Request{Thread: id, Run: run, Hold: lock, Handed: spawn.Handed{
		Inputs: map[string]string{"token": "to=ken\nsecret", "other": "x secret"}, Keys: []string{"LAB_KEY", "LAB_URL"},
		Settings: []byte(`{"a":"b=c"}`),
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Release(); err != nil {
		t.Error(err)
	}
	<-started.Done()
	log, err := os.ReadFile(dir.Log())
	if err != nil {
		t.Fatal(err)
	}
	want := "thread run --pre-registered --thread-id a/b-1 --project " + project +
		"\nRYE_LOG_LEVEL=warn\nRYE_PARENT_PROJECT=" + project + "\nRYE_PARENT_THREAD_ID=a/b-1\n" + project + "\nhas the lock\n" +
		"run:" + string(run) + ";LAB_KEY=secret;LAB_URL=https://secret.example;outer:FORECAST_KEY=for=tools;input:other=x secret;input:token=to=ken\nsecret;settings:{\"a\":\"b=c\"};;\n0\n"
	if string(log) != want {
		t.Errorf("the process said\n%swant\n%s", log, want)
	}
	if env[:cap(env)][len(env)] != "" {
		t.Error("the launcher's environment was written to")
	}
	if _, err := l.Launch(spawn.Request{Thread: id, Run: run, Hold: lock, Handed: spawn.Handed{Keys: []string{"a", "b"}}}); err == nil {
		t.Error("launched with a lock that was released")
	}
}

func TestInherited(t *testing.T) {
	t.Parallel()
	in := spawn.Inherited([]string{"run:r1", "LAB_KEY=secret", "input:token=to=ken\nsecret", "input:a.b-c=", "INPUT=x", `settings:{"a":"="}`})
	if !slices.Equal(in.Variables, []string{"LAB_KEY=secret", "INPUT=x"}) ||
		!maps.Equal(in.Inputs, map[string]string{"token": "to=ken\nsecret", "a.b-c": ""}) || string(in.Settings) != `{"a":"="}` || in.Run != "r1" {
		t.Errorf("got %+v", in)
	}
	entry, err := spawn.Store{URL: "postgres://me:hush=;\"@db/x", Project: "a/b"}.Entry()
	if in := spawn.Inherited([]string{entry}); err != nil || in.Store == nil || in.Store.URL != "postgres://me:hush=;\"@db/x" || in.Store.Project != "a/b" || len(in.Variables) > 0 {
		t.Errorf("got %+v, %v", in.Store, err)
	}
	if in := spawn.Inherited([]string{"store:{cut"}); in.Store == nil || in.Store.URL != "" {
		t.Errorf("threads would be kept somewhere else: %+v", in.Store)
	}
	if in := spawn.Inherited(nil); in.Settings != nil || in.Store != nil {
		t.Errorf("settings that nobody has handed over: %q", in.Settings)
	}
}

func TestOf(t *testing.T) {
	t.Parallel()
	run := append([]string{"rye-mcp"}, spawn.Args("/project", "work-1")...)
	for name, c := range map[string]struct {
		project string
		args    []string
		want    thread.ID
	}{
		"its process":     {"/project", run, "work-1"},
		"another project": {"/other", run, ""},
		"another command": {"/project", []string{"sh", "-c", strings.Join(run, " ")}, ""},
		"more arguments":  {"/project", append(slices.Clone(run), "work-1"), ""},
		"none":            {"/project", nil, ""},
	} {
		if got := spawn.Of(c.project, c.args); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
