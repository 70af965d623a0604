package ahead

import (
	"runtime"
	"sync"
	"testing"
)

// TestBeside: each of those that run beside has a processor more, and all are given back,
// whichever ends first.
func TestBeside(t *testing.T) { //nolint:paralleltest // the processors are those of all tests
	most := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(most)
	var begun, ended sync.WaitGroup
	over := [3]chan struct{}{make(chan struct{}), make(chan struct{}), make(chan struct{})}
	for i := range over {
		begun.Add(1)
		ended.Add(1)
		Beside(func() {
			begun.Done()
			<-over[i]
			ended.Done()
		})
	}
	begun.Wait()
	if now := runtime.GOMAXPROCS(0); now != most+len(over) {
		t.Errorf("%d processors, want %d more than %d", now, len(over), most)
	}
	for _, i := range []int{1, 0, 2} {
		close(over[i])
	}
	ended.Wait()
	for runtime.GOMAXPROCS(0) != most { // the last one is about to
		runtime.Gosched()
	}
}

// TestNoneBegun: a process that runs no thread has begun nothing.
func TestNoneBegun(t *testing.T) {
	t.Parallel()
	if l := Take(); l != nil {
		t.Errorf("%+v", l)
	}
	Take().Close() // nor does it harm
}
