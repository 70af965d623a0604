package control

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/limit"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/store/storetest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/longtest"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// asks lets a thread that is a puppet ask about its turns, as the loop does.
func (s *scene) asks(id thread.ID) thread.Question {
	s.Helper()
	meta, err := s.folder(id).ReadMeta(s.c.Threads.Records.Seal())
	s.noError(err)
	q := thread.Question{
		ID: uuid.NewString(), ThreadID: id, Kind: thread.AskLimit, Code: limit.TurnsExceeded, Reached: fmt.Sprint(meta.Limits.Turns),
		Text: "What now?", Options: []thread.Decision{thread.Raise, thread.Finish, thread.Stop}, Default: thread.Stop,
		Limits: &meta.Limits, AskedAt: testTime, DeadlineAt: testTime.Add(time.Hour),
	}
	s.noError(storetest.As(s.c.Threads.Store).Ask(s.ctx, q))
	return q
}

func (s *scene) answerTo(q thread.Question) *thread.Answer {
	s.Helper()
	now, err := s.c.Threads.Store.Question(s.ctx, q.ID)
	s.noError(err)
	return now.Answer
}

func TestApprove(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	for name, c := range map[string]struct {
		decision thread.Decision
		limits   item.LimitSet
		want     thread.Answer
	}{
		"raise":  {thread.Raise, item.LimitSet{"turns": 40.0, "max_spend": 2.5}, thread.Answer{Decision: thread.Raise, Limits: map[string]float64{"turns": 40, "spend": 2.5}}},
		"finish": {thread.Finish, nil, thread.Answer{Decision: thread.Finish}},
		"stop":   {thread.Stop, item.LimitSet{}, thread.Answer{Decision: thread.Stop}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			root := s.start("idle", "")
			q := s.asks(root)
			done, err := s.c.Approve(s.ctx, ApproveRequest{ThreadID: root, Decision: c.decision, Limits: c.limits, By: "Ada", Person: true})
			s.noError(err)
			got := s.answerTo(q)
			if got == nil || got.Decision != c.want.Decision || fmt.Sprint(got.Limits) != fmt.Sprint(c.want.Limits) || got.By != "Ada" {
				t.Errorf("answered %+v", got)
			}
			if done.QuestionID != q.ID || done.ThreadID != root || done.By != "Ada" {
				t.Errorf("told %+v", done)
			}
			var late *store.AnsweredError
			_, err = s.c.Threads.Store.Answer(s.ctx, q.ID, thread.Answer{Decision: thread.Stop, By: "Bob", At: testTime})
			if !errors.As(err, &late) {
				t.Errorf("a second answer: %v", err)
			}
		})
	}
}

