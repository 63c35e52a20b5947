package v1alpha1

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

// A cluster's answer may name a power of ten that takes hours to work out.
func TestAmountOfQuantity_DoesNotWorkOutHugePowers(t *testing.T) {
	for _, text := range []string{"1e2147483647", "9e999999999"} {
		q, err := resource.ParseQuantity(text)
		if err != nil {
			continue
		}
		for _, name := range []string{CPU, Memory, Pods} {
			if a, err := AmountOfQuantity(name, q); err == nil {
				t.Errorf("%s of %s is %v", text, name, a)
			}
		}
	}
}
