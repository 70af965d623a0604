package resource_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/mcp/server/servertest"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// notFound are the codes of a resource that does not exist, by transport: revision
// 2026-07-28 has another.
func notFound(c *servertest.Client) int {
	if c.Transport() == servertest.Stateless {
		return -32602
	}
	return -32002
}

func TestReadOverEveryTransport(t *testing.T) {
	t.Parallel()
	for _, transport := range servertest.Transports {
		t.Run(string(transport), func(t *testing.T) {
			t.Parallel()
			s := newScene(t, map[string]string{".ai/knowledge/my notes/100%?.md": "```yaml\nname: x\n```\n\nWater is wet.\n"})
			done, works := s.Start("done"), s.Start("works/on")
			s.say(done, "said it")
			s.Turn(done, 2)
			s.End(done, thread.Outcome{State: thread.Completed, Result: "It is done.", Outputs: map[string]any{"n": 1}})
			c := s.connect(servertest.Over(transport))
			tests := []struct {
				uri, mime string
				want      []string
				keep      bool
			}{
				{"rye://threads", "application/json", []string{`"working":1`, `"thread_id":"works/on-1767323045"`, `"ended":[{"thread_id":"done-1767323045","status":"completed"`}, false},
				{"rye://threads/" + string(done) + "/result", "application/json", []string{`"status":"completed"`, `"result":"It is done."`, `"outputs":{"n":1}`, `"turns":2`}, true},
				{"rye://threads/works%2Fon-1767323045/result", "application/json", []string{`"status":"running"`}, false},
				{"rye://threads/" + string(done) + "/result?part=outputs", "application/json", []string{`{"n":1}`}, true},
				{"rye://threads/" + string(done) + "/transcript", "text/plain", []string{"said it"}, true},
				{"rye://threads/" + string(works) + "/transcript", "text/plain", nil, false},
				{"rye://threads/" + string(done) + "/cost", "application/json", []string{`"cost":{"turns":2`}, true},
				{"rye://threads/" + string(done) + "/chain", "application/json", []string{`"chain_length":1`}, true},
				{"rye://items/knowledge/my%20notes/100%25%3F", "text/markdown", []string{"Water is wet."}, false},
				{"rye://items/tool/rye/bash", "application/yaml", []string{"executor_id"}, true},
			}
			for _, tt := range tests {
				r := read(t, c, tt.uri)
				if len(r.Contents) == 0 || r.Contents[0].URI != tt.uri || r.Contents[0].MIME != tt.mime {
					t.Errorf("%s: %+v", tt.uri, r)
					continue
				}
				for _, want := range tt.want {
					if !strings.Contains(r.Contents[0].Text, want) {
						t.Errorf("%s: no %s in %s", tt.uri, want, r.Contents[0].Text)
					}
				}
				switch {
				case transport != servertest.Stateless && (r.TTL != nil || r.Scope != ""):
					t.Errorf("%s: a revision without hints gets %v %q", tt.uri, *r.TTL, r.Scope)
				case transport == servertest.Stateless && (r.TTL == nil || *r.TTL > 0 != tt.keep):
					t.Errorf("%s: can be kept %v, want %v", tt.uri, r.TTL, tt.keep)
				}
			}
			for _, uri := range []string{"rye://threads/never/was-1/result", "rye://items/tool/rye/bsh", "rye://nothing", "test://x"} {
				_, rpcErr := c.Request("resources/read", map[string]any{"uri": uri})
				if rpcErr == nil || rpcErr.Code != notFound(c) || !strings.Contains(string(rpcErr.Data), `"uri":"`+uri+`"`) {
					t.Errorf("%s: %v %s", uri, rpcErr, rpcErr.Data)
				}
			}
		})
	}
}

