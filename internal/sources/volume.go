package sources

import (
	"fmt"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/genyaml"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

const (
	// perCopy is what a copy adds to the ledger besides its files, about: a commit and the
	// directories on the way to them, in bytes.
	perCopy = 16 << 10
	day     = 24 * time.Hour
)

// VolumeError says that a source changed more than is copied of one to the ledger.
type VolumeError struct {
	Source string
	// Bytes of the copy that is not made, and until when it is not.
	Bytes int64
	Until time.Time
	// Head is the branch's.
	Head tree.Hash
}

// Error implements error.
func (e *VolumeError) Error() string {
	return fmt.Sprintf("it changes more than %d MiB a day, which the ledger would keep: the copy of %s, of %d KiB, is made after %s by itself; have the team change less, or less often, or take it now with `fleetbroker accept --source %s=%s`",
		int64(v1alpha1.MaxSourceVolume)>>20, e.Head.Short(), (e.Bytes+1<<10-1)>>10, e.Until.UTC().Format(time.RFC3339), e.Source, e.Head)
}

// weigh sets the Volume of a copy that follows another (nil: none), and gives its text. A
// copy that is too much is a VolumeError, unless an operator accepts it.
func weigh(c, before *v1alpha1.SourceCopy, files map[string][]byte, head tree.Hash, accepted bool) ([]byte, error) {
	adds, left := int64(perCopy), int64(0)
	for _, f := range c.Files {
		if before == nil || before.File(f.Path) == nil || before.File(f.Path).Hash != f.Hash {
			adds += int64(len(files[f.Path]))
		}
	}
	if before != nil {
		left = remaining(before, c.ReadAt.Time)
	}
	c.Volume = v1alpha1.MaxSourceVolume // as long as it can be
	text, err := genyaml.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("write what was read: %w", err)
	}
	adds += int64(len(text))
	over := left + adds - v1alpha1.MaxSourceVolume
	if over > 0 && !accepted {
		return nil, &VolumeError{Source: c.Metadata.Name, Bytes: adds, Until: fitsAt(before, adds), Head: head}
	}
	c.Volume = min(left+adds, v1alpha1.MaxSourceVolume)
	if text, err = genyaml.Marshal(c); err != nil {
		return nil, fmt.Errorf("write what was read: %w", err)
	}
	return text, nil
}

// fitsAt is when bytes may follow a copy, rounded up to a minute: the same however often it
// is asked.
func fitsAt(before *v1alpha1.SourceCopy, adds int64) time.Time {
	over := float64(min(before.Volume, v1alpha1.MaxSourceVolume)+adds) - v1alpha1.MaxSourceVolume
	at := before.ReadAt.Add(time.Duration(over / v1alpha1.MaxSourceVolume * float64(day)))
	return at.Truncate(time.Minute).Add(time.Minute)
}

// remaining is what counts of a copy's Volume at a later time.
func remaining(c *v1alpha1.SourceCopy, now time.Time) int64 {
	paid := now.Sub(c.ReadAt.Time).Seconds() / day.Seconds() * v1alpha1.MaxSourceVolume
	return max(min(c.Volume, v1alpha1.MaxSourceVolume)-max(int64(paid), 0), 0)
}
