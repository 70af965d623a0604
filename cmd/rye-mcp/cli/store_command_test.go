package cli

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store/postgres"
	"github.com/rye-mcp/rye-mcp/spaces/storeurl"
)

// TestNextOfMigrate: the next step after a move is told as it was typed, and only where the
// settings lead elsewhere, whatever the password comes from.
func TestNextOfMigrate(t *testing.T) {
	t.Parallel()
	const to = "postgres://rye@db.example/rye"
	const set = "rye-mcp config set --user store store.url"
	for name, test := range map[string]struct {
		settings string
		env      map[string]string
		to, want string
	}{
		"nothing is set":            {"{project: team/app}", map[string]string{"PGPASSWORD": "hunter2"}, to, set + ` "` + to + `" makes it so`},
		"it is set":                 {"{project: team/app, url: '" + to + "'}", map[string]string{"PGPASSWORD": "hunter2"}, to, ""},
		"it is set, with a command": {"{project: team/app, url: '" + to + "', password_command: [echo, hunter2]}", nil, to, ""},
		"another is set":            {"{project: team/app, url: 'postgres://rye@old.example/rye'}", nil, to, set},
		"back, and it is set":       {"{project: team/app, url: '" + to + "'}", nil, "local", set + " local"},
		"back, and nothing is set":  {"{project: team/app}", nil, "local", ""},
	} {
		dir := realDir(t)
		folder := filepath.Join(dir, ".ai", "config", "agent")
		noError(t, os.MkdirAll(folder, 0o700))
		noError(t, os.WriteFile(filepath.Join(folder, "store.yaml"), []byte("store: "+test.settings+"\n"), 0o600))
		env := map[string]string{"USER_SPACE": dir, "PATH": os.Getenv("PATH")}
		maps.Copy(env, test.env)
		m := migration{sys: testSystem(dir, env).takingStore(), to: test.to}
		m.sys.store.flag = "postgres://rye@flag.example/rye" // is not a setting
		_, target, err := m.sites(t.Context(), dir)
		noError(t, err)
		if got := m.notSet(t.Context(), dir, target); !strings.HasPrefix(got, test.want) || test.want == "" && got != "" || strings.Contains(got, "***") || strings.Contains(got, "hunter2") {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestServerFindings: the findings about a server are told, and there are none of a sound one.
func TestServerFindings(t *testing.T) {
	t.Parallel()
	url, err := storeurl.Parse("postgres://me:hunter2@db.example/rye")
	if err != nil {
		t.Fatal(err)
	}
	sound := postgres.Inspection{Version: "15.1", Encrypted: true, Most: 97, Connections: 5, Schema: "rye_x", Has: 7, Knows: 7}
	for _, test := range []struct {
		name  string
		but   func(*postgres.Inspection)
		level level
		says  string // empty: nothing
	}{
		{"sound", func(*postgres.Inspection) {}, levelOK, ""},
		{"not encrypted", func(in *postgres.Inspection) { in.Encrypted = false }, levelWarn, "not encrypted"},
		{"not encrypted, on this machine", func(in *postgres.Inspection) { in.Encrypted, in.Local = false, true }, levelOK, ""},
		{"hints are lost", func(in *postgres.Inspection) { in.HintsLost = true }, levelWarn, "each second"},
		{"a standby", func(in *postgres.Inspection) { in.ReadOnly = true }, levelFail, "only reads"},
		{"a newer schema", func(in *postgres.Inspection) { in.Has = 8 }, levelFail, "version 8"},
		{"an older schema", func(in *postgres.Inspection) { in.Has = 6 }, levelWarn, "version 6"},
		{"few connections left", func(in *postgres.Inspection) { in.Connections = 90 }, levelWarn, "90 of 97"},
		{"a clock that is wrong", func(in *postgres.Inspection) { in.Clock = -time.Minute }, levelWarn, "1m0s apart"},
		{"far away", func(in *postgres.Inspection) { in.Answer = time.Second }, levelWarn, "takes 1s"},
		{"one waits", func(in *postgres.Inspection) {
			in.Waiting = []postgres.Waiting{{PID: 7, Name: "x", For: time.Minute, Behind: []int{8}}}
		}, levelWarn, "process 7"},
	} {
		in := sound
		test.but(&in)
		found := serverFindings(in, site{url: url, project: "team/app"})
		last := found[len(found)-1]
		if said := len(found) > 1; said != (test.says != "") || last.Level != test.level || !strings.Contains(last.Detail, test.says) {
			t.Errorf("%s: %+v", test.name, found)
		}
		if strings.Contains(found[0].Detail, "hunter2") {
			t.Errorf("%s: the password is in %q", test.name, found[0].Detail)
		}
	}
}