// TestAttackHostileURIs: a client asks for resources with parents, encoded slashes, control characters, other schemes and a megabyte in their URIs.
// Each is refused with what is valid in a short answer, and nothing outside the spaces of the project is read.
func TestAttackHostileURIs(t *testing.T) {
	t.Parallel()
	s := newScene(t, map[string]string{"secret.md": "do not show", ".ai/secret.md": "do not show"})
	c := s.connect()
	for uri := range hostile() {
		for _, method := range []string{"resources/read", "resources/subscribe"} {
			raw, rpcErr := c.Request(method, map[string]any{"uri": uri})
			if rpcErr == nil {
				t.Errorf("%s %.60q: %s", method, uri, raw)
				continue
			}
			if len(rpcErr.Message)+len(rpcErr.Data) > 3000 {
				t.Errorf("%s %.60q is refused with %d bytes", method, uri, len(rpcErr.Message)+len(rpcErr.Data))
			}
		}
	}
}

// TestAttackItemResource: an item that fetch refuses or hides a part of is read as a resource.
// The resource refuses it for the same reason, and shows no signature line.
func TestAttackItemResource(t *testing.T) {
	t.Parallel()
	s := newScene(t, map[string]string{
		"outside.md": "```yaml\nname: x\n```\n\ndo not show\n",
		".ai/knowledge/signed.md": "<!-- rye:signed:2026-01-01T00:00:00Z:" + strings.Repeat("a", 64) + ":AAAA:" + strings.Repeat("b", 16) + " -->\n" +
			"```yaml\nname: signed\n```\n\nText.\n",
	})
	space := filepath.Join(s.Scene.Project.Path, ".ai", "knowledge")
	if err := os.Symlink(filepath.Join(s.Scene.Project.Path, "outside.md"), filepath.Join(space, "link.md")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(space, "folder.md"), 0o700); err != nil {
		t.Fatal(err)
	}
	c := s.connect()
	for _, id := range []string{"link", "folder", "none", "signed"} {
		_, err := s.Scene.Project.Actions.Fetch(t.Context(), action.Caller{Env: tool.Env{Project: s.Scene.Project.Path}}, action.FetchRequest{ItemType: "knowledge", ItemID: id})
		raw, rpcErr := c.Request("resources/read", map[string]any{"uri": "rye://items/knowledge/" + id})
		fault, refused := errors.AsType[*tool.Fault](err)
		switch {
		case refused != (rpcErr != nil):
			t.Errorf("%s: fetch says %v, the resource %v", id, err, rpcErr)
		case refused && !strings.Contains(string(rpcErr.Data), fmt.Sprintf(`"code":%q`, fault.Code)):
			t.Errorf("%s: fetch refuses with %s, the resource with %s", id, fault.Code, rpcErr.Data)
		case strings.Contains(string(raw), "do not show") || strings.Contains(string(raw), "rye:signed"):
			t.Errorf("%s: %s", id, raw)
		}
	}
}

// All of a long text is read by following the URIs that answers name.
func TestLongTextsAreReadInPages(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("wörter ", 4000)
	s := newScene(t, map[string]string{".ai/knowledge/long.md": "```yaml\nname: long\n```\n\n" + long})
	id := s.Start("talks")
	for i := range 50 {
		s.say(id, fmt.Sprintf("event %d %s", i, strings.Repeat("x", 1000)))
	}
	s.End(id, thread.Outcome{State: thread.Completed, Result: long, Outputs: map[string]any{"long": long}})
	c := s.connect()

	first := read(t, c, "rye://threads/"+string(id)+"/result")
	if len(first.Contents[0].Text) > 12_000 {
		t.Errorf("the result has %d bytes", len(first.Contents[0].Text))
	}
	var doc struct {
		Result     string `json:"result"`
		Next       string `json:"next"`
		OutputsURI string `json:"outputs_uri"`
		Total      int    `json:"total_bytes"`
	}
	if err := json.Unmarshal([]byte(first.Contents[0].Text), &doc); err != nil {
		t.Fatal(err)
	}
	if got := doc.Result + follow(t, c, doc.Next); got != long || doc.Total != len(long) {
		t.Errorf("%d bytes of the result are read of %d, %d are told", len(got), len(long), doc.Total)
	}
	outputs, err := json.Marshal(map[string]any{"long": long})
	if err != nil {
		t.Fatal(err)
	}
	if got := follow(t, c, doc.OutputsURI); got != string(outputs) {
		t.Errorf("%d bytes of the outputs are read of %d", len(got), len(outputs))
	}
	if got := follow(t, c, "rye://items/knowledge/long"); !strings.Contains(got, long) {
		t.Errorf("%d bytes of the item are read of %d", len(got), len(long))
	}
	got := follow(t, c, "rye://threads/"+string(id)+"/transcript")
	for i := range 50 {
		if !strings.Contains(got, fmt.Sprintf("event %d x", i)) {
			t.Errorf("event %d of the transcript is not read", i)
		}
	}
}

