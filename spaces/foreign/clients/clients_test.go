package clients

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/rye-mcp/rye-mcp/spaces/protect"
)

// ours is an entry with one variable.
var ours = Entry{Command: "/usr/bin/rye-mcp", Args: []string{"--stdio"}, Variables: []string{"A_KEY"}}

func client(t testing.TB, id string) Client {
	t.Helper()
	c, ok := ByID(id)
	if !ok {
		t.Fatalf("no client %s", id)
	}
	return c
}

func change() Change { return Change{Name: "rye", Program: "rye-mcp", Entry: ours} }

// TestPut puts the entry into files as people have them. Each is what it was when the
// entry is taken out again, with the file before the edit at hand.
func TestPut(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ client, before, after string }{
		"Claude Code, no file": {"claude-code", "", `{
  "mcpServers": {
    "rye": {
      "type": "stdio",
      "command": "/usr/bin/rye-mcp",
      "args": ["--stdio"]
    }
  }
}
`},
		"Claude Code, its own state around it": {
			"claude-code",
			"{\n  \"numStartups\": 3,\n  \"projects\": {\"/p\": {\"mcpServers\": {}}},\n  \"mcpServers\": {},\n  \"oauth\": 1e400\n}",
			"{\n  \"numStartups\": 3,\n  \"projects\": {\"/p\": {\"mcpServers\": {}}},\n  \"mcpServers\": {\n    \"rye\": {\n      \"type\": \"stdio\",\n      \"command\": \"/usr/bin/rye-mcp\",\n      \"args\": [\"--stdio\"]\n    }\n  },\n  \"oauth\": 1e400\n}",
		},
		"Claude Desktop, on one line": {
			"claude-desktop", `{"globalShortcut":"x","mcpServers":{"files":{"command":"npx","args":[]}}}`,
			`{"globalShortcut":"x","mcpServers":{"files":{"command":"npx","args":[]},"rye":{"command":"/usr/bin/rye-mcp","args":["--stdio"]}}}`,
		},
		"Cursor, a byte order mark and line ends of Windows": {
			"cursor", mark + "{\r\n\t\"mcpServers\": {\r\n\t\t\"x\": {\"url\": \"http://h\"}\r\n\t}\r\n}\r\n",
			mark + "{\r\n\t\"mcpServers\": {\r\n\t\t\"x\": {\"url\": \"http://h\"},\r\n\t\t\"rye\": {\r\n\t\t\t\"type\": \"stdio\",\r\n\t\t\t\"command\": \"/usr/bin/rye-mcp\",\r\n\t\t\t\"args\": [\"--stdio\"],\r\n\t\t\t\"env\": {\r\n\t\t\t\t\"A_KEY\": \"${env:A_KEY}\"\r\n\t\t\t}\r\n\t\t}\r\n\t}\r\n}\r\n",
		},
		"VS Code, comments and trailing commas": {
			"vscode", "// mine\n{\n  \"servers\": {\n    \"gh\": {\"type\": \"http\", \"url\": \"https://h\",}, // keep\n    // \"old\": {}\n  },\n  \"inputs\": [],\n}\n",
			"// mine\n{\n  \"servers\": {\n    \"gh\": {\"type\": \"http\", \"url\": \"https://h\",}, // keep\n    // \"old\": {}\n    \"rye\": {\n      \"type\": \"stdio\",\n      \"command\": \"/usr/bin/rye-mcp\",\n      \"args\": [\"--stdio\"]\n    },\n  },\n  \"inputs\": [],\n}\n",
		},
		"Zed, a comment behind the last member": {
			"zed", "{\n\t\"theme\": \"One\", // dark\n\t\"vim_mode\": true // for ever\n}",
			"{\n\t\"theme\": \"One\", // dark\n\t\"vim_mode\": true, // for ever\n\t\"context_servers\": {\n\t\t\"rye\": {\n\t\t\t\"command\": \"/usr/bin/rye-mcp\",\n\t\t\t\"args\": [\"--stdio\"],\n\t\t\t\"timeout\": 3600\n\t\t}\n\t}\n}",
		},
		"Zed, nothing but comments": {
			"zed", "// Zed settings\n//\n", "// Zed settings\n//\n{\n  \"context_servers\": {\n    \"rye\": {\n      \"command\": \"/usr/bin/rye-mcp\",\n      \"args\": [\"--stdio\"],\n      \"timeout\": 3600\n    }\n  }\n}\n",
		},
		"Gemini, null": {
			"gemini", "null", "{\n  \"mcpServers\": {\n    \"rye\": {\n      \"command\": \"/usr/bin/rye-mcp\",\n      \"args\": [\"--stdio\"],\n      \"env\": {\n        \"A_KEY\": \"$A_KEY\"\n      },\n      \"timeout\": 3600000\n    }\n  }\n}",
		},
		"Gemini, null for the servers": {
			"gemini", "{ \"ui\": {}, \"mcpServers\": null }", "{ \"ui\": {}, \"mcpServers\": {\"rye\":{\"command\":\"/usr/bin/rye-mcp\",\"args\":[\"--stdio\"],\"env\":{\"A_KEY\":\"$A_KEY\"},\"timeout\":3600000}} }",
		},
		"OpenCode": {
			"opencode", "{\n  \"$schema\": \"https://opencode.ai/config.json\"\n}\n",
			"{\n  \"$schema\": \"https://opencode.ai/config.json\",\n  \"mcp\": {\n    \"rye\": {\n      \"type\": \"local\",\n      \"command\": [\"/usr/bin/rye-mcp\", \"--stdio\"],\n      \"enabled\": true,\n      \"timeout\": 3600000\n    }\n  }\n}\n",
		},
		"OpenCode 2, which has its servers one table further in": {
			"opencode", "{\"mcp\": {\"servers\": {}}}",
			"{\"mcp\": {\"servers\": {\"rye\":{\"type\":\"local\",\"command\":[\"/usr/bin/rye-mcp\", \"--stdio\"],\"enabled\":true,\"timeout\":3600000}}}}",
		},
		"Windsurf": {
			"windsurf", "{\n    \"mcpServers\": {\n        \"a\": {\n            \"command\": \"a\"\n        }\n    }\n}",
			"{\n    \"mcpServers\": {\n        \"a\": {\n            \"command\": \"a\"\n        },\n        \"rye\": {\n            \"command\": \"/usr/bin/rye-mcp\",\n            \"args\": [\"--stdio\"],\n            \"env\": {\n                \"A_KEY\": \"${env:A_KEY}\"\n            }\n        }\n    }\n}",
		},
		"Codex": {
			"codex", "model = \"x\" # mine\n\n[mcp_servers.a]\ncommand = \"a\"\n",
			"model = \"x\" # mine\n\n[mcp_servers.a]\ncommand = \"a\"\n\n[mcp_servers.rye]\ncommand = \"/usr/bin/rye-mcp\"\nargs = [\"--stdio\"]\nenv_vars = [\"A_KEY\"]\ntool_timeout_sec = 3600\n",
		},
		"Codex, no line end": {
			"codex", "model = \"x\"", "model = \"x\"\n\n[mcp_servers.rye]\ncommand = \"/usr/bin/rye-mcp\"\nargs = [\"--stdio\"]\nenv_vars = [\"A_KEY\"]\ntool_timeout_sec = 3600\n",
		},
		"Codex, line ends of Windows, strings of several lines": {
			"codex", "a = \"\"\"\r\n[mcp_servers.rye]\r\n\"\"\"\r\nb = [\r\n  1, # ]\r\n]\r\n",
			"a = \"\"\"\r\n[mcp_servers.rye]\r\n\"\"\"\r\nb = [\r\n  1, # ]\r\n]\r\n\r\n[mcp_servers.rye]\r\ncommand = \"/usr/bin/rye-mcp\"\r\nargs = [\"--stdio\"]\r\nenv_vars = [\"A_KEY\"]\r\ntool_timeout_sec = 3600\r\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := client(t, test.client)
			got, err := c.Put([]byte(test.before), change())
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != test.after {
				t.Errorf("%s\nwant\n%s", got, test.after)
			}
			again, err := c.Put(got, change())
			if err != nil || !bytes.Equal(again, got) {
				t.Errorf("again: %s, %v", again, err)
			}
			back, err := c.Take(got, "rye", []byte(test.before))
			if err != nil || string(back) != test.before {
				t.Errorf("taken out: %q, %v", back, err)
			}
			if blind, err := c.Take(got, "rye"); err != nil || bytes.Contains(blind, []byte("rye")) && !strings.Contains(test.before, "rye") {
				t.Errorf("taken out without the file before: %q, %v", blind, err)
			}
		})
	}
}

