package records

import (
	"errors"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

// TestWatchGoesOnAfterAnError: an error of the watcher says that something was lost, and what
// comes after it is told.
func TestWatchGoesOnAfterAnError(t *testing.T) {
	t.Parallel()
	watcher := &fsnotify.Watcher{Events: make(chan fsnotify.Event), Errors: make(chan error)}
	told, ended := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(ended)
		tell(watcher, told)
	}()
	late := time.After(time.Minute)
	for step := range 3 {
		select {
		case watcher.Errors <- errors.New("overflow"):
		case <-late:
			t.Fatalf("step %d: nobody reads errors", step)
		}
		<-told
		watcher.Events <- fsnotify.Event{Name: "a"}
		<-told
	}
	close(watcher.Events)
	<-ended
}
