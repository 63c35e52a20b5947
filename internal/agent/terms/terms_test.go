package terms

import (
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/genyaml"
)

func TestPartition(t *testing.T) {
	for text, want := range map[string]string{
		"min gpu=2 cpu=16; step gpu=2":        "min: {cpu: \"16\", gpu: \"2\"}\nstep: {gpu: \"2\"}\n",
		" step memory=8Gi nvidia.com/mig-x=1": "step: {memory: 8Gi, nvidia.com/mig-x: \"1\"}\n",
		"min cpu=500m":                        "min: {cpu: 500m}\n",
	} {
		p, err := Partition(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		got, err := genyaml.Marshal(p)
		if err != nil || flat(string(got)) != flat(want) {
			t.Errorf("%q is %q (%v), want %q", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":                         "no sizes",
		"gpu=2":                    "no sizes",
		"least gpu=2":              "not one min",
		"min gpu=2; min gpu=4":     "not one min",
		"min gpu":                  "write for example min gpu=2",
		"min gpu=0":                "greater than zero",
		"min gpu=1.5":              "gpu=1.5",
		"min gpus=2":               `"gpus" is no resource`,
		"min gpu=2 gpu=4":          "twice",
		"min gpu=2\n":              "plain ASCII",
		strings.Repeat("x ", 2049): "at most 4096",
	} {
		if p, err := Partition(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %+v, %v, want %q", text, p, err, want)
		}
	}
}

// flat is YAML without how it is laid out.
func flat(s string) string {
	return strings.NewReplacer("{", "", "}", "", ",", "", "\"", "", "\n", "", " ", "").Replace(s)
}

func TestWindows(t *testing.T) {
	got, err := Windows("Sat,Sun 00:00-24:00 gpu=0.80; 20:00-06:00 Europe/Rome gpu=1.20 cpu=0.01")
	if err != nil || len(got) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	a, b := got[0], got[1]
	if strings.Join(a.Days, " ") != "Sat Sun" || a.From != "00:00" || a.To != "24:00" || a.Timezone != "" || a.PerHour["gpu"].String() != "0.8" || len(a.PerHour) != 1 {
		t.Errorf("the first is %+v", a)
	}
	if b.Days != nil || b.From != "20:00" || b.To != "06:00" || b.Timezone != "Europe/Rome" || b.PerHour["gpu"].String() != "1.2" || b.PerHour["cpu"].String() != "0.01" {
		t.Errorf("the second is %+v", b)
	}
	for text, want := range map[string]string{
		"":                                  "needs hours",
		"Sat gpu=1":                         "needs hours",
		"00:00-24:00":                       "needs hours that differ and a price",
		"08:00-08:00 gpu=1":                 "needs hours that differ",
		"25:00-26:00 gpu=1":                 "neither days, hours",
		"Saturday 00:00-24:00 gpu=1":        `"Saturday" is neither`,
		"00:00-24:00 Europe/Atlantis gpu=1": "time zone",
		"00:00-24:00 gpu=cheap":             "gpu=cheap",
		"00:00-24:00 gpu=-1":                "gpu=-1",
		"00:00-24:00 gpu=1 gpu=2":           "each price once",
		"00:00-24:00 memory=1":              `"memory" has no price`,
		strings.Repeat("00:00-24:00 gpu=1;", 65) + "00:00-24:00 gpu=1": "more than 64",
	} {
		if w, err := Windows(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %+v, %v, want %q", text, w, err, want)
		}
	}
}

// Whatever an annotation says, it is read or refused.
func FuzzTerms(f *testing.F) {
	f.Add("min gpu=2 cpu=16; step gpu=2")
	f.Add("Sat,Sun 00:00-24:00 gpu=0.80; 20:00-06:00 Europe/Rome gpu=1.20")
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := Partition(text); err == nil && p.Min == nil && p.Step == nil {
			t.Errorf("%q is a partition of nothing", text)
		}
		if w, err := Windows(text); err == nil && len(w) == 0 {
			t.Errorf("%q is windows of nothing", text)
		}
	})
}
