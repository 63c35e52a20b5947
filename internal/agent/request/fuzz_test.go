package request

import (
	"encoding/json"
	"reflect"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fleetbroker/fleetbroker/internal/api/crd"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// FuzzAsk: whatever a ResourceRequest holds, it is refused, or the broker reads
// what the agent meant.
func FuzzAsk(f *testing.F) {
	for _, text := range []string{
		full, "spec: {resources: {gpu: 1}}", "spec: {resources: {gpu: \"L4:99999999999999999999\"}}", "spec: {resources: {cpu: -1, memory: 1e2147483647}, replicas: 2000000000, duration: P1Y}",
		"spec: {placement: {where: \"1/0\", maxLatency: -1ms}, queue: {policy: evil}}", "spec: {budget: {maxHourly: \"1e9\"}}", "metadata: {annotations: {fleetbroker.io/owner: \"\\e[2J\"}}", "{}", "[]",
	} {
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		o := &crd.ResourceRequest{}
		if json.Unmarshal(raw, o) != nil {
			return
		}
		q, err := askOf(o)
		if err != nil {
			return
		}
		sent, err := json.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		var heard wire.ReservationRequest
		if err := json.Unmarshal(sent, &heard); err != nil {
			t.Fatalf("%v\n%s", err, sent)
		}
		again, err := json.Marshal(heard)
		if err != nil || !reflect.DeepEqual(meant(t, sent), meant(t, again)) {
			t.Fatalf("%v\nsent  %s\nheard %s", err, sent, again)
		}
	})
}

// meant is what a request says: an object that says nothing is none.
func meant(t *testing.T, sent []byte) any {
	var v any
	if err := json.Unmarshal(sent, &v); err != nil {
		t.Fatal(err)
	}
	var said func(v any) any
	said = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			for key, of := range v {
				if v[key] = said(of); v[key] == nil {
					delete(v, key)
				}
			}
			if len(v) == 0 {
				return nil
			}
		case []any:
			for i := range v {
				v[i] = said(v[i])
			}
		}
		return v
	}
	return said(v)
}
