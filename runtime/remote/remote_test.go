package remote_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/records/recordstest"
	"github.com/rye-mcp/rye-mcp/runtime/remote"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/recordserver"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// Variables that make this program a process that writes records.
const (
	doVariable  = "REMOTE_DO" // name of what it does
	urlVariable = "REMOTE_URL"
	dirVariable = "REMOTE_DIR"
	keyVariable = "REMOTE_KEY"
	atVariable  = "REMOTE_AT" // crash point
)

const project = "example.org/team/work"

func TestMain(m *testing.M) {
	if do := os.Getenv(doVariable); do != "" {
		_, _ = fmt.Fprintln(os.Stderr, act(do))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// acts are what other processes do.
var acts = map[string]func(*machine) error{
	"hammer": func(m *machine) error { return recordstest.Hammer(m.Records, os.Stdout) },
	"write":  writeAndDie, "read": readAndDie, "large": moveLarge, "finish": finishAndDie,
}

// act is what another process does.
func act(do string) error {
	key, err := sign.LoadState(os.Getenv(keyVariable))
	if err != nil {
		return err
	}
	at, err := open(os.Getenv(urlVariable), os.Getenv(dirVariable), placetest.Seal(key))
	if err != nil {
		return err
	}
	return acts[do](at)
}

// machine is one that sees a project: a folder of its own, and the server.
type machine struct {
	*remote.Records

	dir    string
	seal   *place.Seal
	store  *postgres.Store
	server *recordserver.Server
	stop   func()
}

func open(url, dir string, seal *place.Seal) (*machine, error) {
	pg, err := postgres.Connect(context.Background(), postgres.Options{URL: url})
	if err != nil {
		return nil, err
	}
	st, err := pg.Project(context.Background(), project)
	if err != nil {
		return nil, err
	}
	m := &machine{dir: dir, seal: seal, store: st, server: recordserver.Late(func(context.Context, bool) (recordserver.Schema, error) { return st, nil })}
	m.Records = remote.New(remote.Options{Local: local(dir, seal), Server: m.server, Boot: "one"})
	m.stop = func() {
		m.Close()
		_ = st.Close()
		_ = pg.Close()
	}
	return m, nil
}

// context is one for calls that tests bound.
func (m *machine) context() context.Context { return context.Background() }

func local(dir string, seal *place.Seal) records.Local {
	return records.Local{Home: folder.Home{Dir: dir, Seal: seal}.Always()}
}

// fleet is a server and a key.
type fleet struct {
	url, user string
	seal      *place.Seal
}

func newFleet(t testing.TB) fleet {
	t.Helper()
	user := t.TempDir()
	key, err := sign.EnsureState(user, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return fleet{url: pgtest.Server(t), user: user, seal: placetest.Seal(key)}
}

// machine is another one of the fleet.
func (f fleet) machine(t testing.TB) *machine {
	t.Helper()
	m, err := open(f.url, filepath.Join(t.TempDir(), "threads"), f.seal)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.stop)
	return m
}

// process is this program, doing something on a machine.
func (f fleet) process(t testing.TB, m *machine, do string, env ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), doVariable+"="+do, urlVariable+"="+f.url, dirVariable+"="+m.dir, keyVariable+"="+f.user)
	cmd.Env = append(cmd.Env, env...)
	cmd.Stderr = os.Stderr
	return cmd
}

// TestRecords holds records on a server against the promises of all records.
func TestRecords(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	recordstest.Run(t, func(t *testing.T) recordstest.Subject {
		f := newFleet(t)
		m := f.machine(t)
		return recordstest.Subject{
			Records: m, Hammer: f.process(t, m, "hammer"),
			Blind: remote.New(remote.Options{Local: local(m.dir, nil), Server: m.server, Boot: "one"}),
		}
	})
}
