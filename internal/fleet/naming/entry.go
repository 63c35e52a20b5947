package naming

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

const (
	maxPath  = 1024 // bytes, as most file systems
	maxLevel = 32   // directories within directories
)

// Refuse says why an entry of an input directory, at a path, is not read, "" when it is.
func Refuse(p string, e tree.Entry) string {
	switch {
	case e.Kind == tree.Symlink:
		return "symbolic links are not followed; put the file itself here"
	case e.Kind == tree.Submodule:
		return "submodules are not read; put the files themselves here"
	case len(p) > maxPath:
		return "the path is longer than 1024 bytes; shorten it"
	case strings.Count(p, "/") > maxLevel:
		return "the path is deeper than 32 directories; move it up"
	case !plain(e.Name):
		return "the name has control characters, quotes or backslashes; rename it"
	}
	return ""
}

func plain(name string) bool {
	if !utf8.ValidString(name) {
		return false
	}
	return strings.IndexFunc(name, func(r rune) bool { return unicode.IsControl(r) || strings.ContainsRune("\\\"'`", r) }) < 0
}
