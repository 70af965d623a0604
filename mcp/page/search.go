package page

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/orchestrator/view"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
	"github.com/rye-mcp/rye-mcp/runtime/transcript"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/search"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

const (
	mostThreads = 30 // that are found by what they are called
	mostTexts   = 30 // places in transcripts
	// mostLive bounds the threads whose transcripts are read for a search, since only what
	// has ended is in the index.
	mostLive     = 20
	mostInEach   = 3
	liveTime     = 2 * time.Second // to read them; the rest is left out
	mostQuery    = 500             // bytes
	threadsBelow = "agent/threads/"
)

// Found is what a search has found.
type Found struct {
	Threads     []view.Summary `json:"threads"`     // by name, id and directive
	Transcripts []FoundText    `json:"transcripts"` // by what was said and done
	Partial     bool           `json:"partial,omitempty"`
}

// FoundText is a place in what a thread has said and done.
type FoundText struct {
	ThreadID  thread.ID    `json:"thread_id"`
	Directive string       `json:"directive"`
	Name      string       `json:"name,omitempty"`
	Status    thread.State `json:"status"`
	Text      string       `json:"text"`
}

// search looks for words in threads and in what they have said.
func (p *Page) search(ctx context.Context, c *call) (any, error) {
	q := strings.TrimSpace(c.query("q"))
	if q == "" || len(q) > mostQuery || !utf8.ValidString(q) {
		return nil, tool.Faultf(tool.CodeInvalidQuery, "q must be words, at most %d bytes", mostQuery)
	}
	project, err := p.open(ctx, c)
	if err != nil {
		return nil, err
	}
	listed, err := project.Control.View.List(ctx, view.ListRequest{Text: q, Limit: mostThreads})
	if err != nil {
		return nil, err
	}
	found := Found{Threads: listed.Threads, Transcripts: []FoundText{}, Partial: listed.NextCursor != ""}
	if err := found.addLive(ctx, project, q); err != nil {
		return nil, err
	}
	return found, found.addEnded(ctx, project, q)
}

// addLive reads what threads that work have said: it is not in the index yet.
func (f *Found) addLive(ctx context.Context, project *Project, q string) error {
	pattern, err := transcript.NewPattern(q, false)
	if err != nil {
		return tool.Faultf(tool.CodeInvalidQuery, "q: %w", err)
	}
	live, err := project.Control.View.List(ctx, view.ListRequest{States: []thread.State{thread.Running}, Limit: mostLive})
	if err != nil {
		return err
	}
	f.Partial = f.Partial || live.NextCursor != ""
	ctx, cancel := context.WithTimeout(ctx, liveTime)
	defer cancel()
	for _, s := range live.Threads {
		hits, err := transcript.Search(ctx, project.Control.Threads.Transcript(s.ThreadID), pattern, mostInEach)
		if ctx.Err() != nil {
			f.Partial = true
			break
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			continue // it is damaged, which its row says
		}
		for _, hit := range hits {
			f.add(FoundText{ThreadID: s.ThreadID, Directive: s.Directive, Name: s.Name, Status: s.Status, Text: hit.Excerpt})
		}
	}
	return nil
}

func (f *Found) add(t FoundText) {
	if len(f.Transcripts) >= mostTexts {
		f.Partial = true
		return
	}
	f.Transcripts = append(f.Transcripts, t)
}

// addEnded asks the index for the records of threads. A text that the index does not
// understand as a query is asked for as a phrase.
func (f *Found) addEnded(ctx context.Context, project *Project, q string) error {
	ask := func(q string) (*action.SearchResult, error) {
		return project.Actions.Search(ctx, caller(project), action.SearchRequest{
			Query: q, Scope: "knowledge.agent.threads.*", Include: action.IncludeThreads, Limit: mostTexts,
		})
	}
	result, err := ask(q)
	if fault := tool.AsFault(err); fault != nil && fault.Code == tool.CodeInvalidQuery {
		result, err = ask(`"` + strings.ReplaceAll(q, `"`, " ") + `"`)
	}
	if fault := tool.AsFault(err); fault != nil && fault.Code == tool.CodeInvalidQuery {
		return nil // it has no word that is in an index
	}
	if err != nil {
		return err
	}
	f.Partial = f.Partial || result.NextOffset > 0 || result.Index != ""
	for _, hit := range result.Results {
		if rec, ok := recorded(ctx, project, hit); ok {
			f.add(FoundText{ThreadID: rec.ThreadID, Directive: rec.Directive, Name: rec.Name, Status: rec.Status, Text: hit.Preview})
		}
	}
	return nil
}

// recorded is the thread whose record was found: its directive is the folder, and the
// last part of its id the name.
func recorded(ctx context.Context, project *Project, hit search.Hit) (thread.Record, bool) {
	folder, isRecord := strings.CutPrefix(path.Dir(hit.ID), threadsBelow)
	if !isRecord || hit.Type != item.Knowledge {
		return thread.Record{}, false
	}
	for _, text := range []string{path.Join(path.Dir(folder), path.Base(hit.ID)), path.Base(hit.ID)} {
		id, err := thread.ParseID(text)
		if err != nil {
			continue
		}
		if rec, err := find(ctx, project, id); err == nil && rec.Directive == folder {
			return rec, true
		}
	}
	return thread.Record{}, false
}
