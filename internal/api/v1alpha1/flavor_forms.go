package v1alpha1

import (
	"encoding/json"
	"fmt"
)

// UnmarshalJSON reads {gpu: "1.90", term: 720h}: prices beside the term.
func (r *ReservedPrice) UnmarshalJSON(b []byte) error {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(b, &raw); err != nil {
		return err
	}
	*r = ReservedPrice{UnitPrices: UnitPrices{}}
	for _, name := range sortedKeys(raw) {
		if name == "term" {
			if err := json.Unmarshal(raw[name], &r.Term); err != nil {
				return fmt.Errorf("term: %w", err)
			}
			continue
		}
		var d Decimal
		if err := json.Unmarshal(raw[name], &d); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		r.UnitPrices[name] = d
	}
	return nil
}

// MarshalJSON writes prices beside the term.
func (r ReservedPrice) MarshalJSON() ([]byte, error) {
	out := map[string]any{}
	for name, d := range r.UnitPrices {
		out[name] = d
	}
	if r.Term.Duration != 0 {
		out["term"] = r.Term
	}
	return json.Marshal(out)
}
