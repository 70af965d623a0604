package sign_test

import (
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/sign"
)

// A key of another algorithm, made by OpenSSL with "ecparam -name prime256v1".
const ecPublic = `-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE+SOxKgRbHs1wVIMj7MSVaRz9jsw/
AkJfo0LDKjjdj4fQSnXCFfSakIZNnoFNN6genQFpbH5Jy1sSGv2KtofrPQ==
-----END PUBLIC KEY-----
`

func TestParsePublic(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		wantErr    string // empty: it is the OpenSSL key
	}{
		{"OpenSSL", opensslPublic, ""},
		{"CRLF", strings.ReplaceAll(opensslPublic, "\n", "\r\n"), ""},
		{"space around it", "\n  \n" + opensslPublic + "\n\n", ""},
		{"without the last line break", strings.TrimSpace(opensslPublic), ""},
		{"empty", "", "no PEM block"},
		{"cut short", opensslPublic[:60], "no PEM block"},
		{"text before it", "key:\n" + opensslPublic, "no PEM block"},
		{"text behind it", opensslPublic + "x", "more than one"},
		{"two keys", opensslPublic + opensslPublic, "more than one"},
		{"headers", strings.Replace(opensslPublic, "-----\n", "-----\nA: b\n\n", 1), "more than one"},
		{"private key", opensslPrivate, "private key"},
		{"RSA private key", strings.ReplaceAll(opensslPrivate, "PRIVATE", "RSA PRIVATE"), "private key"},
		{"certificate", strings.ReplaceAll(opensslPublic, "PUBLIC KEY", "CERTIFICATE"), `"CERTIFICATE"`},
		{"not a key", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "not a public key"},
		{"another algorithm", ecPublic, "want an Ed25519 key"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			key, err := sign.ParsePublic([]byte(tt.text))
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Fatalf("error %v, want one with %q", err, tt.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if key.Fingerprint() != opensslFingerprint || string(key.PEM()) != opensslPublic {
				t.Errorf("key %s\n%s", key.Fingerprint(), key.PEM())
			}
			if !key.Equal(testKey(t).Public()) {
				t.Error("it is another key")
			}
		})
	}
}

func FuzzParsePublic(f *testing.F) {
	f.Add([]byte(opensslPublic))
	f.Add([]byte(opensslPrivate))
	f.Add([]byte(ecPublic))
	f.Fuzz(func(t *testing.T, text []byte) {
		key, err := sign.ParsePublic(text)
		if err != nil {
			return
		}
		again, err := sign.ParsePublic(key.PEM())
		if err != nil || !again.Equal(key) || again.Fingerprint() != key.Fingerprint() {
			t.Errorf("%q reads back as another key: %v", text, err)
		}
	})
}
