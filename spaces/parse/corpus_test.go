package parse_test

import (
	"os"
	"path/filepath"
	"testing"
)

// TestCorpus reads a workspace of the original Python system, where a copy is
// at hand: in $RYE_CORPUS, or beside the checkout.
func TestCorpus(t *testing.T) {
	t.Parallel()
	dir := corpusDir()
	if dir == "" {
		t.Log("no corpus in $RYE_CORPUS or ../shared/corpus: reading the look-alikes in testdata/workspace instead")
		checkWorkspace(t, os.DirFS("testdata/workspace"), ownDirectives(), ownKnowledge())
		return
	}
	checkWorkspace(t, os.DirFS(filepath.Join(dir, "rye-workspace", ".ai")), corpusDirectives(), corpusKnowledge())
}

// corpusDir returns the folder of the corpus, or nothing.
func corpusDir() string {
	if dir := os.Getenv("RYE_CORPUS"); dir != "" {
		return dir
	}
	dir, err := os.Getwd()
	for err == nil && dir != filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			corpus := filepath.Join(dir, "..", "shared", "corpus")
			if _, err := os.Stat(corpus); err == nil {
				return corpus
			}
			return ""
		}
		dir = filepath.Dir(dir)
	}
	return ""
}

func corpusDirectives() map[string]directiveWant {
	const (
		fs    = "rye.execute.tool.rye.file-system.*"
		fetch = "rye.fetch.* rye.search.*"
		spawn = "rye.execute.tool.rye.agent.threads.thread_directive"
		small = "turns=4 tokens=4096 spend=0.1"
		haiku = "fast claude-3-5-haiku-20241022"
		ours  = "system rye/agent/core/Identity, system rye/agent/core/Behavior, suppress agent/core/Behavior"
	)
	return map[string]directiveWant{
		"agent/core/base": {context: "system agent/core/Behavior, before rye/agent/core/protocol/execute, " +
			"before rye/agent/core/protocol/fetch, before rye/agent/core/protocol/sign"},
		"rye/agent/continuation": {perms: "-", hasBody: true, inputs: "original_directive:string! " +
			"original_directive_body:string! previous_thread_id:string! continuation_message:string!"},
		"rye/agent/core/base":              {extends: "agent/core/base", context: ours, perms: "rye.execute.* " + fetch + " rye.sign.*"},
		"rye/agent/core/base_execute_only": {extends: "agent/core/base", context: ours, perms: "rye.execute.*"},
		"rye/agent/core/base_review": {extends: "agent/core/base", context: ours, perms: fetch + " rye.execute.tool.rye.file-system.read " +
			"rye.execute.tool.rye.file-system.glob rye.execute.tool.rye.file-system.grep rye.execute.knowledge.*"},
		"rye/core/create_directive": {model: "fast", limits: "turns=6 tokens=4096", hasBody: true,
			inputs: "name:string! category:string! description:string! process_steps:string", outputs: "directive_path: signed:",
			perms: "rye.fetch.directive.* rye.search.directive.* " + fs + " rye.sign.directive.*"},
		"rye/core/create_knowledge": {model: "fast", limits: "turns=6 tokens=4096", hasBody: true,
			inputs: "name:string! title:string! category:string! content:string! tags:string", outputs: "knowledge_path: signed:",
			perms: fs + " rye.fetch.knowledge.* rye.search.knowledge.* rye.sign.knowledge.*"},
		"rye/core/create_threaded_directive": {model: "fast", limits: "turns=8 tokens=4096 spend=0.1", hasBody: true,
			inputs:  "name:string! category:string! description:string! complexity:string! permissions_needed:string! extends_from:string process_steps:string",
			outputs: "directive_path: signed:",
			perms: fs + " rye.fetch.directive.* rye.search.directive.* rye.fetch.knowledge.* rye.search.knowledge.* " +
				"rye.sign.directive.*"},
		"rye/core/create_tool": {model: "fast", limits: "turns=8 tokens=4096", hasBody: true,
			inputs: "tool_name:string! category:string! tool_type:string! description:string! parameters:string", outputs: "tool_path: signed:",
			perms: fs + " rye.fetch.tool.* rye.search.tool.* rye.sign.tool.*"},
		"test/context/base_context": {model: "fast", limits: small, outputs: "result:", perms: fs + " " + fetch, hasBody: true,
			context: "system test/context/base-identity"},
		"test/context/broad_capabilities_base": {model: "fast", limits: small, perms: fs + " " + fetch + " rye.sign.*",
			context: "system test/context/base-identity"},
		"test/context/full_hook_routed_composition_test": {model: "fast", limits: small, outputs: "result:", hasBody: true,
			perms: "rye.execute.tool.rye.file-system.read rye.execute.tool.rye.file-system.write"},
		"test/context/hook_routed_base": {model: "fast", limits: small, perms: fs + " " + fetch,
			context: "system test/context/base-identity, before test/context/hook-routed-rules"},
		"test/context/hook_routed_test": {model: "fast", limits: small, outputs: "result:", perms: fs + " " + fetch, hasBody: true},
		"test/context/inherited_capabilities_minimal": {extends: "test/context/broad_capabilities_base", model: "fast",
			limits: "turns=12 tokens=32000 spend=0.15", outputs: "result:string! tools_used:string!", perms: "-", hasBody: true},
		"test/context/inherited_capabilities_test": {extends: "test/context/broad_capabilities_base", model: "fast",
			limits: "turns=8 tokens=32000 spend=0.15", outputs: "result:", perms: "-", hasBody: true},
		"test/context/leaf_context": {extends: "test/context/mid_context", model: "fast", limits: small, outputs: "result:",
			perms: "-", context: "after test/context/leaf-checklist", hasBody: true},
		"test/context/mid_context": {extends: "test/context/base_context", model: "fast", limits: small, outputs: "result:",
			perms: "-", context: "before test/context/mid-rules", hasBody: true},
		"test/context/spawn_with_context": {model: "fast", limits: "turns=8 tokens=4096 spend=0.5 spawns=2 depth=3", hasBody: true,
			outputs: "child_thread_id: result:",
			perms:   "rye.execute.tool.* rye.execute.directive.test.context.leaf_context " + fetch},
		"test/context/suppress_test": {extends: "test/context/base_context", model: "fast", limits: small, outputs: "result:",
			perms: "-", context: "system test/context/alt-identity, suppress test/context/base-identity", hasBody: true},
		"test/context/tool_preload_test": {model: "fast", limits: small, outputs: "result:", hasBody: true,
			perms: "rye.execute.tool.rye.file-system.read rye.execute.tool.rye.file-system.grep rye.execute.tool.rye.file-system.write"},
		"test/limits/budget_cascade_test": {model: "fast", limits: "turns=6 tokens=4096 spend=0.5", perms: fs + " " + spawn,
			hasProse: true, hasBody: true},
		"test/limits/depth_child": {model: "fast", limits: "turns=6 tokens=4096 spend=0.25", perms: fs + " " + spawn,
			inputs: "level:string!", hasProse: true, hasBody: true},
		"test/limits/depth_limit_test": {model: "fast", limits: "turns=6 tokens=4096 spend=0.5 depth=1", perms: fs + " " + spawn,
			hasProse: true, hasBody: true},
		"test/limits/spend_limit_test": {model: "fast", limits: "turns=10 tokens=100000 spend=0.001", perms: fs + " " + fetch,
			hasProse: true, hasBody: true},
		"test/tools/file_system/child_write": {model: "fast", limits: "turns=6 tokens=16000", perms: fs, hasBody: true,
			inputs: "message:string! file_path:string!", outputs: "path: content:"},
		"test/tools/file_system/write_and_read": {model: haiku, limits: "turns=5 tokens=2048", perms: fs, hasBody: true,
			inputs: "content:string! file_path:string!", hasProse: true},
		"test/tools/file_system/write_file": {model: "fast", limits: "turns=3 tokens=4096", perms: fs, hasBody: true,
			inputs: "message:string! output_path:string!", outputs: "path: message:"},
		"test/tools/primary/load_and_summarize": {model: haiku, limits: "turns=5 tokens=2048", hasBody: true, hasProse: true,
			inputs: "directive_id:string! output_path:string!",
			perms:  "rye.fetch.directive.* rye.search.directive.* " + fs},
		"test/tools/primary/search_and_report": {model: haiku, limits: "turns=5 tokens=2048", hasBody: true, hasProse: true,
			inputs: "topic:string! report_path:string!",
			perms:  "rye.fetch.knowledge.* rye.search.knowledge.* " + fs},
	}
}

