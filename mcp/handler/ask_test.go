package handler

import (
	"encoding/json"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/mcp/server/servertest"
	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/process"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// waitingKey names the thread that asks.
const waitingKey = "the one that asks"

// waitingThread is a thread, of this process, that asks about its turns. Finish
// ends it.
func waitingThread(t *testing.T, p *Project) (q thread.Question, finish func()) {
	t.Helper()
	return threadThatAsks(t, p, thread.Question{
		Kind: thread.AskLimit, Code: "turns_exceeded", Reached: "2", Text: "What now?",
		Options: []thread.Decision{thread.Raise, thread.Finish, thread.Stop}, Default: thread.Stop,
		Limits: &thread.Limits{Turns: 2, Tokens: 1000, Spend: 50_000, DurationSeconds: 60},
	})
}

// threadThatAsks is [waitingThread] with another question.
func threadThatAsks(t *testing.T, p *Project, about thread.Question) (q thread.Question, finish func()) {
	t.Helper()
	db := p.Control.Threads.Store
	var dir folder.Folder
	var lock *process.Lock
	now := time.Now()
	rec, _, err := store.Register(t.Context(), db, store.NewThread{
		Kind: thread.KindDirective, Directive: "greet", Name: "greet", Model: "scripted/scripted-fast", Now: now,
		RequestKey: waitingKey,
	}, func(id thread.ID) (err error) {
		dir = folder.Of(placetest.Dir(p.Path), id)
		if err = dir.Make(); err == nil {
			lock, err = process.Acquire(dir.Lock(""))
		}
		return err
	})
	if err == nil {
		_, err = storetest.As(db).Apply(t.Context(), store.Claimed(rec.ThreadID, thread.Process{PID: os.Getpid(), Host: "here"}, now))
	}
	q = about
	q.ID, q.ThreadID, q.AskedAt, q.DeadlineAt = "question-1", rec.ThreadID, now, now.Add(time.Hour)
	if err == nil {
		err = storetest.As(db).Ask(t.Context(), q)
	}
	if err != nil {
		t.Fatal(err)
	}
	return q, sync.OnceFunc(func() {
		change, err := store.Finished(rec.ThreadID, thread.Outcome{State: thread.Completed, Result: "done"}, nil, now)
		if err == nil {
			_, err = storetest.As(db).Apply(t.Context(), change)
		}
		if err != nil {
			t.Error(err)
		}
		_ = lock.Release()
	})
}

func connectAsking(
	t *testing.T, p *Project, transport servertest.Transport, person func(servertest.Question) servertest.Answer,
) *servertest.Client {
	t.Helper()
	s := server.New(server.Options{Version: "test", MapError: action.Fault, OutputSchemas: true})
	Register(s, oneProject{only: p}, Groups(), operation.All())
	return servertest.Start(t, s, servertest.Over(transport), servertest.Asking(person))
}

// While a client waits for a thread that asks, its person is asked; the answer
// is that of the thread's question.
func TestWaitAsksThePerson(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for name, c := range map[string]struct {
		answer servertest.Answer
		want   *thread.Answer // nil: the question stays open
	}{
		"raise": {
			servertest.Answer{Action: server.ActionAccept, Content: map[string]any{"decision": "raise", "turns": 30, "spend": 0, "tokens": 1000}},
			&thread.Answer{Decision: thread.Raise, Limits: map[string]float64{"turns": 30, "tokens": 1000}},
		},
		"finish":  {servertest.Answer{Action: server.ActionAccept, Content: map[string]any{"decision": "finish"}}, &thread.Answer{Decision: thread.Finish}},
		"decline": {servertest.Answer{Action: server.ActionDecline}, nil},
		"cancel":  {servertest.Answer{Action: server.ActionCancel}, nil},
		"broken":  {servertest.Answer{Action: server.ActionAccept, Content: map[string]any{"decision": "perhaps"}}, nil},
	} {
		for _, transport := range servertest.Transports {
			t.Run(name+"/"+string(transport), func(t *testing.T) {
				t.Parallel()
				p := newFolder(t, newFiles())
				q, finish := waitingThread(t, p)
				asked := make(chan servertest.Question, 10)
				var times atomic.Int32
				client := connectAsking(t, p, transport, func(given servertest.Question) servertest.Answer {
					times.Add(1)
					asked <- given
					return c.answer
				})
				waiting := client.CallAsync("wait_threads", map[string]any{"thread_ids": []thread.ID{q.ThreadID}, "timeout": 60})
				go func() {
					form := <-asked
					if !strings.HasPrefix(form.Message, "What now?") || !strings.Contains(string(form.Schema), `"raise","finish","stop"`) {
						t.Errorf("asked %s %s", form.Message, form.Schema)
					}
					for changes := p.Control.Threads.Store.Changes(t.Context()); c.want != nil; <-changes {
						if now, err := p.Control.Threads.Store.Question(t.Context(), q.ID); err != nil || now.Answer != nil {
							finish()
							return
						}
					}
				}()
				want := `"result":"done"`
				if c.want == nil {
					want = `"pending":["` + string(q.ThreadID) + `"]` // nobody is asked any more
				}
				if r := waiting.Result(); r.Err != nil || !strings.Contains(string(r.JSON), want) {
					t.Errorf("waited: %s, %v", r.JSON, r.Err)
				}
				if times.Load() == 0 {
					t.Error("the person was not asked")
					close(asked)
				}
				finish()
				wantAnswer(t, p, q, c.want)
			})
		}
	}
}

func wantAnswer(t *testing.T, p *Project, q thread.Question, want *thread.Answer) {
	t.Helper()
	now, err := p.Control.Threads.Store.Question(t.Context(), q.ID)
	if err != nil {
		t.Fatal(err)
	}
	got := now.Answer
	switch {
	case want == nil && got == nil:
	case want == nil || got == nil || got.Decision != want.Decision || !strings.HasPrefix(got.By, "the person"):
		t.Errorf("answered %+v, want %+v", got, want)
	default:
		if got.Summary != want.Summary {
			t.Errorf("summary %q, want %q", got.Summary, want.Summary)
		}
		a, _ := json.Marshal(got.Limits)
		b, _ := json.Marshal(want.Limits)
		if string(a) != string(b) {
			t.Errorf("limits %s, want %s", a, b)
		}
	}
}

// A client that cannot ask is told what waits, and how to answer.
func TestWaitTellsWhatWaits(t *testing.T) {
	t.Parallel()
	p := newFolder(t, newFiles())
	q, finish := waitingThread(t, p)
	defer finish()
	client := connectTo(t, p)
	id := map[string]any{"thread_id": q.ThreadID}
	for tool, args := range map[string]map[string]any{
		"wait_threads": {"thread_ids": []thread.ID{q.ThreadID}, "timeout": 0}, "get_status": id,
	} {
		if r := client.Call(tool, args); r.IsError || !strings.Contains(string(r.JSON), "rye-mcp threads approve "+string(q.ThreadID)) {
			t.Errorf("%s: %s", tool, r.JSON)
		}
	}
	refused := client.Call("approve_thread", map[string]any{"thread_id": q.ThreadID, "decision": "raise", "limits": map[string]any{"turns": 2}})
	if refused.Code() != tool.CodeInvalidLimits {
		t.Errorf("raised to what it is: %s", refused.JSON)
	}
	done := client.Call("approve_thread", map[string]any{"thread_id": q.ThreadID, "decision": "raise", "limits": map[string]any{"turns": 5}})
	if done.IsError || !strings.Contains(string(done.JSON), `"answered_by":"MCP client`) {
		t.Errorf("raised: %s", done.JSON)
	}
	if again := client.Call("approve_thread", map[string]any{"thread_id": q.ThreadID, "decision": "stop"}); again.Code() != tool.CodeUnsupported {
		t.Errorf("answered again: %s", again.JSON)
	}
}

// Whether a directive may do what nobody has accepted is a question to the
// person before anything is started.
func TestRiskIsAskedOfThePerson(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	risky := strings.Replace(greet, "<limits", "<permissions><execute><tool>rye.bash</tool></execute></permissions><limits", 1)
	for name, c := range map[string]struct {
		action string
		code   tool.Code
		want   string
	}{
		"accepted": {server.ActionAccept, "", "accepted by the person"},
		"declined": {server.ActionDecline, tool.CodePermissionDenied, "which the person has declined"},
		"put away": {server.ActionCancel, tool.CodePermissionDenied, "which the person has declined"},
	} {
		for _, transport := range servertest.Transports {
			t.Run(name+"/"+string(transport), func(t *testing.T) {
				t.Parallel()
				p := newFolder(t, newFiles(".ai/directives/greet.md", risky))
				writeFiles(t, p.Control.Planner.Resolver.Roots().User, map[string]string{".ai/config/agent/agent.yaml": "risk: {ask: true}\n"})
				asked := make(chan string, 10)
				client := connectAsking(t, p, transport, func(q servertest.Question) servertest.Answer {
					asked <- q.Message
					return servertest.Answer{Action: c.action}
				})
				r := client.Call("rye_execute", map[string]any{"item_id": "greet", "thread": "fork", "async": true, "parameters": map[string]any{"name": "Ada"}})
				if r.Err != nil || r.Code() != c.code || !strings.Contains(string(r.JSON), c.want) {
					t.Errorf("started: %s, %v", r.JSON, r.Err)
				}
				if len(asked) != 1 || !strings.Contains(<-asked, "rye.execute.tool.rye.bash, whose risk is elevated") {
					t.Errorf("asked %d times more", len(asked))
				}
				list := client.Call("list_threads", map[string]any{})
				if started := strings.Contains(string(list.JSON), `"count":1`); started != (c.code == "") {
					t.Errorf("threads: %s", list.JSON)
				}
			})
		}
	}
}

// TestHandoffForm: a handoff is accepted, edited and declined by a form; one that is put
// away is left to others.
func TestHandoffForm(t *testing.T) {
	t.Parallel()
	q := thread.Question{
		Kind: thread.AskHandoff, Text: "Shall it?", Options: []thread.Decision{thread.Accept, thread.Decline}, Default: thread.Decline,
		Proposal: &thread.Proposal{Last: true},
	}
	form, err := formOf(q)
	if err != nil || !strings.Contains(string(form.Schema), `"summary":{"type":"string"`) || !strings.Contains(string(form.Schema), "it ends, as its conversation has no room") {
		t.Errorf("%s, %v", form.Schema, err)
	}
	for name, c := range map[string]struct {
		given server.ElicitResult
		want  thread.Answer // without a decision: it is left to others
	}{
		"accept":   {server.ElicitResult{Action: server.ActionAccept, Content: json.RawMessage(`{"decision":"accept"}`)}, thread.Answer{Decision: thread.Accept}},
		"edit":     {server.ElicitResult{Action: server.ActionAccept, Content: json.RawMessage(`{"decision":"accept","summary":"mine"}`)}, thread.Answer{Decision: thread.Accept, Summary: "mine"}},
		"decline":  {server.ElicitResult{Action: server.ActionAccept, Content: json.RawMessage(`{"decision":"decline","summary":"mine"}`)}, thread.Answer{Decision: thread.Decline}},
		"refuse":   {server.ElicitResult{Action: server.ActionDecline}, thread.Answer{Decision: thread.Decline}},
		"put away": {server.ElicitResult{Action: server.ActionCancel}, thread.Answer{}},
	} {
		got, err := answerOf(q, c.given)
		if got.Decision != c.want.Decision || got.Summary != c.want.Summary || (err == nil) != (c.want.Decision != "") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// handoffOf is a question whether a thread may hand over.
var handoffOf = thread.Question{
	Kind: thread.AskHandoff, Code: thread.HandoffFull, Text: "Shall it hand over?",
	Options: []thread.Decision{thread.Accept, thread.Decline}, Default: thread.Decline,
	Proposal: &thread.Proposal{Summary: "Half done.\nThe rest is next.", Tokens: 18_000, Window: 20_000},
}

// TestHandoffAsksThePerson: a client that waits for a thread which would hand over shows
// its person the form with the summary in it, and what the person does with it is the
// answer.
func TestHandoffAsksThePerson(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for name, c := range map[string]struct {
		answer servertest.Answer
		want   *thread.Answer // nil: the question stays open
	}{
		"accept": {
			servertest.Answer{Action: server.ActionAccept, Content: map[string]any{"decision": "accept"}},
			&thread.Answer{Decision: thread.Accept},
		},
		"accept as it stands, in one line": {
			servertest.Answer{Action: server.ActionAccept, Content: map[string]any{"decision": "accept", "summary": "Half done. The rest is next."}},
			&thread.Answer{Decision: thread.Accept},
		},
		"edit": {
			servertest.Answer{Action: server.ActionAccept, Content: map[string]any{"decision": "accept", "summary": "Nearly done."}},
			&thread.Answer{Decision: thread.Accept, Summary: "Nearly done."},
		},
		"decline in the form": {
			servertest.Answer{Action: server.ActionAccept, Content: map[string]any{"decision": "decline", "summary": "Half done.\nThe rest is next."}},
			&thread.Answer{Decision: thread.Decline},
		},
		"decline":  {servertest.Answer{Action: server.ActionDecline}, &thread.Answer{Decision: thread.Decline}},
		"cancel":   {servertest.Answer{Action: server.ActionCancel}, nil},
		"broken":   {servertest.Answer{Action: server.ActionAccept, Content: map[string]any{"decision": "raise"}}, nil},
		"too much": {servertest.Answer{Action: server.ActionAccept, Content: map[string]any{"decision": "accept", "summary": strings.Repeat("x", thread.MaxSummary+1)}}, nil},
	} {
		for _, transport := range servertest.Transports {
			t.Run(name+"/"+string(transport), func(t *testing.T) {
				t.Parallel()
				p := newFolder(t, newFiles())
				q, finish := threadThatAsks(t, p, handoffOf)
				defer finish()
				var times atomic.Int32
				client := connectAsking(t, p, transport, func(form servertest.Question) servertest.Answer {
					times.Add(1)
					if !strings.Contains(form.Message, handoffOf.Text) || !strings.Contains(string(form.Schema), `"default":"Half done.\nThe rest is next."`) {
						t.Errorf("asked %s %s", form.Message, form.Schema)
					}
					return c.answer
				})
				waiting := client.CallAsync("wait_threads", map[string]any{"thread_ids": []thread.ID{q.ThreadID}, "timeout": 60})
				if c.want != nil {
					go func() {
						awaitAnswer(t, p, q)
						finish()
					}()
				}
				want := `"result":"done"`
				if c.want == nil {
					want = `"pending":["` + string(q.ThreadID) + `"]` // nobody is asked any more
				}
				if r := waiting.Result(); r.Err != nil || !strings.Contains(string(r.JSON), want) {
					t.Errorf("waited: %s, %v", r.JSON, r.Err)
				}
				if times.Load() == 0 || c.want != nil && times.Load() > 1 {
					t.Errorf("the person was asked %d times", times.Load())
				}
				wantAnswer(t, p, q, c.want)
			})
		}
	}
}

// awaitAnswer waits until a question has an answer.
func awaitAnswer(t *testing.T, p *Project, q thread.Question) {
	t.Helper()
	for changes := p.Control.Threads.Store.Changes(t.Context()); ; <-changes {
		if now, err := p.Control.Threads.Store.Question(t.Context(), q.ID); err != nil || now.Answer != nil {
			return
		}
	}
}

// TestHandoffNobodyAnswers: when the deadline of the question has passed the form is
// withdrawn, and the wait goes on to the end of the thread.
func TestHandoffNobodyAnswers(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for _, transport := range []servertest.Transport{servertest.Stdio, servertest.StreamableHTTP, servertest.SSE} {
		t.Run(string(transport), func(t *testing.T) {
			t.Parallel()
			p := newFolder(t, newFiles())
			q, finish := threadThatAsks(t, p, handoffOf)
			defer finish()
			withdrawn := make(chan struct{})
			client := connectAsking(t, p, transport, func(form servertest.Question) servertest.Answer {
				// As the thread does at the deadline.
				if _, err := p.Control.Threads.Store.Answer(t.Context(), q.ID, thread.Answer{Decision: q.Default, By: "nobody in time", At: time.Now()}); err != nil {
					t.Error(err)
				}
				<-form.Withdrawn
				close(withdrawn)
				return servertest.Answer{}
			})
			waiting := client.CallAsync("wait_threads", map[string]any{"thread_ids": []thread.ID{q.ThreadID}, "timeout": 60})
			<-withdrawn
			finish()
			if r := waiting.Result(); r.Err != nil || !strings.Contains(string(r.JSON), `"result":"done"`) {
				t.Errorf("waited: %s, %v", r.JSON, r.Err)
			}
		})
	}
}

// TestHandoffClientDies: a client that dies while its person is asked answers nothing;
// the question stays for another one, which need not know forms.
func TestHandoffClientDies(t *testing.T) {
	t.Parallel()
	p := newFolder(t, newFiles())
	q, finish := threadThatAsks(t, p, handoffOf)
	defer finish()
	s := server.New(server.Options{Version: "test", MapError: action.Fault, OutputSchemas: true})
	Register(s, oneProject{only: p}, Groups(), operation.All())
	url := servertest.Serve(t, s, server.HTTPOptions{})
	asked, over := make(chan struct{}), make(chan struct{})
	defer close(over)
	dies := servertest.Connect(t, url, servertest.Asking(func(servertest.Question) servertest.Answer {
		close(asked)
		<-over
		return servertest.Answer{}
	}))
	cut := dies.CallAsync("wait_threads", map[string]any{"thread_ids": []thread.ID{q.ThreadID}, "timeout": 60})
	<-asked
	cut.Cut()
	other := servertest.Connect(t, url) // has no elicitation
	r := other.Call("wait_threads", map[string]any{"thread_ids": []thread.ID{q.ThreadID}, "timeout": 60})
	if r.IsError || !strings.Contains(string(r.JSON), `"kind":"handoff"`) || !strings.Contains(string(r.JSON), "approve_thread with this thread_id") {
		t.Errorf("another client: %s", r.JSON)
	}
	if refused := other.Call("approve_thread", map[string]any{"thread_id": q.ThreadID, "decision": "raise"}); refused.Code() != tool.CodeBadArguments {
		t.Errorf("raised: %s", refused.JSON)
	}
	if r := other.Call("approve_thread", map[string]any{"thread_id": q.ThreadID, "decision": "accept", "summary": "Mine."}); r.IsError {
		t.Errorf("approved: %s", r.JSON)
	}
	now, err := p.Control.Threads.Store.Question(t.Context(), q.ID)
	if err != nil || now.Answer == nil || now.Answer.Decision != thread.Accept || now.Answer.Summary != "Mine." {
		t.Errorf("answered %+v, %v", now.Answer, err)
	}
}
