package health

import (
	"strings"
	"testing"
)

// TestAdvice: each advice is given only where what was measured calls for it.
func TestAdvice(t *testing.T) {
	t.Parallel()
	const mb = 1 << 20
	for name, c := range map[string]struct {
		report Report
		sizes  sizes
		want   string // begins of the advice, in order
	}{
		"nothing":             {Report{ThreadCount: 10, InactiveThreads: 5, Folders: 10}, sizes{sizeTranscripts: mb, sizeWAL: mb, sizeDatabases: mb}, ""},
		"no threads":          {Report{}, sizes{}, ""},
		"many inactive":       {Report{ThreadCount: 3000, InactiveThreads: 2000, Folders: 1000}, sizes{sizeTranscripts: mb}, "cleanup_threads with older_than 7d: 2000 threads"},
		"much inactive":       {Report{ThreadCount: 20, InactiveThreads: 10, Folders: 10}, sizes{sizeArtifacts: 2 << 30}, "cleanup_threads"},
		"much, all active":    {Report{ThreadCount: 20, Folders: 10}, sizes{sizeArtifacts: 2 << 30}, ""},
		"long logs":           {Report{ThreadCount: 1, Folders: 1}, sizes{sizeWAL: 20 * mb}, "rye-mcp threads vacuum: the write-ahead"},
		"large databases":     {Report{ThreadCount: 100, Folders: 1}, sizes{sizeDatabases: 100 * mb}, "rye-mcp threads vacuum: the databases"},
		"many threads":        {Report{ThreadCount: 100_000, Folders: 1}, sizes{sizeDatabases: 100 * mb}, ""},
		"folders without row": {Report{OrphanedFolders: 3, Folders: 3}, sizes{}, "reconcile_threads with apply: 3 folders"},
	} {
		h := c.report
		h.ActiveDays = 7
		h.grow(c.sizes)
		h.advise(c.sizes)
		if got := strings.Join(h.Advice, "\n"); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	h := Report{ActiveThreads: 70, ActiveDays: 7, Folders: 10}
	h.grow(sizes{sizeTranscripts: 20 * mb})
	if h.Growth != (Growth{Days: 7, ThreadsPerDay: 10, MBPerDay: 20}) {
		t.Errorf("growth %+v", h.Growth)
	}
}
