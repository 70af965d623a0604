package item_test

import (
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/item"
)

func TestEditDistance(t *testing.T) {
	t.Parallel()
	tests := []struct {
		a, b       string
		most, want int
	}{
		{"", "", 3, 0},
		{"read", "read", 0, 0},
		{"raed", "read", 3, 1},
		{"teir", "tier", 1, 1},
		{"moedl", "model", 1, 1},
		{"abcd", "badc", 1, 2},
		{"abcd", "badc", 2, 2},
		{"pth", "path", 3, 1},
		{"kitten", "sitting", 3, 3},
		{"kitten", "sitting", 2, 3}, // gives up with one more
		{"a", "abcdef", 2, 3},
		{"", "ab", 5, 2},
	}
	for _, tt := range tests {
		if got := item.EditDistance(tt.a, tt.b, tt.most); got != tt.want {
			t.Errorf("EditDistance(%q, %q, %d) = %d, want %d", tt.a, tt.b, tt.most, got, tt.want)
		}
		if got := item.EditDistance(tt.b, tt.a, tt.most); got != tt.want {
			t.Errorf("EditDistance(%q, %q, %d) = %d, want %d", tt.b, tt.a, tt.most, got, tt.want)
		}
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	names := []string{"error", "limit", "limits"}
	for key, want := range map[string]string{
		"eror": "error", "limit": "limit", "limi": "limit", "limitz": "limit", "limitss": "limits", "other": "", "": "",
	} {
		if got := item.Nearest(key, names); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", key, got, want)
		}
	}
}