// An answer that cannot be carried out is refused with what is valid, and leaves the
// question open.
func TestApproveRefuses(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s, self, root, stranger := attackScene(t)
	child := s.start("work", self)
	ended := s.start("work", self)
	s.order(ended, "complete")
	q := s.asks(child)
	stop := func(of, from thread.ID) ApproveRequest {
		return ApproveRequest{ThreadID: of, Decision: thread.Stop, By: "Ada", From: from}
	}
	raise := func(limits item.LimitSet) ApproveRequest {
		return ApproveRequest{ThreadID: child, Decision: thread.Raise, Limits: limits, By: "Ada"}
	}
	for name, c := range map[string]struct {
		request ApproveRequest
		code    tool.Code
		says    string
	}{
		"a thread that does not ask":       {stop(stranger, ""), tool.CodeUnsupported, "has no open question"},
		"a thread above the one that asks": {stop(root, ""), tool.CodeUnsupported, "has no open question"},
		"a thread that has ended":          {stop(ended, ""), tool.CodeUnsupported, "has ended (completed)"},
		"no thread":                        {stop("work-1", ""), tool.CodeNotFound, "work-1"},
		"its own question":                 {stop(child, child), tool.CodePermissionDenied, "was not started below"},
		"a stranger's":                     {stop(child, stranger), tool.CodePermissionDenied, "was not started below"},
		"no decision":                      {ApproveRequest{ThreadID: child, Decision: "perhaps"}, tool.CodeBadArguments, "valid are raise, finish, stop"},
		"limits to finish": {ApproveRequest{ThreadID: child, Decision: thread.Finish, Limits: item.LimitSet{"turns": 9.0}},
			tool.CodeBadArguments, "part of raise"},
		"more turns than the parent has": {raise(item.LimitSet{"turns": 5.0}), tool.CodeInvalidLimits, "the most it can be raised to here is 4"},
		"more money than the parent has": {raise(item.LimitSet{"turns": 5.0, "spend": 0.5}), tool.CodeInvalidLimits, "limit spend = 0.5: the most it can be raised to here is 0.2"},
		"no more than now":               {raise(item.LimitSet{"turns": 4.0}), tool.CodeInvalidLimits, "turns has to become more than 4"},
		"less":                           {raise(item.LimitSet{"tokens": 1.0}), tool.CodeInvalidLimits, "it would be lowered"},
		"nothing":                        {raise(nil), tool.CodeInvalidLimits, "turns has to become more than 4"},
		"an unknown limit":               {raise(item.LimitSet{"steps": 9.0}), tool.CodeInvalidLimits, "steps"},
	} {
		t.Run(name, func(t *testing.T) { // not parallel: the scene ends with its test
			_, err := s.c.Approve(s.ctx, c.request)
			if code(err) != c.code || err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v; want %s: %s", code(err), err, c.code, c.says)
			}
			_, aboutSpend := c.request.Limits["spend"]
			if hint := tool.AsFault(err).Hint; strings.Contains(hint, "leave spend out, or keep to what it can be; give turns a value above 4") != aboutSpend {
				t.Errorf("hint %q", hint)
			}
		})
	}
	if a := s.answerTo(q); a != nil {
		t.Errorf("answered %+v", a)
	}
}

// A model answers for what its thread has started, within what that has, and for
// nothing else; least of all for itself.
func TestApproveAttacks(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s, self, root, stranger := attackScene(t)
	child := s.start("work", self)
	approve := func(of thread.ID, answer string) string {
		return fmt.Sprintf(`{"item_id":%q,"parameters":{"operation":"approve_thread","thread_id":%q,%s}}`, action.OrchestratorID, of, answer)
	}
	for _, id := range []thread.ID{self, root, stranger} {
		q := s.asks(id)
		_, err := s.asModel(self, approve(id, `"decision":"raise","limits":{"turns":100}`))
		if code(err) != tool.CodePermissionDenied || s.answerTo(q) != nil {
			t.Errorf("%s answered for %s: %v", self, id, err)
		}
	}
	q := s.asks(child)
	for attack, want := range map[string]tool.Code{
		`"decision":"raise","limits":{"turns":5}`:             tool.CodeInvalidLimits, // its own are 4
		`"decision":"raise","limits":{"turns":4,"depth":3}`:   tool.CodeInvalidLimits,
		`"decision":"raise","limits":{"turns":-1}`:            tool.CodeInvalidLimits,
		`"decision":"finish","by":"the person"`:               tool.CodeBadArguments,
		`"decision":"accept"`:                                 tool.CodeBadArguments,
		`"decision":"raise","limits":{"capabilities":"rye*"}`: tool.CodeBadArguments,
	} {
		if _, err := s.asModel(self, approve(child, attack)); code(err) != want {
			t.Errorf("%s: %s (%v), want %s", attack, code(err), err, want)
		}
	}
	if a := s.answerTo(q); a != nil {
		t.Fatalf("answered %+v", a)
	}
	_, err := s.asModel(self, approve(child, `"decision":"finish"`))
	s.noError(err)
	if a := s.answerTo(q); a == nil || a.By != "thread "+string(self) {
		t.Errorf("answered %+v", a)
	}
	_, err = s.asModel(self, approve(child, `"decision":"stop"`))
	if code(err) != tool.CodeUnsupported {
		t.Errorf("answered twice: %v", err)
	}
}

// A process that a tool of a thread has started speaks for that thread, whatever
// it calls.
func TestApproveFromATool(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	root := s.start("idle", "")
	q := s.asks(root)
	inside := s.controller()
	inside.Threads.Parent = root
	_, err := inside.Approve(s.ctx, ApproveRequest{ThreadID: root, Decision: thread.Raise, Limits: item.LimitSet{"turns": 99.0}, By: "a person"})
	if code(err) != tool.CodePermissionDenied || s.answerTo(q) != nil {
		t.Errorf("answered for itself: %v", err)
	}
}

