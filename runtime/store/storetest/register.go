package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

var registerTests = []test{
	{"stores what it is given", registerStores},
	{"ids of one second count up", registerCountsUp},
	{"a given id is taken or refused", registerGivenID},
	{"claim decides about a candidate", registerClaim},
	{"a claim may take its time and use the store", registerSlowClaim},
	{"nothing stays of an aborted registration", registerAborted},
	{"bad descriptions are refused", registerRefuses},
	{"twenty at once get twenty ids", registerTwentyAtOnce},
	{"the spawn limit holds at once", registerSpawnLimit},
	{"only a running parent can spawn", registerParentGone},
	{"a request key names one thread", registerRequestKey},
	{"a request key is raced for", registerRequestKeyRace},
}

func registerStores(h *harness) {
	parent := h.running("parent", "")
	n := h.newThread("a/b/child", parent)
	n.Name, n.RequestKey, n.Metadata = "the child", "key-1", []byte(`{"forked_from":"a-1"}`)
	rec, created, err := h.Register(h.ctx, n, claimNothing)
	h.noError(err)
	want := thread.Record{
		ThreadID: "a/b/child-1772600767", Kind: thread.KindDirective, Directive: "a/b/child", Name: "the child",
		ParentID: parent, Status: thread.Created, Model: "fake/model", RequestKey: "key-1", Metadata: n.Metadata,
		CreatedAt: h.now, UpdatedAt: h.now, LastUsed: h.now,
	}
	if !created || !reflect.DeepEqual(rec, want) {
		h.Errorf("registered %v\n%+v, want\n%+v", created, rec, want)
	}
	if got := h.get(rec.ThreadID); !reflect.DeepEqual(got, want) {
		h.Errorf("row\n%+v, want\n%+v", got, want)
	}
	if _, err := h.Get(h.ctx, "no/such"); !errors.Is(err, thread.ErrNotFound) {
		h.Errorf("Get of an unknown id: %v", err)
	}
}

func registerCountsUp(h *harness) {
	var got []thread.ID
	for _, at := range []time.Duration{0, 900 * time.Millisecond, time.Second, 0} {
		n := h.newThread("d", "")
		n.Now = h.now.Add(at)
		rec, _, err := h.Register(h.ctx, n, claimNothing)
		h.noError(err)
		got = append(got, rec.ThreadID)
	}
	got = append(got, h.register("other", ""))
	want := []thread.ID{"d-1772600767", "d-1772600767-2", "d-1772600768", "d-1772600767-3", "other-1772600767"}
	if !slices.Equal(got, want) {
		h.Errorf("ids %v, want %v", got, want)
	}
}

func registerGivenID(h *harness) {
	n := h.newThread("tool/x", "")
	n.Kind, n.ID = thread.KindTool, "0b0e7a52-7d5c-4f6e-9a57-8f1f6a3f0a11"
	rec, _, err := h.Register(h.ctx, n, claimNothing)
	h.noError(err)
	if rec.ThreadID != n.ID || rec.Kind != thread.KindTool {
		h.Errorf("registered %s %s", rec.Kind, rec.ThreadID)
	}
	if _, _, err := h.Register(h.ctx, n, claimNothing); !errors.Is(err, store.ErrTaken) {
		h.Errorf("the same id again: %v", err)
	}
	// A given id may look like a candidate; candidates go around it.
	n.ID = thread.NewID("d", h.now, 2)
	_, _, err = h.Register(h.ctx, n, claimNothing)
	h.noError(err)
	h.register("d", "")
	if id := h.register("d", ""); id != thread.NewID("d", h.now, 3) {
		h.Errorf("candidate beside a given id: %s", id)
	}
}

func registerClaim(h *harness) {
	var offered []thread.ID
	rec, _, err := h.Register(h.ctx, h.newThread("d", ""), func(id thread.ID) error {
		offered = append(offered, id)
		if _, err := h.Get(h.ctx, id); !errors.Is(err, thread.ErrNotFound) {
			h.Errorf("row of %s is visible before it is claimed: %v", id, err)
		}
		if len(offered) < 3 {
			return fmt.Errorf("folder exists: %w", store.ErrTaken)
		}
		return nil
	})
	h.noError(err)
	want := []thread.ID{"d-1772600767", "d-1772600767-2", "d-1772600767-3"}
	if !slices.Equal(offered, want) || rec.ThreadID != want[2] {
		h.Errorf("offered %v, registered %s", offered, rec.ThreadID)
	}
	_, _, err = h.Register(h.ctx, h.newThread("d", ""), func(thread.ID) error { return store.ErrTaken })
	if !errors.Is(err, store.ErrTaken) {
		h.Errorf("every candidate taken: %v", err)
	}
}

