package scheduler

import (
	"errors"
	"os"
	"testing"

	"github.com/rye-mcp/rye-mcp/orchestrator/threads"
	"github.com/rye-mcp/rye-mcp/runtime/folder"
	"github.com/rye-mcp/rye-mcp/runtime/life"
	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/runtime/thread"
)

// disturbed are lives whose first claims fail.
type disturbed struct {
	*life.Local
	with  error
	times int
}

func (d *disturbed) Claim(k life.Key) (life.Hold, error) {
	if d.times--; d.times >= 0 {
		return nil, d.with
	}
	return d.Local.Claim(k)
}

// TestClaim: that somebody takes a place away meanwhile, or holds what is there for that,
// is tried again and not for ever; a claim that is given up leaves nothing behind.
func TestClaim(t *testing.T) {
	t.Parallel()
	disk := errors.New("disk")
	for name, c := range map[string]struct {
		with  error
		times int
		want  error
	}{
		"at once":        {nil, 0, nil},
		"taken away":     {os.ErrNotExist, claimTries - 1, nil},
		"being removed":  {life.ErrHeld, claimTries - 1, nil},
		"for ever":       {os.ErrNotExist, claimTries, os.ErrNotExist},
		"held for ever":  {life.ErrHeld, claimTries, life.ErrHeld},
		"no such matter": {disk, 1, disk},
	} {
		home := folder.Home{Dir: t.TempDir()}.Always()
		lives := &disturbed{&life.Local{Home: home}, c.with, c.times}
		s := &Scheduler{Threads: &threads.Threads{Deps: threads.Deps{Records: records.Local{Home: home}, Life: lives}}}
		key := life.Key{Thread: "work-1", Run: thread.NewRun()}
		claimed, err := s.claim(key)
		if !errors.Is(err, c.want) || (claimed.hold != nil) != (c.want == nil) {
			t.Errorf("%s: %+v, %v", name, claimed, err)
		}
		if c.want != nil {
			continue
		}
		if held, err := lives.Held(key); !held || err != nil {
			t.Errorf("%s: held %t, %v", name, held, err)
		}
		claimed.giveUp()
		if _, err := os.Stat(string(home().Of("work-1"))); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the folder is left, %v", name, err)
		}
	}
}
