package cli

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/due"
)

// TestDueFindings: a line tells what is due, and warns where that is due for long or could not
// be sent.
func TestDueFindings(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	const theirs = "0123456789abcdef0123456789abcdef"
	for name, test := range map[string]struct {
		to, mirror string
		is         due.Standing
		level      level // empty: nothing is said by doctor
		text, try  string
	}{
		"nothing":           {dueMirror, "", due.Standing{}, "", "nothing is due", ""},
		"one, just now":     {dueMirror, "", due.Standing{Threads: 1, Oldest: now}, levelOK, "1 thread due, the oldest for 0s", ""},
		"being sent":        {dueMirror, "", due.Standing{Threads: 2, Oldest: now, Sender: "db7"}, levelOK, "2 threads due, the oldest for 0s; db7 sends", ""},
		"for long":          {dueMirror, "", due.Standing{Threads: 1, Oldest: now.Add(-time.Hour)}, levelWarn, "the oldest for 1h", "rye-mcp langgraph sync"},
		"another's":         {dueMirror, theirs, due.Standing{Threads: 1, Oldest: now.Add(-time.Hour)}, levelWarn, "of other machines (0123456789ab): 1 thread", "this mirror"},
		"failed":            {dueMirror, "", due.Standing{Threads: 1, Oldest: now, Failure: "it rains", FailedAt: now.Add(-time.Minute)}, levelWarn, "failed 1m ago: it rains", "langgraph sync"},
		"failed, who knows": {dueMirror, "", due.Standing{Failure: "it rains"}, levelWarn, "failed: it rains", "langgraph sync"},
		"spans":             {dueTraces, "", due.Standing{Threads: 3, Oldest: now.Add(-time.Hour)}, levelWarn, "3 threads due", "help traces"},
		"notices":           {dueNotices, "", due.Standing{Threads: 3, Oldest: now.Add(-time.Hour)}, levelWarn, "3 threads due", "edit notify"},
	} {
		s := newDueState(test.to, test.is)
		s.Mirror = test.mirror
		if text := s.text(now); !strings.Contains(text, test.text) {
			t.Errorf("%s: %s", name, text)
		}
		found := dueFindings([]dueState{s}, nil, now)
		switch {
		case test.level == "" && len(found) == 0:
		case len(found) != 1 || found[0].Level != test.level || !strings.Contains(found[0].Detail, test.to+": ") || !strings.Contains(found[0].Try, test.try):
			t.Errorf("%s: %+v", name, found)
		}
	}
	if found := dueFindings(nil, errors.New("it is gone"), now); len(found) != 1 || found[0].Level != levelWarn {
		t.Errorf("%+v", found)
	}
}
