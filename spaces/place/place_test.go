package place

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// scene is a project and two users.
type scene struct {
	*testing.T
	project string
	user    Finder
	other   Finder
	item    *sign.Key // of user; nil: none
}

func newScene(t *testing.T) *scene {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{T: t, project: filepath.Join(dir, "project")}
	s.noError(os.MkdirAll(filepath.Join(s.project, ".ai"), 0o700))
	now := func() time.Time { return time.Unix(1e9, 0) }
	s.user = Finder{User: filepath.Join(dir, "user"), Now: now, Item: func() (*sign.PublicKey, error) {
		if s.item == nil {
			return nil, nil
		}
		return s.item.Public(), nil
	}}
	s.other = Finder{User: filepath.Join(dir, "other"), Now: now, Item: func() (*sign.PublicKey, error) { return nil, nil }}
	return s
}

func (s *scene) noError(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *scene) find(f Finder) State {
	s.Helper()
	found, err := f.Find(s.project)
	s.noError(err)
	return found
}

func (s *scene) make(f Finder) State {
	s.Helper()
	made, err := f.Make(s.project)
	s.noError(err)
	return made
}

func (s *scene) usual() string { return filepath.Join(s.project, ".ai", "state", "threads") }

// meta leaves a thread.json that key has signed.
func (s *scene) meta(dir, id string, key *sign.Key, a about) {
	s.Helper()
	data, err := sign.EncodeSigned(struct {
		about
		ID string `json:"thread_id"`
	}{a, id}, key)
	s.noError(err)
	s.noError(os.MkdirAll(filepath.Join(dir, id), 0o700))
	s.noError(os.WriteFile(filepath.Join(dir, id, "thread.json"), data, 0o600))
}

// TestPlace: a place is made once, is the user's own from then on, and a stranger's
// to everybody else, whose threads are kept beside it.
func TestPlace(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	if found := s.find(s.user); found.Seal != nil || found.Dir != s.usual() || len(found.Strangers) > 0 {
		t.Fatalf("before: %+v", found)
	}
	if entries, err := os.ReadDir(filepath.Join(s.project, ".ai")); err != nil || len(entries) > 0 {
		t.Errorf("looking has made %v, %v", entries, err)
	}
	made := s.make(s.user)
	for _, again := range []State{s.make(s.user), s.find(s.user)} {
		if again.Dir != s.usual() || again.Seal == nil || again.Seal.Place() != made.Seal.Place() || again.TakingOver || again.Moved {
			t.Errorf("again: %+v", again)
		}
	}
	found := s.find(s.other)
	if found.Seal != nil || len(found.Strangers) != 1 || found.NoPlace {
		t.Errorf("another user: %+v", found)
	}
	others := s.make(s.other)
	if others.Dir == made.Dir || others.Seal.Place() == made.Seal.Place() || len(others.Strangers) != 1 {
		t.Errorf("another user's: %+v", others)
	}
	if mine := s.find(s.user); mine.Seal.Place() != made.Seal.Place() {
		t.Errorf("after that: %+v", mine)
	}
}

// TestPlaceIsMadeOnce: of many that make it at once all get the same.
func TestPlaceIsMadeOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	var (
		all  sync.WaitGroup
		mu   sync.Mutex
		made = map[string]int{}
	)
	for range 16 {
		all.Go(func() {
			state, err := s.user.Make(s.project)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			made[state.Dir+state.Seal.Place()+state.Seal.Fingerprint()]++
		})
	}
	all.Wait()
	if len(made) != 1 {
		t.Errorf("%d places were made: %v", len(made), made)
	}
	records, err := filepath.Glob(filepath.Join(s.user.User, ".ai", "trust", "places", "*"))
	if err != nil || len(records) != 1 {
		t.Errorf("the user space knows %q, %v", records, err)
	}
}

// killed runs f until it comes to a step, as if the process ended there.
func (s *scene) killed(point thread.Crashpoint, f func(Finder)) {
	s.Helper()
	defer func() {
		if recover() == nil {
			s.Errorf("it did not come to %s", point)
		}
	}()
	dying := s.user
	dying.Crashpoints = func(at thread.Crashpoint) {
		if at == point {
			panic(point)
		}
	}
	f(dying)
}

