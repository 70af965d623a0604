package metrics

import (
	"bytes"
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/store"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

const (
	// scrapeTime bounds one look at all projects: Prometheus waits ten seconds unless it
	// is told otherwise.
	scrapeTime = 8 * time.Second
	// fresh is how long a look holds.
	fresh = time.Second
)

// How many values the labels have that others choose.
const (
	mostDirectives = 200
	mostModels     = 50
	mostCodes      = 100
	mostTools      = 100
)

// Rows are the threads of a project.
type Rows interface {
	List(context.Context, store.Filter) (rows []thread.Record, next string, err error)
	Known(context.Context, []thread.ID) (map[thread.ID]bool, error)
	Census(context.Context) (store.Counts, error)
	Stats(context.Context, store.StatsSince) (store.Stats, error)
	store.DeletionLister
}

// Project is one whose threads are told of.
type Project struct {
	Path string // its name in labels
	Rows Rows
	// Transcript is that of a thread; nil: no metric tells what threads did.
	Transcript func(thread.ID) records.Source
}

// Options of a [Collector].
type Options struct {
	Version string
	Started time.Time // of the process
	Now     func() time.Time
	// Projects are those that are open.
	Projects func() []Project
	Log      zerolog.Logger
}

// Collector answers scrapes. It does nothing between them.
type Collector struct {
	opts Options

	mu       sync.Mutex
	families *families
	tracked  map[string]*tracker // by path of the project
	at       time.Time           // of the last look; zero: there was none

	directives, models, codes, tools names
}

// New returns a collector.
func New(opts Options) *Collector {
	c := &Collector{
		opts: opts, families: newFamilies(), tracked: map[string]*tracker{},
		directives: names{most: mostDirectives}, models: names{most: mostModels}, codes: names{most: mostCodes}, tools: names{most: mostTools},
	}
	c.families.build.set(1, shown(opts.Version))
	c.families.processStart.set(opts.Started.UnixMilli())
	return c
}

// ServeHTTP implements [http.Handler].
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text := c.Text(r.Context())
	w.Header().Set("Content-Type", ContentType)
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(text) // the scraper has gone, which is its affair
}

// Text is what a scrape is answered with.
func (c *Collector) Text(ctx context.Context) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if age := c.opts.Now().Sub(c.at); c.at.IsZero() || age < 0 || age >= fresh {
		ctx, cancel := context.WithTimeout(ctx, scrapeTime)
		defer cancel()
		c.look(ctx)
		c.at = c.opts.Now()
	}
	var out bytes.Buffer
	c.families.write(&out)
	return out.Bytes()
}

// look brings all families up to date. A project that cannot be looked at is said to be down,
// and its counters stay as they are.
func (c *Collector) look(ctx context.Context) {
	f := c.families
	for _, one := range []*family{f.up, f.threads, f.kept, f.queue, f.queueOldest, f.questions, f.questionOldest, f.unread} {
		one.clear()
	}
	for _, p := range c.opts.Projects() {
		t := c.tracked[p.Path]
		if t == nil || t.rows != p.Rows {
			t = c.track(p, t)
		}
		up := int64(1)
		if err := t.look(ctx); err != nil {
			up = 0
			c.opts.Log.Warn().Err(err).Str("project", p.Path).Msg("metrics: the threads of the project could not be looked at")
		}
		f.up.set(up, t.project)
	}
}

// track begins with a project: with what it was since the server was started, or, when
// its state is another now, since the look at the one before.
func (c *Collector) track(p Project, before *tracker) *tracker {
	t := &tracker{Collector: c, project: shown(p.Path), rows: p.Rows, transcript: p.Transcript, began: c.opts.Started, known: map[thread.ID]seen{}}
	if before != nil {
		t.began = before.looked
	}
	t.cursor = t.began
	c.tracked[p.Path] = t
	return t
}
