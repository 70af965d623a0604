package control

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/continuation"
	"github.com/rye-mcp/rye-mcp/orchestrator/scheduler"
	"github.com/rye-mcp/rye-mcp/runtime/finish"
	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/provider"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// fork copies a thread. A copy with a message claims its row.
func (s *scene) fork(req continuation.ForkRequest) continuation.Forked {
	s.Helper()
	forked, err := s.c.Continue.Fork(s.ctx, req)
	s.noError(err)
	if req.Message != "" {
		s.order(forked.ThreadID, "claim")
	}
	return forked
}

// leaves is the content of every file that a thread has left, and its row.
func (s *scene) leaves(id thread.ID) map[string]any {
	s.Helper()
	all := map[string]any{"row": s.row(id)}
	dir := filepath.Dir(s.folder(id).Meta())
	s.noError(filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			all[path] = s.read(path)
		}
		return err
	}))
	return all
}

// said is the conversation of a thread, a line a message.
func (s *scene) said(id thread.ID) (lines []string) {
	s.Helper()
	messages, err := s.c.Threads.Messages(id)
	s.noError(err)
	for _, m := range messages {
		var words []string
		for _, b := range m.Blocks {
			words = append(words, b.Text+b.ToolName)
		}
		lines = append(lines, fmt.Sprint(m.Role, ": ", strings.Join(words, " ")))
	}
	return lines
}

func hello(words ...string) (lines []string) {
	for _, word := range words {
		lines = append(lines, fmt.Sprint(llm.User, ": ", word), fmt.Sprint(llm.Assistant, ": answer to ", word))
	}
	return lines
}

func turn(n int) *int { return &n }

// TestFork copies a child of a running thread: the copy is a root with the rights, the
// limits and the conversation of the child, which is as it was.
func TestFork(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newSignedScene(t)
	root := s.start("idle", "")
	first := s.start("work", root)
	s.order(first, "say one", "say two", "say three", "spend 7", "complete")
	<-s.puppet(first).gone
	s.verify(first)
	left, parent := s.leaves(first), s.row(root)
	got := s.fork(continuation.ForkRequest{ThreadID: first, AtTurn: turn(2), Message: "go another way", Name: "a try"})
	copied := got.ThreadID
	if !got.Success || got.ForkedFrom != first || got.Turns != 2 || got.AtTurn != 2 || got.Directive != "work" || got.Next == "" || got.ContinuedBy != "" || copied == first {
		s.Errorf("forked %+v", got)
	}
	rec, meta, before := s.row(copied), s.meta(copied), s.meta(first)
	if rec.ParentID != "" || rec.ContinuationOf != "" || rec.ChainRootID != "" || rec.Name != "a try" ||
		string(rec.Metadata) != fmt.Sprintf(`{"forked_at_turn":2,"forked_from":"%s"}`, first) {
		s.Errorf("row %+v %s", rec, rec.Metadata)
	}
	if !reflect.DeepEqual(meta.ForkedFrom, &thread.Fork{ThreadID: first, Turn: 2}) || meta.Limits != before.Limits ||
		!slices.Equal(meta.Capabilities, before.Capabilities) || !reflect.DeepEqual(meta.Ceiling, before.Ceiling) || meta.ChainRootID != copied ||
		meta.Continuation.Via != thread.ViaFork || meta.Continuation.Message != "go another way" || meta.Continuation.Messages != 4 || meta.Cost != (thread.Cost{}) {
		s.Errorf("thread.json %+v", meta)
	}
	if said := s.said(copied); !slices.Equal(said, hello("one", "two")) {
		s.Errorf("it begins with %q", said)
	}
	s.order(copied, "say more", "spend 2", "complete")
	<-s.puppet(copied).gone
	if v := s.verify(copied); !v.Verified {
		s.Errorf("the copy: %+v", v)
	}
	if now := s.leaves(first); !reflect.DeepEqual(now, left) {
		s.Errorf("the source was\n%v, and is\n%v", left, now)
	}
	if now := s.row(root); now.SpawnCount != parent.SpawnCount {
		s.Errorf("the parent has started %d, and then %d", parent.SpawnCount, now.SpawnCount)
	}
	s.wantTree(copied, store.TreeSpend{Actual: 2, Threads: 1})
	again := s.fork(continuation.ForkRequest{ThreadID: copied, Message: "and another"})
	if again.ForkedFrom != copied || again.Turns != 3 || s.row(again.ThreadID).Name != "and another" {
		s.Errorf("a copy of the copy: %+v", again)
	}
}

