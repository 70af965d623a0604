package rag

import (
	"slices"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

const (
	// leastShare is the least of a longer text that is worth its tokens.
	leastShare = 256 // bytes
	// clipMark is how much longer [item.Clip] makes a text than it was told to.
	clipMark = len("…")
)

// fit shortens the texts of hits so that together they take no more than so many tokens.
// Each has the same share, and what short ones leave of theirs goes to the others. The last
// hits are left out when there is less than leastShare for each.
func fit(hits []Hit, maxTokens int) []Hit {
	if maxTokens == 0 {
		return hits
	}
	room := maxTokens * bytesPerToken
	share := 0
	for len(hits) > 0 {
		var enough bool
		share, enough = fairShare(hits, room)
		if enough || share >= leastShare || len(hits) == 1 {
			break
		}
		hits = hits[:len(hits)-1]
	}
	for i, h := range hits {
		if len(h.Text) <= share {
			continue
		}
		hits[i].Truncated = true
		hits[i].Text = item.Clip(h.Text, max(0, share-clipMark))
		if share < clipMark {
			hits[i].Text = ""
		}
	}
	return hits
}

// fairShare is the most bytes that each text can have when all together have room; enough
// says that none must be shortened.
func fairShare(hits []Hit, room int) (share int, enough bool) {
	sizes := make([]int, len(hits))
	for i, h := range hits {
		sizes[i] = len(h.Text)
	}
	slices.Sort(sizes)
	for i, size := range sizes {
		share = room / (len(sizes) - i)
		if size > share {
			return share, false
		}
		room -= size
	}
	return sizes[len(sizes)-1], true
}