// TestCrashWhileMaking ends the making after each step. The next start makes it
// whole, and nobody takes the half for a stranger's.
func TestCrashWhileMaking(t *testing.T) {
	t.Parallel()
	for _, point := range Crashpoints() {
		t.Run(string(point), func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.killed(point, func(f Finder) { _, _ = f.Make(s.project) })
			if found := s.find(s.user); len(found.Strangers) > 0 || found.Dir != s.usual() {
				t.Errorf("between: %+v", found)
			}
			made := s.make(s.user)
			if again := s.find(s.user); made.Dir != s.usual() || again.Seal == nil || again.Seal.Place() != made.Seal.Place() {
				t.Errorf("made %+v, found %+v", made, again)
			}
		})
	}
}

// former leaves state of before there were places.
func (s *scene) former() {
	s.Helper()
	var err error
	s.item, err = sign.Generate(s.user.User, false, rand.Reader)
	s.noError(err)
	s.meta(s.usual(), "a/b-1", s.item, about{})
	s.meta(s.usual(), "c-2", s.item, about{})
	s.noError(os.WriteFile(filepath.Join(s.usual(), "registry.db"), nil, 0o600))
}

// TestTakeOver: state that the item key signed is the user's own, once and for good,
// and that key counts there for what does not name a place.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	for _, point := range append(Crashpoints(), "") {
		t.Run(string(point), func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.former()
			if found := s.find(s.user); !found.Former || found.Seal != nil {
				t.Fatalf("before: %+v", found)
			}
			if point != "" {
				s.killed(point, func(f Finder) { _, _ = f.Make(s.project) })
			}
			made := s.make(s.user)
			if !made.TakingOver || made.Dir != s.usual() || !made.Seal.Accepts(s.item.Fingerprint()) {
				t.Fatalf("made %+v", made)
			}
			s.noError(s.user.TakenOver(made))
			s.item = nil // it is replaced, or lost
			after := s.find(s.user)
			if after.TakingOver || after.Seal == nil || after.Seal.Place() != made.Seal.Place() {
				t.Errorf("after: %+v", after)
			}
			data, err := os.ReadFile(filepath.Join(s.usual(), "c-2", "thread.json"))
			s.noError(err)
			if names, err := after.Seal.Open(data, &struct{}{}); err != nil || names != "" {
				t.Errorf("thread.json of before: %q, %v", names, err)
			}
			if left, err := filepath.Glob(filepath.Join(s.usual(), ".*")); err != nil || len(left) > 0 {
				t.Errorf("left behind: %q, %v", left, err)
			}
		})
	}
}

// TestStrangers: state is a stranger's unless this user's key says that it is of this
// place.
func TestStrangers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		leave func(s *scene)
		says  string
	}{
		"unsigned": {func(s *scene) {
			s.noError(os.MkdirAll(filepath.Join(s.usual(), "a-1"), 0o700))
			s.noError(os.WriteFile(filepath.Join(s.usual(), "a-1", "thread.json"), []byte(`{"thread_id":"a-1"}`), 0o600))
		}, "1 thread that no key has signed"},
		"one of several": {func(s *scene) {
			s.former()
			key, err := sign.Generate(s.other.User, false, rand.Reader)
			s.noError(err)
			s.meta(s.usual(), "d-3", key, about{})
		}, "2 threads of key "},
		"a receipt for a thread.json": {func(s *scene) {
			s.former()
			s.meta(s.usual(), "d-3", s.item, about{Type: "rye-mcp/thread-receipt"})
		}, "3 threads of key "},
		"another's place": {func(s *scene) {
			s.make(s.other)
			s.meta(s.usual(), "a-1", s.item, about{})
		}, "1 thread of key "},
		"a place that is not known": {func(s *scene) {
			made := s.make(s.user)
			s.noError(os.Remove(recordPath(s.user.User, made.Seal.Place())))
		}, "does not know"},
		"a document that was changed": {func(s *scene) {
			s.make(s.user)
			path := filepath.Join(s.usual(), markerName)
			data, err := os.ReadFile(path)
			s.noError(err)
			s.noError(os.WriteFile(path, []byte(strings.Replace(string(data), `"version":1`, `"version":1,"more":1`, 1)), 0o600))
		}, "is not what your state key signed"},
		"a document that is none": {func(s *scene) {
			s.make(s.user)
			s.noError(os.WriteFile(filepath.Join(s.usual(), markerName), []byte("no JSON"), 0o600))
		}, "cannot be read"},
		"a link": {func(s *scene) {
			s.noError(os.MkdirAll(filepath.Dir(s.usual()), 0o700))
			s.noError(os.Symlink(s.Name(), s.usual()))
		}, "is a symbolic link"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			if s.item == nil {
				var err error
				s.item, err = sign.Generate(filepath.Join(s.user.User, "item"), false, rand.Reader)
				s.noError(err)
			}
			tt.leave(s)
			found := s.find(s.user)
			if found.Seal != nil || found.Former || len(found.Strangers) != 1 || found.NoPlace || !strings.Contains(found.Strangers[0].String(), tt.says) {
				t.Fatalf("%+v", found)
			}
			made := s.make(s.user)
			if made.Dir == s.usual() || made.Seal == nil {
				t.Errorf("made %+v", made)
			}
		})
	}
}