func corpusKnowledge() map[string]knowledgeWant {
	return map[string]knowledgeWant{
		"agent/core/Behavior.md":                 {"Behavior", "Agent Behavior Rules", "behavior rules system-prompt"},
		"rye/agent/core/Behavior.md":             {"Behavior", "Agent Behavior Rules", "behavior rules system-prompt"},
		"rye/agent/core/DirectiveInstruction.md": {"DirectiveInstruction", "Directive Execution Instruction", "directive instruction thread-started"},
		"rye/agent/core/Environment.md":          {"Environment", "Thread Environment", "environment runtime thread-started"},
		"rye/agent/core/Identity.md":             {"Identity", "Agent Identity", "identity agent system-prompt"},
		"rye/agent/core/ToolProtocol.md":         {"ToolProtocol", "Tool Protocol", "tools protocol system-prompt"},
		"rye/agent/core/protocol/execute.md":     {"execute", "Execute Protocol", "tools protocol execute"},
		"rye/agent/core/protocol/fetch.md":       {"fetch", "Fetch Protocol", "tools protocol fetch"},
		"rye/agent/core/protocol/sign.md":        {"sign", "Sign Protocol", "tools protocol sign"},
		"test/context/alt-identity.md":           {"alt-identity", "Alternate Test Identity", "test identity suppress"},
		"test/context/base-identity.md":          {"base-identity", "Base Test Identity", "test identity context-chain"},
		"test/context/hook-routed-rules.md":      {"hook-routed-rules", "Hook-Routed Rules", "test rules hook-routing"},
		"test/context/leaf-checklist.md":         {"leaf-checklist", "Leaf Completion Checklist", "test checklist context-chain"},
		"test/context/mid-rules.md":              {"mid-rules", "Mid-Layer Rules", "test rules context-chain"},
	}
}