// The questions of a thread, and of those below it, are part of how it stands.
func TestWaitingIsShown(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	root := s.start("idle", "")
	child := s.start("work", root)
	q := s.asks(child)
	for _, id := range []thread.ID{root, child} {
		status, err := s.c.View.Status(s.ctx, id)
		s.noError(err)
		result, err := s.c.Wait(s.ctx, WaitRequest{ThreadIDs: []thread.ID{id}})
		s.noError(err)
		for _, waiting := range [][]view.Waiting{status.Waiting, result.Waiting} {
			if len(waiting) != 1 || waiting[0].QuestionID != q.ID || waiting[0].ThreadID != child ||
				!strings.Contains(waiting[0].Answer, "rye-mcp threads approve "+string(child)) {
				t.Errorf("%s: %+v", id, waiting)
			}
		}
		if !strings.Contains(result.Next, string(child)) {
			t.Errorf("next %q", result.Next)
		}
	}
	s.noError(syscall.Kill(s.puppet(child).pid, syscall.SIGKILL)) // a dead thread waits no more
	s.wait(s.c, WaitAny, child)
	for s.answerTo(q) == nil && s.ctx.Err() == nil { // the row wakes who waits before the question is closed
		runtime.Gosched()
	}
	all, err := s.c.View.Questions(s.ctx)
	s.noError(err)
	if a := s.answerTo(q); len(all.Waiting) != 0 || a == nil || a.Decision != thread.Stop || !strings.HasPrefix(a.By, "nobody") {
		t.Errorf("open %+v, answered %+v", all.Waiting, a)
	}
}

// person answers what is asked, in order, and says what that was.
type person struct {
	answers []func(context.Context) (thread.Answer, error)
	asked   chan thread.Question
}

func newPerson(answers ...func(context.Context) (thread.Answer, error)) *person {
	return &person{answers: answers, asked: make(chan thread.Question, 10)}
}

func (p *person) ask(ctx context.Context, q thread.Question) (thread.Answer, error) {
	next := p.answers[0]
	p.answers = p.answers[1:]
	p.asked <- q
	return next(ctx)
}

func says(a thread.Answer) func(context.Context) (thread.Answer, error) {
	a.By = "Ada"
	return func(context.Context) (thread.Answer, error) { return a, nil }
}

// silent never answers, and tells how its question ended.
func silent(ended chan<- error) func(context.Context) (thread.Answer, error) {
	return func(ctx context.Context) (thread.Answer, error) {
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return thread.Answer{}, context.Cause(ctx)
	}
}

// A wait puts questions to the person behind it, until there is an answer that
// can be carried out.
func TestWaitAsks(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	root := s.start("idle", "")
	child := s.start("work", root)
	q := s.asks(child)
	ada := newPerson(
		says(thread.Answer{Decision: thread.Raise, Limits: map[string]float64{"turns": 1000}}),
		says(thread.Answer{Decision: thread.Finish}))
	waited := make(chan error, 1)
	go func() {
		_, err := s.c.Wait(s.ctx, WaitRequest{ThreadIDs: []thread.ID{root}, Timeout: giveUp, Ask: ada.ask})
		waited <- err
	}()
	if first, second := <-ada.asked, <-ada.asked; first.Text != q.Text || !strings.HasPrefix(second.Text, "That cannot be done: ") {
		t.Errorf("asked %q and %q", first.Text, second.Text)
	}
	s.order(child, "complete")
	s.order(root, "complete")
	s.noError(<-waited)
	if a := s.answerTo(q); a == nil || a.Decision != thread.Finish || a.By != "Ada" {
		t.Errorf("answered %+v", a)
	}
}

