package openai

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/llm/wire"
)

// Official reports whether a base URL leads to OpenAI itself.
func Official(baseURL string) bool { return leadsTo(baseURL, "api.openai.com") }

// leadsTo reports whether a base URL leads to a host, or to one below it.
func leadsTo(baseURL, host string) bool {
	u, err := url.Parse(baseURL)
	return err == nil && (u.Hostname() == host || strings.HasSuffix(u.Hostname(), "."+host))
}

// routesToClaude reports whether a request goes to Anthropic by way of OpenRouter.
func routesToClaude(req llm.Request, base string) bool {
	return leadsTo(base, "openrouter.ai") && strings.HasPrefix(req.Model, "anthropic/")
}

// caching is the member of a request that asks for a cache, where one has to be asked for;
// elsewhere providers recognise a prefix by themselves. The library has no field for it
// here, and other providers may not know it. OpenAI's has requests of one conversation meet
// the same cache; OpenRouter's marks for Anthropic the end of each request, which moves on
// with the conversation.
func caching(req llm.Request, base string) []byte {
	switch {
	case req.CacheKey != "" && Official(base):
		return fmt.Appendf(nil, `"prompt_cache_key":%q,`, req.CacheKey)
	case routesToClaude(req, base):
		return []byte(`"cache_control":{"type":"ephemeral"},`)
	}
	return nil
}

// takenIDs are the ids of calls that the provider at base takes; nil: all. After a change of
// model some are another vendor's. Ids that nobody refuses stay: gateways keep signatures of
// Google's in them, and Kimi reads the names of tools in its own.
func takenIDs(req llm.Request, base string) func(id string) bool {
	switch {
	case Official(base):
		return func(id string) bool { return len(id) <= maxChatID }
	case routesToClaude(req, base):
		return wire.PlainID
	case isMistral(req.Model):
		return wire.ShortID
	}
	return nil
}

// Lengths of ids of calls that OpenAI takes.
const (
	maxChatID     = 40
	maxResponseID = 64
)

// isMistral reports whether a model is one of Mistral's (Ministral, Mixtral, Codestral,
// Pixtral and so on), wherever it runs: what refuses ids is their API, which gateways pass
// on, and the template of their open models.
func isMistral(model string) bool {
	name := strings.ToLower(model)
	return strings.Contains(name, "stral") || strings.Contains(name, "xtral")
}

// unsignedCall stands for the signature of a call that none of Google's models has signed.
// Source: "Thought signatures" in Google's Gemini API guide.
const unsignedCall = "skip_thought_signature_validator"

// wantsSignatures reports whether a model at base refuses calls without a signature, as
// Google's Gemini does from version 3 on.
func wantsSignatures(model, base string) bool {
	_, version, found := strings.Cut(strings.ToLower(model), "gemini-")
	return found && leadsTo(base, "googleapis.com") && !strings.HasPrefix(version, "1") && !strings.HasPrefix(version, "2")
}

// signedCalls is a message with a signature at the first of its calls, where Google's
// models have theirs: calls of other models have none.
func signedCalls(m llm.Message) llm.Message {
	first := slices.IndexFunc(m.Blocks, func(b llm.Block) bool { return b.Type == llm.ToolUseBlock })
	if first < 0 || m.Blocks[first].Signature != "" {
		return m
	}
	m.Blocks = slices.Clone(m.Blocks)
	m.Blocks[first].Signature = unsignedCall
	return m
}
