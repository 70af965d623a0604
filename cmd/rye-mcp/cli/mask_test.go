package cli

import (
	"fmt"
	"testing"
)

func TestMask(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ key, value, want string }{
		{"Authorization", "Bearer abc", masked},
		{"X-Api-Key", "k", masked},
		{"Cookie", "a=b", masked},
		{"X-Title", "rye-mcp", "rye-mcp"},
		{"HTTP-Referer", "https://example.org/a", "https://example.org/a"},
		{"X-Odd", "Basic dXNlcg==", masked},
		{"X-Odd", "sk0123456789abcdef0123456789", masked},
		{"X-Odd", "several words that are only long and have 1 digit", "several words that are only long and have 1 digit"},
		{"X-Empty", "", ""},
	} {
		if got := mask([]string{"headers", tt.key}, tt.value); got != tt.want {
			t.Errorf("header %s: %s is shown as %v, want %s", tt.key, tt.value, got, tt.want)
		}
	}
	for address, want := range map[string]string{
		"https://api.example/v1":                      "https://api.example/v1",
		"https://me:secret@api.example/v1":            "https://********@api.example/v1",
		"https://api.example/v1?api_key=abc&region=e": "https://api.example/v1?api_key=********&region=e",
		"https://api.example/v1?region=e":             "https://api.example/v1?region=e",
		"http://[::1:bad":                             masked,
		"https://api.example/d/{model}?sig=a&v=1":     "https://api.example/d/{model}?sig=a&v=1",
		"https://api.example/d/{model}?token=a":       "https://api.example/d/{model}?token=********",
		"plain":                                       "plain",
	} {
		if got := mask([]string{"base_url"}, address); got != want {
			t.Errorf("%s is shown as %v, want %s", address, got, want)
		}
	}
	command := []any{"sh", "-c", "sk0123456789abcdef0123456789", "op://Private/OpenAI/key"}
	if got := fmt.Sprint(mask([]string{"api_key_command"}, command)); got != "[sh -c ******** op://Private/OpenAI/key]" {
		t.Errorf("a command is shown as %s", got)
	}
	if got := mask([]string{"threads", "max_running"}, 4); got != 4 {
		t.Errorf("a number is shown as %v", got)
	}
}
