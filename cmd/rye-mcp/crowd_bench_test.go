package main_test

import (
	"fmt"
	"os/exec"
	"testing"
	"time"
)

// BenchmarkRatioMany compares what looks at all threads in a project of 20 000 that
// have ended with one of 1 000.
func BenchmarkRatioMany(b *testing.B) {
	program := build(b, ".")
	crowded := func(n int) *place {
		p := newPlace(b, fmt.Sprintf(loaded, 10))
		p.program = program
		p.crowd(n)
		return p
	}
	many, few := crowded(20_000), crowded(1000)
	command := func(p *place, arguments ...string) func() time.Duration {
		return func() time.Duration {
			cmd := exec.Command(p.program, arguments...)
			cmd.Dir, cmd.Env = p.dir, p.env
			began := time.Now()
			if out, err := cmd.CombinedOutput(); err != nil {
				b.Fatalf("%v\n%s", err, out)
			}
			return time.Since(began)
		}
	}
	for _, arguments := range [][]string{{"threads", "health"}, {"threads", "reconcile"}, {"doctor"}, {"threads", "list"}} {
		what := arguments[len(arguments)-1]
		row(b, what+" with 20 000 threads", "with 1 000", "nothing is written", 1.5, func(b *testing.B) float64 {
			return ratio(15, command(many, arguments...), command(few, arguments...))
		})
	}
}