// TestWhereabouts: a place is where it was, or where its folder was moved to; a copy
// of it is none.
func TestWhereabouts(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		to   func(from, to string) error
		want bool
	}{
		"copied": {func(from, to string) error { return os.CopyFS(to, os.DirFS(from)) }, false},
		"moved":  {os.Rename, true},
		"copied, and the old one removed": {func(from, to string) error {
			return errors.Join(os.CopyFS(to, os.DirFS(from)), os.RemoveAll(from))
		}, true},
		"moved, and another made in its place": {func(from, to string) error {
			return errors.Join(os.Rename(from, to), os.MkdirAll(filepath.Join(from, ".ai"), 0o700))
		}, true},
		"copied, and the state of the old one removed": {func(from, to string) error {
			return errors.Join(os.CopyFS(to, os.DirFS(from)), os.RemoveAll(filepath.Join(from, ".ai", "state")))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			made := s.make(s.user)
			to := s.project + "-2"
			s.noError(tt.to(s.project, to))
			s.project = to
			for i := range 2 {
				found := s.find(s.user)
				if own := found.Seal != nil && found.Seal.Place() == made.Seal.Place(); own != tt.want || found.Moved != (own && i == 0) {
					t.Errorf("look %d: %+v", i, found)
				}
				if found.Moved {
					s.noError(s.user.NoteMove(s.project, found))
				}
				if arrived := strings.HasPrefix(name, "copied") && found.Moved; found.Arrived != arrived {
					t.Errorf("look %d: arrived %t", i, found.Arrived)
				}
			}
		})
	}
}

// TestLostDocument: state that has lost its document is known by its threads, and
// gets it again with the next start.
func TestLostDocument(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	made := s.make(s.user)
	s.meta(s.usual(), "a-1", made.Seal.Key(), about{Type: MetaType, Place: made.Seal.Place()})
	s.noError(os.Remove(filepath.Join(s.usual(), markerName)))
	if found := s.find(s.user); found.Seal == nil || !found.Unmarked {
		t.Errorf("found %+v", found)
	}
	s.make(s.user)
	if found := s.find(s.user); found.Seal == nil || found.Unmarked {
		t.Errorf("after a start: %+v", found)
	}
}

// TestNoPlace: where nothing of the user's can be nothing is made.
func TestNoPlace(t *testing.T) {
	t.Parallel()
	for _, link := range []string{".ai", ".ai/state"} {
		s := newScene(t)
		s.noError(os.RemoveAll(filepath.Join(s.project, ".ai")))
		outside := t.TempDir()
		path := filepath.Join(s.project, filepath.FromSlash(link))
		s.noError(os.MkdirAll(filepath.Dir(path), 0o700))
		s.noError(os.Symlink(outside, path))
		if found := s.find(s.user); !found.NoPlace || found.Dir != "" {
			t.Errorf("%s: %+v", link, found)
		}
		_, err := s.user.Make(s.project)
		if _, ok := errors.AsType[*NoPlaceError](err); !ok {
			t.Errorf("%s: made, %v", link, err)
		}
		if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
			t.Errorf("%s: made %v, %v", link, entries, err)
		}
	}
	// Within the project it is one of its folders.
	s := newScene(t)
	s.noError(os.Rename(filepath.Join(s.project, ".ai"), filepath.Join(s.project, "tools")))
	s.noError(os.Symlink("tools", filepath.Join(s.project, ".ai")))
	if made := s.make(s.user); made.Seal == nil {
		t.Errorf("%+v", made)
	}
}

