package web

import (
	"compress/flate"
	"compress/gzip"
	"crypto/tls"
	"errors"
	"io"
	"syscall"

	"github.com/rye-mcp/rye-mcp/tools/netguard"
)

// said is a reason in our own words.
type said string

func (s said) Error() string { return string(s) }

// plainly tells an error in our own words: those of the libraries repeat what the
// other side has sent, and addresses, which may hold a key.
func plainly(err error) string {
	if own, ok := errors.AsType[said](err); ok {
		return string(own)
	}
	if address, ok := errors.AsType[netguard.AddressError](err); ok {
		return string(address)
	}
	if status, ok := errors.AsType[*statusError](err); ok {
		return status.Error()
	}
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return number.Error()
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "its certificate is not valid"
	}
	if _, ok := errors.AsType[flate.CorruptInputError](err); ok || errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) {
		return "its body cannot be unpacked"
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "the connection ended before the answer did"
	}
	return "the address or the answer is not valid"
}
