package beginning

import "testing"

func TestWriter(t *testing.T) {
	w := Of(5)
	for _, text := range []string{"", "abc", "defg", "h"} {
		if n, err := w.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	}
	if got := w.String(); got != "abcde" {
		t.Errorf("kept %q", got)
	}
}
