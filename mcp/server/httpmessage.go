package server

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strconv"
	"strings"
)

// readPost reads the body of a POST. Without one it has answered.
func (t *web) readPost(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		// Beside being wrong: a web page can send other types without asking.
		t.refuse(w, r, http.StatusUnsupportedMediaType, invalidRequest("Content-Type must be application/json"))
		return nil, false
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxLine))
	if err != nil {
		status, refusal := bodyRefusal(err)
		t.refuse(w, r, status, refusal)
		return nil, false
	}
	stayOpen(w)
	if len(trimmed(data)) == 0 {
		t.refuse(w, r, http.StatusBadRequest, parseError("the body is empty"))
		return nil, false
	}
	return data, true
}

// parsePost reads the one message in a body. Without one it has answered.
func (t *web) parsePost(w http.ResponseWriter, r *http.Request, data []byte) (message, bool) {
	msg, refusal := parseMessage(data)
	if refusal != nil {
		t.server.refuseHTTP(w, r, http.StatusBadRequest, msg.id, refusal)
		return message{}, false
	}
	return msg, true
}

// bodyRefusal is the answer to a body that could not be read.
func bodyRefusal(err error) (status int, refusal *rpcError) {
	if _, tooLong := errors.AsType[*http.MaxBytesError](err); tooLong {
		return http.StatusRequestEntityTooLarge, tooLongMessage()
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return http.StatusRequestTimeout, parseError("the body did not arrive within %v", bodyTimeout)
	}
	return http.StatusBadRequest, parseError("the body cannot be read")
}

func (t *web) refuse(w http.ResponseWriter, r *http.Request, status int, e *rpcError) {
	t.server.refuseHTTP(w, r, status, requestID{}, e)
}

// accepted is what a client reads.
type accepted struct{ json, events bool }

// acceptedBy reads the Accept header. A client that has none takes anything.
func acceptedBy(r *http.Request) accepted {
	values := r.Header.Values("Accept")
	if len(values) == 0 {
		return accepted{json: true, events: true}
	}
	var a accepted
	for item := range strings.SplitSeq(strings.Join(values, ","), ",") {
		media, params, err := mime.ParseMediaType(item)
		if err != nil || refusedBy(params["q"]) {
			continue
		}
		a.json = a.json || media == "*/*" || media == "application/*" || media == "application/json"
		a.events = a.events || media == "*/*" || media == "text/*" || media == "text/event-stream"
	}
	return a
}

// refusedBy reports whether a quality says "not this".
func refusedBy(quality string) bool {
	q, err := strconv.ParseFloat(quality, 64)
	return err == nil && q == 0
}
