package server

import "testing"

func TestLocalPath(t *testing.T) {
	t.Parallel()
	tests := []struct {
		uri, goos string
		want      string // empty: not a local path
	}{
		{"file:///home/me", "linux", "/home/me"},
		{"file:///home/me/../you/", "linux", "/home/you"},
		{"file://localhost/x", "linux", "/x"},
		{"file:///a%20b%25", "linux", "/a b%"},
		{"file:///C:/x", "windows", "C:/x"},
		{"file:///", "linux", "/"},
		{"file://", "linux", ""},
		{"file:///x%00y", "linux", ""},
		{"file://server/share", "linux", ""},
		{"file:x", "linux", ""},
		{"https://example.org/x", "linux", ""},
		{"/x", "linux", ""},
		{"%zz", "linux", ""},
	}
	for _, tt := range tests {
		got, ok := localPath(tt.uri, tt.goos)
		if got != tt.want || ok != (tt.want != "") {
			t.Errorf("localPath(%q, %s) = %q, %v; want %q", tt.uri, tt.goos, got, ok, tt.want)
		}
	}
}
