package resource

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/rye-mcp/rye-mcp/mcp/handler"
	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// Media types of what is shown.
const (
	mimeText = "text/plain"
	mimeJSON = "application/json"
)

// defaultBytes is how long the content of an answer is, in bytes of JSON, that asks for
// no other length: the rest of the answer fits too.
const defaultBytes = 10_000

// How long a client may keep what it has read. The written part of a transcript is never
// written again; a thread that has ended can be resumed, and its result is then another;
// an item of the program can come to be hidden by one of the project.
const (
	keepWritten = time.Hour
	keepEnded   = 5 * time.Minute
	keepShipped = 5 * time.Minute
)

// Read implements [server.Resources].
func (r *Resources) Read(ctx context.Context, call server.Call, uri string) (server.Reading, error) {
	a, err := Parse(uri)
	if err != nil {
		return server.Reading{}, missing(uri, err)
	}
	p, err := r.project(ctx, call, a)
	if err != nil {
		return server.Reading{}, err
	}
	if a.Bytes == 0 {
		a.Bytes = defaultBytes
	}
	reading, err := read(ctx, p, call, uri, a)
	return reading, missing(uri, err)
}

// missing says of a thread or an item that does not exist that the resource does not.
func missing(uri string, err error) error {
	fault, ok := errors.AsType[*tool.Fault](err)
	if !ok || fault.Code != tool.CodeNotFound && fault.Code != tool.CodeBadID {
		return err
	}
	return &server.NotFoundError{URI: uri, Err: fault}
}

func read(ctx context.Context, p *handler.Project, call server.Call, uri string, a Address) (server.Reading, error) {
	switch a.Part {
	case Board:
		return readBoard(ctx, p, uri, a)
	case Transcript:
		return readTranscript(ctx, p, uri, a)
	case Result:
		return readResult(ctx, p, uri, a)
	case Cost:
		return readCost(ctx, p, uri, a)
	case Chain:
		return readChain(ctx, p, uri, a)
	default:
		return readItem(ctx, p, call, uri, a)
	}
}

// Bounds of the board that is read; rows without room in the answer are counted.
const (
	boardWorking = 100
	boardEnded   = 20
)

func readBoard(ctx context.Context, p *handler.Project, uri string, a Address) (server.Reading, error) {
	b, err := p.Control.View.Board(ctx, boardWorking, boardEnded)
	if err != nil {
		return server.Reading{}, err
	}
	return fitted(uri, a.Bytes, &b, func() bool {
		switch {
		case len(b.Ended) > 0:
			b.Ended = b.Ended[:len(b.Ended)*3/4]
		case len(b.Threads) > 1:
			cut := max(1, len(b.Threads)/4)
			b.Threads, b.Omitted = b.Threads[:len(b.Threads)-cut], b.Omitted+cut
		default:
			return false
		}
		return true
	})
}

// fitted is a document that has become short enough, or as short as it can.
func fitted(uri string, room int, doc any, shorten func() bool) (server.Reading, error) {
	for {
		text, err := jsonText(doc)
		if err != nil {
			return server.Reading{}, err
		}
		if tool.SizeInJSON(text) <= room || !shorten() {
			return server.Reading{Contents: []mcp.ResourceContents{mcp.TextResourceContents{URI: uri, MIMEType: mimeJSON, Text: text}}}, nil
		}
	}
}

func readTranscript(ctx context.Context, p *handler.Project, uri string, a Address) (server.Reading, error) {
	page, err := p.Control.View.ReadTranscript(ctx, view.TranscriptInput{ThreadID: a.Thread, Cursor: a.Cursor, MaxBytes: a.Bytes})
	if err != nil {
		return server.Reading{}, err
	}
	rec, err := p.Control.Threads.Look(ctx, a.Thread)
	if err != nil {
		return server.Reading{}, err
	}
	reading := server.Reading{Contents: []mcp.ResourceContents{mcp.TextResourceContents{URI: uri, MIMEType: mimeText, Text: page.Content}}}
	over := rec.ThreadID != a.Thread || rec.Status.Terminal()
	switch {
	case !page.AtEnd:
		reading.Keep = keepWritten
		reading.Contents = append(reading.Contents, more(a.after(page.NextCursor), "There is more"))
	case !over:
		reading.Contents = append(reading.Contents, more(a.after(page.NextCursor), "The thread still works; what it writes next"))
	default:
		reading.Keep = keepWritten
	}
	return reading, nil
}

