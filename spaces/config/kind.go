package config

// kind is one kind of settings.
type kind struct {
	schema string
	files  []string // in each space; the last holds the defaults
	// shipped: the system space must have it.
	shipped bool
	// canonical brings a layer into the form that the schema has first; may be nil.
	canonical func(*layer) error
	// whole: a project's files count as a whole or not at all, because all that they
	// say makes calls, chooses whom to call, or runs something.
	whole bool
	// merged: the keys of its files are merged, so that a file which counts because
	// a key is followed can do without those that a followed key does not decide.
	merged bool
}

var (
	agentKind        = kind{schema: "agent.schema.json", files: []string{"agent/agent.yaml"}, shipped: true}
	coordinationKind = kind{
		schema: "coordination.schema.json", files: []string{"coordination.yaml", "agent/coordination.yaml"},
		shipped: true, canonical: flatCoordination,
	}
	resilienceKind = kind{
		schema: "resilience.schema.json", files: []string{"agent/resilience.yaml"}, shipped: true, canonical: canonicalResilience,
	}
	riskKind   = kind{schema: "capability_risk.schema.json", files: []string{"agent/capability_risk.yaml"}, shipped: true}
	toolsKind  = kind{schema: "tools.schema.json", files: []string{"agent/tools.yaml"}, shipped: true}
	notifyKind = kind{schema: "notify.schema.json", files: []string{NotifyFile}, shipped: true}
	memoryKind = kind{schema: "memory.schema.json", files: []string{memoryFile}, shipped: true}
	mirrorKind = kind{schema: "mirror.schema.json", files: []string{MirrorFile}, shipped: true, canonical: canonicalMirror}
	storeKind  = kind{schema: "store.schema.json", files: []string{StoreFile}, shipped: true, canonical: canonicalStore}
	errorKind  = kind{schema: "error_classification.schema.json", files: []string{"agent/error_classification.yaml"}, shipped: true, whole: true}
	hooksKind  = kind{schema: "hooks.schema.json", files: []string{"agent/hooks.yaml"}, whole: true}
)

// providersDir holds the files of providers.
const providersDir = "agent/providers"

func providerKind(name string) kind {
	return kind{schema: "provider.schema.json", files: []string{providersDir + "/" + name + ".yaml"}, whole: true, merged: true}
}
