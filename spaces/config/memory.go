package config

import (
	"cmp"
	"net/netip"
	"net/url"
	"strings"
)

// Memory is config/agent/memory.yaml: what threads remember beyond what is declared.
type Memory struct {
	Enabled   bool      `yaml:"enabled"`
	Embedding Embedding `yaml:"embedding"`
	// Store is the file of the index: one that begins with .ai/state/ lies in the user's
	// state of the project, any other, a whole path or one that begins with ~/, is
	// shared by all projects. It is the user's alone.
	Store  string `yaml:"store"`
	Recall Recall `yaml:"recall"`
}

// Embedding says where texts become vectors.
type Embedding struct {
	BaseURL string `yaml:"base_url"` // http or https; empty: Ollama on this machine, if it runs
	Model   string `yaml:"model"`
	// The key is had as that of a [Provider].
	APIKeyEnv      string   `yaml:"api_key_env"`
	APIKeyKeychain string   `yaml:"api_key_keychain"`
	APIKeyCommand  []string `yaml:"api_key_command"`
	APIKeyHeader   string   `yaml:"api_key_header"` // empty: Authorization
	Dimensions     int      `yaml:"dimensions"`     // 0: as the model has them
	Batch          int      `yaml:"batch"`          // texts of one request
	Price          *float64 `yaml:"price"`          // dollars per million tokens; nil: as the catalogue says
}

// DefaultEmbedding is the model of embeddings where nobody names one.
const DefaultEmbedding = "text-embedding-3-small"

// Recall bounds what is given back of what was found.
type Recall struct {
	Limit      int     `yaml:"limit"`       // results
	MinFloor   float64 `yaml:"min_floor"`   // cosine similarity
	ScoreRatio float64 `yaml:"score_ratio"` // of the best
	MaxTokens  int     `yaml:"max_tokens"`  // of all results together
}

// MemoryInState begins a [Memory.Store] in the user's state of the project.
const MemoryInState = ".ai/state/"

// DefaultMemoryStore is the [Memory.Store] of who says nothing.
const DefaultMemoryStore = MemoryInState + "memory/memory.db"

// memoryFile is where the settings stand, below .ai/config.
const memoryFile = "agent/memory.yaml"

// embeddingName stands for the endpoint where a provider has its name; no provider has it.
const embeddingName = "embedding of memory.yaml"

// Endpoint is the endpoint as providers are described, which is how its key is had.
func (e Embedding) Endpoint() Provider {
	p := Provider{
		Name: embeddingName, File: memoryFile, API: APIOpenAI, BaseURL: e.BaseURL,
		APIKeyEnv: e.APIKeyEnv, APIKeyKeychain: e.APIKeyKeychain, APIKeyCommand: e.APIKeyCommand, APIKeyHeader: e.APIKeyHeader,
	}
	p.Local = isLoopback(e.BaseURL) && !e.Keyed()
	return p
}

// Keyed reports whether the endpoint wants a key.
func (e Embedding) Keyed() bool {
	return cmp.Or(e.APIKeyEnv, e.APIKeyKeychain) != "" || len(e.APIKeyCommand) > 0
}

// isLoopback reports whether an address leads to this machine, whatever names mean.
func isLoopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// Memory reads memory.yaml.
func (sn *Snapshot) Memory() (Memory, []string, error) { return sn.memory() }

func (sn *Snapshot) memorySettings() (settings, error) { return sn.load(memoryKind) }

func (sn *Snapshot) readMemory() (Memory, []string, error) {
	s, err := sn.memorySettings()
	if err != nil {
		return Memory{}, s.warnings, err
	}
	return valuesOf(sn, memoryKind, s, func() (m Memory, _ []string, _ error) {
		if err := s.decode(&m); err != nil {
			return m, s.warnings, err
		}
		err := m.validate(&s)
		return m, s.warnings, err
	})
}

// validate checks what only the merged settings can tell.
func (m *Memory) validate(s *settings) error {
	e, at := m.Embedding, func(key string) []string { return []string{"embedding", key} }
	u, err := url.Parse(e.BaseURL)
	switch {
	case err != nil:
		return s.errorAt(at("base_url"), "this is no address")
	case u.User != nil:
		return s.errorAt(at("base_url"), "holds a password; name the variable of a key in api_key_env")
	case e.BaseURL == "" && e.Keyed():
		return s.errorAt(at("base_url"), "is empty, which is Ollama on this machine, and a key is named; set the address that the key is for")
	case len(e.APIKeyCommand) > 0 && !isProgram(e.APIKeyCommand[0]):
		return s.errorAt(at("api_key_command"), "want the name of a program or its whole path, and its arguments, each a word of the list")
	case strings.Contains("/"+m.Store+"/", "/../") || strings.HasSuffix(m.Store, "/") || strings.ContainsRune(m.Store, 0):
		return s.errorAt([]string{"store"}, "want the path of a file, without ..")
	case strings.HasPrefix(m.Store, MemoryInState) && strings.Count(m.Store[len(MemoryInState):], "/") != 1,
		strings.HasPrefix(m.Store, MemoryInState+"threads/"):
		return s.errorAt([]string{"store"}, "below .ai/state want a folder of its own and a file, such as memory/memory.db")
	}
	return nil
}
