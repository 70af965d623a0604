package fleet_test

import (
	"reflect"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/fleet"
)

// TestOffer: what a worker has is known by project, is as it has told last, and is another's
// when one of its name takes its place. A row that somebody else writes there offers nothing.
func TestOffer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f, ctx := w.fleet(), t.Context()
	want := func(when, project string, want []string, wantServed bool) {
		t.Helper()
		able, served, err := f.Providers(ctx, project)
		if err != nil || !reflect.DeepEqual(able, want) || served != wantServed {
			t.Errorf("%s: %s has %q, served %t, %v; want %q, %t", when, project, able, served, err, want, wantServed)
		}
	}
	want("without workers", "p", []string{}, false)
	of := func(p, q []string) fleet.Offer {
		return fleet.Offer{Settings: []string{"x", ""}, Able: map[string][]string{"p": p, "q": q}}
	}
	first, err := f.Join(ctx, fleet.Worker{Name: "one", Slots: 1, Projects: []string{"p", "q"}, Offer: of([]string{"b", "a"}, nil)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Join(ctx, fleet.Worker{Name: "two", Slots: 1, Projects: []string{"p"}, Offer: of([]string{"c", "a"}, []string{"no worker of q"})}); err != nil {
		t.Fatal(err)
	}
	want("with two", "p", []string{"a", "b", "c"}, true)
	want("with two", "q", []string{}, true)
	told := of([]string{"d"}, []string{"e"})
	if err := first.Tell(ctx, told); err != nil {
		t.Fatal(err)
	}
	want("after one has told", "p", []string{"a", "c", "d"}, true)
	want("after one has told", "q", []string{"e"}, true)
	if seen, err := f.Workers(ctx); err != nil || !seen[0].Equal(told) || seen[1].Equal(told) {
		t.Errorf("workers are %+v, %v", seen, err)
	}
	for _, junk := range []string{`[]`, `{"p": "a", "q": {"e": 1}}`, `{"p": [[1], null]}`} {
		if _, err := w.pool.Exec(ctx, `UPDATE rye.workers SET able = $1 WHERE name = 'one'`, junk); err != nil {
			t.Fatal(err)
		}
		if _, served, err := f.Providers(ctx, "q"); !served || err != nil {
			t.Errorf("%s: served %t, %v", junk, served, err)
		}
		if seen, err := f.Workers(ctx); err != nil || len(seen) != 2 || len(seen[0].Able["q"]) > 0 {
			t.Errorf("%s: workers are %+v, %v", junk, seen, err)
		}
	}
	if err := first.Leave(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Join(ctx, fleet.Worker{Name: "one", Slots: 1, Projects: []string{"q"}}); err != nil {
		t.Fatal(err)
	}
	want("with another of its name", "q", []string{}, true)
}
