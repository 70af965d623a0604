package recordstest

import (
	"errors"
	"io/fs"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// unknown: of a thread that has left nothing there is nothing, and looking makes
// nothing.
func unknown(t *testing.T, s Subject) {
	of := s.Of(one)
	must(t, of.Check())
	if begun, err := of.Begun(); begun || err != nil {
		t.Errorf("begun %t, %v", begun, err)
	}
	if _, err := of.Meta().Read(); !errors.Is(err, thread.ErrNoMeta) {
		t.Errorf("metadata: %v", err)
	}
	if of.Meta().Signer() != "" {
		t.Error("somebody has signed nothing")
	}
	_, peek := of.Meta().Peek()
	_, stamp := of.Meta().Stamp()
	_, touched := of.Touched()
	_, load := of.Artifacts().Load(strings.Repeat("0", 16))
	for what, err := range map[string]error{"peek": peek, "stamp": stamp, "touched": touched, "remove": of.Meta().Remove()} {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if fault, ok := errors.AsType[*tool.Fault](load); !ok || fault.Code != tool.CodeNotFound {
		t.Errorf("artifact: %v", load)
	}
	for name, source := range map[string]records.Source{"transcript": of.Transcript(), "log": of.Log(), "capabilities": of.Capabilities()} {
		_, open := source.Open()
		_, stamp := source.Stamp()
		if !errors.Is(open, fs.ErrNotExist) || !errors.Is(stamp, fs.ErrNotExist) {
			t.Errorf("%s: %v, %v", name, open, stamp)
		}
	}
	list, err := of.Artifacts().List()
	if err != nil || len(list) != 0 || of.Artifacts().ShareWith(other) != nil {
		t.Errorf("artifacts %v, %v", list, err)
	}
	if _, is, err := s.Look(one); is || err != nil {
		t.Errorf("found %t, %v", is, err)
	}
	if got := walked(t, s, math.MaxInt); len(got) != 0 {
		t.Errorf("looking has made %v", got)
	}
}

// hostile: no place is made for what is no id, or too long to be one.
func hostile(t *testing.T, s Subject) {
	for _, id := range []thread.ID{"", ".", "..", "../up-1", "a/../../up-1", "/root-1", "a//b-1", `a\b-1`, "a\x00b-1", "a\nb-1", thread.ID(strings.Repeat("x", 300)), thread.ID(strings.Repeat("x/", 3000) + "y-1")} {
		for what, err := range map[string]error{"checked": s.Of(id).Check(), "prepared": s.Of(id).Prepare()} {
			if !errors.Is(err, thread.ErrUnfit) && !errors.Is(err, thread.ErrBadID) {
				t.Errorf("%.40q is %s: %v", id, what, err)
			}
		}
	}
	if got := walked(t, s, math.MaxInt); len(got) != 0 {
		t.Errorf("there are %v", got)
	}
	of := prepared(t, s, one)
	for _, ref := range []string{"", "..", "../../" + string(other), strings.Repeat("?", 16), strings.Repeat("0", 15)} {
		if _, err := of.Artifacts().Load(ref); err == nil {
			t.Errorf("%q is an artifact", ref)
		}
	}
}

func walked(t testing.TB, s records.Records, most int) (ids []thread.ID) {
	t.Helper()
	all, err := s.Walk(most, func(f records.Found) error {
		ids = append(ids, f.ID)
		return nil
	})
	if err != nil || all != (len(ids) < most || most == math.MaxInt) && all {
		t.Errorf("all %t of %v, %v", all, ids, err)
	}
	return ids
}

// found: every thread that has left something is found once, in the order of their
// names, and no more than were asked for.
func found(t *testing.T, s Subject) {
	must(t, prepared(t, s, one).Meta().Write(metaOf(one, 1)))
	prepared(t, s, other)
	said(t, s, other, 1)
	below := one + "/below-2"
	must(t, prepared(t, s, below).Meta().Write(metaOf(below, 1)))
	prepared(t, s, "empty-1") // nothing of a thread is there
	want := []thread.ID{other, one, below}
	if got := walked(t, s, math.MaxInt); !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
	if got := walked(t, s, 2); len(got) > 2 {
		t.Errorf("found %v of at most two", got)
	}
	for id, want := range map[thread.ID]records.Found{
		one: {ID: one, HasMeta: true}, other: {ID: other, HasWords: true}, below: {ID: below, HasMeta: true},
	} {
		f, is, err := s.Look(id)
		if f.Where == "" {
			t.Errorf("%s is nowhere", id)
		}
		if f.Where = ""; f != want || !is || err != nil {
			t.Errorf("%s: %+v, %t, %v", id, f, is, err)
		}
	}
	stop := errors.New("stop")
	if _, err := s.Walk(math.MaxInt, func(records.Found) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("the walk goes on: %v", err)
	}
}

// leftovers: the place of a start that was cut short is taken away, and nothing of a
// thread.
func leftovers(t *testing.T, s Subject) {
	empty := prepared(t, s, "empty-1")
	if removed, err := empty.RemoveLeftover(); !removed || err != nil {
		t.Errorf("nothing: %t, %v", removed, err)
	}
	if _, err := empty.Touched(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
	of := prepared(t, s, one)
	must(t, of.Meta().Write(metaOf(one, 1)))
	if removed, err := of.RemoveLeftover(); removed || err != nil {
		t.Errorf("a thread: %t, %v", removed, err)
	}
	if _, err := of.Meta().Read(); err != nil {
		t.Error(err)
	}
}
