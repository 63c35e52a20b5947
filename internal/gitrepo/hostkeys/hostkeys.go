// Package hostkeys says in words for people that an ssh server shows another key than the one
// that is known of it: somebody may stand between, or the server has a new one. Which file and
// line has the known key, and what the new one's fingerprint is, is what they need to find out.
//
// Invariant: who is refused stays refused, by the same cause.
//
// Caller: gitrepo. It keeps nothing, and is safe for concurrent use.
package hostkeys

import (
	"errors"
	"fmt"
	"net"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// Explained is a callback whose refusals of changed keys have such words.
func Explained(known ssh.HostKeyCallback) ssh.HostKeyCallback {
	return func(host string, at net.Addr, key ssh.PublicKey) error {
		err := known(host, at, key)
		var refused *knownhosts.KeyError
		if !errors.As(err, &refused) || len(refused.Want) == 0 {
			return err
		}
		name := knownhosts.Normalize(host)
		return fmt.Errorf("%s shows another host key than is known of it (%s:%d): %s %s; somebody may stand between. Ask who runs the server for the fingerprint, and only if it is this one take the old key out (ssh-keygen -R %s -f %[2]s) and add the new one: %[7]w",
			name, refused.Want[0].Filename, refused.Want[0].Line, key.Type(), ssh.FingerprintSHA256(key), quoted(name), err)
	}
}

// quoted keeps a shell from taking the brackets of a name with a port for a pattern.
func quoted(name string) string {
	if name[0] == '[' {
		return "'" + name + "'"
	}
	return name
}
