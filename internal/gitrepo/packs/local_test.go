package packs

import (
	"errors"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// A command that reads the same objects of a clone for days is refused nothing in the end:
// each object counts once, by the most that was made of it.
func TestLocal_CountsEachObjectOnce(t *testing.T) {
	l, p := &local{found: map[baseKey]int64{}}, &pack{}
	for i := range 100_000 {
		if err := l.beyond(baseKey{p, int64(i % 10)}, int64(i%3+1)*(100<<20), 1<<10); err != nil {
			t.Fatalf("read %d: %v", i, err)
		}
	}
	var err error
	for i := range 100 {
		if err = l.beyond(baseKey{p, int64(i)}, 100<<20, 1<<10); err != nil {
			break
		}
	}
	if !errors.Is(err, gitobj.ErrPackTooLarge) {
		t.Errorf("many objects: %v", err)
	}
}
