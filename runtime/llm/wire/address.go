package wire

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"
)

// modelPlace stands for the model in a base URL, as in the deployment paths of Azure.
const modelPlace = "{model}"

// Base is the address that the vendor's paths are put behind, for calls of a model:
// without query, and without a slash at its end.
func (c Config) Base(vendors, model string) string {
	base, _, _ := strings.Cut(c.BaseURL, "?")
	base = strings.ReplaceAll(base, modelPlace, url.PathEscape(model))
	return cmp.Or(strings.TrimRight(base, "/"), vendors)
}

// VendorKey is the key for the vendor's library to send; empty when it goes into
// another header.
func (c Config) VendorKey() string {
	if c.KeyHeader != "" {
		return ""
	}
	return c.APIKey
}

// address gives a request what the vendor's library knows nothing of: the query of the
// base URL, and headers.
func (c Config) address(req *http.Request) {
	if _, query, _ := strings.Cut(c.BaseURL, "?"); query != "" {
		req.URL.RawQuery = strings.TrimSuffix(query+"&"+req.URL.RawQuery, "&")
	}
	for name, value := range c.Headers {
		req.Header.Set(name, value)
	}
	if c.KeyHeader != "" && c.APIKey != "" {
		req.Header.Set(c.KeyHeader, c.KeyScheme+c.APIKey)
	}
}

// querySecrets are the values of the base URL's query that grant access, as they are
// written and as they are meant.
func (c Config) querySecrets() []string {
	_, query, _ := strings.Cut(c.BaseURL, "?")
	var secrets []string
	for part := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(part, "=")
		name = strings.ToLower(name)
		for _, word := range []string{"key", "token", "secret", "sig", "auth", "passw", "code"} {
			if strings.Contains(name, word) {
				plain, _ := url.QueryUnescape(value)
				secrets = append(secrets, value, plain)
			}
		}
	}
	return secrets
}
