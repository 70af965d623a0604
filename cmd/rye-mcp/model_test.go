package main_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/llm/scripted"
)

// held is what a prompt contains whose answer the model holds back until it is
// released.
const held = "Be held."

// model is a scripted model that can hold its answers back.
type model struct {
	url string

	mu       sync.Mutex
	calls    int // so far
	last     time.Time
	numbers  []int // in prompts, as they came
	open     int   // being answered now, or held back
	mostOpen int
	released chan struct{} // closed by release
}

func startModel(t testing.TB, source []byte) *model {
	t.Helper()
	script, err := scripted.Parse("model.yaml", source)
	if err != nil {
		t.Fatal(err)
	}
	server, err := scripted.Serve(context.Background(), script, scripted.Options{})
	if err != nil {
		t.Fatal(err)
	}
	behind, err := url.Parse(server.BaseURL())
	if err != nil {
		t.Fatal(err)
	}
	m := &model{released: make(chan struct{})}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(behind) },
		FlushInterval: -1,
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) {}, // a killed client is no news
		Transport:     &http.Transport{MaxIdleConnsPerHost: 256},
		ErrorLog:      log.New(io.Discard, "", 0),
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		defer m.enter(body)()
		if bytes.Contains(body, []byte(held)) {
			select {
			case <-m.released:
			case <-r.Context().Done():
				return
			}
		}
		proxy.ServeHTTP(w, r)
	}))
	m.url = front.URL
	t.Cleanup(func() {
		m.release()
		_ = server.Close() // breaks off what hangs, so that front can close
		front.CloseClientConnections()
		front.Close()
	})
	return m
}

var numbered = regexp.MustCompile(`, number (\d+)`)

// enter counts a call in, and out when the function it returns is called.
func (m *model) enter(body []byte) (leave func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	m.last = time.Now()
	if match := numbered.FindSubmatch(body); match != nil {
		number, _ := strconv.Atoi(string(match[1])) // digits by the expression
		m.numbers = append(m.numbers, number)
	}
	m.open++
	m.mostOpen = max(m.mostOpen, m.open)
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.open--
	}
}

// order are the numbers in the prompts of the calls so far.
func (m *model) order() []int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.numbers)
}

// counts are how many calls have come in, and how many were open at once.
func (m *model) counts() (calls, mostOpen int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls, m.mostOpen
}

// lastCall is when the latest call came in.
func (m *model) lastCall() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}

// release answers what is held back, and holds nothing back any more.
func (m *model) release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.released:
	default:
		close(m.released)
	}
}

// wantCalls waits until the model has received so many calls.
func (p *place) wantCalls(want int) {
	p.Helper()
	p.until(func() (bool, string) {
		got, _ := p.model.counts()
		return got >= want, fmt.Sprintf("the model received %d calls, want %d", got, want)
	})
}
