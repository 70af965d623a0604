package server

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/rye-mcp/rye-mcp/tools/tool"
)

// maxKept bounds what is kept of long answers, in bytes. The newest stay.
const maxKept = 64 << 20

// KeptPrefix begins the ids of texts that an answer had no room for.
const KeptPrefix = "answer:"

// kept are the texts that answers had no room for and that lie nowhere else. Their
// ids are hashes of them: knowing one is knowing the text.
type kept struct {
	mu    sync.Mutex
	texts map[string]string
	order []string // oldest first
	size  int
}

func (k *kept) put(text string) (id string) {
	sum := sha256.Sum256([]byte(text))
	id = KeptPrefix + hex.EncodeToString(sum[:16])
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, known := k.texts[id]; known {
		return id
	}
	if k.texts == nil {
		k.texts = map[string]string{}
	}
	k.texts[id] = text
	k.order = append(k.order, id)
	k.size += len(text)
	for k.size > maxKept && len(k.order) > 1 {
		k.size -= len(k.texts[k.order[0]])
		delete(k.texts, k.order[0])
		k.order = slices.Delete(k.order, 0, 1)
	}
	return id
}

// Kept is a text that an answer of this server had no room for, by its id.
func (s *Server) Kept(id string) (text string, ok bool) {
	s.kept.mu.Lock()
	defer s.kept.mu.Unlock()
	text, ok = s.kept.texts[id]
	return text, ok
}

// calls are how a model reads what an answer had no room for, with the tools that
// it was offered.
type calls struct {
	offers func(tool string) bool
}

const (
	toolRead    = "read_transcript"
	toolFetch   = "rye_fetch"
	toolExecute = "rye_execute"
)

func (s *Server) calls() calls {
	return calls{func(name string) bool { return s.mcp.GetTool(name) != nil }}
}

// transcript is the call that reads a part of what a thread has left; empty where
// none of the tools can.
func (c calls) transcript(w tool.Whole, from int) string {
	args := append([]string{"thread_id=" + string(w.ThreadID)}, partAndCursor(w, from)...)
	switch {
	case c.offers(toolRead):
		return toolRead + " " + strings.Join(args, " ")
	case c.offers(toolExecute):
		return fmt.Sprintf("%s item_id=rye/agent/threads/orchestrator parameters={operation=%s %s}",
			toolExecute, toolRead, strings.Join(args, " "))
	}
	return ""
}

// partAndCursor are the arguments that read a part of what a thread has left from a
// byte on; from its beginning, where a text in it was cut and not the part itself.
func partAndCursor(w tool.Whole, from int) []string {
	args := []string{"part=" + w.Part}
	if from > 0 && w.Verbatim {
		args = append(args, "cursor="+strconv.Itoa(from))
	}
	return args
}

// kept is the call that reads a kept text.
func (c calls) kept(id string, from int) string {
	if !c.offers(toolFetch) {
		return "the same call with a larger max_bytes"
	}
	call := toolFetch + " item_id=" + id
	if from > 0 {
		call += " offset=" + strconv.Itoa(from)
	}
	return call
}
