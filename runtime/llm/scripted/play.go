package scripted

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// play sends the answer of a turn.
func (s *Server) play(ctx context.Context, w http.ResponseWriter, proto protocol, t *turn, req *request) {
	if t.Hang && t.CutAfter == nil {
		<-ctx.Done()
		panic(http.ErrAbortHandler)
	}
	if t.Error != nil && t.Error.After == nil {
		if !wait(ctx, time.Duration(t.Delay)) {
			panic(http.ErrAbortHandler)
		}
		fail(w, proto, t.Error)
		return
	}
	if t.Raw != nil {
		if !wait(ctx, time.Duration(t.Delay)) {
			panic(http.ErrAbortHandler)
		}
		t.Raw.play(ctx, w)
		return
	}
	answer, err := t.answer(req)
	if err != nil {
		refuse(w, proto, http.StatusInternalServerError, "script_error",
			fmt.Sprintf("%s:%d: %v", s.script.path, t.line, err))
		return
	}
	events := t.interrupted(proto, proto.events(answer))
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	if !send(ctx, w, events, time.Duration(t.Delay)) {
		panic(http.ErrAbortHandler) // to return would end half an answer as if it were whole
	}
	if t.CutAfter != nil {
		if t.Hang {
			<-ctx.Done()
		}
		panic(http.ErrAbortHandler)
	}
}

// play sends the answer as it stands.
func (r *rawAnswer) play(ctx context.Context, w http.ResponseWriter) {
	for name, value := range r.Headers {
		w.Header().Set(name, value)
	}
	body := r.Body
	if r.CutAfter != nil {
		body = body[:*r.CutAfter]
	}
	w.WriteHeader(cmp.Or(r.Status, http.StatusOK))
	_, err := io.WriteString(w, body)
	if err == nil {
		err = http.NewResponseController(w).Flush()
	}
	if r.Hang {
		<-ctx.Done()
	}
	if err != nil || r.Hang || r.CutAfter != nil {
		panic(http.ErrAbortHandler)
	}
}

// interrupted is what of the events is sent.
func (t *turn) interrupted(proto protocol, events [][]byte) [][]byte {
	if t.CutAfter != nil {
		return events[:min(*t.CutAfter, len(events))]
	}
	if t.Error != nil {
		head := events[:min(*t.Error.After, len(events))]
		return append(head[:len(head):len(head)], proto.failureEvent(t.Error.Type, t.Error.Code, t.Error.Message))
	}
	return events
}

// send writes the events one by one, in the time given for all of them. It
// reports false when nobody listens any more.
func send(ctx context.Context, w http.ResponseWriter, events [][]byte, total time.Duration) bool {
	out := http.NewResponseController(w)
	if out.Flush() != nil { // the headers, even when no event follows
		return false
	}
	for _, e := range events {
		if !wait(ctx, total/time.Duration(len(events))) {
			return false
		}
		if _, err := w.Write(e); err != nil || out.Flush() != nil {
			return false
		}
	}
	return true
}

// wait reports false when ctx ended first.
func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
