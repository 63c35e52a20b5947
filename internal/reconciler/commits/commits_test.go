package commits

import "testing"

func TestSubject(t *testing.T) {
	got := Subject(map[string]int{"queue": 2, "place": 3, "release": 1, "zap": 1})
	if want := "3 placed, 1 released, 2 queued, 1 zap"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