// A question that somebody else has answered is taken back.
func TestWaitWithdrawsWhatIsAnswered(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	root := s.start("idle", "")
	ended := make(chan error, 1)
	ada := newPerson(silent(ended))
	waited := make(chan error, 1)
	go func() {
		_, err := s.c.Wait(s.ctx, WaitRequest{ThreadIDs: []thread.ID{root}, Timeout: giveUp, Ask: ada.ask})
		waited <- err
	}()
	s.asks(root) // while it waits
	<-ada.asked
	_, err := s.c.Approve(s.ctx, ApproveRequest{ThreadID: root, Decision: thread.Stop, By: "Bob"})
	s.noError(err)
	if err := <-ended; !errors.Is(err, errAnswered) {
		t.Errorf("the question ended with %v", err)
	}
	s.order(root, "complete")
	s.noError(<-waited)
}

// A question is taken back with the wait, and stays open for others.
func TestWaitThatEndsWithdraws(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	root := s.start("idle", "")
	q := s.asks(root)
	ended := make(chan error, 1)
	ada := newPerson(silent(ended))
	ctx, cancel := context.WithCancelCause(s.ctx)
	waited := make(chan error, 1)
	go func() {
		_, err := s.c.Wait(ctx, WaitRequest{ThreadIDs: []thread.ID{root}, Timeout: giveUp, Ask: ada.ask})
		waited <- err
	}()
	<-ada.asked
	cancel(thread.ErrShutdown)
	if err := <-ended; !errors.Is(err, thread.ErrShutdown) {
		t.Errorf("the question ended with %v", err)
	}
	if err := <-waited; !strings.Contains(err.Error(), thread.ErrShutdown.Error()) {
		t.Errorf("waited: %v", err)
	}
	if a := s.answerTo(q); a != nil {
		t.Errorf("answered %+v", a)
	}
}

// Clients of the stateless protocol are asked by ending the call.
func TestWaitEndsToAsk(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	root := s.start("idle", "")
	s.asks(root)
	ada := newPerson(func(context.Context) (thread.Answer, error) {
		return thread.Answer{}, fmt.Errorf("with a question: %w", action.ErrCallAgain)
	})
	_, err := s.c.Wait(s.ctx, WaitRequest{ThreadIDs: []thread.ID{root}, Timeout: giveUp, Ask: ada.ask})
	if !errors.Is(err, action.ErrCallAgain) {
		t.Errorf("waited: %v", err)
	}
}

// However many questions end a wait at the same time, it ends.
func TestWaitEndsToAskForMany(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s := newScene(t)
	const threads = 4
	var ids []thread.ID
	for range threads {
		ids = append(ids, s.start("idle", ""))
		s.asks(ids[len(ids)-1])
	}
	var asked sync.WaitGroup
	asked.Add(threads)
	waited := make(chan error, 1)
	go func() {
		_, err := s.c.Wait(s.ctx, WaitRequest{ThreadIDs: ids, Timeout: giveUp, Ask: func(context.Context, thread.Question) (thread.Answer, error) {
			asked.Done()
			asked.Wait()
			return thread.Answer{}, action.ErrCallAgain
		}})
		waited <- err
	}()
	select {
	case err := <-waited:
		if !errors.Is(err, action.ErrCallAgain) {
			t.Errorf("waited: %v", err)
		}
	case <-time.After(giveUp):
		t.Fatal("the wait does not end")
	}
}

// An answer that comes with the end of the wait counts.
func TestAnswerOutlivesWait(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	root := s.start("idle", "")
	q := s.asks(root)
	ctx, cancel := context.WithCancelCause(s.ctx)
	_, err := s.c.Wait(ctx, WaitRequest{ThreadIDs: []thread.ID{root}, Timeout: giveUp, Ask: func(ctx context.Context, _ thread.Question) (thread.Answer, error) {
		cancel(thread.ErrShutdown)
		<-ctx.Done()
		return thread.Answer{Decision: thread.Finish, By: "Ada"}, nil
	}})
	if err == nil {
		t.Error("the wait went on")
	}
	if a := s.answerTo(q); a == nil || a.Decision != thread.Finish {
		t.Errorf("answered %+v", a)
	}
}

