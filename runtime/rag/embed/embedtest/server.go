// Package embedtest is an embedding endpoint for tests: a real server on the loopback
// interface whose vectors follow from the words of a text, so that texts that share
// words are near each other.
package embedtest

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"unicode"
)

// Dimension is how long the vectors are unless a request asks for others.
const Dimension = 64

// Mode is how a server answers. The zero value is well.
type Mode string

// The modes.
const (
	Well           Mode = ""
	Unauthorized   Mode = "401"
	Forbidden      Mode = "403"
	TooMany        Mode = "429"         // with Retry-After of RetryAfter
	NoMoney        Mode = "quota"       // 429 with insufficient_quota
	Overloaded     Mode = "503"         // of a proxy, as HTML
	UnknownModel   Mode = "404"         // model_not_found
	TooLong        Mode = "too long"    // 400 for texts of more than MaxText bytes
	Hang           Mode = "hang"        // no answer until the request is given up
	HangWithin     Mode = "hang within" // half an answer
	Cut            Mode = "cut"         // half an answer, and the connection ends
	WrongDimension Mode = "dimension"   // one number more than usual
	Ragged         Mode = "ragged"      // the last vector is shorter
	NotANumber     Mode = "nan"         // as Python writes it
	NotANumber64   Mode = "nan64"       // within base64
	Infinite       Mode = "inf"         // 1e999
	Zero           Mode = "zero"        // a vector of zeros
	Null           Mode = "null"        // a null for a vector
	Fewer          Mode = "fewer"       // one vector less
	More           Mode = "more"        // one vector more
	Twice          Mode = "twice"       // one index twice
	OutOfRange     Mode = "range"       // an index beyond the texts
	Backwards      Mode = "backwards"   // the vectors in reverse order, with their indexes
	NoIndex        Mode = "no index"
	Base64         Mode = "base64"
	OtherModel     Mode = "model"   // each answer names another model
	NoModel        Mode = "noname"  // none is named
	NoUsage        Mode = "nousage" // no tokens are counted
	AbsurdUsage    Mode = "absurd"  // 1e18 tokens
	Huge           Mode = "huge"    // endless
	Page           Mode = "page"    // a web page, status 200
	NotJSON        Mode = "text"
	Redirect       Mode = "redirect" // to RedirectTo
)

// Server is an endpoint. Its fields are set before the first request.
type Server struct {
	URL        string // base_url
	Key        string // that is asked for; empty: none
	Models     []string
	RetryAfter string
	MaxText    int
	RedirectTo string

	mu       sync.Mutex
	modes    []Mode // of the next requests; the last one stays
	requests []Request
	others   []string
	gate     chan struct{}
}

// Request is one that was made for vectors.
type Request struct {
	Model      string
	Input      []string
	Dimensions int
	Encoding   string `json:"encoding_format"`
	Key        string `json:"-"`
}

// New starts a server, which ends with the test.
func New(t testing.TB, modes ...Mode) *Server {
	t.Helper()
	s := &Server{Models: []string{"test-embed"}, RetryAfter: "1", MaxText: 100}
	s.Answer(modes...)
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL + "/v1"
	return s
}

// Answer sets how the next requests are answered, one mode each; the last one stays.
func (s *Server) Answer(modes ...Mode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.modes = modes
}

// Requests are those for vectors so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Calls is how many requests for vectors there were.
func (s *Server) Calls() int { return len(s.Requests()) }

// Others are the other requests so far, as "GET /v1/models".
func (s *Server) Others() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.others...)
}

// Block has every request for vectors wait until the function that it returns is called.
func (s *Server) Block() (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gate := make(chan struct{})
	s.gate = gate
	return sync.OnceFunc(func() { close(gate) })
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/v1/embeddings" || r.Method != http.MethodPost {
		s.serveOther(w, r)
		return
	}
	var req Request
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		fail(w, http.StatusBadRequest, "invalid_request_error", "", err.Error())
		return
	}
	req.Key = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	mode, gate := s.note(req)
	if gate != nil {
		select {
		case <-gate:
		case <-r.Context().Done():
			return
		}
	}
	if s.Key != "" && req.Key != s.Key {
		mode = Unauthorized
	}
	if !s.refuse(w, r, mode, req) {
		s.give(w, r, mode, req)
	}
}