// TestPutAgain is about entries of ours that are there: the path of the program is what
// changes, and what a person has added stays.
func TestPutAgain(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ client, before, after string }{
		"another path": {
			"claude-code", `{"mcpServers":{"rye":{"type":"stdio","command":"/old/rye-mcp","args":["--stdio","--tools","core"],"disabled":true}}}`,
			`{"mcpServers":{"rye":{"type":"stdio","command":"/usr/bin/rye-mcp","args":["--stdio","--tools","core"],"disabled":true}}}`,
		},
		"a member is missing": {
			"cursor", "{\"mcpServers\": {\"rye\": {\n  \"command\": \"rye-mcp\",\n  \"env\": {\"A_KEY\": \"mine\"} // set\n}}}",
			"{\"mcpServers\": {\"rye\": {\n  \"command\": \"/usr/bin/rye-mcp\",\n  \"env\": {\"A_KEY\": \"mine\"}, // set\n  \"type\": \"stdio\",\n  \"args\": [\"--stdio\"]\n}}}",
		},
		"limits of time are people's": {
			"gemini", `{"mcpServers":{"rye":{"command":"/usr/bin/rye-mcp","args":["--stdio"],"env":{"A_KEY":"$A_KEY"},"timeout":5}}}`,
			`{"mcpServers":{"rye":{"command":"/usr/bin/rye-mcp","args":["--stdio"],"env":{"A_KEY":"$A_KEY"},"timeout":5}}}`,
		},
		"OpenCode's arguments": {
			"opencode", `{"mcp":{"rye":{"type":"local","command":["rye-mcp","--stdio","--project","/p"],"enabled":false,"timeout":1}}}`,
			`{"mcp":{"rye":{"type":"local","command":["/usr/bin/rye-mcp", "--stdio", "--project", "/p"],"enabled":false,"timeout":1}}}`,
		},
		"Codex, in the middle": {
			"codex", "[mcp_servers.rye] # mine\ncommand = \"/old/rye-mcp\"  # = \"x\" #\nenv_vars = [\n  \"B\",\n]\ntool_timeout_sec = 9\n\n[mcp_servers.rye.env]\nX = \"1\"\n\n[z]\n",
			"[mcp_servers.rye] # mine\ncommand = \"/usr/bin/rye-mcp\"  # = \"x\" #\nenv_vars = [\"B\", \"A_KEY\"]\ntool_timeout_sec = 9\nargs = [\"--stdio\"]\n\n[mcp_servers.rye.env]\nX = \"1\"\n\n[z]\n",
		},
		"Codex, quoted keys, no line end": {
			"codex", "[mcp_servers.\"rye\"]\n\"command\" = 'rye-mcp'", "[mcp_servers.\"rye\"]\n\"command\" = \"/usr/bin/rye-mcp\"\nargs = [\"--stdio\"]\nenv_vars = [\"A_KEY\"]\ntool_timeout_sec = 3600",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := client(t, test.client).Put([]byte(test.before), change())
			if err != nil || string(got) != test.after {
				t.Errorf("%s, %v\nwant\n%s", got, err, test.after)
			}
		})
	}
}

