package control

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/health"
	"github.com/rye-mcp/rye-mcp/orchestrator/replay"
	"github.com/rye-mcp/rye-mcp/runtime/recording"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/disktest"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/sign"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// TestFullDiskMends answers a handoff, mends and imports on a disk that is full, or becomes
// full on the way. It is told so, nothing is half done, and when there is room again the
// same call does all of it.
func TestFullDiskMends(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	if !disktest.Isolated(t) {
		return
	}
	t.Run("answer", answerOnFullDisk)
	t.Run("reconcile", mendOnFullDisk)
	t.Run("import", importOnFullDisk)
}

// before is a disk that is full from the beginning.
const before thread.Crashpoint = ""

// answerOnFullDisk: an answer that cannot be kept is not given, and the question stays open.
func answerOnFullDisk(t *testing.T) {
	t.Parallel()
	s, disk := onDisk(t)
	id := s.start("work", "")
	for _, answer := range []ApproveRequest{
		{Decision: thread.Accept, Summary: strings.Repeat("Nearly done. ", 500)}, {Decision: thread.Decline},
	} {
		q := s.proposes(id)
		s.fullAt(before, disk)
		disk.Fill()
		answer.ThreadID, answer.By = id, "Ada"
		if _, err := s.c.Approve(s.ctx, answer); code(err) != tool.CodeDiskFull {
			t.Errorf("%s on a full disk: %v", answer.Decision, err)
		}
		disk.Empty()
		if got := s.answerTo(q); got != nil {
			t.Errorf("it is answered %+v", got)
		}
		_, err := s.c.Approve(s.ctx, answer)
		s.noError(err)
		if got := s.answerTo(q); got == nil || got.Decision != answer.Decision || got.Summary != answer.Summary {
			t.Errorf("answered %+v", got)
		}
	}
	s.order(id, "complete")
	s.gone(id)
	s.wantNothingHeld()
}

// mendOnFullDisk: the disk is full at first, and then becomes full behind some steps. What
// was mended stays so.
func mendOnFullDisk(t *testing.T) {
	t.Parallel()
	s, disk := onDisk(t)
	_, victims := s.suffer(mendable())
	s.setSlots(1) // a row that is behind would start
	at := append([]thread.Crashpoint{before}, sampled(health.Crashpoints())...)
	for _, at := range at {
		s.c = s.later()
		s.fullAt(at, disk)
		if at == before {
			disk.Fill()
		}
		r, err := s.c.Health.Reconcile(s.ctx, health.ReconcileInput{All: true, Apply: true}, nil)
		s.wantDiskFull(err)
		if at == before && err == nil && (r.Success || !slices.ContainsFunc(r.Findings, func(f health.Finding) bool {
			return !f.Mended && strings.Contains(f.Detail, syscall.ENOSPC.Error())
		})) {
			t.Errorf("found on a full disk: %+v", r.Findings)
		}
		disk.Empty()
	}
	r, err := s.later().Health.Reconcile(s.ctx, health.ReconcileInput{All: true, Apply: true}, nil)
	s.noError(err)
	if !r.Success {
		t.Errorf("found %+v", r.Findings)
	}
	s.wantMended(victims)
}

// importOnFullDisk: there are all threads of a recording or none, and no file of them without
// a row.
func importOnFullDisk(t *testing.T) {
	t.Parallel()
	from := newSignedScene(t)
	root := from.start("work", "")
	below := from.start("work", root)
	from.order(below, "say hello", "complete")
	from.gone(below)
	from.order(root, "say hello", "complete")
	from.gone(root)
	recorder := &replay.Recorder{
		Threads: from.c.Threads, Verify: from.c.Verify, Resolver: from.c.Planner.Resolver, Settings: from.c.Settings,
		Getenv: func(string) string { return "" },
	}
	made, err := recorder.Record(from.ctx, root, replay.Scope{Tree: true})
	from.noError(err)
	key, err := sign.Generate(t.TempDir(), false, rand.Reader)
	from.noError(err)
	var file bytes.Buffer
	from.noError(made.Write(&file, key))
	for _, at := range append([]thread.Crashpoint{before}, replay.Crashpoints()...) {
		t.Run(fmt.Sprintf("full at %s", at), func(t *testing.T) {
			s, disk := onDisk(t)
			s.start("idle", "") // makes the state
			r, err := recording.Read(bytes.NewReader(file.Bytes()), int64(file.Len()))
			s.noError(err)
			importer := &replay.Importer{Threads: s.c.Threads, Life: s.c.Threads.Life, Host: "here", Now: time.Now}
			s.fullAt(at, disk)
			if at == before {
				disk.Fill()
			}
			_, err = importer.Import(s.ctx, r, "")
			s.wantDiskFull(err)
			disk.Empty()
			for _, id := range []thread.ID{root, below} {
				_, lost := s.c.Threads.Store.Get(s.ctx, id)
				files, globErr := filepath.Glob(string(s.folder(id)) + "*")
				if s.noError(globErr); (lost == nil) != (err == nil) || len(files) > 0 != (err == nil) {
					t.Errorf("%s: imported %v, row %v, files %q", id, err, lost, files)
				}
			}
			done, err := importer.Import(s.ctx, r, "")
			if err != nil || len(done.Threads) != 2 {
				t.Fatalf("again %+v, %v", done, err)
			}
			for _, id := range done.Threads {
				if v := s.verify(id); !v.Verified {
					t.Errorf("%s: %+v", id, v)
				}
			}
		})
	}
}
