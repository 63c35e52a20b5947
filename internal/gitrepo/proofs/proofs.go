package proofs

import (
	"crypto/sha256"
	"sync"
)

// mostProven bounds how many signatures are remembered, some 200 bytes each.
const mostProven = 1 << 14

// Memory remembers, by the bytes of a commit, the ssh key whose signature over it
// was found good. That never changes, whoever asks and whenever, so one memory
// serves all repositories of the process; whether the key is listed and in force
// is asked each time. What did not hold is not remembered: whoever writes commits
// could fill the memory with it.
type Memory struct {
	mu sync.Mutex
	by map[[sha256.Size]byte]string
}

// Key is the one that signed a commit, in ssh's wire form.
func (p *Memory) Key(raw []byte) (string, bool) {
	sum := sha256.Sum256(raw)
	p.mu.Lock()
	defer p.mu.Unlock()
	key, ok := p.by[sum]
	return key, ok
}

// Add notes the key whose signature over a commit was found good.
func (p *Memory) Add(raw []byte, key string) {
	sum := sha256.Sum256(raw)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.by == nil || len(p.by) >= mostProven {
		p.by = map[[sha256.Size]byte]string{}
	}
	p.by[sum] = key
}