// TestTake takes the entry out of files that went on after it was put in.
func TestTake(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ client, before, after string }{
		"first of two":             {"cursor", "{\n  \"mcpServers\": {\n    // ours\n    \"rye\": {},\n    \"b\": 1\n  }\n}", "{\n  \"mcpServers\": {\n    // ours\n    \"b\": 1\n  }\n}"},
		"last of two":              {"cursor", "{\n  \"mcpServers\": {\n    \"b\": 1, // b\n    \"rye\": {}\n  }\n}", "{\n  \"mcpServers\": {\n    \"b\": 1 // b\n  }\n}"},
		"the only one":             {"cursor", "{\n  \"a\": 1,\n  \"mcpServers\": {\n    \"rye\": {}\n  }\n}", "{\n  \"a\": 1\n}"},
		"the only one of all":      {"cursor", "{\n  \"mcpServers\": {\n    \"rye\": {}\n  }\n}\n", "{}\n"},
		"a comment keeps its home": {"cursor", "{\n  \"mcpServers\": {\n    // mine\n    \"rye\": {}\n  }\n}", "{\n  \"mcpServers\": {\n    // mine\n  }\n}"},
		"a comment ends its line":  {"cursor", "{\"mcpServers\": { // mine\n\"rye\": {}, \"b\": 1}}", "{\"mcpServers\": { // mine\n \"b\": 1}}"},
		"trailing commas":          {"vscode", "{\"servers\": {\"a\": 1, \"rye\": {},},}", "{\"servers\": {\"a\": 1,},}"},
		"not there":                {"cursor", "{\"mcpServers\": {\"a\": 1}}", "{\"mcpServers\": {\"a\": 1}}"},
		"no object at all":         {"cursor", "", ""},
		"Codex, with tables below": {"codex", "[a]\nb = 1\n\n[mcp_servers.rye]\ncommand = \"x\"\n# c\nargs = []\n[mcp_servers.rye.env]\nA = \"\"\n\n# next\n[z]\n", "[a]\nb = 1\n\n\n# next\n[z]\n"},
		"Codex, dotted keys":       {"codex", "[mcp_servers]\nrye.command = \"x\"\nother.command = \"y\"\nrye.args = [\n]\n", "[mcp_servers]\nother.command = \"y\"\n"},
		"Codex, an inline table":   {"codex", "[mcp_servers]\nrye = { command = \"x\" }\n", "[mcp_servers]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := client(t, test.client).Take([]byte(test.before), "rye")
			if err != nil || string(got) != test.after {
				t.Errorf("%q, %v\nwant %q", got, err, test.after)
			}
		})
	}
}

