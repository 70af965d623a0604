package ahead

import (
	"crypto/ed25519"
	"os"
)

// makeTables has the tables of Ed25519 made, which the first signature and the first
// verification of a process wait for: 2 ms in which a thread's process is initialized, and
// cannot use them yet.
func makeTables() {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	public, _ := key.Public().(ed25519.PublicKey)
	ed25519.Verify(public, nil, make([]byte, ed25519.SignatureSize))
}

// growStack has the stack of this goroutine, which becomes the loop of the thread, grow at
// once while there is nearly nothing on it. Otherwise it is copied five times as it grows,
// with the look-up of each frame in tables that no process has read so far: 1 ms.
//
//go:noinline
func growStack() byte {
	var room [48 << 10]byte
	return room[len(os.Args)]
}
