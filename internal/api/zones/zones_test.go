package zones

import "testing"

func TestLoad(t *testing.T) {
	first, err := Load("Europe/Rome")
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := Load("Europe/Rome"); again != first {
		t.Error("a zone is read again")
	}
	for _, name := range []string{"Local", "Europe/Nowhere", "../etc/passwd", "Europe/./Rome", "Europe//Rome", "Europe/Rome/", "posixrules", "right/UTC", "localtime", "europe/rome"} {
		if _, err := Load(name); err == nil {
			t.Errorf("%q is a zone", name)
		}
		if _, kept := known.Load(name); kept {
			t.Errorf("%q is kept", name)
		}
	}
}
