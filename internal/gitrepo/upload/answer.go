package upload

import (
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
)

// Demux is the pack of an answer, without what the server says next to it. Words, lengths
// and empty lines that are more than someWords and more than the pack itself are an
// *EndlessWordsError.
func Demux(caps *capability.List, r io.Reader) io.Reader {
	in := &counted{r: r}
	switch {
	case caps.Supports(capability.Sideband64k):
		return &pack{in, sideband.NewDemuxer(sideband.Sideband64k, in)}
	case caps.Supports(capability.Sideband):
		return &pack{in, sideband.NewDemuxer(sideband.Sideband, in)}
	default:
		return r
	}
}

// someWords is what any server may say, in bytes: progress is some tens of KiB, and a line
// each few seconds while a pack is made.
const someWords = 4 << 20

// EndlessWordsError is an answer of words without end.
type EndlessWordsError struct{ Words, Pack int64 }

// Error says how much there was of each.
func (e *EndlessWordsError) Error() string {
	return fmt.Sprintf("the git server sent %d bytes of words and empty lines with %d bytes of a pack: it is broken or means harm, look at what answers there", e.Words, e.Pack)
}

// counted is what is received, in all and of the pack.
type counted struct {
	r         io.Reader
	all, pack int64
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	if words := c.all - c.pack; words > someWords+c.pack {
		return 0, &EndlessWordsError{words, c.pack}
	}
	n, err := c.r.Read(p)
	c.all += int64(n)
	return n, err
}

// pack counts what of an answer is the pack.
type pack struct {
	in *counted
	r  io.Reader
}

// Read implements io.Reader.
func (k *pack) Read(p []byte) (int, error) {
	n, err := k.r.Read(p)
	k.in.pack += int64(n)
	return n, err
}