// TestLeftAlone is about configurations that are not edited, and what is said of them.
func TestLeftAlone(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ client, content, want string }{
		"cut off":                        {"cursor", "{\n  \"mcpServers\": {", "line 2, column 18: it ends too early"},
		"a comma too many":               {"claude-code", "{\n  \"a\": 1,\n}", "line 3, column 1: invalid character '}'"},
		"comments where none are read":   {"claude-desktop", "// c\n{}", "line 1, column 1: invalid character '/'"},
		"two objects":                    {"cursor", "{}\n{}", "something follows the end of the object"},
		"an array":                       {"cursor", "[]", "line 1: the whole of it is an array, where an object is expected"},
		"an array of servers":            {"cursor", "{\n\"mcpServers\": []}", "line 2: mcpServers is an array"},
		"a text for the servers":         {"zed", `{"context_servers": "x"}`, "context_servers is a text"},
		"another command":                {"cursor", "{\"mcpServers\":\n{\"rye\": {\"command\": \"npx\", \"args\": [\"rye\"]}}}", "line 2: mcpServers.rye is another server"},
		"an address":                     {"cursor", `{"mcpServers":{"rye": {"url": "http://h", "command": "rye-mcp"}}}`, "is another server"},
		"no object for the server":       {"cursor", `{"mcpServers":{"rye": 7}}`, "is another server"},
		"UTF-16":                         {"cursor", "\xff\xfe{\x00}\x00", "line 1, column 1: it is not UTF-8"},
		"too deep":                       {"cursor", strings.Repeat("[", 100_000), "exceeded max depth"},
		"too large":                      {"cursor", strings.Repeat(" ", maxJSON+1), "more than 32 MiB"},
		"no TOML":                        {"codex", "a = 1\nb = \n", "line 2"},
		"TOML, too deep":                 {"codex", "a = " + strings.Repeat("[", maxTOML-10), "nested too deeply"},
		"TOML, too large":                {"codex", strings.Repeat("\n", maxTOML+1), "more than 4 MiB"},
		"TOML, servers in one line":      {"codex", "mcp_servers = { a = { command = \"a\" } }\n", "does not edit"},
		"TOML, ours in one line":         {"codex", "[mcp_servers]\nrye = { command = \"/old/rye-mcp\" }\n", "does not edit"},
		"TOML, an array of tables":       {"codex", "[[mcp_servers]]\ncommand = \"a\"\n", "mcp_servers is an array"},
		"TOML, another server":           {"codex", "\n[mcp_servers.rye]\nurl = \"https://h\"\n", "line 2: mcp_servers.rye is another server"},
		"TOML, the same table two times": {"codex", "[a]\n[a]\n", "line 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := client(t, test.client).Put([]byte(test.content), change())
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%.200q, %v; want %s", got, err, test.want)
			}
		})
	}
}

