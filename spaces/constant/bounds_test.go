package constant_test

import (
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/alloctest"
	"github.com/rye-mcp/rye-mcp/spaces/constant"
)

// TestAllocations: only the expressions of the names that are asked for are parsed,
// so that a large file costs a few times its size.
func TestAllocations(t *testing.T) {
	size := alloctest.Size(4 << 20)
	alloctest.Linear(t, 50, map[string]string{
		"assignments":  alloctest.Fill(size, "A=1\n"),
		"declarations": alloctest.Fill(size, "const A=1\n"),
		"asked for":    alloctest.Fill(size, "S=1\n"),
		"uses":         "S = [1]\n" + alloctest.Fill(size, "f(S)\n"),
		"other names":  "S = [1]\n" + alloctest.Fill(size, "x = S\n"),
		"one list":     "S = [" + alloctest.Fill(size, "1,") + "]\n",
		"empty lines":  alloctest.Fill(size, "\n"),
		"texts":        alloctest.Fill(size, "''\n"),
		"brackets":     alloctest.Fill(size, "["),
	}, func(_ string, input []byte) {
		constant.Python(string(input), "S")
		constant.JavaScript(string(input), "S")
	})
}
