package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store/postgres"
	"github.com/rye-mcp/rye-mcp/spaces/storeurl"
)

// TestServerFindings: what is to be said of a server is said, and nothing of a sound one.
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
