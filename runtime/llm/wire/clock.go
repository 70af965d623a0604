package wire

import (
	"fmt"
	"math"
	"time"
)

// clock breaks off a call that falls silent. It runs only while this side waits, so
// that a slow reader is not taken for a slow sender. Gateways send a sign of life
// every few seconds while a model thinks: before the answer has begun each of them
// grants the call another StallTimeout, up to FirstTimeout in all; afterwards the
// answer alone counts. One goroutine uses it.
type clock struct {
	stall, first time.Duration // what may be waited for, in all; 0 is no limit
	timer        *time.Timer   // nil without a limit
	since        time.Time     // when the wait in progress began
	silent       time.Duration // waited since what counts last came
	waited       time.Duration // waited before the answer began
	begun        bool          // the answer has
}

func newClock(c Config, over func()) clock {
	k := clock{stall: c.StallTimeout, first: c.FirstTimeout}
	if k.stall > 0 || k.first > 0 {
		// It must not run out before it is stopped.
		k.timer = time.AfterFunc(math.MaxInt64, over)
		k.timer.Stop()
	}
	return k
}

// start begins a wait.
func (k *clock) start() {
	if k.timer == nil {
		return
	}
	k.since = time.Now()
	k.timer.Reset(k.left())
}

// left is how long the wait may last.
func (k *clock) left() time.Duration {
	left := time.Duration(math.MaxInt64)
	if k.stall > 0 {
		left = k.stall - k.silent
	}
	if k.first > 0 && !k.begun {
		left = min(left, k.first-k.waited)
	}
	return max(left, 0)
}

// stop ends a wait.
func (k *clock) stop() {
	if k.timer == nil || k.since.IsZero() {
		return
	}
	k.timer.Stop()
	waited := time.Since(k.since)
	k.since = time.Time{}
	k.silent += waited
	k.waited += waited
}

// alive says that something has arrived.
func (k *clock) alive() {
	if !k.begun {
		k.silent = 0
	}
}

// content says that a part of the answer has arrived.
func (k *clock) content() { k.begun, k.silent = true, 0 }

// verdict says which limit was reached.
func (k *clock) verdict() string {
	switch {
	case k.begun:
		return fmt.Sprintf("timed out: nothing of the answer for %s", k.stall)
	case k.first > 0 && k.waited >= k.first:
		return fmt.Sprintf("timed out: no answer began within %s", k.first)
	}
	return fmt.Sprintf("timed out: no byte for %s", k.stall)
}
