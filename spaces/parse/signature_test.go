package parse_test

import (
	"bytes"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/parse"
)

func TestStripSignature(t *testing.T) {
	t.Parallel()
	const long = "2026-03-29T06:39:14Z:abf27a06:kisYftUHVTAfoD_2PfYKkdlDqw==:4b987fd4e40303ac|provider@user"
	tests := []struct{ name, src, want string }{
		{"empty", "", ""},
		{"none", "# Title\n", "# Title\n"},
		{"markdown", "<!-- rye:signed:" + long + " -->\n# T\n", "# T\n"},
		{"with the unsigned marker", "<!-- rye:signed:" + long + " -->\n<!-- rye:unsigned -->\n\n# T\n", "\n# T\n"},
		{"unsigned marker alone", "<!-- rye:unsigned -->\n# T\n", "# T\n"},
		{"two signatures", "# rye:signed:a\n# rye:signed:b\nx: 1\n", "x: 1\n"},
		{"yaml", "# rye:signed:" + long + "\nx: 1", "x: 1"},
		{"js", "// rye:signed:" + long + "\nx", "x"},
		{"block comment", "/* rye:signed:" + long + " */\nx", "x"},
		{"sql", "--rye:signed:x\nx", "x"},
		{"without a line end", "# rye:signed:x", ""},
		{"windows", "# rye:signed:x\r\nx\r\n", "x\r\n"},
		{"byte order mark", "\ufeff<!-- rye:signed:x -->\n# T", "# T"},
		{"behind a shebang", "#!/bin/sh\n# rye:signed:x\n# rye:unsigned\nls\n", "#!/bin/sh\nls\n"},
		{"shebang only", "#!/bin/sh", "#!/bin/sh"},
		{"on line 2 without a shebang", "# a\n# rye:signed:x\n", "# a\n# rye:signed:x\n"},
		{"on line 3", "#!/bin/sh\n\n# rye:signed:x\n", "#!/bin/sh\n\n# rye:signed:x\n"},
		{"behind an empty line", "<!-- rye:signed:x -->\n\n<!-- rye:signed:y -->\n", "\n<!-- rye:signed:y -->\n"},
		{"not a comment", "rye:signed:x\n", "rye:signed:x\n"},
		{"only mentioned", "# about rye:signed:\n", "# about rye:signed:\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			src := []byte(tt.src)
			if got := parse.StripSignature(src); string(got) != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if !bytes.Equal(src, []byte(tt.src)) {
				t.Error("the source was changed")
			}
		})
	}
}