// after is the address of what comes behind a cursor.
func (a Address) after(cursor string) Address {
	a.Cursor = cursor
	return a.plain()
}

// plain is the address without the length that every answer has.
func (a Address) plain() Address {
	if a.Bytes == defaultBytes {
		a.Bytes = 0
	}
	return a
}

// more says, as a content of its own beside what was read, where to read on.
func more(next Address, what string) mcp.ResourceContents {
	uri := next.String()
	return mcp.TextResourceContents{URI: uri, MIMEType: mimeText, Text: fmt.Sprintf("[%s: read %s]", what, uri)}
}

// result is what a thread has come to.
type result struct {
	ThreadID thread.ID `json:"thread_id"`
	view.Result
	// Result is as much of the final text as there is room for; Outputs are left out
	// where they are long.
	Outputs    map[string]any `json:"outputs,omitempty"`
	OutputsURI string         `json:"outputs_uri,omitempty"`
	Text       string         `json:"result,omitempty"`
	TotalBytes int            `json:"total_bytes,omitempty"`
	Next       string         `json:"next,omitempty"`
}

// resultRoom is what a result has for what is beside its text.
const resultRoom = 3000

func readResult(ctx context.Context, p *handler.Project, uri string, a Address) (server.Reading, error) {
	rec, err := p.Control.Threads.LookAsked(ctx, a.Thread)
	if err != nil {
		return server.Reading{}, action.Fault(err)
	}
	reading := server.Reading{}
	if rec.Status.Terminal() {
		reading.Keep = keepEnded
	}
	if a.Cursor != "" || a.Outputs {
		contents, err := partOf(ctx, p, rec.ThreadID, uri, a)
		reading.Contents = contents
		return reading, err
	}
	told, err := resultOf(ctx, p, rec, a)
	if err != nil {
		return server.Reading{}, err
	}
	text, err := jsonText(told)
	reading.Contents = []mcp.ResourceContents{mcp.TextResourceContents{URI: uri, MIMEType: mimeJSON, Text: text}}
	return reading, err
}

// resultOf tells what a thread has come to, in the room of an answer.
func resultOf(ctx context.Context, p *handler.Project, rec thread.Record, a Address) (result, error) {
	told := result{ThreadID: a.Thread, Result: view.ResultOf(a.Thread, rec)}
	var err error
	if told.ChainCost, err = p.Control.Threads.ChainCost(ctx, rec); err != nil {
		return told, action.Fault(err)
	}
	whole := told.Result.Result
	told.Outputs, told.Result.Outputs = told.Result.Outputs, nil
	told.Result.Result, told.Data = "", nil
	if len(told.Outputs) > 0 {
		outputs, err := jsonText(told.Outputs)
		if err != nil {
			return told, err
		}
		if tool.SizeInJSON(outputs) > resultRoom-1000 {
			at := a.plain()
			at.Outputs = true
			told.Outputs, told.OutputsURI = nil, at.String()
		}
	}
	page, err := p.Control.View.ReadTranscript(ctx, view.TranscriptInput{
		ThreadID: rec.ThreadID, Part: tool.PartResult, MaxBytes: max(leastBytes, a.Bytes-resultRoom),
	})
	if err != nil {
		return told, err
	}
	told.Text, told.TotalBytes = page.Content, page.TotalBytes
	if page.NextCursor != "" {
		told.Next = a.after(page.NextCursor).String()
	}
	if whole == told.Text {
		told.TotalBytes = 0 // which is said where it is not all
	}
	return told, nil
}

// partOf is a page of the text of a result, or of its outputs.
func partOf(ctx context.Context, p *handler.Project, id thread.ID, uri string, a Address) ([]mcp.ResourceContents, error) {
	in := view.TranscriptInput{ThreadID: id, Part: tool.PartResult, Cursor: a.Cursor, MaxBytes: a.Bytes}
	mime := mimeText
	if a.Outputs {
		in.Part, mime = tool.PartOutputs, mimeJSON
	}
	page, err := p.Control.View.ReadTranscript(ctx, in)
	if err != nil {
		return nil, err
	}
	contents := []mcp.ResourceContents{mcp.TextResourceContents{URI: uri, MIMEType: mime, Text: page.Content}}
	if page.NextCursor != "" {
		contents = append(contents, more(a.after(page.NextCursor), "There is more"))
	}
	return contents, nil
}

