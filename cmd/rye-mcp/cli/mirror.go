package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/rye-mcp/rye-mcp/orchestrator/mirror"
	"github.com/rye-mcp/rye-mcp/orchestrator/tidy"
	"github.com/rye-mcp/rye-mcp/runtime/langgraph"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/mirrors"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/tools/process"
)

// mirrorCommand is the hidden verb, below thread, of the process that sends copies of
// threads to the mirror.
const mirrorCommand = "mirror"

// mirroring notes whose copies on the user's mirror are due, and starts who sends them.
// Without a file of settings for that a change costs one look for the file, and a turn
// nothing.
type mirroring struct {
	*project
	sys System
	log zerolog.Logger

	mu     sync.Mutex
	read   time.Time       // when the file that was read was changed
	url    string          // of the mirror that it names; empty: none
	shared *mirrors.Outbox // of that mirror, where other machines have the threads, too
	joined bool            // it is known there that this machine has the mirror
}

func mirrorFile(user string) string {
	return filepath.Join(user, ".ai", "config", filepath.FromSlash(config.MirrorFile))
}

// on reports whether there is a mirror.
func (m *mirroring) on() bool {
	info, err := os.Stat(mirrorFile(m.resolver.Roots().User))
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err != nil:
		m.read = time.Time{}
		m.name("")
	case !info.ModTime().Equal(m.read):
		set, _, err := config.MirrorOf(m.config.Read())
		if err != nil {
			m.log.Warn().Err(err).Msg("mirror: the settings cannot be used")
			set.URL = ""
		}
		m.read = info.ModTime()
		m.name(set.URL)
	}
	return m.url != ""
}

// name takes what the settings say. The caller holds m.mu.
func (m *mirroring) name(url string) {
	if url != m.url {
		m.url, m.shared, m.joined = url, nil, false
	}
}

// wasOn is on as it was found last.
func (m *mirroring) wasOn() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.url != ""
}

// Changing implements [announce.Mirror]. Where other machines have the threads, too, the
// change itself notes what is due for each mirror that is known there.
func (m *mirroring) Changing(id thread.ID) {
	if m.on() {
		m.note(id)
	}
}

// note says that the copy of a thread is due.
func (m *mirroring) note(id thread.ID) {
	if m.state.Home().Seal == nil {
		return
	}
	ctx, done := context.WithTimeout(context.Background(), noteWithin)
	defer done()
	var err error
	if m.state.site.shared() {
		err = m.join(ctx)
	} else {
		err = m.outbox().Note(ctx, id)
	}
	if err != nil {
		m.log.Warn().Err(err).Str("thread_id", string(id)).Msg("mirror: it could not be noted that the copy of the thread is due")
	}
}

// Changed implements [announce.Mirror]. It notes the change again, unless the change itself
// did, and has it sent.
func (m *mirroring) Changed(id thread.ID) {
	if !m.wasOn() {
		return
	}
	if !m.state.site.shared() {
		m.note(id)
	}
	m.haveSent()
}

// haveSent starts a sender, unless one is at work, the server could not be reached lately, or
// a worker of this machine sends.
func (m *mirroring) haveSent() {
	if m.ofWorker() {
		return
	}
	if err := m.startMirrorSender(); err != nil {
		m.log.Warn().Err(err).Msg("mirror: no sender could be started; the next one sends what is due")
	}
}

// turnMirrored is told of each turn of the thread that this process runs.
func (m *mirroring) turnMirrored(id thread.ID) func() {
	return func() {
		if m.wasOn() {
			m.note(id)
			m.haveSent()
		}
	}
}

func (m *mirroring) mirrorRest() mirror.Rest { return restIn(m.state) }

// startMirrorSender starts a process that sends what is due. A program that a model runs
// starts none: the model chose its environment, which says how the server is reached. The
// next process of the user does.
func (m *mirroring) startMirrorSender() error {
	if belowThread(m.sys) && len(m.sys.Outer) == 0 || !m.mirrorRest().Over(m.sys.Now()) {
		return nil
	}
	if sending, err := m.isSending(mirrorCommand); err != nil || sending {
		return err
	}
	environ := slices.Concat(m.sys.Outer, m.sys.Environ)
	return m.startSender(m.sys, mirrorCommand, unmarked(environ), m.mirrorKey(environ)...)
}

// mirrorKey is the variable of an environment that has the key of the mirror.
func (m *mirroring) mirrorKey(environ []string) []string {
	set, _, err := config.MirrorOf(m.config.Read())
	if err != nil || set.Key.APIKeyEnv == "" {
		return nil
	}
	_, key := process.ThreadEnv(environ, set.Key.APIKeyEnv)
	return key
}

// connectMirror has copies of threads go with them, and a server sweep what is left.
func (m *mirroring) connectMirror() {
	m.control.Tidy.Belongings = append(m.control.Tidy.Belongings, tidy.Belonging{
		Name:  "its copy on the mirror",
		Apart: true,
		Remove: func(ctx context.Context, rec thread.Record) error {
			if !m.on() {
				return nil
			}
			if err := m.outbox().Note(ctx, rec.ThreadID); err != nil {
				return err
			}
			m.haveSent() //nolint:contextcheck // a sender outlives every call
			return nil
		},
	})
	if !m.state.site.shared() { // of several machines that sweep, one that has the mirror must
		m.control.Tidy.Jobs = append(m.control.Tidy.Jobs, tidy.Job{Name: "mirror", Run: m.sweepMirror})
	}
}

