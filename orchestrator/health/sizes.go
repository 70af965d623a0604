package health

import (
	"context"
	"fmt"
	"slices"

	"github.com/rye-mcp/rye-mcp/runtime/finish"
	"github.com/rye-mcp/rye-mcp/runtime/records"
)

// Place is something that takes room on a disk beside what is of threads.
type Place struct {
	Name  string // as it stands in the report: "search_index"
	Bytes func(context.Context) (int64, error)
	// SetAside names databases of it that were damaged, and were replaced and kept; nil: it has
	// none.
	SetAside func() []string
}

// Names of sizes.
const (
	sizeDatabases   = "databases"
	sizeWAL         = "wal"
	sizeTranscripts = "transcripts"
	sizeArtifacts   = "artifacts"
	sizeLogs        = "thread_logs"
	sizeRenderings  = "renderings"
	sizeWorkspaces  = "workspaces"
)

// sizes adds up what things take, in bytes.
type sizes map[string]int64

// ofThread adds what a thread takes.
func (s sizes) ofThread(left records.Thread) error {
	all, err := left.Whole().Size()
	if err != nil {
		return err
	}
	artifacts, err := left.Artifacts().List()
	if err != nil {
		return err
	}
	var kept, logged int64
	for _, a := range artifacts {
		kept += a.Size
	}
	if stamp, err := left.Log().Stamp(); err == nil {
		logged = stamp.Size
	}
	s[sizeArtifacts] += kept
	s[sizeLogs] += logged
	s[sizeTranscripts] += max(0, all-kept-logged)
	return nil
}

// threads is what the threads that were looked at take.
func (s sizes) threads() int64 { return s[sizeTranscripts] + s[sizeArtifacts] + s[sizeLogs] }

// countSizes measures what is not of single threads.
func (c *Checker) countSizes(ctx context.Context, h *Report, s sizes, all bool) error {
	kept, err := c.Threads.Store.Footprint(ctx)
	if err != nil {
		return err
	}
	h.DBSizeMB, h.SetAside = mib(kept.Bytes), kept.SetAside
	s[sizeDatabases], s[sizeWAL] = kept.Bytes-kept.LogBytes, kept.LogBytes
	whole, err := c.Threads.Finisher.Entries(mostFolders(all), func(e finish.Entry) error {
		s[sizeRenderings] += e.Size
		return context.Cause(ctx)
	})
	if err != nil {
		return err
	}
	h.Partial = h.Partial || !whole
	if c.Threads.Workspaces != nil {
		kept, err := c.Threads.Workspaces.Kept()
		if err != nil {
			return fmt.Errorf("size of the workspaces: %w", err)
		}
		s[sizeWorkspaces] = kept.Bytes
		h.Partial = h.Partial || kept.Partial
	}
	for _, p := range c.Places {
		n, err := p.Bytes(ctx)
		if err != nil {
			return fmt.Errorf("size of %s: %w", p.Name, err)
		}
		s[p.Name] = n
		if p.SetAside != nil {
			h.SetAside = append(slices.Clip(h.SetAside), p.SetAside()...)
		}
	}
	h.SizesMB = make(map[string]float64, len(s))
	for name, bytes := range s {
		h.SizesMB[name] = mib(bytes)
	}
	return nil
}

// mib are so many bytes in MiB, with two digits behind the point.
func mib(bytes int64) float64 { return float64(bytes*100>>20) / 100 }

// Growth is how fast the threads of a project come to take more, as far as those that
// were looked at show it.
type Growth struct {
	Days          int     `json:"days" jsonschema:"the window"`
	ThreadsPerDay float64 `json:"threads_per_day" jsonschema:"used within the window"`
	MBPerDay      float64 `json:"mb_per_day" jsonschema:"at the average size of the folders looked at"`
}

func (h *Report) grow(s sizes) {
	h.Growth.Days = h.ActiveDays
	h.Growth.ThreadsPerDay = float64(h.ActiveThreads*10/h.ActiveDays) / 10
	if h.Folders > 0 {
		h.Growth.MBPerDay = mib(s.threads() / int64(h.Folders) * int64(h.ActiveThreads) / int64(h.ActiveDays))
	}
}

// Bounds from which on something is worth doing.
const (
	manyInactive = 1000     // threads
	muchInactive = 1 << 30  // bytes
	longWAL      = 16 << 20 // bytes; it is trimmed at 1 MiB while a server runs
	muchRow      = 64 << 10 // bytes of the databases for each thread
	smallStore   = 64 << 20 // bytes below which no database is worth the while
)

// advise says what to do, each only where what was measured calls for it.
func (h *Report) advise(s sizes) {
	inactive := int64(0)
	if h.Folders > 0 {
		inactive = s.threads() / int64(h.Folders) * int64(h.InactiveThreads)
	}
	if h.InactiveThreads >= manyInactive || inactive >= muchInactive {
		h.Advice = append(h.Advice, fmt.Sprintf(
			"cleanup_threads with older_than %dd: %d threads were not used since, and take about %.0f MiB; threads.ttl in agent.yaml does it by itself",
			h.ActiveDays, h.InactiveThreads, mib(inactive)))
	}
	switch {
	case s[sizeWAL] > longWAL:
		h.Advice = append(h.Advice, fmt.Sprintf("rye-mcp threads vacuum: the write-ahead logs have %.0f MiB", mib(s[sizeWAL])))
	case s[sizeDatabases] > smallStore && s[sizeDatabases] > int64(h.ThreadCount)*muchRow:
		h.Advice = append(h.Advice, fmt.Sprintf("rye-mcp threads vacuum: the databases have %.0f MiB for %d threads", mib(s[sizeDatabases]), h.ThreadCount))
	}
	switch {
	case h.OrphanedFolders == 1:
		h.Advice = append(h.Advice, "reconcile_threads with apply: 1 folder has no row")
	case h.OrphanedFolders > 1:
		h.Advice = append(h.Advice, fmt.Sprintf("reconcile_threads with apply: %d folders have no row", h.OrphanedFolders))
	}
}
