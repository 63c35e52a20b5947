package naming

import "testing"

func TestMisnamed(t *testing.T) {
	for name, want := range map[string]string{
		"train.yaml": "", "train.yml": "", "README.md": "", "notes.txt": "", "OWNERS": "", ".gitkeep": "", "train.yaml~": "",
		"train.YAML": "train.yaml", "train.Yml": "train.yaml", "train.json": "train.yaml", "train.yaml.txt": "train.yaml", "train.yml.txt": "train.yaml",
	} {
		if got := Misnamed(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}
