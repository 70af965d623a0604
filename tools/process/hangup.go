//go:build linux || darwin

package process

import (
	"os"
	"os/signal"
	"syscall"
)

// OutliveHangup reports whether this process was started with SIGHUP ignored, as
// nohup does it. Then SIGHUP still does nothing to this process, but what it starts
// begins with the default action again: an ignored signal is inherited and most
// programs cannot undo that; a caught one is not.
func OutliveHangup() bool {
	if !signal.Ignored(syscall.SIGHUP) {
		return false
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	return true
}