// TestNoUserSpace: without a user space that can be written no place is made, and
// looking works.
func TestNoUserSpace(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.noError(os.WriteFile(s.user.User, nil, 0o600)) // root may write everywhere but below a file
	if _, err := s.user.Find(s.project); err != nil {
		t.Errorf("look: %v", err)
	}
	_, err := s.user.Make(s.project)
	refused, ok := errors.AsType[*NoUserSpaceError](err)
	if !ok || refused.Try() != "USER_SPACE=$(mktemp -d)" {
		t.Errorf("made: %v", err)
	}
	if found := s.find(s.user); found.Seal != nil || len(found.Strangers) > 0 {
		t.Errorf("%+v", found)
	}
}

// TestAdopt: a stranger's state is believed once its user says so, for what its key
// has signed there, and nothing of it is signed again.
func TestAdopt(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	theirs := s.make(s.other)
	s.meta(s.usual(), "a/b-1", theirs.Seal.Key(), about{Type: MetaType, Place: theirs.Seal.Place()})
	s.meta(s.usual(), "c-2", theirs.Seal.Key(), about{Type: MetaType, Place: strings.Repeat("0", 32)})
	before, err := os.ReadFile(filepath.Join(s.usual(), "a", "b-1", "thread.json"))
	s.noError(err)
	a, err := s.user.Survey(s.project, nil)
	if err != nil || len(a.Threads) != 1 || a.Threads[0] != "a/b-1" || a.Others != 1 || a.Key.Fingerprint() != theirs.Seal.Fingerprint() {
		t.Fatalf("survey %+v, %v", a, err)
	}
	s.noError(s.user.Adopt(s.project, a))
	found := s.find(s.user)
	if found.Seal == nil || found.Dir != s.usual() || !found.TakingOver {
		t.Fatalf("adopted %+v", found)
	}
	if names, err := found.Seal.Open(before, &struct{}{}); err != nil || names != theirs.Seal.Place() {
		t.Errorf("its thread: %q, %v", names, err)
	}
	if after, err := os.ReadFile(filepath.Join(s.usual(), "a", "b-1", "thread.json")); err != nil || string(after) != string(before) {
		t.Errorf("it was signed again: %v", err)
	}
	if found := s.find(s.other); found.Seal != nil || len(found.Strangers) != 1 {
		t.Errorf("to its author: %+v", found)
	}
	if _, err := s.user.Survey(s.project, nil); !errors.Is(err, ErrNothingToAdopt) {
		t.Errorf("again: %v", err)
	}
}

// TestCrashWhileAdopting ends the adoption after each step. Until the folder says whose it is its
// state is a stranger's, and can be adopted again; then it is the user's.
func TestCrashWhileAdopting(t *testing.T) {
	t.Parallel()
	for _, point := range []thread.Crashpoint{CrashStateKey, CrashPlaceRecord, CrashPlaceMarker} {
		t.Run(string(point), func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			theirs := s.make(s.other)
			s.meta(s.usual(), "a-1", theirs.Seal.Key(), about{Type: MetaType, Place: theirs.Seal.Place()})
			a, err := s.user.Survey(s.project, nil)
			s.noError(err)
			s.killed(point, func(f Finder) { _ = f.Adopt(s.project, a) })
			if between := s.find(s.user); point != CrashPlaceMarker {
				if between.Seal != nil || len(between.Strangers) != 1 {
					t.Errorf("between: %+v", between)
				}
				a, err = s.user.Survey(s.project, nil)
				s.noError(err)
				s.noError(s.user.Adopt(s.project, a))
			}
			if found := s.find(s.user); found.Seal == nil || found.Dir != s.usual() || !found.TakingOver || len(found.Strangers) > 0 {
				t.Errorf("adopted: %+v", found)
			}
		})
	}
}

