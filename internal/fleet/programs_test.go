package fleet

import (
	"fmt"
	"strings"
	"testing"
)

// Compiled expressions are kept while they are used, and no more than so many:
// each pull request could bring others.
func TestProgramsAreBounded(t *testing.T) {
	ps := &programs{}
	const used = `flavor.price < 1.0 && flavor.gpu.model != ""`
	kept, _, err := ps.compile(expression{used, false})
	for i := range 3 * maxPrograms {
		_, _, _ = ps.compile(expression{fmt.Sprintf("none%d", i), false}) // a mistake is kept too
		if got, _, againErr := ps.compile(expression{used, false}); i%100 == 0 && (got != kept || fmt.Sprint(err) != fmt.Sprint(againErr)) {
			t.Fatalf("after %d others the expression was compiled again", i)
		}
	}
	if n := ps.kept.Len(); n > 2*maxPrograms {
		t.Errorf("%d programs are kept, want at most %d", n, 2*maxPrograms)
	}
}

// Twenty intents, each with a condition of its own that goes through lists within
// lists, took 85 s of processor time a plan on 200 flavors: they are refused where
// they stand, with what they cost and what to do. What the fleet's own policies
// require may cost more, and is bounded too.
func TestCostlyConditionsAreRefused(t *testing.T) {
	list := "[" + strings.Repeat("1, ", 15) + "1]"
	nested := func(n int) string {
		return fmt.Sprintf("%s.all(a, %s.all(b, %s.all(c, a + b + c < %d)))", list, list, list, 100+n)
	}
	files := base()
	for i := range 20 {
		name := fmt.Sprintf("n%d", i)
		files["intents/vision/"+name+".yaml"] = intent("vision", name, "resources: {cpu: 1}, placement: {where: '"+nested(i)+"'}")
	}
	f := read(t, NewReader(), files, nil)
	refused := 0
	for _, in := range f.Intents {
		if in.Metadata.Name == "a" {
			continue
		}
		want := fmt.Sprintf("intents/vision/%s.yaml:4:49: spec.placement.where: an evaluation costs up to ", in.Metadata.Name)
		if in.Where != nil || !strings.HasPrefix(in.Problem, want) || !strings.Contains(in.Problem, "at most 2000 are allowed") || !strings.Contains(in.Problem, "do not put exists()") {
			t.Fatalf("%s: %q", in.Metadata.Name, in.Problem)
		}
		refused++
	}
	if refused != 20 {
		t.Errorf("%d of 20 are refused", refused)
	}

	policy := func(require string) []string {
		return diagnostics(read(t, NewReader(), base().with("fleet.yaml", group+"kind: Fleet\nmetadata: {name: acme}\nspec: {policies: [{name: p, require: '"+require+"'}]}\n"), nil))
	}
	twice := strings.Replace(nested(0), list+".all(c, a + b + c", "[1, 2].all(c, a + b + c", 1)
	if got := policy(twice); len(got) > 0 {
		t.Errorf("a policy: %v", got)
	}
	if got := policy(nested(0)); len(got) != 1 || !strings.Contains(got[0], "spec.policies[0].require: an evaluation costs up to ") || !strings.Contains(got[0], "at most 20000 are allowed") {
		t.Errorf("a policy: %v", got)
	}
}