// TestForkRests: a copy without a message has ended, has cost nothing and holds
// nothing, and is resumed as any other thread.
func TestForkRests(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newSignedScene(t)
	first := s.start("work", "")
	s.order(first, "say one", "spend 7", "call rye_bash", "complete")
	got := s.fork(continuation.ForkRequest{ThreadID: first})
	copied := got.ThreadID
	if !got.Success || got.Status != thread.Completed || got.Run != nil || got.Turns != 2 || !strings.Contains(got.Next, "resume_thread") {
		s.Errorf("forked %+v", got)
	}
	rec := s.row(copied)
	if rec.Status != thread.Completed || rec.Cost != (thread.Cost{}) || rec.PID != 0 || rec.Name != s.row(first).Name {
		s.Errorf("row %+v", rec)
	}
	s.wantTree(copied, store.TreeSpend{Threads: 1})
	want := append(hello("one"), "assistant: rye_bash", "user: The call has no result: the thread stopped before the tool had answered. "+
		"It may have run in part; look before you repeat it.")
	if said := s.said(copied); !slices.Equal(said, want) {
		s.Errorf("it has %q", said)
	}
	if v := s.verify(copied); !v.Verified {
		s.Errorf("the copy: %+v", v)
	}
	resumed := s.resume(copied)
	if resumed.ReconstructedTurns != 2 || s.meta(resumed.NewThreadID).ForkedFrom != nil || s.row(resumed.NewThreadID).ChainRootID != copied {
		s.Errorf("resumed %+v", resumed)
	}
	if said := s.said(resumed.NewThreadID); !slices.Equal(said, want) {
		s.Errorf("it goes on with %q", said)
	}
	early := s.fork(continuation.ForkRequest{ThreadID: first, AtTurn: turn(1)})
	if rec := s.row(early.ThreadID); rec.Outcome.Result != "answer to one" {
		s.Errorf("its last words: %+v", rec.Outcome)
	}
	if copyOfCopy := s.fork(continuation.ForkRequest{ThreadID: early.ThreadID}); copyOfCopy.Turns != 1 || copyOfCopy.AtTurn != 0 {
		s.Errorf("a copy of a copy that rests: %+v", copyOfCopy)
	}
}

// A copy that only rests needs no key of a provider; one that runs does.
func TestForkRestsWithoutKey(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newSignedScene(t)
	rich := s.controller()
	rich.Settings.Providers = provider.NewSource(func(string) string { return "a key" })
	started, err := rich.Start(s.ctx, action.Caller{}, action.StartRequest{Directive: "work", Model: "anthropic/fast"})
	s.noError(err)
	first := started.ThreadID
	s.order(first, "claim", "say one", "complete")
	got := s.fork(continuation.ForkRequest{ThreadID: first})
	if rec := s.row(got.ThreadID); got.Status != thread.Completed || rec.Model != s.row(first).Model {
		s.Errorf("forked %+v, %+v", got, rec)
	}
	if _, err := s.c.Continue.Fork(s.ctx, continuation.ForkRequest{ThreadID: first, Message: "go on"}); err == nil || !strings.Contains(err.Error(), "ANTHROPIC_API_KEY") {
		s.Errorf("one that runs: %v", err)
	}
}

// TestForkOfRunning: of a thread that runs what is signed is copied, and it goes on.
func TestForkOfRunning(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newSignedScene(t)
	first := s.start("work", "")
	s.order(first, "say one", "say two", "mutter three")
	left := s.leaves(first)
	got := s.fork(continuation.ForkRequest{ThreadID: first, Message: "go on"})
	if said := s.said(got.ThreadID); got.AtTurn != 2 || !slices.Equal(said, hello("one", "two")) {
		s.Errorf("forked %+v with %q", got, said)
	}
	if now := s.leaves(first); !reflect.DeepEqual(now, left) {
		s.Errorf("the source was\n%v, and is\n%v", left, now)
	}
	_, err := s.c.Continue.Fork(s.ctx, continuation.ForkRequest{ThreadID: first, AtTurn: turn(3)})
	if f := threadsFault(err); f.Code != tool.CodeBadArguments || f.Details["valid_turns"] != "1 to 2" {
		s.Errorf("an unsigned turn: %v %v", err, f.Details)
	}
	// A thread that died is taken up to its last line, as a resume takes it.
	s.noError(syscall.Kill(s.puppet(first).pid, syscall.SIGKILL))
	<-s.puppet(first).gone
	got = s.fork(continuation.ForkRequest{ThreadID: first})
	if said := s.said(got.ThreadID); got.AtTurn != 3 || !slices.Equal(said, append(hello("one", "two"), "assistant: three")) {
		s.Errorf("of the dead thread %+v with %q", got, said)
	}
}

