// Package sign makes and checks Ed25519 signatures of items and of JSON
// documents.
//
// A signed file carries one comment line, first in the file or second after a
// shebang:
//
//	# rye:signed:v2:2026-11-22T05:38:21Z:<sha256>:<signature>:<fingerprint>:<kind>:<id>
//
// The hash is SHA-256 over the file without that line and, in scripts, without a
// plain shebang line: so whoever runs a script must not let that line choose the
// program. The signature is over
//
//	rye2\n<kind>\n<id>\n<hash>
//
// with the hash in hex, as ASCII, and kind and id as [Name] has them; in the line
// the id is in percent encoding. So a signature is for one item: it counts for
// nothing in the place of another. The id of a tool carries the extension of its
// file ("team/deploy.py"), since that decides what reads the text: a Python
// script means something else to a shell. Time and provenance are not signed,
// nor is the space: an item keeps its signature when it moves between the spaces
// and from one project to the next.
//
// An older signature has no "v2:", no kind and no id, and is over the hash alone.
// It says that somebody signed this text, not as what; package trust
// decides what becomes of it. The mark stands where older readers expect the time,
// so that none of them takes the one form for the other. Nor do the messages meet:
// an older one is 64 hex digits.
//
// See [Split], [Attach] and [Signature.Covers].
//
// A signed JSON document carries its signature in the member "_signature". See
// [EncodeSigned].
//
// Package trust decides which keys count, and what becomes of a file whose
// signature is not good.
package sign

import "errors"

var (
	// ErrNoKey says that the user has no signing key.
	ErrNoKey = errors.New("no signing key")
	// ErrKeyExists says that a key would have been overwritten.
	ErrKeyExists = errors.New("a signing key exists already")
	// ErrUnsigned says that content carries no signature.
	ErrUnsigned = errors.New("not signed")
	// ErrUnbound says that a genuine signature is an older one, for no kind and id.
	ErrUnbound = errors.New("an older signature, for no kind and id")
	// ErrOtherItem says that a genuine signature was made for another kind or id.
	ErrOtherItem = errors.New("signed as another item")
	// ErrBadSignature says that a signature does not fit the content or the key.
	ErrBadSignature = errors.New("bad signature")
)
