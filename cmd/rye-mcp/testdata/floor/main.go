// Command floor is the least that a server of threads can be: it registers a thread
// and reserves its budget in two SQLite files, starts itself as the thread's process,
// and waits for it; the process calls the model until that ends its turn, runs the one
// tool there is, puts each turn on disk, signs what it leaves and settles. Nothing is
// checked, refused or recovered. Benchmarks compare rye-mcp with it, and talk to both
// in the same lines of MCP.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

func main() {
	var err error
	if len(os.Args) == 3 && os.Args[1] == "thread" {
		err = runThread(os.Args[2])
	} else {
		err = serve()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// server answers calls in their order.
type server struct {
	state   *state
	threads sync.WaitGroup
	started int
}

func serve() error {
	opened, err := openState(true)
	if err != nil {
		return err
	}
	defer opened.close()
	s := &server{state: opened}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var message struct {
			ID     json.RawMessage
			Method string
			Params struct{ Name string }
		}
		if err := json.Unmarshal(lines.Bytes(), &message); err != nil {
			return err
		}
		if message.ID == nil {
			continue // a notification
		}
		answer, err := s.answer(message.Method, message.Params.Name)
		if err != nil {
			return err
		}
		if err := json.NewEncoder(os.Stdout).Encode(map[string]any{"jsonrpc": "2.0", "id": message.ID, "result": answer}); err != nil {
			return err
		}
	}
	s.threads.Wait()
	return lines.Err()
}

func (s *server) answer(method, tool string) (any, error) {
	if method != "tools/call" {
		return map[string]any{}, nil
	}
	var (
		answer any
		err    error
	)
	switch tool {
	case "rye_execute":
		answer, err = s.start()
	case "wait_threads":
		s.threads.Wait()
		answer = map[string]any{"pending": []string{}}
	default:
		err = fmt.Errorf("no tool %q", tool)
	}
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(answer)
	return map[string]any{"content": []any{map[string]string{"type": "text", "text": string(text)}}}, err
}

// start registers a thread, reserves its budget and starts its process.
func (s *server) start() (any, error) {
	s.started++
	id := fmt.Sprintf("work-%d", s.started)
	if err := os.Mkdir(filepath.Join(stateDir, id), 0o700); err != nil {
		return nil, err
	}
	if err := s.state.register(id); err != nil {
		return nil, err
	}
	if err := s.state.writeSigned(id, meta{ID: id, Directive: "work", Status: "created"}); err != nil {
		return nil, err
	}
	executable, err := os.Executable()
	if err != nil {
		return nil, err
	}
	thread := exec.Command(executable, "thread", id)
	thread.Env = append(os.Environ(), "GOMAXPROCS=1")
	thread.Stderr = os.Stderr
	if err := thread.Start(); err != nil {
		return nil, err
	}
	s.threads.Go(func() { _ = thread.Wait() }) // the row says how it ended
	return map[string]any{"thread_id": id, "status": "running", "pid": thread.Process.Pid}, nil
}