func threadsFault(err error) *tool.Fault { return action.Fault(err) }

// TestForkOfChain: the thread that is named is copied, and not the one that continues
// it; the limits are those that the work began with.
func TestForkOfChain(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	first := s.start("work", "")
	s.order(first, "say one")
	second := s.handOver(first)
	s.order(second, "say two", "complete")
	got := s.fork(continuation.ForkRequest{ThreadID: first})
	if said := s.said(got.ThreadID); got.ForkedFrom != first || got.ContinuedBy != second || !slices.Equal(said, hello("one")) {
		s.Errorf("forked %+v with %q", got, said)
	}
	got = s.fork(continuation.ForkRequest{ThreadID: second, Message: "go on", AtTurn: turn(1)})
	meta := s.meta(got.ThreadID)
	if got.ContinuedBy != "" || meta.Limits != s.meta(first).Limits || meta.ContinuationOf != "" || len(meta.Inputs) != 0 {
		s.Errorf("forked %+v: %+v", got, meta)
	}
	if chain := s.chain(got.ThreadID); len(chain) != 1 {
		s.Errorf("the copy is in the chain %v", chain)
	}
}

// TestForkTooLong: a copy that runs gets of a conversation that does not fit what a
// handoff gives; one that rests keeps all of it.
func TestForkTooLong(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	s.write("config/agent/coordination.yaml", "continuation: {resume_ceiling_tokens: 1000}\n")
	s.write("config/agent/providers/scripted.yaml", "models: {scripted-fast: {context_window: 500}}\n")
	first := s.start("work", "")
	s.order(first, "say one", "say "+strings.Repeat("long words ", 400), "complete")
	got := s.fork(continuation.ForkRequest{ThreadID: first, Message: "go on"})
	if said := s.said(got.ThreadID); !got.Shortened || got.Turns != 2 || !strings.Contains(said[0], "which goes its own way. You are a copy of it") {
		s.Errorf("forked %+v with %q", got, said)
	}
	if rests := s.fork(continuation.ForkRequest{ThreadID: first}); rests.Shortened || len(s.said(rests.ThreadID)) != 4 {
		s.Errorf("forked %+v", rests)
	}
	if early := s.fork(continuation.ForkRequest{ThreadID: first, Message: "go on", AtTurn: turn(1)}); early.Shortened {
		s.Errorf("forked %+v", early)
	}
}

