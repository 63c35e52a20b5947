package kustomize

import (
	"encoding/json"
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
			s := strings.ToLower(strings.TrimSpace(v))
			return strings.HasPrefix(s, "http:") || strings.HasPrefix(s, "https:") || strings.HasPrefix(s, "git::") || strings.HasPrefix(s, "ssh:") || strings.HasPrefix(s, "file:")
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
