package main_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"

	mcpclient "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/rogpeppe/go-internal/testscript"
)

// callToolOverHTTP is the program mcphttp: mcphttp [-sse] [-progress] [-token T]
// URL TOOL JSON. It is like mcp, with a server that runs at URL, such as
// http://127.0.0.1:4711.
func callToolOverHTTP(args []string) int {
	flags := flag.NewFlagSet("mcphttp", flag.ExitOnError)
	sse := flags.Bool("sse", false, "use HTTP with SSE")
	progress := flags.Bool("progress", false, "print progress messages")
	token := flags.String("token", "", "bearer token")
	_ = flags.Parse(args) // it exits on errors
	if flags.NArg() != 3 {
		fmt.Fprintln(os.Stderr, "usage: mcphttp [-sse] [-progress] [-token T] URL TOOL JSON")
		return 2
	}
	headers := map[string]string{}
	if *token != "" {
		headers["Authorization"] = "Bearer " + *token
	}
	var (
		client *mcpclient.Client
		err    error
	)
	if *sse {
		client, err = mcpclient.NewSSEMCPClient(flags.Arg(0)+"/sse", transport.WithHeaders(headers))
	} else {
		client, err = mcpclient.NewStreamableHttpClient(flags.Arg(0)+"/mcp", transport.WithHTTPHeaders(headers))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mcphttp:", err)
		return 3
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*waitPatience)
	defer cancel()
	raw, isError, err := onOwn().callWith(ctx, client, flags.Arg(1), flags.Arg(2), *progress)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mcphttp:", err)
		return 3
	}
	fmt.Print(raw)
	if isError {
		return 1
	}
	return 0
}

var servedAt = regexp.MustCompile(`"pid":([0-9]+),"address":"[^"]*:([0-9]+)"`)

// served LOG waits until a log says that rye-mcp serve listens, and keeps the
// address that clients on this machine use as URL, and the process as PID.
func waitUntilServed(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: served LOG")
	}
	poll(ts.Fatalf, func() (bool, string) {
		content, err := os.ReadFile(ts.MkAbs(args[0]))
		m := servedAt.FindSubmatch(content)
		if m == nil {
			return false, fmt.Sprintf("%s names no address (%v): %s", args[0], err, content)
		}
		ts.Setenv("PID", string(m[1]))
		ts.Setenv("URL", "http://127.0.0.1:"+string(m[2]))
		return true, ""
	})
}

// http STATUS METHOD URL [HEADER...] sends a request and checks the status of
// the answer. A POST carries a ping as JSON; headers are written "Name: value".
func sendHTTP(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: http STATUS METHOD URL [HEADER...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	body := ""
	if args[1] == http.MethodPost {
		body = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	}
	req, err := http.NewRequestWithContext(context.Background(), args[1], args[2], strings.NewReader(body))
	ts.Check(err)
	req.Header.Set("Content-Type", "application/json")
	for _, header := range args[3:] {
		name, value, _ := strings.Cut(header, ": ")
		if name == "Host" {
			req.Host = value
		}
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	ts.Check(err)
	defer func() { _ = resp.Body.Close() }()
	content, err := io.ReadAll(resp.Body)
	ts.Check(err)
	if resp.StatusCode != want {
		ts.Fatalf("%s: %s: %s; want %d", strings.Join(args[1:3], " "), resp.Status, content, want)
	}
	_, err = ts.Stdout().Write(content)
	ts.Check(err)
}
