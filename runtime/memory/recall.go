package memory

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rye-mcp/rye-mcp/runtime/rag"
	"github.com/rye-mcp/rye-mcp/tools/builtin/memory"
	"github.com/rye-mcp/rye-mcp/tools/tool"
)

const (
	maxQuery = 8000 // characters of a question: more says nothing more
	// maxRecalled and maxTokens bound what a call may ask for.
	maxRecalled = 50
	maxTokens   = 20_000
	// spare hits are asked for beside those wanted, as the signature of one may not hold.
	spare = 10
)

// Recall implements [memory.Memory].
func (b *Book) Recall(ctx context.Context, q memory.Question) (memory.Recalled, error) {
	for _, k := range q.Kinds {
		if !slices.Contains(memory.Kinds(), k) {
			return memory.Recalled{}, tool.Faultf(tool.CodeBadArguments, "there is no kind %.40q; valid are %s", string(k), names(memory.Kinds()))
		}
	}
	text := clip(cleanText(q.Text), maxQuery)
	if text == "" || b.Seal == nil {
		return memory.Recalled{}, nil
	}
	// Where there is nothing, nobody is paid to look for it.
	if some, err := b.Index.List(ctx, rag.Listing{Namespace: Namespace, Project: b.scope(q.Anywhere), Limit: 1}); err != nil || len(some) == 0 {
		return memory.Recalled{}, err
	}
	vector, note := b.embed(ctx, text)
	limit := min(orDefault(q.Limit, b.Settings.Limit), maxRecalled)
	where := current()
	for _, k := range q.Kinds {
		where["kind"] = append(where["kind"], string(k))
	}
	floor := q.MinFloor
	if floor == 0 {
		floor = b.Settings.MinFloor
	}
	answer, err := b.Index.Query(ctx, rag.Query{
		Namespace: Namespace, Text: text, Vector: vector.Vector, Model: vector.Model, Limit: limit + spare, MinFloor: floor, ScoreRatio: b.Settings.ScoreRatio,
		Project: b.scope(q.Anywhere), ExcludeThread: string(q.Thread), ExcludeChain: string(q.ChainRoot), Where: where,
	})
	if err != nil {
		return memory.Recalled{}, err
	}
	out := memory.Recalled{Note: note, How: string(answer.By)}
	asked := wordingOf(text)
	for _, h := range answer.Hits {
		if len(out.Entries) == limit {
			break
		}
		k, err := b.opened(rag.Row{Key: h.Key, Project: h.Project, Text: h.Text, Metadata: h.Metadata}, q.Anywhere)
		if err != nil || !k.Current() {
			out.Refused++
			continue
		}
		// The best match of words is a match, however little it has in common.
		if h.By == rag.ByText && !asked.touches(wordingOf(words(k.Entry))) {
			continue
		}
		out.Entries = append(out.Entries, k.Entry)
	}
	out.Knowledge, out.Count = fenced(out.Entries, min(orDefault(q.MaxTokens, b.Settings.MaxTokens), maxTokens))
	out.LeftOut = len(out.Entries) - out.Count
	return out, nil
}

func orDefault(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}

// charsPerToken makes an estimate of tokens from characters.
const charsPerToken = 4

// tokensOf is an estimate, never below what the bytes suggest.
func tokensOf(text string) int {
	return (utf8.RuneCountInString(text) + charsPerToken - 1) / charsPerToken
}

// Least room in which an entry is worth showing, beside its fence, and the largest part of
// all room that one takes while others wait.
const (
	leastTokens  = 24
	largestShare = 2 // the half
)

// shortened ends a text that was cut.
const shortened = " … [shortened]"

// fenced are entries within a budget, best first, and how many found room. None is given
// more than its share, so that a long one does not take all.
func fenced(entries []memory.Entry, budget int) (knowledge string, count int) {
	left := budget - tokensOf(memory.Introduction) - 1
	var blocks []string
	for i, e := range entries {
		share := left
		if i < len(entries)-1 {
			share = min(left, max(left/largestShare, leastTokens+tokensOf(memory.Fenced(e, ""))))
		}
		block, fits := within(e, share)
		if !fits {
			continue // a shorter one may
		}
		blocks = append(blocks, block)
		left -= tokensOf(block) + 1
	}
	if len(blocks) == 0 {
		return "", 0
	}
	return memory.Introduction + "\n" + strings.Join(blocks, "\n"), len(blocks)
}

// within is an entry in at most so many tokens, with a shorter text where that is needed.
func within(e memory.Entry, tokens int) (block string, fits bool) {
	if block = memory.Fenced(e, e.Text); tokensOf(block) <= tokens {
		return block, true
	}
	// A quoted text takes more room than it has characters, so that one step may not do.
	for room := tokens - tokensOf(memory.Fenced(e, shortened)); room >= leastTokens; {
		block = memory.Fenced(e, clip(e.Text, room*charsPerToken)+shortened)
		over := tokensOf(block) - tokens
		if over <= 0 {
			return block, true
		}
		room -= over
	}
	return "", false
}
