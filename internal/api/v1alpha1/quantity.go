package v1alpha1

import (
	"encoding/json"
	"fmt"
)

// Quantity is a Kubernetes quantity in text, for fields whose resource is
// named by the field. It is read into an Amount by the resource's name.
type Quantity string

// UnmarshalJSON accepts a string or a whole number.
func (q *Quantity) UnmarshalJSON(b []byte) error {
	s, err := quantityText(json.RawMessage(b))
	if err != nil {
		return err
	}
	if _, err := ParseAmount(Memory, s); err != nil {
		return fmt.Errorf("%q is not a quantity: write a number with an optional unit, such as 512 or 4Ti", s)
	}
	*q = Quantity(s)
	return nil
}

// Amount is the quantity as an amount of the named resource. The zero Quantity
// is nothing.
func (q Quantity) Amount(name string) Amount {
	a, err := ParseAmount(name, string(q))
	if err != nil {
		return Amount{}
	}
	return a
}
