package cli

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/cmd/rye-mcp/plain"
	"github.com/rye-mcp/rye-mcp/orchestrator/relocate"
	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/late"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/config"
	"github.com/rye-mcp/rye-mcp/spaces/place"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// newFinder finds out whose the state of projects is.
func newFinder(sys System, user string) place.Finder {
	return place.Finder{
		User: user, Now: sys.Now, Crashpoints: sys.Crashpoints,
		Item: func() (*sign.PublicKey, error) { return publicKey(loadKey(user)) },
	}
}

// publicKey is the public half of a key, if there is one.
func publicKey(key *sign.Key, err error) (*sign.PublicKey, error) {
	if key == nil {
		return nil, err
	}
	return key.Public(), nil
}

// stateKeys are the public halves of the keys that sign what threads leave: the user's own,
// once a thread of the user has run, and that of the fleet, where the user names one. The first
// has signed what was left before there was a fleet, or while its store could not be reached.
func stateKeys(sys System, roots resolve.Roots) (keys []*sign.PublicKey, err error) {
	own, err := sign.LoadState(roots.User)
	if err != nil && !errors.Is(err, sign.ErrNoKey) {
		return nil, err
	}
	if own != nil {
		keys = append(keys, own.Public())
	}
	file, err := fleetKeyFile(sys, roots)
	if file == "" || err != nil {
		return keys, err
	}
	fleet, err := loadFleetKey(roots.User, file)
	if err != nil {
		return nil, err
	}
	return append(keys, fleet.Public()), nil
}

// fleetKeyFile is the file of the fleet's key, as the starter of this process has said, or the
// user's settings say; empty: there is none.
func fleetKeyFile(sys System, roots resolve.Roots) (string, error) {
	if sys.store != nil && sys.store.handed != nil && sys.store.of == roots.Project {
		in, err := handedSite(sys.store.handed.Store)
		return in.key, err
	}
	set, _, err := config.New(roots).Read().Store(false) // the settings of a project about a store name no key
	return set.Key, err
}

// projectState is where the threads of a project are: found when it is asked for,
// and made when the first is started. It is safe for concurrent use.
type projectState struct {
	finder  place.Finder
	project string
	site    site // where its threads are kept
	// server is what connects there already; nil: nothing does.
	server *connections
	// fellBack is where they are kept else, while the server cannot be reached.
	fellBack site

	mu      sync.Mutex
	found   place.State
	version string     // of the folders when Find found nothing of the user's
	looked  place.Look // at what was found, when it was last found out whose it is
}

// Home is where threads are, or will be.
func (s *projectState) Home() folder.Home {
	s.mu.Lock()
	defer s.mu.Unlock()
	return folder.Home{Dir: s.found.Dir, Seal: s.found.Seal}
}

// Find finds out whose the state is. The user's own is remembered; while there is
// none, nothing but folders is looked at until one of them has changed.
func (s *projectState) Find() (place.State, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.found.Seal != nil {
		return s.found, nil
	}
	if s.site.shared() {
		return s.fleet()
	}
	now := s.finder.Version(s.project)
	if s.version != "" && now == s.version {
		return s.found, nil
	}
	found, err := s.finder.Find(s.project)
	if err == nil {
		s.found, s.version = found, now
	}
	return found, err
}

// fleet is the state of a project whose threads other machines have, too. Its copies on
// this machine lie in the user space, so that no folder can bring any.
func (s *projectState) fleet() (place.State, error) {
	key, err := s.fleetKey()
	if err != nil {
		return place.State{}, err
	}
	found := place.Fleet(s.finder.User, key, s.site.project)
	if err := os.MkdirAll(found.Dir, 0o700); err != nil {
		return place.State{}, err
	}
	s.found = found
	return found, nil
}

// fleetKey is the key that signs what the threads of a fleet leave.
func (s *projectState) fleetKey() (*sign.Key, error) {
	if s.site.key == "" {
		return sign.EnsureState(s.finder.User, nil)
	}
	return loadFleetKey(s.finder.User, s.site.key)
}

// loadFleetKey reads the file that store.key names.
func loadFleetKey(user, file string) (*sign.Key, error) {
	if rest, home := strings.CutPrefix(file, "~/"); home {
		file = filepath.Join(user, rest)
	}
	key, err := sign.LoadFile(file)
	if err != nil {
		return nil, fmt.Errorf("store.key of %s: %w", config.StoreFile, err)
	}
	return key, nil
}

// code authenticates words with the seal of the state.
func (s *projectState) code(words ...string) (string, error) {
	found, err := s.Find()
	if err != nil {
		return "", err
	}
	return found.Seal.Code(words...)
}

// Make is Find for who starts a thread.
func (s *projectState) Make() (place.State, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.found.Seal != nil {
		return s.found, nil
	}
	if s.site.shared() {
		return s.fleet()
	}
	found, err := s.finder.Make(s.project)
	if err == nil {
		s.found = found
	}
	return found, err
}

// isCurrent reports whether the state that was found is still what a project has. It
// reads nothing unless something has changed.
func (s *projectState) isCurrent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.found.Seal == nil || s.site.shared() {
		return true // Find looks for it; and nobody else's can be where the user has theirs
	}
	look := s.finder.Look(s.found)
	if look.Same(s.looked) {
		return true
	}
	now, err := s.finder.Find(s.project)
	if err == nil && !now.IsOf(s.found) {
		return false
	}
	s.looked = look
	return true
}

