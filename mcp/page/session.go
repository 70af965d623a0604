package page

import (
	"context"
	"strings"
	"time"

	"github.com/rye-mcp/rye-mcp/orchestrator/operation"
)

// exchange gives a token for the code in the address that a browser was opened with.
func (p *Page) exchange(_ context.Context, c *call) (any, error) {
	var in struct {
		Code string `json:"code"`
	}
	if err := decode(c.body, &in); err != nil {
		return nil, err
	}
	bearer, granted, how := p.tokens.exchange(strings.TrimSpace(in.Code))
	c.token = granted
	switch how {
	case codeGood:
		return map[string]string{"token": bearer}, nil
	case codeTwice:
		p.log.Error().Str("token", granted.name).Str("remote", c.r.RemoteAddr).
			Msg("page: the code of the address came a second time, so somebody else has read it; its token is withdrawn")
		return nil, withoutToken("this address was used twice, so somebody else may have read it, and nobody is let in by it any more")
	default:
		p.denied.note(p, c.r, "code that is not good")
		return nil, withoutToken("this address was good once, for a minute")
	}
}

// Session is what a page is told first.
type Session struct {
	Version    string    `json:"version"`
	ReadOnly   bool      `json:"read_only"`
	Now        time.Time `json:"now"`
	Projects   []Named   `json:"projects"`
	Project    string    `json:"project"`
	Operations []string  `json:"operations"`
}

func (p *Page) session(_ context.Context, c *call) (any, error) {
	s := Session{
		Version: p.version, ReadOnly: c.token.readOnly, Now: p.now().UTC(), Projects: p.projects.List(), Operations: []string{},
	}
	asked := c.query("project")
	for _, known := range s.Projects {
		if s.Project == "" || known.Name == asked { // of none that there is, the first
			s.Project = known.Name
		}
	}
	if !c.token.readOnly {
		s.Operations = offered(operation.All())
	}
	return s, nil
}
