package config

import (
	"strings"

	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/trust"
)

// Agent is config/agent/agent.yaml: how threads run.
type Agent struct {
	Provider        ProviderDefaults `yaml:"provider"`
	MaxOutputTokens int              `yaml:"max_output_tokens"` // of one answer
	Threads         ThreadSettings   `yaml:"threads"`
	// Integrity is read from user and system space only.
	Integrity trust.Settings `yaml:"integrity"`
	// RiskQuestions is read from user and system space only.
	RiskQuestions RiskQuestions `yaml:"risk"`
}

// RiskQuestions says whether the person is asked about risk.
type RiskQuestions struct {
	// Ask: at a start with capabilities whose risk nobody has accepted, where the
	// client can ask. Otherwise such a start is only warned of.
	Ask bool `yaml:"ask"`
}

// ProviderDefaults choose the provider of a thread that does not name one.
type ProviderDefaults struct {
	Default string   `yaml:"default"` // empty: the first of Order that is usable
	Order   []string `yaml:"order"`
}

// Values of [ThreadSettings.Orphans].
const (
	OrphansCancel = "cancel"
	OrphansKeep   = "keep"
)

// ThreadSettings are about thread processes.
type ThreadSettings struct {
	Orphans         string  `yaml:"orphans"`           // children of a dead thread: OrphansCancel or OrphansKeep
	MaxRunning      int     `yaml:"max_running"`       // threads that run at the same time; 0: chosen by the machine
	ToolConcurrency int     `yaml:"tool_concurrency"`  // tool calls of one turn at the same time
	SoftStopSeconds float64 `yaml:"soft_stop_seconds"` // from the request to stop to SIGTERM
	TermSeconds     float64 `yaml:"term_seconds"`      // from SIGTERM to SIGKILL
	// TTL is how long threads are kept that have ended, since their last use, such as 30d;
	// empty: for ever. It is the user's alone.
	TTL           string `yaml:"ttl"`
	SweepInterval string `yaml:"sweep_interval"` // between two sweeps of servers, such as 60m
	// CompressAfter is how long ago threads have ended whose transcripts are compressed, such
	// as 24h, or CompressOff. It is the user's alone.
	CompressAfter string `yaml:"compress_after"`
	// Snapshot says which roots work by a snapshot of the items: SnapshotAlways all,
	// SnapshotNever none, anything else those of a project with several machines.
	Snapshot string `yaml:"snapshot"`
}

// Values of [ThreadSettings.Snapshot].
const (
	SnapshotAlways = "always"
	SnapshotNever  = "never"
)

// CompressOff is the [ThreadSettings.CompressAfter] with which no transcript is compressed.
const CompressOff = "off"

// Values of [Coordination.TranscriptIntegrity].
const (
	TranscriptStrict  = "strict"
	TranscriptLenient = "lenient"
)

// Coordination is config/agent/coordination.yaml: how threads wait for and
// continue each other, and what is asked of their transcripts.
type Coordination struct {
	WaitThreads  WaitSettings `yaml:"wait_threads"`
	Continuation Continuation `yaml:"continuation"`
	Notes        Notes        `yaml:"notes"`
	// TranscriptIntegrity says what becomes of lines that nobody signed, of a
	// thread that is not known to have died: TranscriptStrict refuses them,
	// TranscriptLenient, which is read from the user space only, lets them pass with
	// a warning.
	TranscriptIntegrity string `yaml:"transcript_integrity"`
}

// WaitSettings bound how long a thread waits for others, in seconds.
type WaitSettings struct {
	DefaultTimeout float64 `yaml:"default_timeout"` // never above MaxTimeout
	MaxTimeout     float64 `yaml:"max_timeout"`
	// Clients is how long the answer to a call of an MCP client may take that names no
	// time, by what the client's name begins with. It is read from the user space only.
	Clients map[string]float64 `yaml:"clients"`
}

// Client is what Clients says of a client: that of the longest beginning of its name.
func (w WaitSettings) Client(name string) (seconds float64, set bool) {
	name, longest := strings.ToLower(name), -1
	for begins, s := range w.Clients {
		if len(begins) > longest && strings.HasPrefix(name, strings.ToLower(begins)) {
			seconds, longest = s, len(begins)
		}
	}
	return seconds, longest >= 0
}

