//go:build e2e

package spine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

// on lets an intent be for another consumer than rome.
func on(consumer, text string) string {
	return strings.Replace(text, "consumer: rome", "consumer: "+consumer, 1)
}

// appliedOn waits until a consumer has a slice of an intent.
func (f *fleet) appliedOn(consumer, intentName string) {
	f.t.Helper()
	f.eventually(intentName+" is on "+consumer, func() error {
		have, err := f.slices(consumer)
		if err != nil {
			return err
		}
		for name := range have {
			if strings.HasPrefix(name, "vision-"+intentName+"-") {
				return nil
			}
		}
		return fmt.Errorf("%s has only %v", consumer, have)
	})
}

// A consumer that is gone delays nobody else and catches up when it is back;
// what hands change on it is put right.
func TestConsumersDownAndDrifting(t *testing.T) {
	f := start(t, func(o *rig.Options) { o.Consumers = []string{"rome", "oslo"} })
	d := f.up()
	f.push("First ones", map[string]*string{intentPath("a"): ptr(intent("a", 1)), intentPath("b"): ptr(on("oslo", intent("b", 1)))})
	f.appliedOn("rome", "a")
	f.appliedOn("oslo", "b")
	rome := f.Clusters["rome"]
	for _, tc := range []struct {
		name     string
		down, up func() error
	}{
		{"hangs", rome.Pause, rome.Resume},
		{"refuses", rome.StopServers, func() error { return rome.StartServers(f.ctx) }},
	} {
		f.step("a consumer that "+tc.name, func(t *testing.T) {
			if err := tc.down(); err != nil {
				t.Fatal(err)
			}
			here, there := "rome-"+tc.name, "oslo-"+tc.name
			f.push("Ask on both", map[string]*string{intentPath(here): ptr(intent(here, 1)), intentPath(there): ptr(on("oslo", intent(there, 1)))})
			f.appliedOn("oslo", there)
			if err := f.inPhase(here, 1, "Reserved"); err != nil {
				t.Errorf("what is not applied is reserved and no more: %v", err)
			}
			f.remove(there)
			f.eventually("the other one gives back", func() error { return f.inPhase(there, 1, "Released") })
			if err := tc.up(); err != nil {
				t.Fatal(err)
			}
			f.appliedOn("rome", here)
			f.eventually("known to be there", func() error { return f.inPhase(here, 1, "Peering") })
		})
	}
	f.step("drift is put right", func(*testing.T) { f.drift() })
	f.step("a full disk under the daemon", func(*testing.T) { f.fullDisk(d) })
	f.sound()
}

// drift changes by hand what the daemon has applied on rome.
func (f *fleet) drift() {
	f.t.Helper()
	name, namespace := f.only("a", "Peering"), tenantNamespace("paris")
	before := f.treeOf()
	get := func(kind, path string) (string, error) {
		return f.Clusters["rome"].Kubectl(f.ctx, f.Dir, "get", kind, "-n", namespace, name, "-o", "jsonpath="+path)
	}
	gpus := `{.spec.resources.nvidia\.com/gpu}`
	for _, tc := range []struct {
		name, kind, path string
		change           []string
	}{
		{"an edited slice", sliceKind, gpus, []string{"patch", sliceKind, "-n", namespace, name, "--type=merge", "-p", `{"spec":{"resources":{"nvidia.com/gpu":"9"}}}`}},
		{"a deleted slice", sliceKind, gpus, []string{"delete", sliceKind, "-n", namespace, name}},
		{"a deleted virtual node", virtualNodeKind, "{.metadata.name}", []string{"delete", virtualNodeKind, "-n", namespace, name}},
		{"a label taken off", virtualNodeKind, `{.metadata.labels.fleetbroker\.io/intent}`, []string{"label", virtualNodeKind, "-n", namespace, name, "fleetbroker.io/intent-"}},
		{"an offloading taken away", "namespaceoffloadings.offloading.liqo.io", "", []string{"delete", "namespaceoffloadings.offloading.liqo.io", "-n", "vision", "offloading"}},
	} {
		if tc.kind == virtualNodeKind {
			// One that stands in git waits until its slice is granted, and no provider's Liqo is
			// here to do that: after the slice was deleted, it is to be granted once more.
			f.grant("rome", namespace, name)
			f.eventually("there is a virtual node", func() error { _, err := get(virtualNodeKind, "{.metadata.name}"); return err })
		}
		want := ""
		if tc.path != "" {
			var err error
			if want, err = get(tc.kind, tc.path); err != nil || want == "" {
				f.t.Fatalf("%s: before, there is %q: %v", tc.name, want, err)
			}
		}
		f.kubectl("rome", tc.change...)
		f.eventually(tc.name+" is put right", func() error {
			if tc.path == "" {
				_, err := f.Clusters["rome"].Kubectl(f.ctx, f.Dir, "get", tc.kind, "-n", "vision", "offloading", "-o", "name")
				return err
			}
			got, err := get(tc.kind, tc.path)
			if err == nil && got != want {
				err = fmt.Errorf("it is %q, want %q", got, want)
			}
			return err
		})
	}
	if err := f.inPhase("a", 1, "Peering"); err != nil {
		f.t.Error(err)
	}
	if f.treeOf() != before {
		f.t.Logf("the ledger followed the drift: %q", f.subjects()[:2])
	}
}

