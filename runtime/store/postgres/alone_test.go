package postgres_test

import (
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/link"
	"github.com/rye-mcp/rye-mcp/runtime/store/postgres/pgtest"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
)

// TestAlone: the process of a thread finds its project, works and is heard of by one
// connection, and looking for a project makes none.
func TestAlone(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	options := postgres.Options{URL: pgtest.Server(t), Alone: true, Connections: 1, Poll: time.Hour}
	if s, p, err := postgres.Lookup(t.Context(), options, "p"); s != nil || p != nil || err != nil {
		t.Fatalf("in an empty database there is %v, %v, %v", s, p, err)
	}
	others, err := postgres.Connect(t.Context(), postgres.Options{URL: options.URL, Poll: time.Hour}) // hints alone tell it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = others.Close() })
	if p, err := others.Find(t.Context(), "p"); p != nil || err != nil {
		t.Fatalf("looking has made %v, %v", p, err)
	}
	elsewhere := open(t, others, "p")
	changes, milestones := elsewhere.Changes(t.Context()), elsewhere.Milestones(t.Context())
	<-changes // it listens
	<-milestones

	options.Begun, err = link.Begin(t.Context(), options, "p")
	if err != nil {
		t.Fatal(err)
	}
	if wrong := options.Begun.Take(link.SchemaOf("another")); wrong != nil {
		t.Fatal("what was begun for a project is another's")
	}
	server, alone, err := postgres.Lookup(t.Context(), options, "p")
	if err != nil {
		t.Fatal(err)
	}
	options.Begun.Close() // which is taken, and stays
	if again := options.Begun.Take(alone.Schema()); again != nil {
		t.Fatal("what was begun is given twice")
	}
	rec, _, err := store.Register(t.Context(), alone, newThread("d", ""), nil)
	if err != nil {
		t.Fatal(err)
	}
	<-changes
	by := storetest.As(alone)
	if _, err := by.Apply(t.Context(), store.Claimed(rec.ThreadID, thread.Process{PID: 1, Host: "h"}, testTime)); err != nil {
		t.Fatal(err)
	}
	<-changes
	<-milestones
	for range 2 { // the first was told to all when the second is
		if err := by.RecordCost(t.Context(), rec.ThreadID, thread.Cost{Turns: 1}, 0); err != nil {
			t.Fatal(err)
		}
		<-changes
	}
	if len(milestones) > 0 {
		t.Error("a thread that is registered and counts is a milestone")
	}
	end, err := store.Finished(rec.ThreadID, thread.Outcome{State: thread.Completed}, nil, testTime)
	if err == nil {
		_, err = by.Apply(t.Context(), end)
	}
	if err != nil {
		t.Fatal(err)
	}
	<-milestones
	if got, err := elsewhere.Get(t.Context(), rec.ThreadID); err != nil || got.Status != thread.Completed || got.Cost.Turns != 1 {
		t.Errorf("elsewhere it is %+v, %v", got, err)
	}
	if n := alone.Pool().Stat().NewConnsCount() + server.Pool().Stat().NewConnsCount(); n != 1 {
		t.Errorf("it took %d connections", n)
	}
	if err := alone.Close(); err != nil {
		t.Error(err)
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
}