// TestNoFork refuses what cannot be copied, says what to do instead, and leaves
// nothing behind.
func TestNoFork(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newSignedScene(t)
	s.write("directives/secretive.md", secretDirective)
	s.write("directives/gone.md", fmt.Sprintf(directive, "gone", "", ""))
	running := s.start("work", "")
	fresh := s.start("work", "")
	s.order(fresh, "complete")
	changed := s.start("work", "")
	s.order(changed, "say hello", "complete")
	<-s.puppet(changed).gone
	path := s.folder(changed).Transcript()
	s.noError(os.WriteFile(path, []byte(strings.Replace(s.read(path), "hello", "other", 1)), 0o600))
	gone := s.start("gone", "")
	s.order(gone, "say hello", "complete")
	s.noError(os.Remove(filepath.Join(s.project, ".ai", "directives", "gone.md")))
	secretive, err := s.c.Start(s.ctx, action.Caller{}, secretive("never to be seen"))
	s.noError(err)
	s.order(secretive.ThreadID, "claim", "say hello", "complete")
	good := s.start("work", "")
	s.order(good, "say one", "say two", "complete")
	before, err := s.c.Threads.Store.Stats(s.ctx, store.StatsSince{})
	s.noError(err)
	for name, c := range map[string]struct {
		request continuation.ForkRequest
		code    tool.Code
		says    string
	}{
		"runs and has said nothing": {continuation.ForkRequest{ThreadID: running}, "conflict", "no signed turn"},
		"nobody":                    {continuation.ForkRequest{ThreadID: "nobody-1"}, "not_found", "nobody-1"},
		"said nothing":              {continuation.ForkRequest{ThreadID: fresh}, "unsupported", "nothing to fork"},
		"changed":                   {continuation.ForkRequest{ThreadID: changed, Message: "go on"}, "invalid_item", "does not verify"},
		"its directive is gone":     {continuation.ForkRequest{ThreadID: gone}, "not_found", "gone"},
		"secrets":                   {continuation.ForkRequest{ThreadID: secretive.ThreadID}, "unsupported", "secret inputs (token)"},
		"turn 0":                    {continuation.ForkRequest{ThreadID: good, AtTurn: turn(0)}, "bad_arguments", "turns 1 to 2"},
		"turn -1":                   {continuation.ForkRequest{ThreadID: good, AtTurn: turn(-1)}, "bad_arguments", "turns 1 to 2"},
		"turn 3":                    {continuation.ForkRequest{ThreadID: good, AtTurn: turn(3), Message: "go on"}, "bad_arguments", "turns 1 to 2"},
		"a name of two lines":       {continuation.ForkRequest{ThreadID: good, Name: "one\ntwo"}, "bad_arguments", "name"},
		"a long name":               {continuation.ForkRequest{ThreadID: good, Name: strings.Repeat("x", 10_000)}, "bad_arguments", "10000 characters"},
		"turn of none":              {continuation.ForkRequest{ThreadID: fresh, AtTurn: turn(1)}, "bad_arguments", "no turn of its own"},
	} {
		if _, err := s.c.Continue.Fork(s.ctx, c.request); code(err) != c.code || !strings.Contains(err.Error(), c.says) {
			s.Errorf("%s: %v", name, err)
		}
	}
	after, err := s.c.Threads.Store.Stats(s.ctx, store.StatsSince{})
	if err != nil || !reflect.DeepEqual(after, before) {
		s.Errorf("threads %+v, and then %+v, %v", before, after, err)
	}
}

// TestForkOfQueued: a thread that has not begun has no conversation yet; one that
// continues another has that one's.
func TestForkOfQueued(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := narrow(t, 1)
	first := s.start("work", "")
	s.order(first, "say one", "complete")
	s.start("idle", "")
	queued := s.begin("work", "").ThreadID
	if _, err := s.c.Continue.Fork(s.ctx, continuation.ForkRequest{ThreadID: queued}); code(err) != "conflict" || !strings.Contains(err.Error(), "has not begun") {
		s.Errorf("of a queued thread: %v", err)
	}
	resumed, err := s.c.Continue.Resume(s.ctx, continuation.ResumeRequest{ThreadID: first, Message: "go on"})
	if err != nil || !s.row(resumed.NewThreadID).Queued() {
		s.Fatalf("resumed %+v, %v", resumed, err)
	}
	got, err := s.c.Continue.Fork(s.ctx, continuation.ForkRequest{ThreadID: resumed.NewThreadID, Message: "another way"})
	if err != nil || got.Turns != 1 || got.AtTurn != 0 || !got.Queued || !s.row(got.ThreadID).Queued() {
		s.Errorf("forked %+v, %v", got, err)
	}
	if rests, err := s.c.Continue.Fork(s.ctx, continuation.ForkRequest{ThreadID: first}); err != nil || rests.Status != thread.Completed {
		s.Errorf("a copy that rests needs no slot: %+v, %v", rests, err)
	}
}

// TestForkByThread: the copy that a thread makes of one below it is its child, with a
// budget out of its own, and may do what both may.
func TestForkByThread(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	root := s.start("idle", "")
	middle := s.start("idle", root)
	leaf := s.start("work", middle)
	s.order(leaf, "say one", "complete")
	got := s.fork(continuation.ForkRequest{ThreadID: leaf, Message: "go on", From: root})
	rec, meta := s.row(got.ThreadID), s.meta(got.ThreadID)
	if rec.ParentID != root || s.row(root).SpawnCount != 2 || s.reserved(root) < meta.Limits.Spend || meta.Limits.Depth >= s.meta(root).Limits.Depth {
		s.Errorf("row %+v, limits %+v", rec, meta.Limits)
	}
	if above := s.meta(root).Own(); !slices.ContainsFunc(meta.Ceiling, func(c []string) bool { return slices.Equal(c, above) }) {
		s.Errorf("it is bounded by %v, and not by %v", meta.Ceiling, above)
	}
	rests := s.fork(continuation.ForkRequest{ThreadID: leaf, From: root})
	if s.row(rests.ThreadID).ParentID != root || s.row(root).SpawnCount != 3 {
		s.Errorf("row %+v", s.row(rests.ThreadID))
	}
	s.order(got.ThreadID, "spend 5", "complete")
	s.order(middle, "complete")
	s.wantTreeFree(root)
	s.order(root, "complete")
	if _, err := s.c.Continue.Fork(s.ctx, continuation.ForkRequest{ThreadID: leaf, Message: "go on", From: root}); code(err) != "parent_gone" {
		s.Errorf("asked by a thread that has ended: %v", err)
	}
}

