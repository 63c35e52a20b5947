package naming

import (
	"path"
	"strings"
)

// Misnamed is the name that a file needs to be read, "" where it is read or where its name does
// not look like that of a document. (README.md and the like lie next to documents.)
func Misnamed(name string) string {
	stem := strings.TrimSuffix(name, ".txt")
	ext := path.Ext(stem)
	switch strings.ToLower(ext) {
	case ".yaml", ".yml", ".json":
		if want := strings.TrimSuffix(stem, ext) + ".yaml"; want != name && (name != stem || ext != ".yml") {
			return want
		}
	}
	return ""
}