// TestLook: a look is the same as long as the folder, the document in it and the key are; what
// else is written there does not count.
func TestLook(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(s *scene, dir string) error
		same   bool
	}{
		"nothing":  {func(*scene, string) error { return nil }, true},
		"a thread": {func(_ *scene, dir string) error { return os.Mkdir(filepath.Join(dir, "a"), 0o700) }, true},
		"the folder replaced": {func(_ *scene, dir string) error {
			return errors.Join(os.Rename(dir, dir+"-old"), os.CopyFS(dir, os.DirFS(dir+"-old")))
		}, false},
		"the folder gone":        {func(_ *scene, dir string) error { return os.RemoveAll(dir) }, false},
		"the document replaced":  {func(_ *scene, dir string) error { return replaced(filepath.Join(dir, markerName)) }, false},
		"the document rewritten": {func(_ *scene, dir string) error { return grown(filepath.Join(dir, markerName)) }, false},
		"the document gone":      {func(_ *scene, dir string) error { return os.Remove(filepath.Join(dir, markerName)) }, false},
		"the key replaced":       {func(s *scene, _ string) error { return replaced(sign.StateKeyFile(s.user.User)) }, false},
		"the key rewritten":      {func(s *scene, _ string) error { return grown(sign.StateKeyFile(s.user.User)) }, false},
		"the key gone":           {func(s *scene, _ string) error { return os.Remove(sign.StateKeyFile(s.user.User)) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			found := s.make(s.user)
			before := s.user.Look(found)
			s.noError(c.change(s, found.Dir))
			if after := s.user.Look(found); after.Same(before) != c.same || before.Same(after) != c.same {
				t.Errorf("the same: %t, want %t", after.Same(before), c.same)
			}
		})
	}
}

// replaced puts a file with the same content in the place of another.
func replaced(path string) error {
	data, err := os.ReadFile(path)
	return errors.Join(err, os.WriteFile(path+"-new", data, 0o600), os.Rename(path+"-new", path))
}

// grown writes more into a file.
func grown(path string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString("\n")
	return errors.Join(err, file.Close())
}

// TestAdoptHidesNothing: threads of the user's own keep a stranger's state from being
// adopted in their place.
func TestAdoptHidesNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.make(s.other)
	a, err := s.user.Survey(s.project, nil)
	s.noError(err)
	own := s.make(s.user)
	s.meta(own.Dir, "a-1", own.Seal.Key(), about{Type: MetaType, Place: own.Seal.Place()})
	if _, err := s.user.Survey(s.project, nil); !errors.Is(err, ErrOwnThreads) { // before anybody is asked
		t.Errorf("surveyed: %v", err)
	}
	if err := s.user.Adopt(s.project, a); !errors.Is(err, ErrOwnThreads) {
		t.Errorf("adopted: %v", err)
	}
}

// TestLinkedState: a link in the place of .ai/state is one thing in the way, and is named.
func TestLinkedState(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.make(s.user) // so that there is a key, and other folders come into question
	state := filepath.Join(s.project, ".ai", "state")
	s.noError(os.Rename(state, state+"-2"))
	s.noError(os.Symlink(state+"-2", state))
	found := s.find(s.user)
	if !found.NoPlace || len(found.Strangers) != 1 || !found.Strangers[0].Away || found.Strangers[0].At != state {
		t.Errorf("found %+v", found)
	}
	_, err := s.user.Make(s.project)
	if none, ok := errors.AsType[*NoPlaceError](err); !ok || none.Try() != "put a folder of your own in the place of "+strconv.Quote(state) {
		t.Errorf("made: %v", err)
	}
}

// TestSealOfNothing: without a seal nothing is signed, and nothing verifies.
func TestSealOfNothing(t *testing.T) {
	t.Parallel()
	var s *Seal
	_, encoded := s.Encode(struct{}{})
	_, opened := s.Open([]byte(`{"_signature":"x:y"}`), &struct{}{})
	_, attached := s.Attach(nil, ".md", sign.Name{Kind: "knowledge", ID: "x"}, time.Time{})
	for i, err := range []error{encoded, opened, attached, s.VerifyFrom("", "", ""), s.CheckText(nil, ".md", sign.Name{})} {
		if !errors.Is(err, ErrNoState) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if s.Accepts("") {
		t.Error("it accepts a key")
	}
}

// FuzzMarker: no bytes in the place of the document of a place are taken for it but
// those that were signed.
func FuzzMarker(f *testing.F) {
	key, err := sign.Generate(f.TempDir(), false, rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	good, err := encodeMarker(key, strings.Repeat("0", 32), false)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"type":"rye-mcp/place","version":1,"place":"../../x","_signature":"x:y"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, markerName), data, 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := readMarker(dir)
		if err != nil {
			return
		}
		if m, err = m.opened(key.Public()); err == nil {
			var want marker
			if err := json.Unmarshal(good, &want); err != nil || fmt.Sprint(*m) != fmt.Sprint(want) {
				t.Errorf("%+v was taken for it", m)
			}
		}
	})
}
