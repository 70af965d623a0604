//go:build !linux

package fleet

import "time"

// unset is a clock whose differences nobody can set. It may stand still while the machine
// sleeps.
func unset() time.Time { return time.Now() }
