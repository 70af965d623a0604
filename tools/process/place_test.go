//go:build linux || darwin

package process

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

func TestReach(t *testing.T) {
	t.Parallel()
	here := Here("here")
	if here.Boot == "" {
		t.Fatal("the start of this kernel has no name")
	}
	self := here.Self()
	for name, c := range map[string]struct {
		change       func(*ID)
		reach        Reach
		over, signal bool
	}{
		"itself":                 {func(*ID) {}, Near, false, true},
		"host renamed":           {func(id *ID) { id.Host = "later" }, Near, false, true},
		"number given out again": {func(id *ID) { id.Started++ }, Near, true, false},
		"start not known":        {func(id *ID) { id.Started = 0 }, Near, false, true},
		"another container":      {func(id *ID) { id.PIDNamespace += "1" }, Walled, false, false},
		"before a restart":       {func(id *ID) { id.Boot += "1" }, Bygone, true, false},
		"another machine":        {func(id *ID) { id.Boot, id.Host = "b", "there" }, Elsewhere, false, false},
		"older version":          {func(id *ID) { *id = ID{PID: id.PID, Host: "here"} }, Near, false, true},
		"older version there":    {func(id *ID) { *id = ID{PID: id.PID, Host: "there"} }, Elsewhere, false, false},
		"no process":             {func(id *ID) { *id = ID{} }, Near, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := self
			c.change(&id)
			if got := here.Reach(id); got != c.reach {
				t.Errorf("reach %d, want %d", got, c.reach)
			}
			if got := here.Over(id); got != c.over {
				t.Errorf("over: %t", got)
			}
			if got := here.Signallable(id); got != c.signal {
				t.Errorf("signallable: %t", got)
			}
		})
	}
	if self.PID != os.Getpid() || self.Started == 0 || here.Identify(os.Getpid()) != self {
		t.Errorf("this process is %+v", self)
	}
}

// sayPlace is what a process does that is asked which one it is.
func sayPlace() int {
	self, err := json.Marshal(Here("there").Self())
	if err != nil {
		return 1
	}
	fmt.Println(string(self))
	return 0
}