// Notes bound what threads tell each other while they work.
type Notes struct {
	// PerTurn is how many notes a thread writes, and reads, in one of its turns, and
	// BytesPerTurn how long they are together; 0 turns them off.
	PerTurn      int  `yaml:"per_turn"`
	BytesPerTurn int  `yaml:"bytes_per_turn"`
	Ends         bool `yaml:"ends"` // a thread is told when what it has started ends
}

// Values of [Continuation.Limits].
const (
	LimitsRemaining = "remaining" // what the thread before has left
	LimitsFresh     = "fresh"     // as the thread before began with
)

// Continuation says when a thread hands over to a successor because its context
// window is nearly full, and what that one begins with.
type Continuation struct {
	// TriggerThreshold is the share of the context window, in use after a turn, at
	// which a thread hands over.
	TriggerThreshold float64 `yaml:"trigger_threshold"`
	// ResumeCeilingTokens bounds what a successor is given of the conversation
	// before: manifest, summary and last messages together.
	ResumeCeilingTokens int64 `yaml:"resume_ceiling_tokens"`
	// SummaryDirective sums up the thread before for its successor; empty: none is
	// run. The other settings of the summary are about its thread.
	SummaryDirective      string        `yaml:"summary_directive"`
	SummaryModel          string        `yaml:"summary_model"`           // empty: the directive's own
	SummaryLimitOverrides item.LimitSet `yaml:"summary_limit_overrides"` // by canonical name; spend in dollars
	SummaryMaxTokens      int64         `yaml:"summary_max_tokens"`      // that the directive is asked for
	// MaxChain is how many handoffs a chain may have since a person's last message.
	MaxChain int `yaml:"max_chain"`
	// Limits of a successor: LimitsRemaining or LimitsFresh.
	Limits string `yaml:"limits"`
	// Approval of each handoff: ApprovalNone or ApprovalAsk.
	Approval string `yaml:"approval"`
}

// Values of [Continuation.Approval].
const (
	ApprovalNone = "none" // a thread hands over by itself
	ApprovalAsk  = "ask"  // it asks first
)

// Resilience is config/agent/resilience.yaml: limits and failures.
type Resilience struct {
	Limits item.LimitSet `yaml:"-"` // by canonical name; spend in dollars
	// MaxOverride is what a call may raise the limits of a root to, by canonical
	// name: limits.max_override, and for each limit it leaves out the user's own
	// default. No project has a say in it.
	MaxOverride item.LimitSet `yaml:"-"`
	// DailySpend bounds what all roots of all projects spend in a day, in dollars
	// (limits.daily_spend); nil: nothing does. No project has a say in it.
	DailySpend   *float64    `yaml:"-"`
	OnLimit      OnLimit     `yaml:"on_limit"`
	ToolPreload  ToolPreload `yaml:"tool_preload"`
	Results      Results     `yaml:"results"`
	Retry        Retry       `yaml:"retry"`
	Nudge        string      `yaml:"nudge"`         // NudgeMissing or NudgeFirstTurn
	StallSeconds float64     `yaml:"stall_seconds"` // a model call silent for so long is broken off
	// FirstTokenSeconds is how long the signs of life of a call count that says
	// nothing yet.
	FirstTokenSeconds float64 `yaml:"first_token_seconds"`
}

// Values of [Resilience.Nudge]: when a model that ends its work is reminded to go on.
const (
	NudgeMissing   = "missing"    // declared outputs, or any text, are missing
	NudgeFirstTurn = "first_turn" // then, and after a first turn without a tool call
)

// OnLimit says what becomes of a thread that hits a limit, where its directive
// does not say.
type OnLimit struct {
	Action          string  `yaml:"action"`           // one of [item.OnLimitActions]
	DeadlineSeconds float64 `yaml:"deadline_seconds"` // for the answer, when it asks
	Default         string  `yaml:"default"`          // OnLimitDefaultStop or OnLimitDefaultFinish: when nobody has answered
}

// Values of [OnLimit.Default].
const (
	OnLimitDefaultStop   = "stop"   // the thread ends
	OnLimitDefaultFinish = "finish" // it returns what it has, in one last turn
)

