package statefile

import (
	"encoding/json"
	"fmt"
)

// ReadJSON reads a state file into v.
func ReadJSON(name string, v any) error {
	b, err := Read(name)
	if err != nil {
		return err
	}
	if err = json.Unmarshal(b, v); err != nil {
		err = fmt.Errorf("read %s: %w", name, err)
	}
	return err
}

// ReplaceJSON replaces a state file so that a crash leaves the old or the new one. Only
// its owner may read it.
func ReplaceJSON(name string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return ReplaceBy(name, 0o600, append(b, '\n'))
}
