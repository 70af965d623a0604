package main

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

const fileTool = "rye_file_system_read"

// thread is one conversation.
type thread struct {
	*state

	id         string
	transcript *os.File
	messages   []message
	turns      int
}

type message struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   string          `json:"content,omitempty"`
}

// runThread is a thread's whole process.
func runThread(id string) error {
	opened, err := openState(false)
	if err != nil {
		return err
	}
	defer opened.close()
	m, err := opened.readSigned(id)
	if err != nil {
		return err
	}
	if _, err := opened.registry.Exec(`UPDATE threads SET status = 'running' WHERE thread_id = ? AND status = 'created'`, id); err != nil {
		return err
	}
	t := &thread{state: opened, id: id}
	if t.transcript, err = os.OpenFile(filepath.Join(stateDir, id, "transcript.jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return err
	}
	defer func() { _ = t.transcript.Close() }()
	result, err := t.talk(m.Directive)
	if err != nil {
		return err
	}
	return t.settle(m, result)
}

// talk calls the model until it ends its turn, and returns its last words.
func (t *thread) talk(directive string) (string, error) {
	prompt, err := os.ReadFile(filepath.Join(".ai", "directives", directive+".md"))
	if err != nil {
		return "", err
	}
	t.messages = []message{{Role: "user", Content: []block{{Type: "text", Text: string(prompt)}}}}
	for {
		answer, err := t.call()
		if err != nil {
			return "", err
		}
		t.messages = append(t.messages, message{Role: "assistant", Content: []block{answer}})
		if answer.Type == "text" {
			return answer.Text, t.checkpoint()
		}
		var in struct{ Path string }
		if err := json.Unmarshal(answer.Input, &in); err != nil {
			return "", err
		}
		content, err := os.ReadFile(in.Path)
		if err != nil {
			return "", err
		}
		t.messages = append(t.messages, message{Role: "user", Content: []block{{Type: "tool_result", ToolUseID: answer.ID, Content: string(content)}}})
		if err := t.checkpoint(); err != nil {
			return "", err
		}
	}
}

// call is one call of the model, streamed; its answer is one block.
func (t *thread) call() (answer block, err error) {
	body, err := json.Marshal(map[string]any{
		"model": "small", "max_tokens": 4000, "stream": true, "messages": t.messages,
		"tools": []any{map[string]any{
			"name": fileTool, "description": "Read a file.",
			"input_schema": map[string]any{"type": "object", "properties": map[string]any{"path": map[string]string{"type": "string"}}},
		}},
	})
	if err != nil {
		return block{}, err
	}
	response, err := http.Post(os.Getenv("ANTHROPIC_BASE_URL")+"/v1/messages", "application/json", bytes.NewReader(body))
	if err != nil {
		return block{}, err
	}
	defer func() { _ = response.Body.Close() }()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		data, found := strings.CutPrefix(lines.Text(), "data: ")
		if !found {
			continue
		}
		var event struct {
			Type         string
			ContentBlock *block `json:"content_block"`
		}
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			return block{}, err
		}
		if event.ContentBlock != nil {
			answer = *event.ContentBlock
		}
	}
	t.turns++
	return answer, nil
}

// checkpoint puts the messages since the last one on disk, signed, and what they
// have cost into the ledger.
func (t *thread) checkpoint() error {
	for _, m := range t.messages[max(0, len(t.messages)-2):] {
		line, err := json.Marshal(m)
		if err != nil {
			return err
		}
		sig := base64.StdEncoding.EncodeToString(ed25519.Sign(t.key, line))
		if _, err := fmt.Fprintf(t.transcript, "%s\n{\"checkpoint\":%q}\n", line, sig); err != nil {
			return err
		}
	}
	if err := t.transcript.Sync(); err != nil {
		return err
	}
	_, err := t.ledger.Exec(`PRAGMA synchronous = NORMAL; UPDATE budgets SET spent = spent + 10 WHERE thread_id = ?`, t.id)
	return err
}

// settle ends the thread: ledger, thread.json, row.
func (t *thread) settle(m meta, result string) error {
	m.Status, m.Turns, m.Result = "completed", t.turns, result
	_, err := t.ledger.Exec(`PRAGMA synchronous = FULL; UPDATE budgets SET status = 'settled', reserved = spent WHERE thread_id = ?`, t.id)
	if err := errors.Join(err, t.writeSigned(t.id, m)); err != nil {
		return err
	}
	_, err = t.registry.Exec(`UPDATE threads SET status = 'completed', turns = ?, result = ? WHERE thread_id = ?`, t.turns, result, t.id)
	return err
}
