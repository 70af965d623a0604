package handler

import (
	"context"
	_ "embed" // descriptions
	"strings"

	"github.com/rye-mcp/rye-mcp/mcp/server"
	"github.com/rye-mcp/rye-mcp/spaces/search"
	"github.com/rye-mcp/rye-mcp/tools/action"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

var (
	//go:embed fetch.md
	fetchText string
	//go:embed search.md
	searchText string
	//go:embed sign.md
	signText string
)

// fetchOutput documents both modes: an [action.FetchResult] by id, or an
// [action.SearchResult] of a query.
type fetchOutput struct {
	Success    bool            `json:"success"`
	ItemType   string          `json:"item_type,omitempty"`
	ItemID     string          `json:"item_id,omitempty"`
	Space      string          `json:"space,omitempty" jsonschema:"project, user or system"`
	Path       string          `json:"path,omitempty"`
	Content    string          `json:"content,omitempty" jsonschema:"the file without its signature line, from offset on"`
	TotalBytes int             `json:"total_bytes,omitempty" jsonschema:"length of the whole content"`
	NextOffset int             `json:"next_offset,omitempty" jsonschema:"there is more: give it back as offset to read on"`
	Metadata   map[string]any  `json:"metadata,omitempty"`
	Signature  any             `json:"signature,omitempty" jsonschema:"state (ok, system, unsigned, altered, untrusted_key, other_item, unbound, body_not_covered, not_shipped or unknown), by (fingerprint), owner, signed_at, provenance, detail"`
	Shadows    []action.Shadow `json:"shadows,omitempty" jsonschema:"items of the same id that this one hides"`
	Warnings   []string        `json:"warnings,omitempty"`
	CopiedTo   string          `json:"copied_to,omitempty" jsonschema:"path of the copy"`
	Replaced   string          `json:"replaced,omitempty" jsonschema:"where what stood there is kept"`
	Next       string          `json:"next,omitempty" jsonschema:"what to call next"`
	Results    []search.Hit    `json:"results,omitempty" jsonschema:"of a query, best first"`
	Total      int             `json:"total,omitempty" jsonschema:"results of a query on all pages"`
	Query      string          `json:"query,omitempty"`
	Scope      string          `json:"scope,omitempty"`
	Limit      int             `json:"limit,omitempty"`
	Offset     int             `json:"offset,omitempty"`
	Index      string          `json:"index,omitempty"`
	Hint       string          `json:"hint,omitempty"`

	sent any
}

// MarshalJSON writes the result as it came.
func (o fetchOutput) MarshalJSON() ([]byte, error) { return asItIs(o.sent) }

// keptText is a page of a text that an answer had no room for.
type keptText struct {
	Success    bool   `json:"success"`
	ItemID     string `json:"item_id"`
	TotalBytes int    `json:"total_bytes"`
	NextOffset int    `json:"next_offset,omitempty"`
	Content    string `json:"content"`
}

// readKept reads a text that an answer of this server had no room for.
func readKept(s *server.Server, in action.FetchRequest) (fetchOutput, error) {
	text, ok := s.Kept(in.ItemID)
	if !ok {
		return fetchOutput{}, tool.Faultf(tool.CodeNotFound, "%.80s is not kept: a server keeps the newest of what its answers had no room for, until it ends", in.ItemID).
			WithHint("Call again what the answer was about, with max_bytes for a longer answer.")
	}
	page, next, err := action.PageOf(text, in.Offset, in.MaxBytes)
	return fetchOutput{sent: keptText{true, in.ItemID, len(text), next, page}}, err
}

func addFetch(s *server.Server, projects Projects) {
	// With a destination it writes; an item that stood there is kept.
	addAnywhere(s, projects, texts{"rye_fetch", fetchText, []string{"query", "scope", "limit", "overwrite"}}, server.Annotations{Title: "Read an item"},
		func(ctx context.Context, call server.Call, in action.FetchRequest) (fetchOutput, error) {
			p, err := open(ctx, projects, call)
			if strings.HasPrefix(in.ItemID, server.KeptPrefix) {
				return readKept(s, in) // it is of the server, and the call that names it names no project
			}
			if err != nil {
				return fetchOutput{}, err
			}
			result, err := p.Actions.Fetch(ctx, caller(p, call), in)
			return fetchOutput{sent: result}, err
		})
}

func addSearch(s *server.Server, projects Projects) {
	add(s, projects, texts{"rye_search", searchText, []string{"fields", "fuzzy", "proximity"}}, server.Annotations{Title: "Search items", ReadOnly: true, Idempotent: true},
		func(ctx context.Context, p *Project, call server.Call, in action.SearchRequest) (*action.SearchResult, error) {
			return p.Actions.Search(ctx, caller(p, call), in)
		})
}

func addSign(s *server.Server, projects Projects) {
	// Not idempotent: a signature carries its time.
	add(s, projects, texts{name: "rye_sign", description: signText}, server.Annotations{Title: "Sign items"},
		func(ctx context.Context, p *Project, call server.Call, in action.SignRequest) (*action.SignResult, error) {
			return p.Actions.Sign(ctx, caller(p, call), in)
		})
}