// TestForce replaces a server of another kind, when told to, and nothing beside it.
func TestForce(t *testing.T) {
	t.Parallel()
	forced := change()
	forced.Force = true
	for name, test := range map[string]struct{ client, before, after string }{
		"JSON": {"claude-desktop", "{\"mcpServers\":{\"rye\":{\"url\":\"http://h\",\"headers\":{}}, \"b\":1}} // c", ""},
		"address": {
			"cursor", "{\"mcpServers\":{\"rye\":{\"url\":\"http://h\",\"headers\":{}}, \"b\":1}} // c",
			"{\"mcpServers\":{\"rye\":{\"type\":\"stdio\",\"command\":\"/usr/bin/rye-mcp\",\"args\":[\"--stdio\"],\"env\":{\"A_KEY\":\"${env:A_KEY}\"}}, \"b\":1}} // c",
		},
		"number": {"claude-desktop", "{\"mcpServers\":{\"rye\":7}}", "{\"mcpServers\":{\"rye\":{\"command\":\"/usr/bin/rye-mcp\",\"args\":[\"--stdio\"]}}}"},
		"TOML":   {"codex", "[mcp_servers.rye]\nurl = \"http://h\"\n[z]\n", "[z]\n\n[mcp_servers.rye]\ncommand = \"/usr/bin/rye-mcp\"\nargs = [\"--stdio\"]\nenv_vars = [\"A_KEY\"]\ntool_timeout_sec = 3600\n"},
	} {
		got, err := client(t, test.client).Put([]byte(test.before), forced)
		if test.after == "" {
			if _, ok := errors.AsType[*SyntaxError](err); !ok {
				t.Errorf("%s: %s, %v", name, got, err)
			}
			continue
		}
		if err != nil || string(got) != test.after {
			t.Errorf("%s: %s, %v\nwant %s", name, got, err, test.after)
		}
	}
}

// TestTakeToNoFile: a file that installing has made is told apart from one that was there.
func TestTakeToNoFile(t *testing.T) {
	t.Parallel()
	for _, c := range All() {
		made, err := c.Put(nil, change())
		if err != nil {
			t.Fatal(err)
		}
		if back, err := c.Take(made, "rye", nil); err != nil || back != nil {
			t.Errorf("%s: %q, %v", c.ID, back, err)
		}
		edited := bytes.Replace(made, []byte("--stdio"), []byte("--x"), 1)
		if back, err := c.Take(append(edited, " \n"...), "rye", nil); err != nil || back == nil {
			t.Errorf("%s: a file that somebody has edited is gone: %v", c.ID, err)
		}
	}
}

