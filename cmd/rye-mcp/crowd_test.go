package main_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	_ "modernc.org/sqlite" // registers the driver

	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
)

// crowd gives the project n threads that ended long ago, beside one that truly ran:
// rows, budgets and folders of its like. They are not synced to disk one by one. The
// first of those that it returns is the newest.
func (p *place) crowd(n int) (stateDir string, ids []thread.ID) {
	p.Helper()
	h := p.serve()
	first, err := fork(h, "brief")
	p.noError(err)
	h.close()
	p.wantRest(h)
	state, err := placetest.Make(p.dir, filepath.Join(filepath.Dir(p.dir), "home"))
	p.noError(err)
	p.multiply(filepath.Join(state.Dir, "registry.db"), "threads", first.ThreadID, n,
		map[string]string{"id_ordinal": "NULL", "request_key": "NULL", "queue_position": "queue_position + i", "created_at": "created_at - 86400000 - i"})
	p.multiply(filepath.Join(state.Dir, "budget_ledger.db"), "budgets", first.ThreadID, n, nil)

	from := folder.Of(state.Dir, first.ThreadID)
	meta, err := from.ReadMeta(state.Seal)
	p.noError(err)
	transcript, err := os.ReadFile(from.Transcript())
	p.noError(err)
	renderings := filepath.Join(p.dir, ".ai", "knowledge", "agent", "threads", "brief")
	rendering, err := os.ReadFile(filepath.Join(renderings, string(first.ThreadID)+".md"))
	p.noError(err)
	for i := range n {
		meta.ThreadID = thread.ID(fmt.Sprintf("%s-%d", first.ThreadID, i+1))
		meta.ChainRootID = meta.ThreadID
		meta.CreatedAt = meta.CreatedAt.Add(-time.Millisecond)
		data, err := state.Seal.Encode(meta)
		p.noError(err)
		to := folder.Of(state.Dir, meta.ThreadID)
		p.noError(to.Make())
		ids = append(ids, meta.ThreadID)
		for path, content := range map[string][]byte{
			to.Meta(): data, to.Transcript(): transcript,
			filepath.Join(renderings, string(meta.ThreadID)+".md"): bytes.ReplaceAll(rendering, []byte(first.ThreadID), []byte(meta.ThreadID)),
		} {
			p.noError(os.WriteFile(path, content, 0o600))
		}
	}
	return state.Dir, ids
}

