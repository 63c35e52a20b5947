package tools

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// make test says which programs are missing, and how to install them, before it does
// anything else; .ci/run installs the same ones.
func TestMissingProgramsAreSaidFirst(t *testing.T) {
	run := func(args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "make", append([]string{"-C", "../.."}, args...)...)
		cmd.Env = append(os.Environ(), "MAKEFLAGS=", "CHROMIUM=no-such-chromium")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := run("test", "GO=false") // which would fail too
	if err == nil || !strings.Contains(out, "missing programs; install them: apt-get install") || !strings.Contains(out, "chromium") || strings.Contains(out, "go run") {
		t.Errorf("make test, without chromium: %v\n%s", err, out)
	}
	out, err = run("-n", "programs")
	if err != nil {
		t.Fatal(err, out)
	}
	script, err := os.ReadFile("../../.ci/run")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`[\w-]+=([\w-]+)`).FindAllStringSubmatch(strings.TrimPrefix(out[strings.Index(out, "for p in"):strings.Index(out, "; do")], "for p in"), -1)
	if len(names) < 5 {
		t.Fatalf("only %q are asked for", names)
	}
	for _, name := range names {
		if !regexp.MustCompile(`missing="\$missing (?:\S+ )*` + regexp.QuoteMeta(name[1]) + `\b`).Match(script) {
			t.Errorf(".ci/run does not install %s", name[1])
		}
	}
}
