package crd

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// UnmarshalJSON keeps every other key as an extended resource. It refuses nothing: the schema
// keeps unknown keys and takes any number, and one request that is not read would keep all
// those of the cluster from being read. What is no quantity stays as a text that is none, and
// the request is refused by it.
func (r *RequestedResources) UnmarshalJSON(b []byte) error {
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(b, &all); err != nil {
		all = map[string]json.RawMessage{"resources": b}
	}
	var f RequestedResources
	for name, raw := range all {
		of, v := f.field(name), quantityOf(raw)
		switch {
		case of != nil:
			*of = v
			continue
		case name == "gpu":
			if string(raw) == "null" {
				continue
			}
			gpu := &RequestedGPU{}
			if json.Unmarshal(raw, gpu) == nil {
				f.GPU = gpu
				continue
			}
			v = &intstr.IntOrString{Type: intstr.String, StrVal: unreadable(raw)}
		}
		if f.Extended == nil {
			f.Extended = map[string]intstr.IntOrString{}
		}
		if v == nil { // null
			v = &intstr.IntOrString{}
		}
		f.Extended[name] = *v
	}
	*r = f
	return nil
}

// field is the quantity with a key of its own, nil for none.
func (r *RequestedResources) field(name string) **intstr.IntOrString {
	switch name {
	case "cpu":
		return &r.CPU
	case "memory":
		return &r.Memory
	case "pods":
		return &r.Pods
	case "ephemeral-storage":
		return &r.EphemeralStorage
	}
	return nil
}

// quantityOf reads a quantity, nil for null.
func quantityOf(raw json.RawMessage) *intstr.IntOrString {
	if string(raw) == "null" {
		return nil
	}
	var v intstr.IntOrString
	if err := json.Unmarshal(raw, &v); err != nil {
		v = intstr.FromString(unreadable(raw))
	}
	return &v
}

// unreadable is a value that is no quantity, as a text that is none either, or a figure too
// long for the type as the text that it is.
func unreadable(raw json.RawMessage) string {
	const most = 60
	if len(raw) > most {
		return strings.ToValidUTF8(string(raw[:most]), "") + "…"
	}
	return string(raw)
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
