package generations

import "testing"

func TestWhatIsAskedForStays(t *testing.T) {
	c := Cache[int, string]{Most: 10}
	for i := range 1000 {
		c.Put(i, "x")
		if _, ok := c.Get(0); !ok {
			t.Fatalf("after %d others what is asked for each time is gone", i)
		}
		if c.Len() > 20 {
			t.Fatalf("%d are kept", c.Len())
		}
	}
	if _, ok := c.Get(500); ok {
		t.Error("what was not asked for stayed")
	}
}

func TestWeights(t *testing.T) {
	c := Cache[int, string]{Most: 10, Weigh: func(s string) int { return len(s) }}
	c.Put(1, "12345")
	c.Put(2, "12345")
	c.Put(1, "other") // the same key has the same value
	if v, ok := c.Get(1); !ok || v != "12345" || c.Len() != 2 {
		t.Errorf("got %q, %d kept", v, c.Len())
	}
	c.Put(3, "1")
	c.Put(4, "1234567890")
	if _, ok := c.Get(2); ok || c.Len() != 2 {
		t.Errorf("two generations on it is kept among %d", c.Len())
	}
}
