package market

import "testing"

// FuzzParseBlob: a market that was recorded in a repository is read, or refused.
func FuzzParseBlob(f *testing.F) {
	for _, s := range []string{"", "{}", "apiVersion: fleetbroker.io/v1alpha1\nkind: Flavor\nmetadata: {name: a, namespace: paris}\nspec: {capacity: {cpu: 1}}\n", "---\n---\n", "a: &a [*a]", "\x00", "[]", "{\"spec\":{\"capacity\":{\"cpu\":\"-1\"}}}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		flavors, err := ParseBlob(content)
		if err != nil {
			return
		}
		for _, x := range flavors {
			for name, a := range x.Spec.Capacity {
				if a.Int64() < 0 {
					t.Fatalf("%s has %d of %s", x.Metadata.Name, a.Int64(), name)
				}
			}
		}
	})
}
