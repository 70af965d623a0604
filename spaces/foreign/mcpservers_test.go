package foreign

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestServers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		content string
		want    []Server
	}{
		"Claude Desktop": {
			`{"globalShortcut":"x","mcpServers":{"files":{"command":"npx","args":["-y","@modelcontextprotocol/server-filesystem","/home/me"],"env":{"DEBUG":"1"}}}}`,
			[]Server{{Name: "files", Command: "npx", Args: []string{"-y", "@modelcontextprotocol/server-filesystem", "/home/me"}, Env: map[string]string{"DEBUG": "1"}}},
		},
		"Claude Code, project": {
			`{"mcpServers":{"api":{"type":"http","url":"${API_BASE:-https://h}/mcp","headers":{"Authorization":"Bearer ${API_TOKEN}"}}}}`,
			[]Server{{Name: "api", Type: "http", URL: "${API_BASE:-https://h}/mcp", Headers: map[string]string{"Authorization": "Bearer ${API_TOKEN}"}, Variables: []string{"API_TOKEN"}}},
		},
		"Claude Code, user": {
			`{"mcpServers":{"a":{"command":"a"}},"projects":{"/here":{"mcpServers":{"b":{"command":"b"}}},"/there":{"mcpServers":{"c":{"command":"c"}}}}}`,
			[]Server{{Name: "a", Command: "a"}, {Name: "b", Command: "b"}},
		},
		"Cursor": {
			`{"mcpServers":{"x":{"command":"node","args":["${workspaceFolder}/s.js"],"env":{"TOKEN":"${env:MY_TOKEN}","HOME_DIR":"${userHome}"}}}}`,
			[]Server{{Name: "x", Command: "node", Args: []string{"{project_path}/s.js"}, Env: map[string]string{"TOKEN": "${MY_TOKEN}", "HOME_DIR": "${HOME}"}, Variables: []string{"MY_TOKEN"}}},
		},
		"VS Code": {
			"{\n// servers\n\"inputs\":[{\"id\":\"gh-token\",\"type\":\"promptString\"}],\n\"servers\":{\"gh\":{\"type\":\"stdio\",\"command\":\"docker\",\"args\":[\"run\",\"-e\",\"GITHUB_TOKEN\",\"image\",],\"env\":{\"GITHUB_TOKEN\":\"${input:gh-token}\"},\"envFile\":\"${workspaceFolder}/.env\",},},}",
			[]Server{{Name: "gh", Type: "stdio", Command: "docker", Args: []string{"run", "-e", "GITHUB_TOKEN", "image"}, Env: map[string]string{"GITHUB_TOKEN": "${GH_GH_TOKEN}"}, Variables: []string{"GH_GH_TOKEN"}, Notes: []string{"envFile is not read: set what is in it as variables"}}},
		},
		"VS Code, settings": {`{"mcp":{"servers":{"s":{"url":"http://localhost:1/mcp"}}},"editor.x":1}`, []Server{{Name: "s", URL: "http://localhost:1/mcp"}}},
		"Codex": {
			"model = \"x\"\nmcp = 7\n[mcp_servers.a]\ncommand = \"npx\"\nargs = [\"-y\", \"a\"]\nenv_vars = [\"A_KEY\"]\n[mcp_servers.a.env]\nPORT = 80\n[mcp_servers.b]\nurl = \"https://h/mcp\"\nbearer_token_env_var = \"B_TOKEN\"\nenabled = false\n",
			[]Server{
				{Name: "a", Command: "npx", Args: []string{"-y", "a"}, Env: map[string]string{"A_KEY": "${A_KEY}", "PORT": "80"}, Variables: []string{"A_KEY"}},
				{Name: "b", URL: "https://h/mcp", Headers: map[string]string{"Authorization": "Bearer ${B_TOKEN}"}, Variables: []string{"B_TOKEN"}, Notes: []string{"it is switched off there"}},
			},
		},
		"OpenCode": {
			`{"mcp":{"a":{"type":"local","command":["bun","x","a"],"environment":{"A_KEY":"{env:A_KEY}"},"enabled":true},"b":{"type":"remote","url":"https://h","headers":{"Authorization":"Bearer {env:B}"}}}}`,
			[]Server{
				{Name: "a", Type: "stdio", Command: "bun", Args: []string{"x", "a"}, Env: map[string]string{"A_KEY": "${A_KEY}"}, Variables: []string{"A_KEY"}},
				{Name: "b", Type: "http", URL: "https://h", Headers: map[string]string{"Authorization": "Bearer ${B}"}, Variables: []string{"B"}},
			},
		},
		"Gemini CLI": {
			`{"ui":{"theme":"x"},"mcpServers":{"a":{"httpUrl":"https://h/mcp"},"b":{"command":"b","env":{"B_KEY":"$MY_KEY"},"timeout":5}}}`,
			[]Server{{Name: "a", URL: "https://h/mcp"}, {Name: "b", Command: "b", Env: map[string]string{"B_KEY": "${MY_KEY}"}, Variables: []string{"MY_KEY"}}},
		},
		"Zed": {
			`{"context_servers":{"a":{"command":"a","args":["x"],"env":{}},"b":{"command":{"path":"b","args":["y"]}}}, "servers": null}`,
			[]Server{{Name: "a", Command: "a", Args: []string{"x"}}, {Name: "b", Command: "b", Args: []string{"y"}}},
		},
		"byte order mark, numbers, switched off": {
			"\xef\xbb\xbf" + `{"mcpServers":{"s":{"serverUrl":"http://h","env":{"PORT":80,"NONE":null},"disabled":true}}}`,
			[]Server{{Name: "s", URL: "http://h", Env: map[string]string{"PORT": "80", "NONE": ""}, Notes: []string{"it is switched off there"}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Servers([]byte(test.content), "/here")
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("%+v\nwant %+v", got, test.want)
			}
		})
	}
}

