// Package disktest gives tests small disks that become full.
package disktest