// TestAttackForkWidens: a thread forks one that was started with more rights than it
// has left. The copy may do what both may, and nothing else.
func TestAttackForkWidens(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	s.write("directives/loud.md", fmt.Sprintf(directive, "loud", "", startsAny+"<tool>rye.bash</tool>"))
	root := s.start("loud", "")
	leaf := s.start("loud", root)
	s.order(leaf, "say one", "complete")
	// The rights of the one above have become less since; those of the directive more.
	meta := s.meta(root)
	meta.Capabilities, meta.Declared = []string{"rye.execute.directive.*"}, nil
	s.noError(s.folder(root).WriteMeta(meta, s.c.Threads.Records.Seal()))
	s.write("directives/loud.md", fmt.Sprintf(directive, "loud", "", startsAny+"<tool>*</tool>"))
	got := s.fork(continuation.ForkRequest{ThreadID: leaf, Message: "go on", From: root})
	if may := s.meta(got.ThreadID).Capabilities; !slices.Equal(may, []string{"rye.execute.directive.*"}) {
		s.Errorf("the child's copy may %v", may)
	}
	alone := s.fork(continuation.ForkRequest{ThreadID: leaf, Message: "go on"})
	if may := s.meta(alone.ThreadID); !slices.Equal(may.Own(), s.meta(leaf).Own()) || !reflect.DeepEqual(may.Ceiling, s.meta(leaf).Ceiling) {
		s.Errorf("the person's copy may %v below %v", may.Own(), may.Ceiling)
	}
}

// TestAttackForkEscapesBudget: a thread whose money is spent forks its child to go on
// with other money. The copy is refused, and costs nobody anything.
func TestAttackForkEscapesBudget(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	started, err := s.c.Start(s.ctx, action.Caller{Person: true}, action.StartRequest{Directive: "idle", Limits: item.LimitSet{"spend": 0.02}})
	s.noError(err)
	root := started.ThreadID
	s.order(root, "claim")
	leaf := s.start("work", root)
	s.order(leaf, "say one", "complete")
	s.order(root, fmt.Sprint("spend ", 20_000))
	for _, message := range []string{"", "go on"} {
		_, err := s.c.Continue.Fork(s.ctx, continuation.ForkRequest{ThreadID: leaf, Message: message, From: root})
		if code(err) != "budget_insufficient" {
			s.Errorf("with the message %q: %v", message, err)
		}
	}
	s.wantTree(root, store.TreeSpend{Actual: 20_000, Threads: 2, Active: 1})
}

// TestAttackForkStranger: a thread forks itself, one above it and one beside it. Each
// is refused, and nothing is started.
func TestAttackForkStranger(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s, self, root, stranger := attackScene(t)
	for _, id := range []thread.ID{self, root, stranger} {
		s.order(id, "say one")
	}
	for _, id := range []thread.ID{self, root, stranger} {
		call := fmt.Sprintf(`{"item_id":"%s","parameters":{"operation":"fork_thread","thread_id":"%s","message":"go on"}}`, action.OrchestratorID, id)
		if _, err := s.asModel(self, call); code(err) != "permission_denied" {
			s.Errorf("%s: %v", id, err)
		}
	}
	if n := s.row(self).SpawnCount; n != 0 {
		s.Errorf("%d were started", n)
	}
}

// forkWalk is a way to fork, and the steps of it.
type forkWalk struct {
	how     string // as [playActor] has it
	request continuation.ForkRequest
	points  []thread.Crashpoint
}

// forkLaunched are the last steps of a fork with a message: the copy is in the queue.
var forkLaunched = []thread.Crashpoint{scheduler.CrashQueued, scheduler.CrashLaunched, scheduler.CrashRecorded}

