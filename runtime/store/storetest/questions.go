package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

var questionTests = []test{
	{"a question is kept as it was asked", questionKept},
	{"only running threads ask", questionOfRunning},
	{"the first answer counts", questionFirstAnswer},
	{"of answers at once one counts", questionAnswersAtOnce},
	{"questions are listed oldest first", questionList},
	{"asking and answering wake", questionWakes},
}

func (h *harness) question(id string, of thread.ID) thread.Question {
	return thread.Question{
		ID: id, ThreadID: of, Kind: thread.AskLimit, Code: "turns_exceeded", Reached: "10", Text: "10 of 10 turns are used",
		Options: []thread.Decision{thread.Raise, thread.Finish, thread.Stop}, Default: thread.Stop,
		Limits:  &thread.Limits{Turns: 10, Tokens: 1000, Spend: 500_000, DurationSeconds: 60.5, Spawns: 3, Depth: 2},
		AskedAt: h.now, DeadlineAt: h.now.Add(5 * time.Minute),
	}
}

func (h *harness) ask(q thread.Question) thread.Question {
	h.Helper()
	h.noError(h.Ask(h.ctx, q))
	return q
}

func questionKept(h *harness) {
	q := h.question("q1", h.running("d", ""))
	q.Most = &thread.Limits{Turns: 20, Spend: 900_000}
	q.Proposal = &thread.Proposal{Summary: "half done", Tokens: 1, Window: 2, Spend: 3, Left: 4, Expected: 5, Turns: 6, Last: true}
	h.ask(q)
	again := q
	again.Text = "something else"
	h.ask(again)
	got, err := h.Question(h.ctx, "q1")
	h.noError(err)
	if !reflect.DeepEqual(got, q) {
		h.Errorf("question\n%+v, want\n%+v", got, q)
	}
	if _, err := h.Question(h.ctx, "q2"); !errors.Is(err, store.ErrNoQuestion) {
		h.Errorf("unknown question: %v", err)
	}
}

func questionOfRunning(h *harness) {
	for _, state := range thread.States() {
		id := h.inState(state)
		err := h.Ask(h.ctx, h.question(string(state), id))
		if (err == nil) != (state == thread.Running) || err != nil && !errors.Is(err, thread.ErrSettled) {
			h.Errorf("a %s thread asks: %v", state, err)
		}
	}
	if err := h.Ask(h.ctx, h.question("q", "nobody")); !errors.Is(err, thread.ErrNotFound) {
		h.Errorf("an unknown thread asks: %v", err)
	}
}

func questionFirstAnswer(h *harness) {
	q := h.ask(h.question("q1", h.running("d", "")))
	first := thread.Answer{Decision: thread.Raise, Limits: map[string]float64{"turns": 20}, Summary: "half done", By: "Ada", At: h.now.Add(time.Second)}
	got, err := h.Answer(h.ctx, "q1", first)
	h.noError(err)
	q.Answer = &first
	if !reflect.DeepEqual(got, q) {
		h.Errorf("answered\n%+v, want\n%+v", got, q)
	}
	second, err := h.Answer(h.ctx, "q1", thread.Answer{Decision: thread.Stop, By: "Bob", At: h.now})
	var late *store.AnsweredError
	if !errors.As(err, &late) || !reflect.DeepEqual(late.Question, q) || !reflect.DeepEqual(second, q) {
		h.Errorf("second answer: %v, %+v", err, second)
	}
	if _, err := h.Answer(h.ctx, "q2", first); !errors.Is(err, store.ErrNoQuestion) {
		h.Errorf("answer to nothing: %v", err)
	}
	if got, err := h.Question(h.ctx, "q1"); err != nil || !reflect.DeepEqual(got, q) {
		h.Errorf("question\n%+v (%v), want\n%+v", got, err, q)
	}
}

func questionAnswersAtOnce(h *harness) {
	h.ask(h.question("q1", h.running("d", "")))
	won := -1
	for i, err := range atOnce(12, func(i int) error {
		_, err := h.Answer(h.ctx, "q1", thread.Answer{Decision: thread.Finish, By: fmt.Sprint(i), At: h.now})
		return err
	}) {
		var late *store.AnsweredError
		switch {
		case err == nil && won < 0:
			won = i
		case !errors.As(err, &late):
			h.Errorf("answer %d after that of %d: %v", i, won, err)
		}
	}
	if q, err := h.Question(h.ctx, "q1"); err != nil || q.Answer == nil || q.Answer.By != fmt.Sprint(won) {
		h.Errorf("%d was first, the question says %+v (%v)", won, q.Answer, err)
	}
}

func questionList(h *harness) {
	a, b := h.running("a", ""), h.running("b", "")
	for i, of := range []thread.ID{a, b, a} {
		q := h.question(fmt.Sprintf("q%d", i), of)
		q.AskedAt = h.now.Add(-time.Duration(i) * time.Minute)
		h.ask(q)
	}
	_, err := h.Answer(h.ctx, "q0", thread.Answer{Decision: thread.Stop, By: "Ada", At: h.now})
	h.noError(err)
	for want, f := range map[string]store.QuestionFilter{
		"[q2 q1 q0]": {}, "[q2 q1]": {Open: true}, "[q2 q0]": {ThreadID: a}, "[q2]": {ThreadID: a, Open: true},
		"[]": {ThreadID: "nobody"},
	} {
		list, err := h.Questions(h.ctx, f)
		h.noError(err)
		got := []string{}
		for _, q := range list {
			got = append(got, q.ID)
		}
		if fmt.Sprint(got) != want {
			h.Errorf("%+v: %v, want %s", f, got, want)
		}
	}
}

func questionWakes(h *harness) {
	id := h.running("d", "")
	changes := h.Changes(h.ctx)
	h.ask(h.question("q1", id))
	for list, err := h.Questions(h.ctx, store.QuestionFilter{Open: true}); len(list) != 1; {
		h.noError(err)
		<-changes
		list, err = h.Questions(h.ctx, store.QuestionFilter{Open: true})
	}
	select { // one may be left of the question
	case <-changes:
	default:
	}
	_, err := h.Answer(h.ctx, "q1", thread.Answer{Decision: thread.Stop, By: "Ada", At: h.now})
	h.noError(err)
	select {
	case <-changes:
	case <-h.ctx.Done():
		h.Fatal("nobody is woken by an answer")
	}
}
