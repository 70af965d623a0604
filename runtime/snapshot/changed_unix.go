//go:build unix && !linux

package snapshot

import "syscall"

func changedAt(s *syscall.Stat_t) int64 { return s.Ctimespec.Nano() }