// forkEnds are the last steps of one without: the copy ends.
var forkEnds = []thread.Crashpoint{
	finish.CrashTranscript, finish.CrashLedger, finish.CrashMeta, finish.CrashComposed, finish.CrashDrafted, finish.CrashKnowledge, finish.CrashRegistry,
}

// forkWalks fork a thread that another one has started: by a person and by that one, with
// a message and to rest.
func forkWalks(source, parent thread.ID) []forkWalk {
	begin := []thread.Crashpoint{scheduler.CrashClaimed, scheduler.CrashRegistered, continuation.CrashReserved, continuation.CrashCopied}
	runs := slices.Concat(begin, []thread.Crashpoint{scheduler.CrashPrepared, scheduler.CrashDescribed}, forkLaunched)
	rests := slices.Concat(begin, []thread.Crashpoint{continuation.CrashRests, continuation.CrashTold}, forkEnds)
	return []forkWalk{
		{"copy", continuation.ForkRequest{ThreadID: source, Message: "go on"}, runs},
		{"copy-to-rest", continuation.ForkRequest{ThreadID: source}, rests},
		{"copy-below", continuation.ForkRequest{ThreadID: source, Message: "go on", From: parent}, runs},
		{"copy-below-to-rest", continuation.ForkRequest{ThreadID: source, From: parent}, rests},
	}
}

// sampled are some of the steps of a sequence, and all of them in a soak.
func sampled(points []thread.Crashpoint) []thread.Crashpoint {
	if longtest.Soak() {
		return points
	}
	return longtest.Every(points, 3)
}

// TestForkSteps: a fork comes to the steps at which [TestKilledForker] kills, each once,
// and to no other.
func TestForkSteps(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	root := s.start("idle", "")
	first := s.start("work", root)
	s.order(first, "say hello", "complete")
	for _, walk := range forkWalks(first, root) {
		var came []thread.Crashpoint
		note := func(at thread.Crashpoint) { came = append(came, at) }
		s.c.Threads.Crashpoints, s.c.Threads.Finisher.Crashpoints = note, note
		s.fork(walk.request)
		if !slices.Equal(came, walk.points) {
			t.Errorf("%s came to %v, want %v", walk.how, came, walk.points)
		}
	}
}

// TestKilledForker kills who forks after each step. Nothing is held, the source is as it
// was, and what the copy has become is no other than a start leaves. Of the forks by a
// thread it takes a sample.
func TestKilledForker(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for i, walk := range forkWalks("", "") {
		points := walk.points
		if strings.Contains(walk.how, "below") {
			points = sampled(points)
		}
		for _, at := range points {
			t.Run(walk.how+" "+string(at), func(t *testing.T) {
				t.Parallel()
				s := newScene(t)
				root := s.start("idle", "")
				first := s.start("work", root)
				s.order(first, "say hello", "complete")
				s.verify(first)
				left := s.leaves(first)
				s.dieAfter(at, walk.how, first)
				s.wantKilledFork(at)
				s.wantTreeFree(root)
				if now := s.leaves(first); !reflect.DeepEqual(now, left) {
					s.Errorf("the source was\n%v, and is\n%v", left, now)
				}
				again := s.fork(forkWalks(first, root)[i].request)
				if again.Turns != 1 {
					s.Errorf("again %+v", again)
				}
				if again.Status != thread.Completed {
					s.order(again.ThreadID, "complete")
				}
				if v := s.verify(again.ThreadID); !v.Verified {
					s.Errorf("again: %+v", v)
				}
			})
		}
	}
}

// wantKilledFork looks at the copy of somebody who died after a step.
func (s *scene) wantKilledFork(at thread.Crashpoint) {
	s.Helper()
	s.c.Queue.DispatchAndLog(s.ctx, true, nil)
	_, err := s.c.Threads.Sweep(s.ctx)
	s.noError(err)
	switch {
	case at == scheduler.CrashClaimed:
	case slices.Contains(forkLaunched, at):
		s.order(secondChild, "claim", "complete")
		s.wantState(thread.Completed, secondChild)
	case slices.Contains(forkEnds, at):
		s.wantState(thread.Completed, secondChild)
		if again := s.resume(secondChild); again.ReconstructedTurns != 1 {
			s.Errorf("resumed %+v", again)
		}
		s.order(s.row(secondChild).ContinuationThreadID, "complete")
	default:
		s.wantState(thread.Error, secondChild)
		if at != scheduler.CrashRegistered {
			s.wantTree(secondChild, store.TreeSpend{Threads: 1})
		}
	}
}
