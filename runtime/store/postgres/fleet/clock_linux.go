package fleet

import (
	"time"

	"golang.org/x/sys/unix"
)

// Uptime is the time since the machine was started, its sleep included (CLOCK_BOOTTIME in
// clock_gettime(2)): a lease runs out while its worker sleeps.
func Uptime() time.Time {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return time.Now()
	}
	return time.Unix(now.Unix())
}
