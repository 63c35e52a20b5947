//go:build e2e

package spine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// What becomes of intents over their lives: terms, waits, renames, twins,
// replicas, and namespaces that several share.
func TestLivesOfIntents(t *testing.T) {
	f := start(t, nil)
	f.up()
	f.step("a term ends by itself and is not begun again", func(t *testing.T) {
		f.put("brief", intent("brief", 4, "  schedule: {duration: 3s}\n"))
		f.eventually("placed", func() error { return f.said("place vision/brief") })
		f.eventually("over", func() error { return f.inPhase("brief", 1, "Expired") })
		f.eventually("done", func() error { return f.stateSays("brief", "state: Done") })
		f.applied()
		f.put("brief", intent("brief", 2, "  schedule: {duration: 72h}\n"))
		f.eventually("asked for anew, it is placed anew", func() error { return f.inPhase("brief", 1, "Peering") })
		f.remove("brief")
		f.eventually("given back", func() error { return f.inPhase("brief", 1, "Released") })
	})
	f.step("who has waited long enough is told so, and may ask again", func(t *testing.T) {
		f.put("huge", intent("huge", 17, "  queue: {policy: wait, timeout: 3s}\n"))
		f.eventually("it waits", func() error { return f.stateSays("huge", "state: Queued") })
		f.eventually("no longer", func() error { return f.stateSays("huge", "state: Refused") })
		f.put("huge", intent("huge", 16))
		f.eventually("placed", func() error { return f.inPhase("huge", 1, "Peering") })
		f.put("fails", intent("fails", 1, "  queue: {policy: fail}\n"))
		f.eventually("who does not want to wait is refused at once", func() error { return f.stateSays("fails", "state: Refused") })
		f.push("Give both up", map[string]*string{intentPath("huge"): nil, intentPath("fails"): nil})
		f.eventually("given back", func() error { return f.inPhase("huge", 1, "Released") })
	})
	f.step("replicas come and go", func(t *testing.T) {
		f.put("many", intent("many", 2, "  replicas: 3\n"))
		f.eventually("three", func() error { return f.inPhase("many", 3, "Peering") })
		first := f.phases("many")
		f.put("many", intent("many", 2, "  replicas: 5\n"))
		f.eventually("five", func() error { return f.inPhase("many", 5, "Peering") })
		f.put("many", intent("many", 2, "  replicas: 3\n"))
		f.eventually("three again", func() error {
			if err := f.inPhase("many", 2, "Released"); err != nil {
				return err
			}
			return f.inPhase("many", 3, "Peering")
		})
		for name := range first {
			if f.phases("many")[name] != "Peering" {
				t.Errorf("the highest go, and not %s: %v", name, f.phases("many"))
			}
		}
		f.applied()
	})
	f.step("moves, renames and twins", func(*testing.T) { f.renamed() })
	f.step("a namespace is let go when the last of its intents ends", func(t *testing.T) {
		f.shared(func(on, last bool) {
			out, err := f.Clusters["rome"].Kubectl(f.ctx, f.Dir, "get", "namespaceoffloadings.offloading.liqo.io", "-A", "-o", "name")
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(out, "offloading"); got != on {
				t.Errorf("offloaded is %t, want %t (last: %t)", got, on, last)
			}
		})
	})
	f.applied()
	f.sound()
}

// renamed moves an intent's file, renames the intent, and names it twice.
func (f *fleet) renamed() {
	f.t.Helper()
	before := f.phases("many")
	text := intent("many", 2, "  replicas: 3\n")
	f.push("Move it", map[string]*string{intentPath("many"): nil, "intents/vision/sub/dir/moved.yaml": &text})
	f.eventually("the contracts know the new path", func() error {
		for name, phase := range f.phases("many") {
			if phase == "Peering" && !strings.Contains(f.contractFile(name), "path: intents/vision/sub/dir/moved.yaml") {
				return fmt.Errorf("%s does not", name)
			}
		}
		return nil
	})
	if now := f.phases("many"); !maps.Equal(now, before) {
		f.t.Errorf("a move changed contracts:\n%v\n%v", before, now)
	}
	renamed := strings.Replace(strings.Replace(text, "name: many", "name: few", 1), "namespace: vision}", "namespace: vision, annotations: {fleetbroker.io/renamed-from: many}}", 1)
	f.push("Rename it", map[string]*string{"intents/vision/sub/dir/moved.yaml": &renamed})
	f.eventually("the contracts are of the new name", func() error {
		count := 0
		for name, phase := range before {
			if phase == "Peering" && strings.Contains(f.contractFile(name), "name: few") {
				count++
			}
		}
		if count != 3 {
			return fmt.Errorf("%d are", count)
		}
		return nil
	})
	if now := f.check().Held; len(now) != 3 {
		f.t.Errorf("a rename placed anew: %v", now)
	}
	f.push("Name it twice", map[string]*string{"intents/vision/twin.yaml": &renamed})
	f.put("meanwhile", intent("meanwhile", 1))
	f.eventually("others go on", func() error { return f.inPhase("meanwhile", 1, "Peering") })
	f.push("Delete one of two", map[string]*string{"intents/vision/sub/dir/moved.yaml": nil})
	f.put("meanwhile2", intent("meanwhile2", 1))
	f.eventually("others go on", func() error { return f.inPhase("meanwhile2", 1, "Peering") })
	if held := slices.Sorted(maps.Keys(f.check().Held)); len(held) != 5 {
		f.t.Errorf("held are %v, want the three that were renamed and two more", held)
	}
}

// shared ends all intents, one after the other, and lets check see what is
// offloaded.
func (f *fleet) shared(check func(on, last bool)) {
	f.t.Helper()
	check(true, false)
	f.push("Give all but one up", map[string]*string{"intents/vision/twin.yaml": nil, intentPath("meanwhile"): nil})
	f.eventually("one is held", func() error {
		if held := f.check().Held; len(held) != 1 {
			return fmt.Errorf("held are %v", held)
		}
		return nil
	})
	f.applied()
	check(true, false)
	f.remove("meanwhile2")
	f.eventually("none is held", func() error {
		if held := f.check().Held; len(held) != 0 {
			return fmt.Errorf("held are %v", held)
		}
		return nil
	})
	f.applied()
	f.eventually("the offloading is gone", func() error {
		out, err := f.Clusters["rome"].Kubectl(f.ctx, f.Dir, "get", "namespaceoffloadings.offloading.liqo.io", "-A", "-o", "name")
		if err == nil && strings.Contains(out, "offloading") {
			err = fmt.Errorf("there is still %s", out)
		}
		return err
	})
	check(false, true)
	f.kubectl("rome", "get", "namespace", "vision")
}