// grant says on a slice what its provider would say that gives all of it.
func (f *fleet) grant(consumer, namespace, slice string) {
	f.t.Helper()
	all, err := f.Clusters[consumer].Kubectl(f.ctx, f.Dir, "get", sliceKind, "-n", namespace, slice, "-o", "jsonpath={.spec.resources}")
	if err != nil {
		f.t.Fatal(err)
	}
	f.kubectl(consumer, "patch", sliceKind, "-n", namespace, slice, "--subresource=status", "--type=merge", "-p", `{"status":{"resources":`+all+`}}`)
}

// fullDisk moves the daemon to a state directory on a small file system, fills
// that, and makes room again.
func (f *fleet) fullDisk(d *rig.Daemon) {
	f.t.Helper()
	if err := d.Stop(); err != nil {
		f.t.Fatal(err)
	}
	state := filepath.Join(f.Dir, "state-"+d.Name)
	if err := syscall.Mount("tmpfs", state, "tmpfs", 0, "size=4m"); err != nil {
		f.t.Fatalf("this story needs the right to mount: %v", err)
	}
	defer func() {
		if err := d.Stop(); err != nil {
			f.t.Error(err)
		}
		if err := syscall.Unmount(state, 0); err != nil {
			f.t.Error(err)
		}
		if err := d.Restart(f.ctx); err != nil {
			f.t.Error(err)
		}
		f.await(d)
	}()
	if err := d.Restart(f.ctx); err != nil {
		f.t.Fatal(err)
	}
	f.await(d)
	filler := filepath.Join(state, "filler")
	_ = os.WriteFile(filler, make([]byte, 8<<20), 0o600) // as much as fits
	f.put("full", intent("full", 1))
	f.eventually("placed though nothing can be written", func() error { return f.inPhase("full", 1, "Peering") })
	f.eventually("the log says what is wrong", func() error { return logged(d, "no space left on device") })
	if err := d.Kill(); err != nil {
		f.t.Fatal(err)
	}
	if err := d.Restart(f.ctx); err != nil {
		f.t.Fatal(err)
	}
	f.put("full2", intent("full2", 1))
	f.eventually("placed by a daemon that starts on a full disk", func() error { return f.inPhase("full2", 1, "Peering") })
	if err := os.Remove(filler); err != nil {
		f.t.Fatal(err)
	}
	f.put("room", intent("room", 1))
	f.eventually("placed with room again", func() error { return f.inPhase("room", 1, "Peering") })
	f.eventually("the accepted heads are kept again", func() error {
		b, err := os.ReadFile(filepath.Join(state, "accepted.json"))
		if err == nil && !strings.Contains(string(b), f.ref(rig.Ledger)) {
			err = fmt.Errorf("they are %s, the ledger is at %s", b, f.ref(rig.Ledger))
		}
		return err
	})
}