// A thread that waits for a child is told of its question, once, so that it can
// answer; then it waits on like any other.
func TestParentIsTold(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	s, self, _, _ := attackScene(t)
	child := s.start("work", self)
	q := s.asks(child)
	wait := func(timeout float64) view.WaitResult {
		result, err := s.asModel(self, fmt.Sprintf(
			`{"item_id":%q,"parameters":{"operation":"wait_threads","thread_ids":[%q],"timeout":%v}}`, action.OrchestratorID, child, timeout))
		s.noError(err)
		waited, ok := result.(view.WaitResult)
		if !ok {
			t.Fatalf("%T", result)
		}
		return waited
	}
	if got := wait(giveUp.Seconds()); len(got.Waiting) != 1 || got.Waiting[0].QuestionID != q.ID || len(got.Pending) != 1 {
		t.Errorf("waited %+v", got)
	}
	if got := wait(1e-6); len(got.Waiting) != 1 || !strings.Contains(got.Next, "approve_thread") {
		t.Errorf("waited again %+v", got)
	}
	again := make(chan view.WaitResult, 1)
	go func() { again <- wait(giveUp.Seconds()) }()
	s.order(child, "complete")
	if got := <-again; !got.Success || len(got.Waiting) != 0 {
		t.Errorf("waited to the end %+v", got)
	}
}

// TestRiskIsAsked: where the user wants that and the client can ask, the person
// decides about a start that would only be warned of.
func TestRiskIsAsked(t *testing.T) {
	longtest.Mark(t)
	t.Parallel()
	const asks = "risk: {ask: true}\n"
	fails := func(err error) func(context.Context) (thread.Answer, error) {
		return func(context.Context) (thread.Answer, error) { return thread.Answer{}, err }
	}
	for name, c := range map[string]struct {
		user, permissions string
		answer            func(context.Context) (thread.Answer, error)
		refused, warned   string
		asked             bool
	}{
		"accepted":             {asks, "<execute><tool>rye.bash</tool></execute>", says(thread.Answer{Decision: thread.Accept}), "", "whose risk is elevated (A shell can do whatever its user can); accepted by Ada", true},
		"declined":             {asks, "<execute><tool>rye.bash</tool></execute>", says(thread.Answer{Decision: thread.Decline}), `add <acknowledge risk="elevated">`, "", true},
		"nobody there":         {asks, "<execute><tool>rye.bash</tool></execute>", fails(action.ErrNobodyToAsk), "", "add <acknowledge", true},
		"the question is lost": {asks, "<execute><tool>rye.bash</tool></execute>", fails(errors.New("gone")), "could not be asked", "", true},
		"not wanted":           {"", "<execute><tool>rye.bash</tool></execute>", nil, "", "add <acknowledge", false},
		"nothing to ask":       {asks, "<search>*</search>", nil, "", "", false},
		"blocked":              {asks, "*", nil, "which is blocked", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.write("directives/risky.md", permits(c.permissions))
			s.write("../../user/.ai/config/agent/agent.yaml", c.user)
			ada := newPerson(c.answer)
			started, err := s.c.Start(s.ctx, action.Caller{Ask: ada.ask}, action.StartRequest{Directive: "risky"})
			if asked := len(ada.asked) == 1; asked != c.asked {
				t.Errorf("asked: %t", asked)
			}
			if c.refused != "" {
				s.wantNothing(err, c.refused)
				return
			}
			s.noError(err)
			if !strings.Contains(fmt.Sprint(started.Warnings), c.warned) || len(started.Warnings) > 1 {
				t.Errorf("warnings %q", started.Warnings)
			}
			meta, err := s.folder(started.ThreadID).ReadMeta(s.c.Threads.Records.Seal())
			if err != nil || !slices.Equal(meta.Warnings, started.Warnings) {
				t.Errorf("thread.json has the warnings %q, %v", meta.Warnings, err)
			}
		})
	}
}

// A project cannot spare its user the question, nor does a thread put one.
func TestRiskIsNotAsked(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.write("directives/risky.md", permits("<execute><tool>rye.bash</tool></execute>"))
	s.write("../../user/.ai/config/agent/agent.yaml", "risk: {ask: true}\n")
	s.write("directives/top.md", fmt.Sprintf(directive, "top", "", startsAny+`<tool>rye.bash</tool>`))
	parent := s.start("top", "")
	ada := newPerson()
	_, err := s.c.Start(s.ctx, action.Caller{Ask: ada.ask}, action.StartRequest{Directive: "risky", Parent: parent})
	s.noError(err)
}
