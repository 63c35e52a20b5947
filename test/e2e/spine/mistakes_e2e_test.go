//go:build e2e

package spine

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

// mistakes are kinds of files that no daemon can act on, each made from a name.
var mistakes = map[string]func(name string) string{
	"not-yaml":         func(string) string { return "a: [b\n" },
	"tab":              func(string) string { return "spec:\n\tcpu: 1\n" },
	"binary":           func(string) string { return "\x00\x01\xff\xfe" },
	"empty":            func(string) string { return "" },
	"list":             func(string) string { return "- a\n- b\n" },
	"unknown-kind":     func(n string) string { return strings.Replace(intent(n, 1), "ResourceIntent", "ResourceIntend", 1) },
	"unknown-version":  func(n string) string { return strings.Replace(intent(n, 1), "v1alpha1", "v9", 1) },
	"unknown-field":    func(n string) string { return intent(n, 1, "  resurces: {}\n") },
	"duplicate-key":    func(n string) string { return intent(n, 1, "  consumer: rome\n") },
	"wrong-scalar":     func(n string) string { return intent(n, 1, "  budget: {maxHourly: 1e3}\n") },
	"norway":           func(n string) string { return intent(n, 1, "  placement: {labels: {country: NO}}\n") },
	"other-tenant":     func(n string) string { return strings.Replace(intent(n, 1), "namespace: vision", "namespace: nlp", 1) },
	"unknown-consumer": func(n string) string { return strings.Replace(intent(n, 1), "consumer: rome", "consumer: rom", 1) },
	"bad-name":         func(n string) string { return intent(strings.ToUpper(n), 1) },
	"bad-cel":          func(n string) string { return intent(n, 1, "  placement: {where: 'flavor.gpu.interconect == '}\n") },
	"negative":         func(n string) string { return intent(n, -1) },
	"bad-quantity":     func(n string) string { return strings.Replace(intent(n, 1), "16Gi", "16GBB", 1) },
	"bad-enum":         func(n string) string { return intent(n, 1, "  purchase: [cheap]\n") },
	"foreign-namespace": func(n string) string {
		return strings.Replace(intent(n, 1), "name: vision, create", "name: kube-system, create", 1)
	},
	"bad-zone": func(n string) string {
		return intent(n, 1, "  schedule: {windows: [{days: [Mon], from: \"20:00\", to: \"06:00\", timezone: Europe/Rom}]}\n")
	},
	"billion-laughs": func(string) string { return "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]\n" },
}

// Teams make mistakes of every kind, all at once; none of them hurts anybody
// who made none. A merge that takes too much away takes nothing.
func TestMistakes(t *testing.T) {
	f := start(t, nil)
	d := f.up()
	wrong := map[string]string{} // path to name
	const good = 5               // with the two that come later, they leave one of their node's eight GPUs to grow by
	f.step("a hundred bad files among good ones", func(*testing.T) {
		files := map[string]*string{}
		for round := range 5 {
			for kind, make := range mistakes {
				name := fmt.Sprintf("bad-%s-%d", kind, round)
				path := intentPath(name)
				if round == 4 { // deeper directories are read too
					path = "intents/vision/deep/er/" + name + ".yaml"
				}
				files[path], wrong[path] = ptr(make(name)), name
			}
		}
		for i := range good {
			name := fmt.Sprintf("good%d", i)
			files[intentPath(name)] = ptr(intent(name, 1))
		}
		f.push("A hundred mistakes", files)
		f.eventually("the good ones are placed", func() error { return f.placed("good", good) })
		f.applied()
		if held := len(f.check().Held); held != good {
			f.t.Errorf("%d contracts are held, want the %d good ones", held, good)
		}
		f.everyMistakeIsNamed(d, slices.Sorted(maps.Keys(wrong)))
	})
	f.step("one that is set right is placed", func(*testing.T) {
		f.push("Set one right", map[string]*string{intentPath("bad-unknown-field-0"): ptr(intent("bad-unknown-field-0", 1))})
		f.eventually("placed", func() error { return f.inPhase("bad-unknown-field-0", 1, "Peering") })
	})
	f.step("a bad edit of a placed intent keeps its contract, over a restart too", func(*testing.T) {
		f.put("good0", "kind: [\n")
		f.eventually("it is logged", func() error { return logged(d, intentPath("good0")+":") })
		if err := d.Stop(); err != nil {
			f.t.Fatal(err)
		}
		if err := d.Restart(f.ctx); err != nil {
			f.t.Fatal(err)
		}
		f.await(d)
		f.put("later", intent("later", 1))
		f.eventually("a round after the restart", func() error { return f.inPhase("later", 1, "Peering") })
		if err := f.inPhase("good0", 1, "Peering"); err != nil {
			f.t.Error(err)
		}
		f.put("good0", intent("good0", 2))
		f.eventually("resized once it is right again", func() error { return f.said("resize vision/good0") })
	})
	f.step("a bad fleet, tenant and cluster file keep their last good version", func(*testing.T) {
		f.push("Break the rest", map[string]*string{
			"fleet.yaml": ptr("kind: Fleet\nspec: {currency: 5}\n"), "tenants/vision.yaml": ptr("{"), "clusters/paris.yaml": ptr("]"), "clusters/rome.yaml": ptr("x"),
		})
		f.put("meanwhile", intent("meanwhile", 1))
		f.eventually("placed all the same", func() error { return f.inPhase("meanwhile", 1, "Peering") })
		if _, err := f.team.Git(f.ctx, "checkout", "-q", "HEAD~2", "--", "fleet.yaml", "tenants", "clusters"); err != nil {
			f.t.Fatal(err)
		}
		whole := map[string]*string{}
		for _, path := range []string{"fleet.yaml", "tenants/vision.yaml", "clusters/paris.yaml", "clusters/rome.yaml"} {
			b, err := os.ReadFile(filepath.Join(f.team.Dir, path))
			if err != nil {
				f.t.Fatal(err)
			}
			whole[path] = ptr(string(b))
		}
		if _, err := f.team.Git(f.ctx, "reset", "-q", "--hard"); err != nil {
			f.t.Fatal(err)
		}
		f.push("Mend the rest", whole)
	})
	f.step("a merge that empties intents ends nothing until an operator says so", func(*testing.T) { f.emptied(d) })
	f.applied()
	f.sound()
}

