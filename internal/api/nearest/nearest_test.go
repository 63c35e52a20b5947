package nearest

import "testing"

func TestOf(t *testing.T) {
	known := []string{"gpu", "cpu", "memory", "maxHourly", "maxHourlySpot", "on-demand"}
	for word, want := range map[string]string{
		"gpus": "gpu", "GPU": "gpu", "maxHorly": "maxHourly", "memroy": "memory",
		"ondemand": "on-demand", "xyz": "", "": "", "price": "",
	} {
		if got := Of(word, known); got != want {
			t.Errorf("Of(%q): got %q, want %q", word, got, want)
		}
	}
}