// stillIn says why a folder that was the user's is so no more: it was removed, or
// another was put in its place. That is left as it is.
func (s *projectState) stillIn(dir string) error {
	found, err := s.finder.Find(s.project)
	switch {
	case err != nil:
		return err
	case found.Seal != nil && found.Dir == dir:
		return nil
	}
	for _, stranger := range found.Strangers {
		if stranger.Dir == dir {
			return fmt.Errorf("since it was opened, other state was put in its place: %s", stranger)
		}
	}
	return fmt.Errorf("since it was opened, %s was removed", dir)
}

// takenOver notes that the databases are those of the place.
func (s *projectState) takenOver() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.finder.TakenOver(s.found); err != nil {
		return err
	}
	s.found.TakingOver = false
	return nil
}

// lateStore is the store of a project, which is opened by open when there is state
// of the user's, and made when the first thread is registered.
func lateStore(ctx context.Context, sys System, p *project, log zerolog.Logger, open storeOpener) *late.Store {
	// The store outlives the call that happened to need it first.
	opened := func(s place.State) (store.Store, error) {
		if err := sys.unfinished(s.Dir); err != nil {
			return nil, err
		}
		st, err := open(context.WithoutCancel(ctx), sys, p, s, log)
		if err == nil && s.Moved {
			err = p.moved(ctx, st, s, log)
		}
		if err != nil {
			return nil, fmt.Errorf("open the thread store of %s: %w", p.path, err)
		}
		rows := relocate.Rows(st)
		p.flows.Store(&rows)
		return p.withNotices(sys, p.withDaily(sys, st, log), log), nil //nolint:contextcheck // a sender outlives every call
	}
	if p.state.site.shared() {
		return p.sharedStore(sys, log)
	}
	find := func(context.Context) (store.Store, error) {
		found, err := p.state.Find()
		if err == nil && found.Former {
			found, err = p.takeOver(found)
		}
		if err != nil || found.Seal == nil {
			return nil, err
		}
		return opened(found)
	}
	create := func(context.Context) (store.Store, error) {
		made, err := p.state.Make()
		if err != nil {
			return nil, err
		}
		return opened(made)
	}
	return late.New(find, create)
}

// moved notes where a project is now. Threads that were queued in state that came
// from elsewhere are not started: it may be what was published once, put back.
func (p *project) moved(ctx context.Context, st store.Store, s place.State, log zerolog.Logger) error {
	if s.Arrived {
		n, err := cancelQueued(ctx, st, p.state.finder.Now())
		if err != nil {
			return fmt.Errorf("threads that were queued elsewhere: %w", err)
		}
		if n > 0 {
			log.Warn().Int("threads", n).Msg("threads that were queued where this state came from are cancelled")
		}
	}
	if err := p.state.finder.NoteMove(p.path, s); err != nil {
		log.Warn().Err(err).Msg("the project was moved") // the next look finds that again
	}
	return nil
}

// cancelQueued asks every thread in the queue to stop.
func cancelQueued(ctx context.Context, st store.Store, at time.Time) (n int, err error) {
	err = store.EachRow(ctx, st, []thread.State{thread.Created}, func(rec thread.Record) error {
		if _, err := st.RequestCancel(ctx, rec.ThreadID, "the move of the state that it was queued in", at); err != nil && !errors.Is(err, thread.ErrSettled) {
			return err
		}
		n++
		return nil
	})
	return n, err
}

// takeOver makes the user's own what their item key signed before there was a state
// key. It stays as it is when that cannot be recorded, and the version that made it
// can look at it.
func (p *project) takeOver(found place.State) (place.State, error) {
	made, err := p.state.Make()
	if _, readOnly := errors.AsType[*place.NoUserSpaceError](err); readOnly {
		return found, nil
	}
	return made, err
}

// runsHere reports whether a thread of a state folder runs: somebody on this machine
// holds its life lock, which no copy of the folder brings along.
func runsHere(dir string) (bool, error) {
	errFound := errors.New("found")
	lives := life.Local{Home: folder.Home{Dir: dir}.Always()}
	err := folder.Walk(dir, func(f folder.Found) error {
		if f.Linked {
			return nil
		}
		held, err := lives.Held(life.Key{Thread: f.ID})
		if err == nil && held {
			return errFound
		}
		return err
	})
	if errors.Is(err, errFound) {
		return true, nil
	}
	return false, err
}

// notices are what the settings say, and whose threads are left as they are.
func (p *project) notices() []string { return slices.Concat(p.config.Read().Notices(), p.strangers()) }

// strangers says what is left as it is, a line each.
func (p *project) strangers() []string {
	found, err := p.state.Find()
	if err != nil {
		return nil
	}
	var lines []string
	for _, s := range found.Strangers {
		lines = append(lines, s.String())
	}
	return lines
}

// tellStrangers says whose threads are left as they are, where the user has none.
func (p *project) tellStrangers(sys System) {
	for _, line := range p.strangers() {
		_, _ = fmt.Fprintf(sys.Stderr, "Warning: %s\n", plain.Line(line))
	}
}

// scratchThreads is the folder of the thread of one replay.
const scratchThreads = "threads"

// scratchRecords are those of one replay. The key that seals them is worth nothing
// elsewhere, and the same each time.
func scratchRecords(dir string) (records.Records, error) {
	key, err := sign.Generate(dir, false, bytes.NewReader(make([]byte, ed25519.SeedSize)))
	if err != nil {
		return nil, err
	}
	home := folder.Home{Dir: filepath.Join(dir, scratchThreads), Seal: place.NewSeal(key, "replay")}
	return records.Local{Home: home.Always()}, nil
}
