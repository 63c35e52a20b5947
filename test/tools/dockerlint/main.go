// Command dockerlint checks Dockerfiles with BuildKit's own parser and the rules
// of its linter that need no build, and with ours (rules.go): no engine and no network are used.
package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

func main() {
	findings := 0
	for _, path := range os.Args[1:] {
		data, err := os.ReadFile(path)
		if err != nil {
			fmt.Fprintf(os.Stderr, "dockerlint: %v\n", err)
			os.Exit(1)
		}
		findings += lint(path, data)
	}
	if findings > 0 || len(os.Args) < 2 {
		os.Exit(1)
	}
}

// lint prints what is wrong with one file and counts it.
func lint(path string, data []byte) (findings int) {
	found := func(line int, rule, message string) {
		fmt.Printf("%s:%d: %s: %s\n", path, line, rule, message)
		findings++
	}
	file, err := parser.Parse(bytes.NewReader(data))
	if err != nil {
		found(1, "parse", err.Error())
		return findings
	}
	for _, w := range file.Warnings {
		found(lineOf(w.Location), "parse", w.Short)
	}
	rules := linter.New(&linter.Config{Warn: func(rule, _, _, message string, at []parser.Range) {
		where := 1
		if len(at) > 0 {
			where = at[0].Start.Line
		}
		found(where, rule, message)
	}})
	stages, _, err := instructions.Parse(file.AST, rules)
	if err != nil {
		found(1, "instructions", err.Error())
		return findings
	}
	judge(stages, found)
	return findings
}

func lineOf(r *parser.Range) int {
	if r == nil {
		return 1
	}
	return r.Start.Line
}
