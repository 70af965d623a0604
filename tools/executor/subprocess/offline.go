package subprocess

import (
	"errors"
	"regexp"
	"sync"

	metadata "github.com/rye-mcp/rye-mcp/spaces/parse"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// noNetwork matches how programs say that they reach no network: the resolver, the system
// and the usual clients. The codes are in capitals: FileNotFoundError has one of them within it.
var noNetwork = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i:name resolution|name or service not known|nodename nor servname|no address associated with hostname|` +
		`could not resolve host|unable to resolve host|failed to resolve (?:the )?host|getaddrinfo|network is unreachable|` +
		`dial tcp: lookup|could not connect to server|couldn't connect to server)|` +
		`\b(?:EAI_AGAIN|ENOTFOUND|ENETUNREACH)\b`)
})

// offline says of a failure of a command that reaches no network why it may have failed, where
// what it wrote sounds like that.
func (o outcome) offline(ext string, err error) error {
	f, ok := errors.AsType[*tool.Fault](err)
	if !ok || f.Hint != "" || !noNetwork().MatchString(f.Message+"\n"+o.stderr) && !noNetwork().Match(o.stdout) {
		return err
	}
	declare := metadata.Network(ext)
	return f.WithHint("%s has no network, as it declares none. Its author declares `%s`, or a list of hosts, and signs it again.", o.id, declare).
		WithTry("declare %s in %s, or a list of hosts, and sign it again", declare, o.id)
}
