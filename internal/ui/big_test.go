package ui_test

import (
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/ui/view"
)

// TestPages_Big: of 10,000 contracts and 1,000 flavors each page costs less than 100 ms of
// processor time, to a viewer of all tenants and to one of none. The quickest of five counts:
// collections of garbage are not the page's. test/bench measures the same of a daemon, and
// rounds while ten people have pages open.
func TestPages_Big(t *testing.T) {
	d, b := newDaemon(t), big(10_000, 1000)
	d.show(b)
	d.get(t, "/ui/") // makes the model
	contract := ""
	for c := range b.W.Ledger.Contracts() {
		contract = "/contracts/" + c.Metadata.Name
		break
	}
	paths := []string{
		"/", "/intents", "/queue", "/contracts", "/contracts?page=200", "/contracts?q=job-0019", contract, "/flavors", "/flavors/provider-000/flavor-00", "/providers", "/providers/provider-000",
		"/tenants", "/tenants/tenant-00", "/peerings", "/peerings/rome/provider-000", "/calendar", "/cost", "/cost?by=contract&month=all", "/commits", "/audit", "/capacity",
	}
	for who, viewer := range map[string]view.Viewer{"who sees all": {All: true}, "who sees totals": {}} {
		d.look(viewer)
		for _, path := range paths {
			best := time.Hour
			for range 5 {
				before := processor(t)
				if w := d.get(t, "/ui"+path); viewer.All && w.Code != http.StatusOK {
					t.Fatalf("%s: %d", path, w.Code)
				}
				best = min(best, processor(t)-before)
			}
			if best > 100*time.Millisecond {
				t.Errorf("%s of a big fleet, to %s: %s of processor time", path, who, best)
			}
		}
	}
}

// processor is the time that this process has used.
func processor(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