// TestReconcileOfMany: of more threads than are looked at, the newest, those that have
// not ended and the budgets are compared, and it is said that there are more. With all,
// every kind of disagreement of the oldest is found, and progress is told.
func TestReconcileOfMany(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	p := newPlace(t, fmt.Sprintf(loaded, 10))
	state, ids := p.crowd(1100)
	at := func(i int) folder.Folder { return folder.Of(state, ids[len(ids)-1-i]) }
	newest, gone, altered, swapped, linked, dead, orphan := ids[0], at(0), at(1), at(2), at(3), at(4), at(5)
	p.noError(os.RemoveAll(string(folder.Of(state, newest))))
	p.noError(os.RemoveAll(string(gone)))
	p.noError(os.WriteFile(altered.Meta(), []byte("{"), 0o600))
	other, err := os.ReadFile(folder.Of(state, ids[1]).Meta())
	p.noError(err)
	p.noError(os.WriteFile(swapped.Meta(), other, 0o600))
	p.noError(os.Rename(string(linked), string(linked)+".moved"))
	p.noError(os.Symlink(string(linked)+".moved", string(linked)))
	p.alter(state, "registry.db", "UPDATE threads SET status = 'running', result = NULL, completed_at = NULL, pid = 0, writes = writes + 1 WHERE thread_id = ?", filepath.Base(string(dead)))
	p.alter(state, "registry.db", "DELETE FROM threads WHERE thread_id = ?", filepath.Base(string(orphan)))
	p.alter(state, "registry.db", "UPDATE threads SET parent_id = 'nobody-1' WHERE thread_id = ?", filepath.Base(string(at(6))))
	p.alter(state, "budget_ledger.db", "UPDATE budgets SET status = 'active', created_at = 1 WHERE thread_id = ?", filepath.Base(string(at(7))))
	p.noError(os.Chtimes(string(orphan), time.Unix(1, 0), time.Unix(1, 0)))

	h := p.serve()
	some := must[reconciled](h, "reconcile_threads", args{})
	if !some.Partial || some.Total != 1100 || some.Threads < 1000 || some.Threads == some.Total ||
		!some.has("folder_missing", string(newest)) || !some.has("reservation_without_thread", string(at(7))) || some.has("folder_missing", string(gone)) {
		t.Errorf("of some: %+v", some)
	}
	if status := must[struct{ Status thread.State }](h, "get_status", args{"thread_id": filepath.Base(string(dead))}); status.Status != thread.Completed {
		t.Errorf("the dead one is %+v", status)
	}
	var told atomic.Int64
	h.client.OnNotification(func(n mcp.JSONRPCNotification) {
		if n.Method == "notifications/progress" {
			told.Add(1)
		}
	})
	var req mcp.CallToolRequest
	req.Params.Name, req.Params.Arguments = "reconcile_threads", args{"all": true}
	req.Params.Meta = &mcp.Meta{ProgressToken: "far"}
	result, err := h.client.CallTool(t.Context(), req)
	p.noError(err)
	var all reconciled
	p.noError(json.Unmarshal([]byte(result.Content[0].(mcp.TextContent).Text), &all))
	for kind, id := range map[string]string{
		"folder_missing": string(gone), "meta_unreadable": string(altered), "meta_copied": string(swapped),
		"transcript_damaged": string(orphan), // signed for the thread whose copy it is, so no row is made by it
		"parent_missing":     string(at(6)), "reservation_without_thread": string(at(7)),
	} {
		if !all.has(kind, id) {
			t.Errorf("%s of %s is not found", kind, filepath.Base(id))
		}
	}
	if !all.has("folder_linked", string(linked)) || !all.has("folder_missing", string(newest)) || all.Partial || all.Threads != 1100 || told.Load() == 0 {
		t.Errorf("of all: %d told, %+v", told.Load(), all)
	}
	if health := must[looked](h, "thread_health", args{}); !health.Partial || health.Total != 1100 || health.Folders > 1000 || health.Folders < 900 {
		t.Errorf("health %+v", health)
	}
	if health := must[looked](h, "thread_health", args{"all": true}); health.Partial || health.Orphaned != 1 || health.Checkpoints < 1000 {
		t.Errorf("health of all %+v", health)
	}
}

// reconciled is what reconcile_threads answers.
type reconciled struct {
	Partial  bool
	Total    int `json:"thread_count"`
	Threads  int
	Findings []struct {
		Kind     string
		ThreadID string `json:"thread_id"`
	}
}

// has tells whether something was found out about the thread of a folder.
func (r reconciled) has(kind, folder string) bool {
	for _, f := range r.Findings {
		if f.Kind == kind && f.ThreadID == filepath.Base(folder) {
			return true
		}
	}
	return false
}

// looked is what thread_health answers.
type looked struct {
	Partial     bool
	Total       int `json:"thread_count"`
	Folders     int
	Orphaned    int `json:"orphaned_folders"`
	Checkpoints int `json:"checkpoint_count"`
}

// alter changes a database without the rules of the store.
func (p *place) alter(state, database, query string, id string) {
	p.Helper()
	db, err := sql.Open("sqlite", filepath.Join(state, database))
	p.noError(err)
	defer func() { _ = db.Close() }()
	done, err := db.Exec(query, id)
	p.noError(err)
	if n, err := done.RowsAffected(); err != nil || n != 1 {
		p.Fatalf("%d rows changed, %v: %s", n, err, query)
	}
}

// multiply copies the row of a thread n times, with some columns computed.
func (p *place) multiply(database, table string, id thread.ID, n int, computed map[string]string) {
	p.Helper()
	db, err := sql.Open("sqlite", database)
	p.noError(err)
	defer func() { _ = db.Close() }()
	rows, err := db.Query("SELECT name FROM pragma_table_info(?)", table)
	p.noError(err)
	defer func() { _ = rows.Close() }()
	var names, values []string
	for rows.Next() {
		var name string
		p.noError(rows.Scan(&name))
		value, found := computed[name]
		switch {
		case name == "thread_id":
			value = "thread_id || '-' || i"
		case !found:
			value = name
		}
		names, values = append(names, name), append(values, value)
	}
	p.noError(rows.Err())
	_, err = db.Exec(fmt.Sprintf(`WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ?)
		INSERT INTO %[1]s (%[2]s) SELECT %[3]s FROM %[1]s, n WHERE thread_id = ?`,
		table, strings.Join(names, ", "), strings.Join(values, ", ")), n, id)
	p.noError(err)
}
