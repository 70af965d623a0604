package thread

import "strconv"

// Cost is what a thread has used so far. Tokens are those the provider
// reported; Spend is priced from them.
type Cost struct {
	Turns            int    `json:"turns" jsonschema:"LLM calls made"`
	InputTokens      int64  `json:"input_tokens" jsonschema:"input tokens that were not read from or written to a cache"`
	OutputTokens     int64  `json:"output_tokens" jsonschema:"output tokens"`
	CacheReadTokens  int64  `json:"cache_read_tokens" jsonschema:"input tokens read from the provider's prompt cache"`
	CacheWriteTokens int64  `json:"cache_write_tokens" jsonschema:"input tokens written to the provider's prompt cache"`
	Spend            Micros `json:"spend" jsonschema:"US dollars"`
}

// Add returns the sum of two costs, which stops at [MaxTokens] and [MaxMicros].
func (c Cost) Add(o Cost) Cost {
	return Cost{
		Turns:            c.Turns + o.Turns,
		InputTokens:      addTokens(c.InputTokens, o.InputTokens),
		OutputTokens:     addTokens(c.OutputTokens, o.OutputTokens),
		CacheReadTokens:  addTokens(c.CacheReadTokens, o.CacheReadTokens),
		CacheWriteTokens: addTokens(c.CacheWriteTokens, o.CacheWriteTokens),
		Spend:            c.Spend.Plus(o.Spend),
	}
}

// Tokens is every token that counts against the tokens limit.
func (c Cost) Tokens() int64 {
	return addTokens(c.InputTokens, c.OutputTokens, c.CacheReadTokens, c.CacheWriteTokens)
}

// TurnsText says how many turns there are: "1 turn", "2 turns".
func TurnsText(n int) string {
	if n == 1 {
		return "1 turn"
	}
	return strconv.Itoa(n) + " turns"
}

// Limits are the resolved bounds of a thread; every one is set.
type Limits struct {
	Turns           int     `json:"turns" jsonschema:"LLM calls"`
	Tokens          int64   `json:"tokens" jsonschema:"tokens of all kinds together"`
	Spend           Micros  `json:"spend" jsonschema:"US dollars, children included"`
	DurationSeconds float64 `json:"duration_seconds" jsonschema:"wall-clock seconds from the first turn"`
	Spawns          int     `json:"spawns" jsonschema:"children this thread may start"`
	Depth           int     `json:"depth" jsonschema:"levels of descendants below this thread"`
}
