// Command benchtable reads what "go test -bench ^BenchmarkRatio" prints and
// writes it as a table. The name of each benchmark says what is measured,
// against what and how durable it is, separated by slashes; its metrics are
// x-baseline and x-goal, or any other unit and the same with -goal. The unit with -floor is
// what the least takes that does the same, and with -linked what that takes with the required
// modules linked; rows without say nothing of it.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
)

func main() {
	rows, err := read(os.Stdin)
	if err == nil {
		err = write(os.Stdout, machine(context.Background()), rows)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// row is one benchmark.
type row struct {
	what, against, durability string
	measured, goal            float64
	unit                      string
}

// read finds the benchmarks in the output of go test. A package that failed is
// an error, since its rows are missing.
func read(in io.Reader) ([]row, error) {
	var rows []row
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		line := lines.Text()
		fields := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "FAIL"), strings.HasPrefix(line, "--- FAIL"):
			return nil, fmt.Errorf("benchmarks failed: %s", line)
		case !strings.HasPrefix(line, "BenchmarkRatio"), len(fields) < 4:
			continue // the name alone comes before what a benchmark logs
		}
		r, err := parse(fields[0], fields[2:])
		if err != nil {
			return nil, fmt.Errorf("%w: %s", err, line)
		}
		rows = append(rows, r)
	}
	return rows, lines.Err()
}

var processors = regexp.MustCompile(`-\d+$`)

// parse makes a row of the name of a benchmark and its metrics, which are pairs
// of a number and a unit.
func parse(name string, metrics []string) (row, error) {
	parts := strings.Split(processors.ReplaceAllString(name, ""), "/")
	if len(parts) != 4 {
		return row{}, errors.New("the name does not say what / against what / how durable")
	}
	r := row{what: words(parts[1]), against: words(parts[2]), durability: words(parts[3])}
	values := map[string]float64{}
	for i := 0; i+1 < len(metrics); i += 2 {
		value, err := strconv.ParseFloat(metrics[i], 64)
		if err != nil {
			return row{}, err
		}
		unit := metrics[i+1]
		values[unit] = value
		if base, isGoal := strings.CutSuffix(unit, "-goal"); isGoal {
			r.unit, r.goal = base, value
		}
	}
	measured, found := values[r.unit+"-baseline"]
	if !found {
		measured, found = values[r.unit]
	}
	if r.measured = measured; !found {
		return row{}, errors.New("there is no goal, or no measure for it")
	}
	if floor, found := values[r.unit+"-floor"]; found {
		r.against += fmt.Sprintf("; the least: %.3g %s", floor, r.unit)
	}
	if linked, found := values[r.unit+"-linked"]; found {
		r.against += fmt.Sprintf("; with the required modules linked: %.3g %s", linked, r.unit)
	}
	return r, nil
}

// words undoes what go test does to the blanks of a name.
func words(name string) string { return strings.ReplaceAll(name, "_", " ") }

func write(out io.Writer, machine string, rows []row) error {
	w := bufio.NewWriter(out)
	_, _ = fmt.Fprintf(w, "%s\n\n| what | against | measured | at most | durability | |\n|---|---|---|---|---|---|\n", machine)
	for _, r := range rows {
		verdict := "ok"
		if r.measured > r.goal {
			verdict = "over"
		}
		_, _ = fmt.Fprintf(w, "| %s | %s | %.3g %s | %.3g %s | %s | %s |\n",
			r.what, r.against, r.measured, r.unit, r.goal, r.unit, r.durability, verdict)
	}
	return w.Flush()
}

// machine says where it was measured. It leaves out what the system does not tell.
func machine(ctx context.Context) string {
	parts := []string{fmt.Sprintf("%d processors", runtime.NumCPU()), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
	for _, ask := range [][]string{{"uname", "-r"}, {"stat", "-f", "-c", "%T", os.TempDir()}} {
		if told, err := exec.CommandContext(ctx, ask[0], ask[1:]...).Output(); err == nil {
			parts = append(parts, strings.TrimSpace(string(told)))
		}
	}
	return strings.Join(parts, ", ")
}
