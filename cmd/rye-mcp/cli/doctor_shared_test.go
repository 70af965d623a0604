package cli

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/sqlite"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// TestDoctorShared: a thread that another machine runs is told of, one of another
// container on this machine is not.
func TestDoctorShared(t *testing.T) {
	t.Parallel()
	d, dir := testDoctor(t), t.TempDir()
	st, err := sqlite.Open(t.Context(), dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close() //nolint:errcheck // the test is over
	near := thread.Process(d.here().Self())
	walled, there := near, thread.Process{PID: 7, Host: "there", Boot: "another"}
	walled.PIDNamespace += "1"
	for directive, p := range map[string]thread.Process{"near": near, "walled": walled, "there": there} {
		rec, _, err := store.Register(t.Context(), st, store.NewThread{Kind: thread.KindDirective, Directive: directive, Now: time.Now()}, nil)
		if err == nil {
			_, err = storetest.As(st).Apply(t.Context(), store.Claimed(rec.ThreadID, p, time.Now()))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	found := d.shared(t.Context(), dir, st)
	if len(found) != 1 || found[0].Level != levelWarn || !strings.Contains(found[0].Detail, `thread there-`) || !strings.Contains(found[0].Detail, `host "there"`) {
		t.Errorf("found %+v", found)
	}
	if runtime.GOOS == "linux" && (networkKind(0x6969) != "NFS" || networkKind(0xef53) != "") {
		t.Error("kinds of file systems are confused")
	}
}
