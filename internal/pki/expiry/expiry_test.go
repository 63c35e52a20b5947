package expiry

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/fleetbroker/fleetbroker/internal/pki"
)

// What is shown is the end of what is in force: of a renewed certificate without a restart,
// of the former while the new one cannot be used, and of the authority that ends first.
func TestCollector(t *testing.T) {
	day := 24 * time.Hour
	begin := time.Now().Truncate(time.Second).Add(-100 * day)
	now := begin
	clock := func() time.Time { return now }
	ca, err := pki.InitCA(filepath.Join(t.TempDir(), "ca"), "acme", clock)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "certs")
	issue := func() time.Time {
		t.Helper()
		for _, file := range []string{pki.CertFile, pki.KeyFile, pki.CAFile} {
			_ = os.Remove(filepath.Join(dir, file))
		}
		b, err := ca.Issue(pki.Request{Name: "broker", Role: pki.Server, Hosts: []string{"localhost"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.WriteDir(dir); err != nil {
			t.Fatal(err)
		}
		return b.NotAfter
	}
	ends := issue()
	files, err := pki.OpenFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	c := New("broker")
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	shows := func(when string, own, authority time.Time) {
		t.Helper()
		want := map[string]float64{"authority ": float64(authority.Unix()), "broker ": float64(own.Unix())}
		if got := series(t, registry); !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	if got := series(t, registry); len(got) != 0 {
		t.Errorf("series of a program without certificates: %v", got)
	}
	c.Follow("", files)
	authority := begin.Add(10 * 365 * day)
	shows("at the start", ends, authority)

	now = begin.Add(50 * day)
	renewed := issue()
	if !renewed.After(ends) {
		t.Fatalf("renewed until %s, after %s", renewed, ends)
	}
	shows("renewed", renewed, authority)

	if err := os.WriteFile(filepath.Join(dir, pki.CertFile), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	shows("while the new one cannot be used", renewed, authority)

	now = begin.Add(-3000 * day) // an authority of before, whose certificates may be in use yet
	former, err := pki.InitCA(filepath.Join(t.TempDir(), "ca"), "former", clock)
	if err != nil {
		t.Fatal(err)
	}
	now = begin.Add(60 * day)
	renewed = issue()
	if err := os.WriteFile(filepath.Join(dir, pki.CAFile), append(ca.CA(), former.CA()...), 0o600); err != nil {
		t.Fatal(err)
	}
	shows("with a former authority", renewed, begin.Add((10*365-3000)*day))
	all, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if problems, err := promlint.NewWithMetricFamilies(all).Lint(); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

// series are the values by use and cluster.
func series(t *testing.T, from prometheus.Gatherer) map[string]float64 {
	t.Helper()
	all, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range all {
		if f.GetName() != "fleetbroker_certificate_expiry_timestamp_seconds" {
			t.Errorf("there is %s", f.GetName())
		}
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			out[labels["use"]+" "+labels["cluster"]] = m.GetGauge().GetValue()
		}
	}
	return out
}
