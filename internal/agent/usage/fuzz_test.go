package usage

import (
	"context"
	"log/slog"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// FuzzPodMetrics: whatever a metrics API answers, no pod uses less than nothing,
// and no figure is made of anything but CPU and memory.
func FuzzPodMetrics(f *testing.F) {
	for _, text := range []string{
		pods, `{"items":null}`, `{"items":[null]}`, `{"items":[{"metadata":{"name":"a"},"containers":[{"usage":{"cpu":"-1","memory":"1e2147483647"}}]}]}`,
		`{"items":[{"containers":[{"usage":{"cpu":"9223372036854775807","memory":"16Ei"}},{"usage":{"cpu":"9223372036854775807","memory":"16Ei"}}]}]}`, "[]", "null", "",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m := &Meter{log: slog.New(slog.DiscardHandler), get: func(context.Context, string) ([]byte, error) { return text, nil }}
		for pod, used := range m.Read(t.Context(), "x") {
			for name, amount := range used {
				if name != v1alpha1.CPU && name != v1alpha1.Memory || amount.Less(v1alpha1.Amount{}) {
					t.Fatalf("%s uses %s of %s", pod, amount.Canonical(name), name)
				}
			}
		}
	})
}
