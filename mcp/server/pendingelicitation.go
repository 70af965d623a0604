package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

const (
	// roundTTL is how long the answers to the questions of a call may take.
	elicitationTTL = time.Hour
	// maxRounds is how many calls may wait for answers. Beyond it those that have
	// waited longest are asked anew.
	maxPendingElicitations = 1024
)

// pendingElicitation is what the person was asked in one call of several that belong
// together, and has answered so far. Revision 2026-07-28 has no requests to
// clients: the call ends with questions and a token, and is made again with
// answers and the token.
type pendingElicitation struct {
	call    string // digest of the call
	until   time.Time
	asked   map[string]ElicitRequest // without an answer, by key
	answers map[string]answer        // by key
	keys    map[string]string        // of all questions, with their digests
}

// answer is what a client answered to a question.
type answer struct {
	question string // digest
	result   json.RawMessage
}

// pendingElicitations are those of the calls that wait for answers, by token. A token is a secret of
// the client that got it, and good for one call.
type pendingElicitations struct {
	mu   sync.Mutex
	open map[string]pendingElicitation
}

// keep stores one until it is taken or its time is over.
func (s *pendingElicitations) keep(r pendingElicitation) (token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	r.until = now.Add(elicitationTTL)
	maps.DeleteFunc(s.open, func(_ string, other pendingElicitation) bool { return now.After(other.until) })
	if len(s.open) >= maxPendingElicitations {
		s.dropOldest()
	}
	if s.open == nil {
		s.open = make(map[string]pendingElicitation)
	}
	token = rand.Text()
	s.open[token] = r
	return token
}

// dropOldest makes room. The caller holds s.mu.
func (s *pendingElicitations) dropOldest() {
	var oldest string
	for token, r := range s.open {
		if oldest == "" || r.until.Before(s.open[oldest].until) {
			oldest = token
		}
	}
	delete(s.open, oldest)
}

// take returns the one with a token, once.
func (s *pendingElicitations) take(token string) (pendingElicitation, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.open[token]
	delete(s.open, token)
	return r, ok && time.Now().Before(r.until)
}

// resume gives a call the answers it was made again for. Answers without the
// token of the questions are to questions that were never asked: they do not
// count.
func (r *request) resume(s *pendingElicitations) *rpcError {
	var params struct {
		State     string                     `json:"requestState"`
		Responses map[string]json.RawMessage `json:"inputResponses"`
	}
	if err := json.Unmarshal(r.msg.params, &params); err != nil {
		return invalidParams("inputResponses must be an object, and requestState a string")
	}
	if params.State == "" {
		return nil
	}
	previous, ok := s.take(params.State)
	if !ok || previous.call != callDigest(r.msg.params) {
		return invalidParams("requestState belongs to no question about this call that waits for an answer: make the call again without it")
	}
	for key, q := range previous.asked {
		result, ok := params.Responses[key]
		switch {
		case !ok: // asked again
		case len(result) > maxAnswer:
			return invalidParams("the response to %q has %d bytes, and at most %d are taken: make the call again without requestState, and the person is asked anew", key, len(result), maxAnswer)
		default:
			previous.answers[key] = answer{question: q.digest(), result: result}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.elicitation.answers = previous.answers
	return nil
}

// answerTo returns the answer that the call was made again with, or notes the
// question for the result of the call.
func (r *request) answerTo(q ElicitRequest) (ElicitResult, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	digest := q.digest()
	if other, ok := r.elicitation.keys[q.Key]; ok && other != digest {
		return ElicitResult{}, fmt.Errorf("question to the person: the key %q is that of another question of this call", q.Key)
	}
	if r.elicitation.keys == nil {
		r.elicitation.keys, r.elicitation.asked = make(map[string]string), make(map[string]ElicitRequest)
	}
	r.elicitation.keys[q.Key] = digest
	if given, ok := r.elicitation.answers[q.Key]; ok && given.question == digest {
		result, err := q.parse(given.result)
		if err != nil {
			delete(r.elicitation.answers, q.Key) // the next call of Elicit asks again
		}
		return result, err
	}
	r.elicitation.asked[q.Key] = q
	return ElicitResult{}, &InputRequiredError{Key: q.Key}
}

// inputRequired is the result of a call that ends with questions, or nil when
// err does not say that it does.
func (s *Server) inputRequired(ctx context.Context, err error) *mcp.CallToolResult {
	r := requestFrom(ctx)
	if _, ok := errors.AsType[*InputRequiredError](err); !ok || r == nil {
		return nil
	}
	r.failed("input_required")
	r.mu.Lock()
	defer r.mu.Unlock()
	// Copies, as a goroutine of the handler may still ask.
	asking := pendingElicitation{call: callDigest(r.msg.params), asked: maps.Clone(r.elicitation.asked), answers: make(map[string]answer)}
	maps.Copy(asking.answers, r.elicitation.answers)
	result := mcpserver.NewInputRequestBuilder(s.pending.keep(asking))
	for key, q := range asking.asked {
		result.Elicit(key, q.params())
	}
	return result.ToolResult()
}

// callDigest identifies a call by what is called with which arguments.
func callDigest(params json.RawMessage) string {
	var call struct {
		Name      string `json:"name"`
		Arguments any    `json:"arguments"`
	}
	dec := json.NewDecoder(bytes.NewReader(params))
	dec.UseNumber()       // keeps integers apart that are equal as floating point
	_ = dec.Decode(&call) // was read before
	return digestOf(call)
}

// digest identifies a question by what the person reads and may answer.
func (q *ElicitRequest) digest() string {
	return digestOf(map[string]any{"message": q.Message, "schema": q.Schema})
}

// digestOf is a short digest of the JSON of v.
func digestOf(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return rand.Text() // equal to no other
	}
	sum := sha256.Sum256(data)
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}