// sweepMirror takes away on the mirror what is no more here, and has sent what is due.
func (m *mirroring) sweepMirror(ctx context.Context) (did string, err error) {
	if !m.on() {
		return "", nil
	}
	there, err := m.mirrorOf(m.sys, m.log)
	if err != nil {
		return "", err
	}
	defer there.Client.Close()
	did, err = there.Sweep(ctx, m.outbox().Note, m.sys.Now())
	return did, errors.Join(err, m.sendLeftCopies(ctx))
}

// sendLeftCopies starts a sender when something is due that nobody was started for, or
// that could not be sent.
func (m *mirroring) sendLeftCopies(ctx context.Context) error {
	if !m.on() || m.ofWorker() {
		return nil
	}
	if there, err := m.store.Now(ctx); err != nil || there == nil {
		return err
	}
	if due, err := m.outbox().IsDue(ctx); err != nil || !due {
		return err
	}
	return m.startMirrorSender() //nolint:contextcheck // it outlives the server
}

// mirrorOf is the mirror of the user's settings.
func (m *mirroring) mirrorOf(sys System, log zerolog.Logger) (*mirror.Mirror, error) {
	m.on() // copies that are due there are found by its address
	set, _, err := config.MirrorOf(m.config.Read())
	if err != nil {
		return nil, err
	}
	if set.URL == "" {
		return nil, &usageError{message: "there is no mirror", try: "rye-mcp langgraph init " + usualMirror}
	}
	at, err := langgraph.ParsePlace(set.URL)
	if err != nil {
		return nil, err
	}
	redactor := recorderOf(sys, m.project).Redactor()
	there := &mirror.Mirror{
		Client: langgraph.New(langgraph.Options{
			Place: at, Now: sys.Now, Key: func(ctx context.Context) (string, error) { return m.providers.Key(ctx, set.Key) },
		}),
		Graph: set.Graph, Node: set.Node, Project: m.calledThere(), Rows: m.store, Records: m.records(),
		Clean:       func(text []byte) []byte { clean, _ := redactor.Text(text); return clean },
		Crashpoints: sys.Crashpoints, Log: log,
	}
	if seal := m.state.Home().Seal; seal != nil {
		there.Place = seal.Place()
	}
	return there, nil
}

// senderTo sends what is due to a mirror.
func (m *mirroring) senderTo(there *mirror.Mirror) *mirror.Sender {
	return &mirror.Sender{
		Mirror: there, Outbox: m.outbox(), Rest: m.mirrorRest(), Now: m.sys.Now, Wait: wait, Lease: m.takeTurn,
	}
}

func newMirrorCommand(sys System, opts *options) *cobra.Command {
	return newSenderCommand(sys, opts, mirrorCommand, "Send the copies of threads that are due", sendCopies)
}

func sendCopies(ctx context.Context, with sending) error {
	// The list of what is due can stand where the threads are: a process that cannot reach it must say so.
	if _, err := with.store.Now(ctx); err != nil {
		return err
	}
	there, err := with.mirroring.mirrorOf(with.sys, with.log)
	if err != nil {
		return err
	}
	defer there.Client.Close()
	sender := with.mirroring.senderTo(there)
	sender.Lingers = true
	return with.mirroring.send(ctx, sender)
}

// mirror tells where copies of threads go, and whether anything answers there.
func (d *doctor) mirror(ctx context.Context) []finding {
	const guide = "rye-mcp help guides/langgraph"
	set, _, err := config.MirrorOf(d.config)
	if err != nil {
		return nil // which the check of settings tells
	}
	if set.URL == "" {
		return []finding{okf("none; %s", guide)}
	}
	at, err := langgraph.ParsePlace(set.URL)
	if err != nil {
		return []finding{warnf(guide, "%v", err)}
	}
	client := langgraph.New(langgraph.Options{
		Place: at, Now: d.sys.Now, Timeout: 5 * time.Second,
		Key: func(ctx context.Context) (string, error) {
			return providerSource(d.sys, d.project).Key(ctx, set.Key)
		},
	})
	defer client.Close()
	var found []finding
	if at.Plain() {
		found = append(found, warnf("langgraph+https://", "what is said in threads goes to %s without encryption", at))
	}
	why, try := mirrorTrouble(ctx, client, set.Graph)
	if why != "" {
		return append(found, warnf(try, "copies of threads go to %s: %s", at, why))
	}
	return append(found, okf("copies of threads go to %s, graph %s", at, set.Graph))
}

// mirrorTrouble says why a server will not do as a mirror, and what helps; empty: nothing
// speaks against it.
func mirrorTrouble(ctx context.Context, client *langgraph.Client, graph string) (why, try string) {
	if err := client.Check(ctx); err != nil {
		return err.Error(), "start the server, or rye-mcp config edit mirror --user"
	}
	graphs, err := client.Graphs(ctx)
	switch {
	case err != nil:
		return err.Error(), "rye-mcp config edit mirror --user"
	case !slices.Contains(graphs, graph):
		return fmt.Sprintf("it has no graph %q; there are: %s", graph, strings.Join(graphs, ", ")), "rye-mcp langgraph init --server FOLDER makes a server with it"
	}
	return "", ""
}
