package docs

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each test that the threat model names is one of the project's.
func TestThreatModel_NamesTestsThatExist(t *testing.T) {
	page, err := os.ReadFile("../../fleet-repo-template/docs/threats.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(string(page), -1)
	if len(named) < 20 {
		t.Fatalf("the page names %d tests, want those of each row", len(named))
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