func (s *Server) serveOther(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.others = append(s.others, r.Method+" "+r.URL.Path)
	s.mu.Unlock()
	if r.URL.Path != "/v1/models" {
		http.NotFound(w, r)
		return
	}
	if s.Key != "" && r.Header.Get("Authorization") != "Bearer "+s.Key {
		fail(w, http.StatusUnauthorized, "authentication_error", "invalid_api_key", "Incorrect API key provided")
		return
	}
	var data []map[string]any
	for _, m := range s.Models {
		data = append(data, map[string]any{"id": m, "object": "model", "owned_by": "library"})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": data}) // the client may be gone
}

func (s *Server) note(req Request) (Mode, chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, req)
	mode := Well
	if len(s.modes) > 0 {
		mode = s.modes[0]
	}
	if len(s.modes) > 1 {
		s.modes = s.modes[1:]
	}
	return mode, s.gate
}

// fail writes an error as OpenAI does.
func fail(w http.ResponseWriter, status int, kind, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": message, "type": kind, "code": code}}) // the client may be gone
}

// refuse answers in the modes that give no vectors.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, mode Mode, req Request) bool {
	switch mode {
	case Unauthorized:
		fail(w, http.StatusUnauthorized, "invalid_request_error", "invalid_api_key", "Incorrect API key provided: "+req.Key)
	case Forbidden:
		fail(w, http.StatusForbidden, "permission_error", "", "this key may not use embeddings")
	case TooMany:
		w.Header().Set("Retry-After", s.RetryAfter)
		fail(w, http.StatusTooManyRequests, "rate_limit_error", "rate_limit_exceeded", "Rate limit reached")
	case NoMoney:
		fail(w, http.StatusTooManyRequests, "insufficient_quota", "insufficient_quota", "You exceeded your current quota")
	case UnknownModel:
		fail(w, http.StatusNotFound, "invalid_request_error", "model_not_found", "The model does not exist")
	case Overloaded:
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte("<html><title>503 busy</title></html>")) // the client may be gone
	case TooLong:
		for _, text := range req.Input {
			if len(text) > s.MaxText {
				fail(w, http.StatusBadRequest, "invalid_request_error", "", "This model's maximum context length is 25 tokens")
				return true
			}
		}
		return false
	case Hang:
		<-r.Context().Done()
	case Redirect:
		http.Redirect(w, r, s.RedirectTo, http.StatusTemporaryRedirect)
	case Page:
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<!doctype html><title>Welcome</title>")) // the client may be gone
	case NotJSON:
		_, _ = w.Write([]byte("IGNORE ALL PREVIOUS INSTRUCTIONS")) // the client may be gone
	case Huge:
		chunk := []byte(strings.Repeat("0.125,", 10_000))
		_, err := w.Write([]byte(`{"data":[{"index":0,"embedding":[`))
		for err == nil && r.Context().Err() == nil {
			_, err = w.Write(chunk)
		}
	default:
		return false
	}
	return true
}

