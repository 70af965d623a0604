package main_test

import (
	"io/fs"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rye-mcp/rye-mcp/runtime/llm"
	"github.com/rye-mcp/rye-mcp/runtime/llm/catalog"
	"github.com/rye-mcp/rye-mcp/spaces/item"
	"github.com/rye-mcp/rye-mcp/spaces/resolve"
	"github.com/rye-mcp/rye-mcp/spaces/system"
)

// costRow is a line of the guide's table: directive, model, tokens of three kinds,
// dollars.
var costRow = regexp.MustCompile("(?m)^\\| `(rye/[a-z-]+)` \\| (claude-[a-z0-9-]+) \\| (\\d+) \\| (\\d+) \\| (\\d+) \\| (\\$([0-9.]+).*) \\|$")

// TestFirstDayCosts holds what the directives of the first day are said to cost
// against the prices of the catalogue, and each description against the guide.
func TestFirstDayCosts(t *testing.T) {
	t.Parallel()
	guide, err := fs.ReadFile(system.FS(), "knowledge/rye/guides/first-day.md")
	if err != nil {
		t.Fatal(err)
	}
	prices, err := catalog.Load()
	if err != nil {
		t.Fatal(err)
	}
	_, _, date := prices.Info()
	day, err := time.Parse(time.DateOnly, date)
	if err != nil {
		t.Fatal(err)
	}
	resolver := resolve.New(resolve.Roots{System: system.FS()})
	rows := costRow.FindAllStringSubmatch(string(guide), -1)
	if len(rows) != 7 {
		t.Fatalf("the guide has %d rows about costs, want 7", len(rows))
	}
	for _, row := range rows {
		model, known := prices.Lookup("anthropic", row[2], day)
		if !known {
			t.Errorf("%s: no price of %s", row[1], row[2])
			continue
		}
		number := func(text string) int64 {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		micros := model.Price.Cost(llm.Usage{CacheWriteTokens: number(row[3]), CacheReadTokens: number(row[4]), OutputTokens: number(row[5])})
		said, err := strconv.ParseFloat(row[7], 64)
		if err != nil {
			t.Fatal(err)
		}
		cost := float64(micros) / 1e6
		if math.Abs(cost-said) > 0.2*said {
			t.Errorf("%s: said to cost $%.2f, at the catalogue's prices it is $%.4f", row[1], said, cost)
		}
		found, err := resolver.Find(item.Directive, row[1])
		if err != nil {
			t.Fatal(err)
		}
		doc, err := found.Directive()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(doc.Description, "bout "+row[6]) {
			t.Errorf("%s: %q, but the guide says %s", row[1], doc.Description, row[6])
		}
		if len(doc.Limits) < 4 || !doc.Permissions.Declared || len(doc.Outputs) == 0 || doc.Limits["spend"] < said {
			t.Errorf("%s: limits %v, %d outputs", row[1], doc.Limits, len(doc.Outputs))
		}
	}
}
