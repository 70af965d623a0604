package resource

import (
	"context"
	"sync"

	"github.com/rye-mcp/rye-mcp/mcp/handler"
	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/orchestrator/changes"
)

// aspects are what changes with the parts that show threads.
func (p Part) aspect() changes.Aspect {
	switch p {
	case Transcript:
		return changes.Transcript
	case Result:
		return changes.Result
	case Cost:
		return changes.Cost
	case Chain:
		return changes.Chain
	default:
		return changes.Board
	}
}

// WatchList implements [server.Resources].
func (r *Resources) WatchList(ctx context.Context, _ server.Call, changed func()) (func(), error) {
	p, err := r.Projects.Project(ctx, "")
	if err != nil {
		return nil, err
	}
	return r.listen(ctx, p, changes.Topic{Aspect: changes.Set}, changed)
}

// Watch implements [server.Resources].
func (r *Resources) Watch(ctx context.Context, call server.Call, uri string, changed func()) (func(), error) {
	a, err := Parse(uri)
	if err != nil {
		return nil, missing(uri, err)
	}
	p, err := r.project(ctx, call, a)
	if err != nil {
		return nil, err
	}
	if a.Part == Item {
		return watchItem(ctx, p, call, a, changed)
	}
	return r.listen(ctx, p, changes.Topic{ID: a.Thread, Aspect: a.Part.aspect()}, changed)
}

// listening is somebody who is told of changes, by one project after the other where
// its state is replaced.
type listening struct {
	projects handler.Projects
	path     string
	topic    changes.Topic
	changed  func()

	mu    sync.Mutex
	ended bool
	stop  func()
}

func (r *Resources) listen(ctx context.Context, p *handler.Project, topic changes.Topic, changed func()) (func(), error) {
	l := &listening{projects: r.Projects, path: p.Path, topic: topic, changed: changed}
	if err := l.begin(ctx, p); err != nil {
		return nil, err
	}
	return l.end, nil
}

func (l *listening) begin(ctx context.Context, p *handler.Project) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return nil
	}
	stop, err := p.Control.Changes.Listen(ctx, l.topic, func(over bool) { //nolint:contextcheck // changes are of no call
		if over {
			go l.again()
			return
		}
		l.changed()
	})
	l.stop = stop
	return err
}

// again listens to the project that is now in the place of the one before. Where there
// is none, reading says so.
func (l *listening) again() {
	ctx := context.Background() // that of the call is over, and would be kept with all it brought along
	p, err := l.projects.Project(ctx, l.path)
	if err == nil {
		_ = l.begin(ctx, p) // the server is being closed
	}
	l.changed()
}

func (l *listening) end() {
	l.mu.Lock()
	stop := l.stop
	l.ended, l.stop = true, nil
	l.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// watchItem tells when the text of an item is another, or it is refused for another
// reason, than at the look before.
func watchItem(ctx context.Context, p *handler.Project, call server.Call, a Address, changed func()) (func(), error) {
	known := lookAt(ctx, p, call, a)
	return p.Prompts.Items.Listen(func() { //nolint:contextcheck // changes are of no call
		if now := lookAt(context.Background(), p, call, a); now != known {
			known = now
			changed()
		}
	})
}

// lookAt is what an item holds, in short.
func lookAt(ctx context.Context, p *handler.Project, call server.Call, a Address) [32]byte {
	a.Offset, a.Bytes = 0, mostBytes
	reading, err := readItem(ctx, p, call, "", a)
	return digest(reading, err)
}
