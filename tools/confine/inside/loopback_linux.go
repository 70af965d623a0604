package inside

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// handListener switches on the loopback of this network, listens there, and hands the
// listener to who has started this process, whose proxy takes what comes. It returns
// the address for the command.
func handListener() (proxy string, err error) {
	if err := loopbackUp(); err != nil {
		return "", fmt.Errorf("switch on: %w", err)
	}
	listener, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = unix.Close(listener) }()
	if err := unix.Bind(listener, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return "", err
	}
	if err := unix.Listen(listener, unix.SOMAXCONN); err != nil {
		return "", err
	}
	bound, err := unix.Getsockname(listener)
	if err != nil {
		return "", err
	}
	address, ok := bound.(*unix.SockaddrInet4)
	if !ok {
		return "", fmt.Errorf("the listener is at a %T", bound)
	}
	defer func() { _ = unix.Close(ListenerFD) }()
	if err := unix.Sendmsg(ListenerFD, []byte{0}, unix.UnixRights(listener), nil, 0); err != nil {
		return "", fmt.Errorf("hand over: %w", err)
	}
	return fmt.Sprintf("http://127.0.0.1:%d", address.Port), nil
}

func loopbackUp() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(socket) }()
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, lo)
}
