package ui_test

import (
	"net/http"
	"testing"
	"time"
)

// BenchmarkPages measures the pages of a fleet of 10,000 contracts and 1,000 flavors,
// with the model that a round needs once (first) and without (page).
func BenchmarkPages(b *testing.B) {
	d := newDaemon(b)
	fleet := big(10_000, 1000)
	for c := range fleet.W.Ledger.Contracts() { // a history longer than is looked through
		if len(d.commits) < 2500 {
			d.commit("place "+c.Metadata.Name+"\n\nContract: "+c.Metadata.Name+" - -> Reserved\n", "fleetbroker", d.now)
		}
	}
	d.show(fleet)
	list := []string{
		"/ui/", "/ui/contracts", "/ui/contracts?page=100&size=100", "/ui/contracts?q=job-0999", "/ui/intents", "/ui/flavors?size=1000", "/ui/providers", "/ui/tenants", "/ui/cost", "/ui/queue", "/ui/calendar", "/ui/peerings", "/ui/commits", "/ui/audit",
		"/ui/contracts/" + contractOf(b, fleet, "tenant-00/job-0000"), "/ui/tenants/tenant-00", "/ui/providers/rome", "/api/ui/contracts",
	}
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			d.mu.Lock()
			d.now = d.now.Add(time.Minute) // costs went on
			d.mu.Unlock()
			d.get(b, "/ui/")
		}
	})
	for _, path := range list {
		b.Run(path, func(b *testing.B) {
			for b.Loop() {
				if w := d.get(b, path); w.Code != http.StatusOK {
					b.Fatalf("%d %.200s", w.Code, w.Body)
				}
			}
		})
	}
}