// TestFiles tells where each client keeps its configuration.
func TestFiles(t *testing.T) {
	t.Parallel()
	env := map[string]string{}
	on := func(os string) Machine {
		return Machine{OS: os, Home: "/h", Getenv: func(name string) string { return env[name] }}
	}
	for id, want := range map[string][3]string{
		"claude-code":    {"/h/.claude.json", "/h/.claude.json", "/h/.claude.json"},
		"claude-desktop": {"/h/.config/Claude/claude_desktop_config.json", "/h/Library/Application Support/Claude/claude_desktop_config.json", "/h/AppData/Roaming/Claude/claude_desktop_config.json"},
		"cursor":         {"/h/.cursor/mcp.json", "/h/.cursor/mcp.json", "/h/.cursor/mcp.json"},
		"vscode":         {"/h/.config/Code/User/mcp.json", "/h/Library/Application Support/Code/User/mcp.json", "/h/AppData/Roaming/Code/User/mcp.json"},
		"codex":          {"/h/.codex/config.toml", "/h/.codex/config.toml", "/h/.codex/config.toml"},
		"gemini":         {"/h/.gemini/settings.json", "/h/.gemini/settings.json", "/h/.gemini/settings.json"},
		"opencode":       {"/h/.config/opencode/opencode.json", "/h/.config/opencode/opencode.json", "/h/.config/opencode/opencode.json"},
		"zed":            {"/h/.config/zed/settings.json", "/h/.config/zed/settings.json", "/h/AppData/Roaming/Zed/settings.json"},
		"windsurf":       {"/h/.codeium/windsurf/mcp_config.json", "/h/.codeium/windsurf/mcp_config.json", "/h/.codeium/windsurf/mcp_config.json"},
	} {
		for i, os := range []string{"linux", "darwin", "windows"} {
			if got := client(t, id).Files(on(os))[0]; got != want[i] {
				t.Errorf("%s on %s: %s, want %s", id, os, got, want[i])
			}
		}
	}
	env = map[string]string{"XDG_CONFIG_HOME": "/x", "CODEX_HOME": "/c", "CLAUDE_CONFIG_DIR": "/k", "GEMINI_CLI_HOME": "relative"}
	for id, want := range map[string]string{
		"opencode": "/x/opencode/opencode.json", "zed": "/x/zed/settings.json", "codex": "/c/config.toml", "claude-code": "/k/.claude.json", "gemini": "/h/.gemini/settings.json",
	} {
		if got := client(t, id).Files(on("linux"))[0]; got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
}

// TestAttackClientConfigs: a thread with file tools only writes the configuration that a client starts servers from, in a project or in a home. Each of them is protected by its name.
func TestAttackClientConfigs(t *testing.T) {
	t.Parallel()
	for _, os := range []string{"linux", "darwin", "windows"} {
		for _, c := range All() {
			files := c.Files(Machine{OS: os, Home: "/h", Getenv: func(string) string { return "" }})
			if c.Project != "" {
				files = append(files, "/p/"+c.Project, "/p/sub/"+c.Project)
			}
			for _, file := range files {
				if protect.ByName(protect.Split(file)) != protect.Nothing {
					t.Errorf("%s: %s can be written", c.ID, file)
				}
			}
		}
	}
}

// TestEnviron tells what a server gets of the environment of each client.
func TestEnviron(t *testing.T) {
	t.Parallel()
	const all, little = "A_KEY=1 HOME=/h OTHER=2 PATH=/bin", "HOME=/h PATH=/bin"
	environ := []string{"OTHER=2", "HOME=/h", "PATH=/bin", "A_KEY=1"}
	for id, want := range map[string]string{
		"claude-code": all, "vscode": all, "opencode": all, "zed": all,
		"codex": "A_KEY=1 " + little, "gemini": "A_KEY=1 " + little, "cursor": "A_KEY=1 " + little, "windsurf": "A_KEY=1 " + little,
		"claude-desktop": little,
	} {
		c := client(t, id)
		made, err := c.Put(nil, change())
		if err != nil {
			t.Fatal(err)
		}
		found, is, err := c.Find(made, "rye")
		if err != nil || !is || !found.Is("rye-mcp") {
			t.Fatalf("%s: %+v, %v", id, found, err)
		}
		if got := strings.Join(c.Environ(environ, found), " "); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
}