// TestAttackImportedSecrets: a configuration of another program has keys in its environment, headers, arguments and addresses. None of them is taken over: variables stand in their places.
func TestAttackImportedSecrets(t *testing.T) {
	t.Parallel()
	const key = "hunter2hunter2hunter2"
	for name, server := range map[string]map[string]any{
		"env":        {"command": "x", "env": map[string]any{"GITHUB_TOKEN": key}},
		"header":     {"url": "http://h", "headers": map[string]any{"X-Api-Key": key}},
		"bearer":     {"url": "http://h", "headers": map[string]any{"Authorization": "Bearer " + key}},
		"argument":   {"command": "x", "args": []any{"--api-key", key}},
		"assigned":   {"command": "x", "args": []any{"--token=" + key}},
		"docker":     {"command": "docker", "args": []any{"run", "-e", "API_KEY=" + key}},
		"known form": {"command": "x", "args": []any{"sk-" + key}, "env": map[string]any{"PLAIN": "ghp_" + key}},
		"query":      {"url": "http://h/mcp?q=1&apiKey=" + key},
		"password":   {"url": "http://me:" + key + "@h/mcp"},
	} {
		content, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"s": server}})
		if err != nil {
			t.Fatal(err)
		}
		got, err := Servers(content, "")
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(got)
		if err != nil || strings.Contains(string(text), key) || len(got[0].Variables)+len(got[0].Notes) == 0 {
			t.Errorf("%s: %s, %v", name, text, err)
		}
	}
}

func TestNoServers(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		``: "unexpected end", `{}`: "names no MCP servers", `{"mcpServers":{}}`: "names no MCP servers",
		`{"mcpServers":{"a":7}}`: "cannot unmarshal", `{"mcpServers":[]}`: "cannot unmarshal", `{"mcpServers":`: "unexpected end",
	} {
		_, err := Servers([]byte(content), "")
		if err == nil || !strings.Contains(err.Error(), want) || (want == "names no MCP servers") != errors.Is(err, ErrNoServers) {
			t.Errorf("%s: %v", content, err)
		}
	}
	if _, err := Servers(make([]byte, maxConfig+1), ""); err == nil {
		t.Error("taken")
	}
}

func FuzzServers(f *testing.F) {
	f.Add([]byte(`{"mcpServers":{"x":{"command":"${input:a}","args":["${","}"],"url":"h?a=b"}}}`))
	f.Add([]byte("// x\n{\"servers\":{\"\":{\"env\":{\"KEY\":\"${a:-${b}}\"}}}}"))
	f.Fuzz(func(t *testing.T, content []byte) {
		servers, err := Servers(content, "")
		if err == nil && len(servers) == 0 {
			t.Error("neither servers nor an error")
		}
	})
}
