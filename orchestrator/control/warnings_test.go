package control

import (
	"fmt"
	"strings"
	"testing"
)

// TestSettingsToldOnce: problems of the settings are told with the root of a tree, and not
// with each thread below it.
func TestSettingsToldOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.write("config/agent/resilience.yaml", "unheard: 1\n")
	root := s.begin("idle", "")
	if !strings.Contains(fmt.Sprint(root.Warnings), "unheard") {
		t.Errorf("the root is answered with the warnings %q", root.Warnings)
	}
	s.order(root.ThreadID, "claim")
	child := s.begin("idle", root.ThreadID)
	if len(child.Warnings) > 0 || len(s.meta(child.ThreadID).Warnings) > 0 {
		t.Errorf("a child is answered with the warnings %q", child.Warnings)
	}
}