// registerSlowClaim: a claim is made before the transaction, so it keeps nobody from
// writing; the faster one has the id.
func registerSlowClaim(h *harness) {
	var offered []thread.ID
	rec, created, err := h.Register(h.ctx, h.newThread("d", ""), func(id thread.ID) error {
		offered = append(offered, id)
		if len(offered) == 1 {
			h.register("d", "")
		}
		return nil
	})
	h.noError(err)
	want := []thread.ID{"d-1772600767", "d-1772600767-2"}
	if !created || rec.ThreadID != want[1] || !slices.Equal(offered, want) {
		h.Errorf("offered %v, registered %s", offered, rec.ThreadID)
	}
}

func registerAborted(h *harness) {
	parent := h.running("parent", "")
	errDisk := errors.New("disk full")
	n := h.newThread("d", parent)
	n.RequestKey = "k"
	if _, _, err := h.Register(h.ctx, n, func(thread.ID) error { return errDisk }); !errors.Is(err, errDisk) {
		h.Errorf("claim failed with %v, Register with %v", errDisk, err)
	}
	if count := h.get(parent).SpawnCount; count != 0 {
		h.Errorf("parent's spawn count is %d after nothing was spawned", count)
	}
	if _, err := h.ByRequestKey(h.ctx, "k"); !errors.Is(err, thread.ErrNotFound) {
		h.Errorf("request key of an aborted registration: %v", err)
	}
	if id := h.register("d", parent); id != thread.NewID("d", h.now, 1) {
		h.Errorf("next id is %s", id)
	}
}

func registerRefuses(h *harness) {
	for name, change := range map[string]func(*store.NewThread){
		"no directive":     func(n *store.NewThread) { n.Directive = "" },
		"directive climbs": func(n *store.NewThread) { n.Directive = "../../etc/x" },
		"id climbs":        func(n *store.NewThread) { n.ID = "a/../../b" },
		"unknown kind":     func(n *store.NewThread) { n.Kind = "process" },
		"no time":          func(n *store.NewThread) { n.Now = time.Time{} },
	} {
		n := h.newThread("d", "")
		change(&n)
		_, _, err := h.Register(h.ctx, n, func(id thread.ID) error {
			h.Errorf("%s: %q was offered to claim", name, id)
			return nil
		})
		if err == nil {
			h.Errorf("%s: accepted", name)
		}
	}
}

func registerTwentyAtOnce(h *harness) {
	const n = 20
	parent := h.running("parent", "")
	got := make([]thread.ID, n)
	for _, err := range atOnce(n, func(i int) error {
		rec, _, err := h.Register(h.ctx, h.newThread("w", parent), claimNothing)
		got[i] = rec.ThreadID
		return err
	}) {
		h.noError(err)
	}
	for i := range n {
		if want := thread.NewID("w", h.now, i+1); !slices.Contains(got, want) {
			h.Errorf("%s is missing in %v", want, got)
		}
	}
	if count := h.get(parent).SpawnCount; count != n {
		h.Errorf("spawn count %d, want %d", count, n)
	}
}

func registerSpawnLimit(h *harness) {
	const most, tries = 7, 20
	parent := h.running("parent", "")
	started := 0
	for _, err := range atOnce(tries, func(int) error {
		n := h.newThread("w", parent)
		n.MaxSpawns = most
		_, _, err := h.Register(h.ctx, n, claimNothing)
		return err
	}) {
		var limit *store.SpawnsError
		switch {
		case err == nil:
			started++
		case !errors.As(err, &limit):
			h.Errorf("refused with %v", err)
		case limit.Parent != parent || limit.Max != most:
			h.Errorf("refused with %+v", limit)
		}
	}
	if count := h.get(parent).SpawnCount; started != most || count != most {
		h.Errorf("%d started and %d counted, limit %d", started, count, most)
	}
}

