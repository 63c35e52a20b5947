package guide

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// Commands in fences, samples and text are seen; what is neither run nor marked is told, and
// so is a mark that names nothing.
func TestPage_TellsWhatIsNotRun(t *testing.T) {
	const text = "# P\n\n<!-- not run: helm because of x -->\n<!-- not run: gone because y -->\n\n" +
		"```\nkubectl get pods\nhelm install a\n```\n\n```yaml\nkind: A\n```\n\n```\n$ kubectl get nodes\nNAME   AGE\na      1d\n```\n\n" +
		"Say `kubectl\nget` and `helm repo add b`, or `git push`, but `kubectl` alone is a name.\n"
	p := parse([]byte(text))
	if len(p.blocks) != 2 || p.blocks[0].text != "kubectl get pods\n" || p.blocks[1].text != "kubectl get nodes\n" || !slices.Equal(p.blocks[1].printed, []string{"NAME   AGE"}) {
		t.Fatalf("blocks: %+v", p.blocks)
	}
	if want := []string{"kubectl get", "git push"}; !slices.Equal(p.named, want) {
		t.Fatalf("in the text: %q, want %q", p.named, want)
	}
	if _, err := p.block("get pods"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.block("kubectl get"); err == nil {
		t.Error("two blocks have it, and one was given")
	}
	left := strings.Join(p.left(), "\n")
	for _, want := range []string{"not run, and has no comment that says why:\nkubectl get nodes\n", "says why: git push", "marked as not run: gone"} {
		if !strings.Contains(left, want) {
			t.Errorf("left: %q, want in it %q", left, want)
		}
	}
	if strings.Contains(left, "get pods") || strings.Contains(left, "helm") || strings.Contains(left, "says why: kubectl get\n") {
		t.Errorf("left: %q", left)
	}
}

// Each comment of the guide names a command of it.
func TestPage_OfTheGuide(t *testing.T) {
	source, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	p := parse(source)
	if len(p.blocks) < 10 || len(p.not) < 10 {
		t.Fatalf("%d blocks, %d marks", len(p.blocks), len(p.not))
	}
	for begin := range p.not {
		if !p.met[begin] {
			t.Errorf("no command begins with %q", begin)
		}
	}
}
