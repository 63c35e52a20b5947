package spread

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// weight is how much a cluster is a replica's, by rendezvous hashing: who comes or
// goes changes the place of no cluster but its own.
func weight(cluster, replica string) uint64 {
	sum := sha256.Sum256([]byte(cluster + "\x00" + replica))
	return binary.BigEndian.Uint64(sum[:8])
}

// rank is a replica's place among the live ones for a cluster: 0 delivers to it.
func rank(cluster, replica string, live []string) int {
	if !slices.Contains(live, replica) {
		return len(live)
	}
	own, before := weight(cluster, replica), 0
	for _, other := range live {
		if other == replica {
			continue
		}
		if w := weight(cluster, other); w > own || w == own && other < replica {
			before++
		}
	}
	return before
}
