// Package retyped writes commands that somebody is to type next, complete with what was said
// of the fleet repo in the command that failed: a remedy that lacks a flag fails for another
// reason.
//
// Invariants: words that a shell would take apart are quoted; nothing is left out that the
// next command needs, and what nobody has said yet has a name in capitals in its place.
//
// Caller: package cli. It is pure, and safe for concurrent use.
package retyped

import (
	"regexp"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
)

// Source is what was said of a fleet repo.
type Source struct {
	// Dir is its directory or URL, "" for that around the working directory; Branch that
	// of its inputs, which counts with a URL.
	Dir, Branch string
	// TrustRoot is the file, "" where none was named; Signed: there must be one.
	TrustRoot string
	Signed    bool
	Auth      gitrepo.Auth
}

// Verify is `audit verify` of it, with more words before its flags.
func (s Source) Verify(more ...string) string {
	words := append([]string{"fleetbroker", "audit", "verify"}, more...)
	for _, flag := range [][2]string{
		{"-C", s.Dir}, {"--branch", s.Branch}, {"--git-user", s.Auth.User}, {"--git-password-file", s.Auth.PasswordFile},
		{"--git-ssh-key", s.Auth.SSHKeyFile}, {"--trust-root", s.TrustRoot},
	} {
		switch {
		case flag[0] == "--branch" && flag[1] == "main": // which it is anyway
		case flag[1] != "":
			words = append(words, flag[0], flag[1])
		case flag[0] == "--trust-root" && s.Signed:
			words = append(words, flag[0], "FILE")
		}
	}
	for i, w := range words {
		words[i] = quoted(w)
	}
	return strings.Join(words, " ")
}

// plain is a word that no shell takes apart.
var plain = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./~-]+$`)

func quoted(word string) string {
	if plain.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