// ToolPreload bounds the tool schemas in a thread's context.
type ToolPreload struct {
	MaxTokens int `yaml:"max_tokens"`
}

// Results bound what a thread's model is given of a tool's result, in characters.
// A longer result is kept as an artifact, of which the model sees a summary.
type Results struct {
	MaxChars         int `yaml:"max_chars"`
	MaxCharsWhenFull int `yaml:"max_chars_when_full"` // with more than three quarters of the context in use
	PageChars        int `yaml:"page_chars"`          // of tools that page by themselves, such as reading a file
}

// Retry says how often a failed model call is repeated, and when, where
// [ErrorRules] leave that open.
type Retry struct {
	MaxAttempts int     `yaml:"max_attempts"` // calls in a row, the first included
	BaseSeconds float64 `yaml:"base_seconds"` // before the second call; doubles with each
	MaxSeconds  float64 `yaml:"max_seconds"`
}

// Values of [Provider.API], [Provider.Wire] and [Provider.ToolUse].
const (
	APIAnthropic  = "anthropic"
	APIOpenAI     = "openai"
	APIScripted   = "scripted"
	WireChat      = "chat"      // Chat Completions
	WireResponses = "responses" // Responses
	ToolUseNative = "native"
	ToolUseText   = "text"
)

// Provider is config/agent/providers/<name>.yaml.
type Provider struct {
	Name       string `yaml:"-"`            // of the file
	File       string `yaml:"-"`            // below config, where the name does not tell
	API        string `yaml:"api"`          // the wire protocol: APIAnthropic, APIOpenAI or APIScripted
	BaseURL    string `yaml:"base_url"`     // http or https; {model} in it is the model, its query goes behind every path
	BaseURLEnv string `yaml:"base_url_env"` // variable that overrides BaseURL when it is set
	// Wire is which protocol of OpenAI's is spoken: WireChat or WireResponses. Empty: at
	// OpenAI itself the one that suits the model, and Chat Completions elsewhere.
	Wire string `yaml:"wire"`
	// The key is the value of the variable APIKeyEnv, if that is set; else what the
	// system's keychain has for the account APIKeyKeychain of the service rye-mcp; else
	// what the command APIKeyCommand prints. All empty: none is needed.
	APIKeyEnv      string   `yaml:"api_key_env"`
	APIKeyKeychain string   `yaml:"api_key_keychain"`
	APIKeyCommand  []string `yaml:"api_key_command"`
	// APIKeyHeader is the header that carries the key, with the word APIKeyScheme before
	// it. Empty: as the vendor has it.
	APIKeyHeader string                   `yaml:"api_key_header"`
	APIKeyScheme string                   `yaml:"api_key_scheme"`
	Headers      map[string]string        `yaml:"headers"`
	ToolUse      string                   `yaml:"tool_use"` // ToolUseNative or ToolUseText
	Tiers        map[string]string        `yaml:"tiers"`    // tier to model id
	Aliases      map[string]string        `yaml:"aliases"`  // other name to tier
	Models       map[string]ModelOverride `yaml:"models"`   // by model id
	Script       string                   `yaml:"script"`   // APIScripted: file below config/
	// AllowUnpriced lets models without a known price run under a spend limit.
	AllowUnpriced bool `yaml:"allow_unpriced"`
	Local         bool `yaml:"local"` // runs on this machine and costs nothing
	// Vision says whether the models can see images; nil: they can.
	Vision *bool `yaml:"vision"`
}

// ModelOverride adds to, or overrides, what the catalogue knows of a model. Zero
// and nil leave the catalogue's value. Prices are dollars per million tokens.
type ModelOverride struct {
	ContextWindow   int      `yaml:"context_window"`    // tokens
	MaxOutputTokens int      `yaml:"max_output_tokens"` // of one answer
	Input           *float64 `yaml:"input"`
	Output          *float64 `yaml:"output"`
	CacheRead       *float64 `yaml:"cache_read"`
	CacheWrite      *float64 `yaml:"cache_write"`
	Vision          *bool    `yaml:"vision"` // nil: as the provider's
}
