package tree

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// BrokenError is a tree that says nothing: git refuses one of its objects
// (`git fsck --strict`), it is larger than is walked, or its commit merges more than
// is compared.
type BrokenError struct {
	// Path of the directory, from the tree that was looked at; "": itself.
	Path string
	Why  string
}

// Error implements error.
func (e *BrokenError) Error() string {
	if e.Path == "" {
		return "broken tree: " + e.Why
	}
	return fmt.Sprintf("broken tree: %s: %s", e.Path, e.Why)
}

// MaxParents is how many commits one may merge. What a merge takes back is found
// by comparing its parents with each other.
const MaxParents = 64

// CheckParents is why a commit with so many parents says nothing, nil when it may.
func CheckParents(n int) *BrokenError {
	if n <= MaxParents {
		return nil
	}
	return &BrokenError{Why: fmt.Sprintf("it merges %d commits at once, and at most %d are read: merge them one after the other", n, MaxParents)}
}

// Check returns a *BrokenError for a directory's entries that git refuses: a
// name that is empty, `.`, `..`, `.git` in a form that a file system takes for
// it, or holds a slash or NUL; an entry without an object; a symbolic link as
// .gitmodules; two of one name (a file and a directory too); wrong order. Names
// that any reader could take for another path do not get past it.
func Check(entries []Entry) error {
	for i, e := range entries {
		if why := checkEntry(e); why != "" {
			return &BrokenError{Why: why}
		}
		if i == 0 {
			continue
		}
		before := entries[i-1]
		switch {
		case before.Name == e.Name, e.Kind == Dir && strings.HasPrefix(before.Name, e.Name) && hasFile(entries[:i], e.Name):
			return &BrokenError{Why: fmt.Sprintf("two entries are named %q", e.Name)}
		case !inOrder(before, e):
			return &BrokenError{Why: fmt.Sprintf("the entries %q and %q are not in git's order", before.Name, e.Name)}
		}
	}
	return nil
}

// hasFile finds what is no directory by its name among entries in order.
func hasFile(entries []Entry, name string) bool {
	_, found := slices.BinarySearchFunc(entries, name, func(e Entry, name string) int { return strings.Compare(sortKey(e), name) })
	return found
}

// inOrder reports whether a comes before b, without making their keys.
func inOrder(a, b Entry) bool {
	n := min(len(a.Name), len(b.Name))
	if c := strings.Compare(a.Name[:n], b.Name[:n]); c != 0 {
		return c < 0
	}
	next := func(e Entry) byte {
		switch {
		case len(e.Name) > n:
			return e.Name[n]
		case e.Kind == Dir:
			return '/'
		}
		return 0
	}
	return next(a) < next(b)
}

func checkEntry(e Entry) string {
	switch why := CheckName(e.Name); {
	case why != "":
		return why
	case e.Hash.IsZero():
		return fmt.Sprintf("the entry %q names no object", e.Name)
	case e.Kind == Symlink && isGitModules(e.Name):
		return fmt.Sprintf("%q is a symbolic link", e.Name)
	}
	return ""
}

// CheckName says why git refuses a name in a directory, "" when it does not.
func CheckName(name string) string {
	switch name {
	case "":
		return "an entry has no name"
	case ".", "..":
		return fmt.Sprintf("an entry is named %q", name)
	}
	special := false // the rest is rare: one pass tells
	for i := range len(name) {
		switch name[i] {
		case '/', 0:
			return fmt.Sprintf("the name %q holds a slash or a NUL", name)
		case '\\':
			special = true
		}
	}
	switch name[0] {
	case '.', 'g', 'G', 0xe2, 0xef:
		special = true
	}
	if special && isDotGit(name) {
		return fmt.Sprintf("the name %q stands for .git on some file systems", name)
	}
	return ""
}

// isDotGit reports whether a file system takes a name for .git: whatever the
// case, HFS+ with characters that it ignores in between, NTFS with spaces and
// periods behind, as a short name, before a stream's name, or behind a backslash.
func isDotGit(name string) bool {
	if hfsDot(name, "git") || ntfsDotGit(name) {
		return true
	}
	for {
		_, rest, found := strings.Cut(name, `\`)
		if !found {
			return false
		}
		if name = rest; ntfsDotGit(name) {
			return true
		}
	}
}

func ntfsDotGit(name string) bool {
	var rest string
	switch {
	case len(name) >= 4 && strings.EqualFold(name[:4], ".git"):
		rest = name[4:]
	case len(name) >= 5 && strings.EqualFold(name[:5], "git~1"):
		rest = name[5:]
	default:
		return false
	}
	rest = strings.TrimLeft(rest, " .")
	return rest == "" || rest[0] == '\\' || rest[0] == '/' || rest[0] == ':'
}

// hfsNext is the next character that HFS+ does not ignore, 0 at the end and at
// what is no UTF-8.
func hfsNext(s string) (rune, string) {
	for s != "" {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 || r == 0xfffe || r == 0xffff {
			return 0, ""
		}
		s = s[n:]
		switch {
		case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
			continue
		}
		return r, s
	}
	return 0, ""
}

// hfsDot reports whether HFS+ takes a name for a period and another name.
func hfsDot(name, want string) bool {
	r, rest := hfsNext(name)
	if r != '.' {
		return false
	}
	for _, w := range want {
		if r, rest = hfsNext(rest); r != w && r != w-'a'+'A' {
			return false
		}
	}
	r, _ = hfsNext(rest)
	return r == 0 || r == '/'
}

// isGitModules reports whether a file system takes a name for .gitmodules.
func isGitModules(name string) bool {
	const long, short = "gitmodules", "gi7eba"
	if hfsDot(name, long) {
		return true
	}
	ends := func(rest string) bool {
		rest = strings.TrimLeft(rest, " .")
		return rest == "" || rest[0] == ':'
	}
	if len(name) > len(long) && name[0] == '.' && strings.EqualFold(name[1:len(long)+1], long) {
		return ends(name[len(long)+1:])
	}
	if len(name) >= 8 && strings.EqualFold(name[:6], long[:6]) && name[6] == '~' && name[7] >= '1' && name[7] <= '4' {
		return ends(name[8:])
	}
	// NTFS' other short names: some of the letters, then ~ and a number, eight
	// characters in all.
	if len(name) < 8 {
		return false
	}
	for i, tilde := 0, false; i < 8; i++ {
		c := name[i]
		switch {
		case tilde:
			if c < '0' || c > '9' {
				return false
			}
		case c == '~':
			if i++; i >= 8 || name[i] < '1' || name[i] > '9' {
				return false
			}
			tilde = true
		case i >= 6 || c|0x20 != short[i] && c != short[i]:
			return false
		}
	}
	return ends(name[8:])
}