// everyMistakeIsNamed demands that the log and the plan name every bad file,
// and that the plan's count of errors is theirs.
func (f *fleet) everyMistakeIsNamed(d *rig.Daemon, paths []string) {
	f.t.Helper()
	b, err := os.ReadFile(d.LogFile())
	if err != nil {
		f.t.Fatal(err)
	}
	out, said, code := f.cli("plan", f.Git.URL(rig.Repo), "--market", "http://"+d.Operators+"/market", "-o", "json")
	if code != 0 && code != 2 {
		f.t.Fatalf("plan ends with %d: %s", code, said)
	}
	for _, path := range paths {
		if !strings.Contains(string(b), path) {
			f.t.Errorf("the log does not name %s", path)
		}
	}
	var plan struct {
		Summary struct{ Place int }
		Errors  []struct {
			File, Message string
			Line          int
		}
		Intents []struct{ Name, Action, Reason string }
	}
	if err := json.Unmarshal([]byte(out), &plan); err != nil {
		f.t.Fatalf("%v in %s", err, out)
	}
	named := map[string]bool{}
	for _, e := range plan.Errors {
		named[e.File] = true
		if e.Line < 1 || e.Message == "" {
			f.t.Errorf("an error without place or words: %+v", e)
		}
	}
	for _, i := range plan.Intents {
		if i.Action == "refuse" && i.Reason != "" {
			named[intentPath(i.Name)], named["intents/vision/deep/er/"+i.Name+".yaml"] = true, true
		}
	}
	for _, path := range paths {
		if !named[path] {
			f.t.Errorf("the plan names %s neither as an error nor as refused", path)
		}
	}
}

// placed is an error unless n intents whose names begin so have a contract
// that is being delivered.
func (f *fleet) placed(prefix string, n int) error {
	count := 0
	for name, phase := range f.check().Held {
		if strings.HasPrefix(name, "vision-"+prefix) && phase == "Peering" {
			count++
		}
	}
	if count != n {
		return fmt.Errorf("%d of %d %s* are placed", count, n, prefix)
	}
	return nil
}

// emptied takes all intents away at once.
func (f *fleet) emptied(d *rig.Daemon) {
	f.t.Helper()
	before := f.check().Held
	files := map[string]*string{}
	list, err := f.team.Git(f.ctx, "ls-files", "intents")
	if err != nil {
		f.t.Fatal(err)
	}
	for _, path := range strings.Fields(list) {
		files[path] = nil
	}
	f.push("Merge what nobody has looked at", files)
	f.eventually("the daemon says that it holds the ends back", func() error {
		return logged(d, "contracts would end because intents are gone")
	})
	if _, err := f.reconcileOnce(d); err == nil {
		f.t.Error("a round without leave ends contracts")
	}
	if now := f.check().Held; !maps.Equal(now, before) {
		f.t.Errorf("contracts changed:\n%v\n%v", before, now)
	}
	head := f.ref("main")
	if out, err := f.reconcileOnce(d, "--allow-ends", strings.Repeat("0", 39)+"1"); err == nil {
		f.t.Errorf("leave for another commit lets contracts end: %s", out)
	}
	if out, err := f.reconcileOnce(d, "--allow-ends", head); err != nil {
		f.t.Errorf("with leave: %v\n%s", err, out)
	}
	f.eventually("all is given back", func() error {
		if held := f.check().Held; len(held) != 0 {
			return fmt.Errorf("still held: %v", held)
		}
		return nil
	})
}

func (f *fleet) reconcileOnce(d *rig.Daemon, args ...string) (string, error) {
	f.t.Helper()
	out, code := f.reconcile(d, args...)
	if code != 0 {
		return out, fmt.Errorf("reconcile ends with %d: %s", code, out)
	}
	return out, nil
}
