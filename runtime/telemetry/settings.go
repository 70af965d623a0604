package telemetry

import (
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Settings say where spans go.
type Settings struct {
	Endpoint string // URL
	Headers  http.Header
	Timeout  time.Duration // of a request
	Gzip     bool
	Binary   bool // Protocol Buffers in place of JSON
	Resource []Attribute
	// Content: prompts and results are sent too.
	Content bool

	sampler sampler
}

// prefix begins the names of all variables that count here.
const prefix = "OTEL_"

// Bounds of a request's time.
const (
	defaultTimeout = 10 * time.Second
	maxTimeout     = 60 * time.Second
)

// ErrUnusable says that somebody wants spans to be sent, and not in a way that can be
// used here.
var ErrUnusable = errors.New("traces are not sent")

// Variables are those of an environment, NAME=value, that settings can be read from.
func Variables(environ []string) (list []string) {
	for _, entry := range environ {
		if strings.HasPrefix(entry, prefix) {
			list = append(list, entry)
		}
	}
	return list
}

// Wanted reports whether variables ask for spans. It is quick, and says nothing of
// whether they can be used.
func Wanted(getenv func(string) string) bool {
	return (getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != "") &&
		!strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") && getenv("OTEL_TRACES_EXPORTER") != "none"
}

// SettingsFrom reads OpenTelemetry's variables. Without an endpoint, and where they say
// that it is off, wanted is false. The error of a value that cannot be used wraps
// [ErrUnusable]; no value of a header is in it.
func SettingsFrom(getenv func(string) string, service, version string) (s Settings, wanted bool, err error) {
	if !Wanted(getenv) {
		return Settings{}, false, nil
	}
	// The variable for traces counts before that for everything.
	v := func(name string) string {
		if value := getenv("OTEL_EXPORTER_OTLP_TRACES_" + name); value != "" {
			return value
		}
		return getenv("OTEL_EXPORTER_OTLP_" + name)
	}
	if exporter := getenv("OTEL_TRACES_EXPORTER"); exporter != "" && exporter != "otlp" {
		return s, true, unusable("OTEL_TRACES_EXPORTER is %q, and only otlp and none can be used", exporter)
	}
	switch protocol := v("PROTOCOL"); protocol {
	case "", "http/json":
	case "http/protobuf":
		s.Binary = true
	default:
		return s, true, unusable("OTEL_EXPORTER_OTLP_PROTOCOL is %q, and http/json and http/protobuf are spoken here: "+
			"collectors take both at port 4318, and OTEL_EXPORTER_OTLP_TRACES_PROTOCOL counts for traces alone", protocol)
	}
	if s.Endpoint, err = endpointFrom(getenv); err != nil {
		return s, true, err
	}
	if s.Headers, err = headersFrom(v("HEADERS")); err != nil {
		return s, true, err
	}
	if s.Timeout, err = timeoutFrom(v("TIMEOUT")); err != nil {
		return s, true, err
	}
	switch compression := v("COMPRESSION"); compression {
	case "", "none":
	case "gzip":
		s.Gzip = true
	default:
		return s, true, unusable("OTEL_EXPORTER_OTLP_COMPRESSION is %q, and only gzip and none can be used", compression)
	}
	if s.sampler, err = samplerFrom(getenv); err != nil {
		return s, true, err
	}
	s.Resource, err = resourceFrom(getenv, service, version)
	s.Content = wantsContent(getenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"))
	return s, true, err
}

func unusable(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnusable, fmt.Sprintf(format, args...))
}

// wantsContent knows the values that conventions of different age have.
func wantsContent(value string) bool {
	return slices.Contains([]string{"true", "span_only", "span_and_event"}, strings.ToLower(value))
}

// endpointFrom is the URL of traces: the variable for traces as it is, that for
// everything with the path of traces behind it.
func endpointFrom(getenv func(string) string) (string, error) {
	name, path := "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", ""
	if getenv(name) == "" {
		name, path = "OTEL_EXPORTER_OTLP_ENDPOINT", "/v1/traces"
	}
	u, err := url.Parse(getenv(name))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Hostname() == "" {
		return "", unusable("%s is no URL such as http://localhost:4318", name)
	}
	if u.User != nil {
		return "", unusable("%s has a user in it, and credentials belong into OTEL_EXPORTER_OTLP_HEADERS", name)
	}
	u.Path, u.RawPath, u.Fragment = strings.TrimSuffix(u.Path, "/")+path, "", ""
	if u.Path == "" {
		u.Path = "/"
	}
	return u.String(), nil
}

// pairs reads "name=value,name=value" with values in percent-encoding.
func pairs(variable, text string) (list [][2]string, err error) {
	for part := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		name, value, ok := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || name == "" || err != nil {
			return nil, unusable("%s is no list such as name=value,name=value, with other characters in percent-encoding", variable)
		}
		list = append(list, [2]string{name, value})
	}
	return list, nil
}

// ownHeaders are set here.
var ownHeaders = []string{"Content-Type", "Content-Encoding", "Content-Length", "Host", "Transfer-Encoding", "Connection"}

func headersFrom(text string) (http.Header, error) {
	const variable = "OTEL_EXPORTER_OTLP_HEADERS"
	list, err := pairs(variable, text)
	if err != nil {
		return nil, err
	}
	h := http.Header{}
	for _, pair := range list {
		name := textproto.CanonicalMIMEHeaderKey(pair[0])
		if !isToken(name) || strings.ContainsFunc(pair[1], func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return nil, unusable("%s has a header that cannot be sent", variable)
		}
		if !slices.Contains(ownHeaders, name) {
			h.Set(name, pair[1])
		}
	}
	return h, nil
}

// isToken reports whether a text can be the name of a header.
func isToken(name string) bool {
	return name != "" && strings.Trim(name, "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") == ""
}

func timeoutFrom(text string) (time.Duration, error) {
	if text == "" {
		return defaultTimeout, nil
	}
	ms, err := strconv.Atoi(text)
	if err != nil || ms < 1 {
		return 0, unusable("OTEL_EXPORTER_OTLP_TIMEOUT is %q, and must be a number of milliseconds above 0", text)
	}
	return time.Duration(min(ms, int(maxTimeout/time.Millisecond))) * time.Millisecond, nil
}

// resourceFrom is what all spans share.
func resourceFrom(getenv func(string) string, service, version string) ([]Attribute, error) {
	list, err := pairs("OTEL_RESOURCE_ATTRIBUTES", getenv("OTEL_RESOURCE_ATTRIBUTES"))
	if err != nil {
		return nil, err
	}
	values := map[string]string{"service.name": service, "service.version": version}
	names := []string{"service.name", "service.version"}
	for _, pair := range list {
		if _, known := values[pair[0]]; !known {
			names = append(names, pair[0])
		}
		values[pair[0]] = pair[1]
	}
	if name := getenv("OTEL_SERVICE_NAME"); name != "" {
		values["service.name"] = name
	}
	var a attributes
	for _, name := range names {
		a.text(name, values[name])
	}
	return a, nil
}

// Place is the endpoint without what may be a credential, for people.
func (s Settings) Place() string {
	u, err := url.Parse(s.Endpoint)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host + u.Path
}
