package docs

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each row of the threat model names a test, or says that nothing stops it; each test
// that it names is one of the project's.
func TestThreatModel_NamesTestsThatExist(t *testing.T) {
	page, err := os.ReadFile("../../fleet-repo-template/docs/threats.md")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile("`(Test\\w+)`")
	named := names.FindAllStringSubmatch(string(page), -1)
	rows := 0
	for line := range strings.SplitSeq(string(page), "\n") {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| actor ") {
			continue
		}
		rows++
		if len(cells) != 4 {
			t.Errorf("%.100s: %d cells, want actor, deed, what stops it, and tests", line, len(cells))
		} else if !names.MatchString(cells[3]) && !strings.Contains(cells[2], "**not stopped**") {
			t.Errorf("%.100s: no test shows it, and it does not say that nothing stops it", line)
		}
	}
	if rows < 60 {
		t.Fatalf("the page has %d rows, want those of all actors", rows)
	}
	out, err := exec.Command("git", "-C", "../..", "grep", "-hoE", `^func Test\w+`, "--", "*_test.go").Output()
	if err != nil {
		t.Fatal(err)
	}
	have := strings.Fields(strings.ReplaceAll(string(out), "func ", ""))
	for _, m := range named {
		if !slices.Contains(have, m[1]) {
			t.Errorf("threats.md names %s, which is no test", m[1])
		}
	}
}