func registerParentGone(h *harness) {
	asked := h.running("asked", "")
	_, err := h.RequestCancel(h.ctx, asked, "", h.now)
	h.noError(err)
	parents := map[string]thread.ID{"unknown": "no/such", "asked to stop": asked}
	for _, s := range thread.States() {
		if s != thread.Running {
			parents[string(s)] = h.inState(s)
		}
	}
	for name, parent := range parents {
		_, _, err := h.Register(h.ctx, h.newThread("w", parent), func(id thread.ID) error {
			h.Errorf("%s parent: %s was offered to claim", name, id)
			return nil
		})
		if !errors.Is(err, store.ErrParentGone) {
			h.Errorf("%s parent: %v", name, err)
		}
	}
}

func registerRequestKey(h *harness) {
	parent := h.running("parent", "")
	n := h.newThread("d", parent)
	n.RequestKey, n.MaxSpawns = "key", 1
	first, created, err := h.Register(h.ctx, n, claimNothing)
	h.noError(err)
	if !created {
		h.Error("the first registration created nothing")
	}
	n.Now = n.Now.Add(time.Hour)
	again, created, err := h.Register(h.ctx, n, func(id thread.ID) error {
		h.Errorf("%s was offered to claim for a key that is in use", id)
		return nil
	})
	if err != nil || created || !reflect.DeepEqual(again, first) {
		h.Errorf("again: created %v, %+v, %v", created, again, err)
	}
	if count := h.get(parent).SpawnCount; count != 1 {
		h.Errorf("spawn count %d after one key was used twice", count)
	}
	found, err := h.ByRequestKey(h.ctx, "key")
	if err != nil || !reflect.DeepEqual(found, first) {
		h.Errorf("ByRequestKey: %+v, %v", found, err)
	}
	if _, err := h.ByRequestKey(h.ctx, "other"); !errors.Is(err, thread.ErrNotFound) {
		h.Errorf("ByRequestKey of an unknown key: %v", err)
	}
	other := n
	other.Directive = "e"
	if _, _, err := h.Register(h.ctx, other, claimNothing); !errors.Is(err, store.ErrKeyReused) {
		h.Errorf("key reused for another directive: %v", err)
	}
	keyed := h.newThread("d", "")
	keyed.RequestKey, keyed.RequestHash = "key with a call", "hash"
	_, _, err = h.Register(h.ctx, keyed, claimNothing)
	h.noError(err)
	other = keyed
	other.RequestHash = "other"
	if _, _, err := h.Register(h.ctx, other, claimNothing); !errors.Is(err, store.ErrKeyReused) {
		h.Errorf("key reused for another call: %v", err)
	}
	other.RequestHash = "" // as older versions ask
	if rec, created, err := h.Register(h.ctx, other, claimNothing); err != nil || created || rec.RequestHash != "hash" {
		h.Errorf("key of a call that is not known: %+v, %v, %v", rec, created, err)
	}
	other = n
	other.RequestHash = "hash" // of a row that an older version made
	if _, created, err := h.Register(h.ctx, other, claimNothing); err != nil || created {
		h.Errorf("key of a row without a call: %v, %v", created, err)
	}
	other = n
	other.Kind = thread.KindTool
	if _, _, err := h.Register(h.ctx, other, claimNothing); !errors.Is(err, store.ErrKeyReused) {
		h.Errorf("key reused for a tool: %v", err)
	}
}

func registerRequestKeyRace(h *harness) {
	const n = 10
	recs, created := make([]thread.Record, n), make([]bool, n)
	for _, err := range atOnce(n, func(i int) (err error) {
		nt := h.newThread("d", "")
		nt.RequestKey = "key"
		recs[i], created[i], err = h.Register(h.ctx, nt, claimNothing)
		return err
	}) {
		h.noError(err)
	}
	winners := 0
	for i := range n {
		if created[i] {
			winners++
		}
		if recs[i].ThreadID != recs[0].ThreadID {
			h.Errorf("one key named %s and %s", recs[i].ThreadID, recs[0].ThreadID)
		}
	}
	if winners != 1 {
		h.Errorf("%d registrations created the thread", winners)
	}
}
