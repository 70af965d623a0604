package ahead

import "os"

// growStack has the stack of this goroutine, which becomes the loop of the thread, grow at
// once while there is nearly nothing on it. Otherwise it is copied five times as it grows,
// with the look-up of each frame in tables that no process has read so far: 1 ms.
//
//go:noinline
func growStack() byte {
	var room [48 << 10]byte
	return room[len(os.Args)]
}
