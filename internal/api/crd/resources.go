package crd

import (
	"encoding/json"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// known are the keys of RequestedResources that are fields.
var known = []string{"cpu", "memory", "pods", "ephemeral-storage", "gpu"}

// UnmarshalJSON keeps every other key as an extended resource.
func (r *RequestedResources) UnmarshalJSON(b []byte) error {
	type fields RequestedResources
	var f fields
	if err := json.Unmarshal(b, &f); err != nil {
		return fmt.Errorf("read resources: %w", err)
	}
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(b, &all); err != nil {
		return fmt.Errorf("read resources: %w", err)
	}
	for _, name := range known {
		delete(all, name)
	}
	for name, raw := range all {
		var v intstr.IntOrString
		if err := json.Unmarshal(raw, &v); err != nil {
			return fmt.Errorf("read resources: %s: %w", name, err)
		}
		if f.Extended == nil {
			f.Extended = map[string]intstr.IntOrString{}
		}
		f.Extended[name] = v
	}
	*r = RequestedResources(f)
	return nil
}

// MarshalJSON writes the extended resources beside the others.
func (r RequestedResources) MarshalJSON() ([]byte, error) {
	type fields RequestedResources
	b, err := json.Marshal(fields(r))
	if err != nil || len(r.Extended) == 0 {
		return b, err
	}
	all := map[string]any{}
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, fmt.Errorf("write resources: %w", err)
	}
	for name, v := range maps.All(r.Extended) {
		all[name] = v
	}
	return json.Marshal(all)
}
