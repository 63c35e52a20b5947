package kustomize

import (
	"encoding/json"
	"errors"
	"net/http"
	"path"
	"slices"
	"strings"
)

// LooksRemote errs on the safe side: kustomize takes a directory that is
// called like a host (github.com/…) for a repository to clone.
func LooksRemote(ref string) bool {
	if ref == "" || strings.HasPrefix(ref, "/") || strings.HasPrefix(ref, "~") || strings.ContainsAny(ref, ":?&@\\$%# \t\n") || strings.Contains(ref, "//") {
		return true
	}
	parts := strings.Split(ref, "/")
	for i, part := range parts {
		isFile := i == len(parts)-1 && (slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(part)))
		if part != "." && part != ".." && !isFile && strings.Contains(part, ".") || part == "_git" {
			return true
		}
	}
	return false
}

// fetchesFile reports whether a generator's file, which may have its key before it
// (key=path), is an address.
func fetchesFile(source string) bool {
	_, file, _ := strings.Cut(source, "=")
	return address(source) || address(file)
}

// address reports whether kustomize would load a text from the network.
func address(s string) bool {
	s = strings.ToLower(strings.TrimSpace(s))
	return slices.ContainsFunc([]string{"http:", "https:", "git::", "ssh:", "file:"}, func(scheme string) bool { return strings.HasPrefix(s, scheme) })
}

// offline is what the child has in place of a network: whatever the checks of names
// miss is refused here, at once.
type offline struct{}

// RoundTrip refuses.
func (offline) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
	return nil, errors.New("nothing is fetched here; copy the file into the repository")
}

// Fetches reports whether any text in a field is an address that kustomize
// would load: patches, replacements and configurations may be URLs too.
func Fetches(raw json.RawMessage) bool {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return true
	}
	var visit func(any) bool
	visit = func(v any) bool {
		switch v := v.(type) {
		case string:
			return address(v)
		case []any:
			return slices.ContainsFunc(v, visit)
		case map[string]any:
			for _, e := range v {
				if visit(e) {
					return true
				}
			}
		}
		return false
	}
	return visit(v)
}
