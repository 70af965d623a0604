package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"

	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// Accepted names what of a project's settings its user has accepted, or follows a key for, as
// far as threads go by it: a SHA-256 in hex; empty: nothing. It is the same on all machines
// whose users have accepted the same, whatever else stands in their checkouts: that can only
// tighten what holds. Settings of the user space are not part of it.
func Accepted(sn *Snapshot) string {
	p := sn.project()
	if p.accepted == nil && len(p.follow) == 0 {
		return ""
	}
	var files []string
	for _, k := range []kind{agentKind, coordinationKind, resilienceKind, riskKind, toolsKind, memoryKind} {
		files = append(files, k.files...)
	}
	sum, any := sha256.New(), false
	for _, file := range slices.Concat(files, p.wholeFiles()) {
		switch why, v := p.counts(file); why {
		case asIs, byFollowing, asCopied:
			_, rest := sign.Split(v.data, path.Ext(file))
			_, _ = fmt.Fprintf(sum, "%q %d\n%s\n", file, len(rest), rest) // a hash takes everything
			any = true
		case absent, notAtAll:
		}
	}
	if !any {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))
}
