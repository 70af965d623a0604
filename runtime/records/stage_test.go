package records_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/rye-mcp/rye-mcp/runtime/records"
	"github.com/rye-mcp/rye-mcp/spaces/place/placetest"
)

// TestStageAtOnce: whoever wants the stage while another takes it down has it, or is told
// that somebody has.
func TestStageAtOnce(t *testing.T) {
	t.Parallel()
	of := local(t.TempDir(), placetest.NewSeal(t))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 200 {
				stage, err := of.Stage()
				if err == nil {
					err = stage.Close()
				}
				if err != nil && !errors.Is(err, records.ErrStaged) {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}