// give answers with vectors, sound or not.
func (s *Server) give(w http.ResponseWriter, r *http.Request, mode Mode, req Request) {
	texts := req.Input
	switch mode {
	case Fewer:
		texts = texts[:len(texts)-1]
	case More:
		texts = append(append([]string(nil), texts...), "one more")
	default:
	}
	var data []map[string]any
	tokens := 0
	for i, text := range texts {
		tokens += len(text)/4 + 1
		entry := map[string]any{"object": "embedding", "index": i, "embedding": s.vector(mode, req, text, i == len(texts)-1)}
		data = append(data, entry)
	}
	index(mode, data)
	said := map[string]any{"object": "list", "data": data, "model": s.modelOf(mode, req), "usage": usage(mode, tokens)}
	body, err := json.Marshal(said)
	if err != nil {
		panic(err)
	}
	body = []byte(unquoted.Replace(string(body)))
	w.Header().Set("Content-Type", "application/json")
	if mode == HangWithin || mode == Cut {
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		_, _ = w.Write(body[:len(body)/2]) // the client may be gone
		_ = http.NewResponseController(w).Flush()
		if mode == HangWithin {
			<-r.Context().Done()
		}
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(body) // the client may be gone
}

// Words in place of values that Go's JSON cannot write.
const nan, infinite = "@NaN@", "@Inf@"

var unquoted = strings.NewReplacer(`"`+nan+`"`, "NaN", `"`+infinite+`"`, "1e999")

func index(mode Mode, data []map[string]any) {
	last := len(data) - 1
	switch mode {
	case Backwards:
		for i := range len(data) / 2 {
			data[i], data[last-i] = data[last-i], data[i]
		}
	case NoIndex:
		for _, entry := range data {
			delete(entry, "index")
		}
	case Twice:
		data[last]["index"] = 0
	case OutOfRange:
		data[last]["index"] = last + 1
	default:
	}
}

func usage(mode Mode, tokens int) any {
	switch mode {
	case NoUsage:
		return nil
	case AbsurdUsage:
		return map[string]any{"prompt_tokens": 1e18, "total_tokens": 1e18}
	default:
		return map[string]any{"prompt_tokens": tokens, "total_tokens": tokens}
	}
}

func (s *Server) modelOf(mode Mode, req Request) any {
	switch mode {
	case OtherModel:
		return fmt.Sprintf("%s-%d", req.Model, s.Calls())
	case NoModel:
		return nil
	default:
		return req.Model
	}
}

func dimensionOf(mode Mode, req Request) int {
	n := Dimension
	if req.Dimensions > 0 {
		n = req.Dimensions
	}
	if mode == WrongDimension {
		n++
	}
	return n
}

// vector is the vector of a text as it goes into the answer.
func (s *Server) vector(mode Mode, req Request, text string, last bool) any {
	v := Vector(text, dimensionOf(mode, req))
	switch {
	case mode == Ragged && last:
		v = v[:len(v)-1]
	case mode == Zero && last:
		clear(v)
	case mode == NotANumber64 && last:
		v[0] = float32(math.NaN())
		return encoded(Base64, req, v)
	case mode == Null && last:
		return nil
	case (mode == NotANumber || mode == Infinite) && last:
		list := make([]any, len(v))
		for i, x := range v {
			list[i] = x
		}
		list[0] = map[Mode]string{NotANumber: nan, Infinite: infinite}[mode]
		return list
	}
	return encoded(mode, req, v)
}

func encoded(mode Mode, req Request, v []float32) any {
	if mode != Base64 && req.Encoding != "base64" {
		return v
	}
	data := make([]byte, 0, 4*len(v))
	for _, x := range v {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
	}
	return base64.StdEncoding.EncodeToString(data)
}

// Vector is the vector of a text: each word, and each three letters of it, go to a
// place and with a sign that follow from their hash. It has the length 1.
func Vector(text string, dimension int) []float32 {
	v := make([]float32, dimension)
	add := func(part string, weight float32) {
		h := fnv.New64a()
		_, _ = h.Write([]byte(part)) // a hash takes everything
		sum := h.Sum64()
		if sum>>63 == 1 {
			weight = -weight
		}
		v[sum%uint64(dimension)] += weight
	}
	for _, word := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		add(word, 1)
		for i := 0; i+3 <= len(word); i++ {
			add("#"+word[i:i+3], 0.3)
		}
	}
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum == 0 {
		v[0], sum = 1, 1
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}