// follow reads a URI and what the answers name behind it.
func follow(t *testing.T, c *servertest.Client, uri string) string {
	t.Helper()
	var all strings.Builder
	for pages := 0; uri != ""; pages++ {
		if pages > 200 {
			t.Fatalf("there is no end behind %s", uri)
		}
		r := read(t, c, uri)
		all.WriteString(r.Contents[0].Text)
		if n := len(r.Contents[0].Text); n > 12_000 {
			t.Errorf("%s has %d bytes", uri, n)
		}
		uri = ""
		if len(r.Contents) > 1 {
			uri = r.Contents[1].URI
		}
	}
	return all.String()
}

// The list is short whatever the project holds, and comes in pages.
func TestListIsShort(t *testing.T) {
	t.Parallel()
	s := newScene(t, nil)
	for i := range 60 {
		id := s.Start(fmt.Sprintf("work%d", i))
		if i%2 == 0 {
			s.End(id, thread.Outcome{State: thread.Completed})
		}
	}
	c := s.connect()
	var uris []string
	bytes := 0
	for cursor := ""; ; {
		raw, rpcErr := c.Request("resources/list", map[string]any{"cursor": cursor})
		if rpcErr != nil {
			t.Fatal(rpcErr)
		}
		var page struct {
			Resources []struct{ URI, Name, Description string } `json:"resources"`
			Next      string                                    `json:"nextCursor"`
		}
		if err := json.Unmarshal(raw, &page); err != nil {
			t.Fatal(err)
		}
		bytes += len(raw)
		for _, r := range page.Resources {
			uris = append(uris, r.URI)
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	slices.Sort(uris)
	if distinct := len(slices.Compact(uris)); distinct != 41 || !slices.Contains(uris, "rye://threads") {
		t.Errorf("%d resources are listed, want the board and 20 each", distinct)
	}
	if bytes > 12_000 {
		t.Errorf("the list has %d bytes", bytes)
	}
	for _, uri := range uris {
		read(t, c, uri)
	}
	if _, rpcErr := c.Request("resources/list", map[string]any{"cursor": "x"}); rpcErr == nil || rpcErr.Code != -32602 {
		t.Errorf("a cursor of no list: %v", rpcErr)
	}
}

func TestComplete(t *testing.T) {
	t.Parallel()
	s := newScene(t, map[string]string{".ai/knowledge/mine/100%.md": "```yaml\nname: x\n```\n\nx\n"})
	id := s.Start("work/on it")
	c := s.connect()
	tests := []struct {
		template, argument, value, kind string
		want                            []string
	}{
		{"rye://items/{type}/{+id}", "type", "", "", []string{"directive", "tool", "knowledge"}},
		{"rye://items/{type}/{+id}{?offset}", "type", "k", "", []string{"knowledge"}},
		{"rye://items/{type}/{+id}", "id", "mine/", "knowledge", []string{"mine/100%25"}},
		{"rye://items/{type}/{+id}", "id", "mine/100%25", "knowledge", []string{"mine/100%25"}},
		{"rye://items/{type}/{+id}", "id", "mine/", "tool", nil},
		{"rye://items/{type}/{+id}", "id", "mine/", "", []string{"mine/100%25"}},
		{"rye://threads/{+id}/result{?cursor}", "id", "work", "", []string{string(id)}},
		{"rye://threads/{+id}/transcript", "id", "nothing", "", nil},
		{"rye://threads/{+id}/transcript", "cursor", "", "", nil},
	}
	for _, tt := range tests {
		raw, rpcErr := c.Request("completion/complete", map[string]any{
			"ref":      map[string]any{"type": "ref/resource", "uri": tt.template},
			"argument": map[string]any{"name": tt.argument, "value": tt.value}, "context": map[string]any{"arguments": map[string]any{"type": tt.kind}},
		})
		if rpcErr != nil {
			t.Errorf("%s %s: %v", tt.template, tt.argument, rpcErr)
			continue
		}
		var got struct {
			Completion struct {
				Values []string `json:"values"`
			} `json:"completion"`
		}
		if err := json.Unmarshal(raw, &got); err != nil || !slices.Equal(got.Completion.Values, tt.want) {
			t.Errorf("%s: %s=%q is completed to %q (%v), want %q", tt.template, tt.argument, tt.value, got.Completion.Values, err, tt.want)
		}
	}
	for _, uri := range []string{"", "rye://other/{id}", strings.Repeat("x", 1<<20)} {
		_, rpcErr := c.Request("completion/complete", map[string]any{
			"ref": map[string]any{"type": "ref/resource", "uri": uri}, "argument": map[string]any{"name": "id", "value": "x"},
		})
		if rpcErr == nil || rpcErr.Code != -32602 || len(rpcErr.Message) > 1000 {
			t.Errorf("%.50q: %.200v", uri, rpcErr)
		}
	}
}

// notes are the notifications that a client got.
type notes struct {
	t    testing.TB
	mu   sync.Mutex
	all  []string // method and URI
	more chan struct{}
}

func newNotes(t testing.TB) (*notes, servertest.Option) {
	n := &notes{t: t, more: make(chan struct{}, 1)}
	return n, servertest.OnNotification(func(method string, raw json.RawMessage) {
		var params struct{ URI string }
		if len(raw) > 0 && json.Unmarshal(raw, &params) != nil {
			t.Errorf("%s %s", method, raw)
		}
		n.mu.Lock()
		n.all = append(n.all, strings.TrimSpace(strings.TrimPrefix(method, "notifications/")+" "+params.URI))
		n.mu.Unlock()
		select {
		case n.more <- struct{}{}:
		default:
		}
	})
}

// await waits for notifications, and returns and forgets all that came.
func (n *notes) await(want ...string) []string {
	n.t.Helper()
	late := time.After(30 * time.Second)
	for {
		n.mu.Lock()
		all := n.all
		missing := slices.ContainsFunc(want, func(w string) bool { return !slices.Contains(all, w) })
		if !missing {
			n.all = nil
		}
		n.mu.Unlock()
		if !missing {
			return all
		}
		select {
		case <-n.more:
		case <-late:
			n.t.Fatalf("notified of %q, want %q", all, want)
		}
	}
}

// subscribe subscribes in the way of a client's revision.
func subscribe(t *testing.T, c *servertest.Client, uris ...string) (stop func()) {
	t.Helper()
	if c.Transport() == servertest.Stateless {
		p := c.Listen(map[string]any{"resourcesListChanged": true, "resourceSubscriptions": uris})
		return p.Cancel
	}
	if _, rpcErr := c.Request("resources/list", map[string]any{}); rpcErr != nil {
		t.Fatal(rpcErr)
	}
	for _, uri := range uris {
		if _, rpcErr := c.Request("resources/subscribe", map[string]any{"uri": uri}); rpcErr != nil {
			t.Fatal(rpcErr)
		}
	}
	return func() {
		for _, uri := range uris {
			if _, rpcErr := c.Request("resources/unsubscribe", map[string]any{"uri": uri}); rpcErr != nil {
				t.Fatal(rpcErr)
			}
		}
	}
}

func TestChangesAreToldOverEveryTransport(t *testing.T) {
	t.Parallel()
	for _, transport := range servertest.Transports {
		t.Run(string(transport), func(t *testing.T) {
			t.Parallel()
			s := newScene(t, map[string]string{".ai/knowledge/x.md": "```yaml\nname: x\n```\n\none\n"})
			id := s.Start("work")
			told, option := newNotes(t)
			c := s.connect(servertest.Over(transport), option)
			of := func(part string) string { return "rye://threads/" + string(id) + "/" + part }
			never := "rye://threads/later-1767323045/result"
			stop := subscribe(t, c, "rye://threads", of("transcript"), of("result"), of("cost"), of("chain"), never, "rye://items/knowledge/x")
			if transport == servertest.Stateless {
				told.await("subscriptions/acknowledged")
			}
			s.Turn(id, 1)
			if got := told.await("resources/updated "+of("transcript"), "resources/updated "+of("cost"), "resources/updated rye://threads"); slices.Contains(got, "resources/updated "+of("result")) {
				t.Error("the result of a thread that works on is told to change")
			}
			s.Write(map[string]string{".ai/knowledge/x.md": "```yaml\nname: x\n```\n\ntwo\n"})
			told.await("resources/updated rye://items/knowledge/x")
			later := s.Start("later")
			told.await("resources/list_changed", "resources/updated "+never)
			s.End(later, thread.Outcome{State: thread.Completed})
			s.End(id, thread.Outcome{State: thread.Completed})
			told.await("resources/updated "+of("result"), "resources/updated "+of("transcript"), "resources/updated "+of("chain"), "resources/updated "+never)
			if transport == servertest.Stateless {
				return // the stream ends with the test
			}
			stop()
			told.await()
			s.Start("another")
			if got := told.await("resources/list_changed"); slices.ContainsFunc(got, func(n string) bool { return strings.HasPrefix(n, "resources/updated") }) {
				t.Errorf("told of %q after unsubscribing", got)
			}
		})
	}
}

// TestAttackThousandSubscriptions: a client subscribes to a thousand threads, most of which never were, and to more than a session may have.
// Changes are told, subscriptions beyond the bound are refused, and nothing is left when the client goes.
func TestAttackThousandSubscriptions(t *testing.T) {
	t.Parallel()
	s := newScene(t, nil)
	id := s.Start("work")
	told, option := newNotes(t)
	c := s.connect(option)
	refused := 0
	for i := range 4100 {
		uri := fmt.Sprintf("rye://threads/never/was-%d/transcript", i)
		if i == 500 {
			uri = "rye://threads/" + string(id) + "/transcript"
		}
		if _, rpcErr := c.Request("resources/subscribe", map[string]any{"uri": uri}); rpcErr != nil {
			refused++
		}
	}
	if refused == 0 || refused > 100 {
		t.Errorf("%d of 4100 subscriptions are refused", refused)
	}
	s.Turn(id, 1)
	for _, note := range told.await("resources/updated rye://threads/" + string(id) + "/transcript") {
		if strings.Contains(note, "never") {
			t.Errorf("told of %s", note)
		}
	}
}

// A kind in the URI is a kind of item.
func TestTemplatesNameTheKinds(t *testing.T) {
	t.Parallel()
	c := newScene(t, nil).connect()
	raw, rpcErr := c.Request("resources/templates/list", map[string]any{})
	if rpcErr != nil {
		t.Fatal(rpcErr)
	}
	for _, k := range item.Kinds() {
		if !strings.Contains(string(raw), string(k)) {
			t.Errorf("%s is not named in %s", k, raw)
		}
	}
	if len(raw) > 2000 {
		t.Errorf("the templates have %d bytes", len(raw))
	}
}