// cost is what a thread has used.
type cost struct {
	ThreadID         thread.ID    `json:"thread_id"`
	ResolvedThreadID thread.ID    `json:"resolved_thread_id,omitempty"`
	Status           thread.State `json:"status"`
	Cost             thread.Cost  `json:"cost"`
	ChainCost        *thread.Cost `json:"chain_cost,omitempty"`
	Budget           *view.Budget `json:"budget,omitempty"`
}

func readCost(ctx context.Context, p *handler.Project, uri string, a Address) (server.Reading, error) {
	s, err := p.Control.View.Status(ctx, a.Thread)
	if err != nil {
		return server.Reading{}, err
	}
	told := cost{
		ThreadID: s.ThreadID, ResolvedThreadID: s.ResolvedThreadID, Status: s.Status, Cost: s.Cost, ChainCost: s.ChainCost, Budget: s.Budget,
	}
	reading, err := fitted(uri, a.Bytes, told, func() bool { return false })
	if told.settled() {
		reading.Keep = keepEnded
	}
	return reading, err
}

// settled reports whether the cost stays as it is: the thread has ended, and so have all
// whose money comes out of its budget.
func (c cost) settled() bool { return c.Status.Terminal() && (c.Budget == nil || c.Budget.Active == 0) }

// chain is a chain of threads; of a long one those in the middle are left out.
type chain struct {
	view.Chain
	Omitted int `json:"omitted,omitempty"`
}

func readChain(ctx context.Context, p *handler.Project, uri string, a Address) (server.Reading, error) {
	whole, err := p.Control.View.GetChain(ctx, a.Thread)
	if err != nil {
		return server.Reading{}, err
	}
	told := chain{Chain: whole}
	reading, err := fitted(uri, a.Bytes, &told, told.omit)
	if newest := whole.Chain[len(whole.Chain)-1]; newest.Status.Terminal() {
		reading.Keep = keepEnded
	}
	return reading, err
}

// omit leaves out some more links, where there are any but the first and the newest.
func (c *chain) omit() bool {
	links := c.Chain.Chain
	if len(links) <= 2 {
		return false
	}
	cut := max(1, (len(links)-1)/4)
	c.Chain.Chain = slices.Concat(links[:1], links[1+cut:])
	c.Omitted += cut
	return true
}

// readItem reads what rye_fetch reads, with what that refuses.
func readItem(ctx context.Context, p *handler.Project, call server.Call, uri string, a Address) (server.Reading, error) {
	got, err := p.Actions.Fetch(ctx, action.Caller{
		Env: tool.Env{Project: p.Path, TraceID: call.TraceID}, By: strings.TrimSpace("MCP client " + call.Session.Client),
	}, action.FetchRequest{ItemType: string(a.Kind), ItemID: a.ItemID, Offset: a.Offset, MaxBytes: a.Bytes})
	if err != nil {
		return server.Reading{}, err
	}
	fetched, ok := got.(*action.FetchResult)
	if !ok {
		return server.Reading{}, fmt.Errorf("fetch of an item returned a %T", got)
	}
	reading := server.Reading{Contents: []mcp.ResourceContents{mcp.TextResourceContents{
		URI: uri, MIMEType: mimeOf(fetched.Path), Text: fetched.Content,
		Meta: map[string]any{"rye/space": fetched.Space, "rye/signature": fetched.Signature.State, "rye/total_bytes": fetched.TotalBytes},
	}}}
	if fetched.NextOffset > 0 {
		next := a.plain()
		next.Offset = fetched.NextOffset
		reading.Contents = append(reading.Contents, more(next, "There is more"))
	}
	if fetched.Space == item.System && fetched.Signature.State == trust.Shipped {
		reading.Keep, reading.Shared = keepShipped, true
	}
	return reading, nil
}

func mimeOf(file string) string {
	switch path.Ext(file) {
	case ".md":
		return "text/markdown"
	case ".yaml", ".yml":
		return "application/yaml"
	case ".py":
		return "text/x-python"
	case ".js", ".mjs", ".cjs":
		return "text/javascript"
	case ".ts":
		return "text/x-typescript"
	case ".sh":
		return "application/x-sh"
	}
	return mimeText
}

// jsonText is v as JSON without the escapes that only HTML needs.
func jsonText(v any) (string, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return strings.TrimSpace(b.String()), err
}
