package packs

import (
	"fmt"
	"sync"
)

// Pages of the files that were read last: who asks what lies in a directory asks for
// the headers of objects that lie near each other.
const pageSize, pagesKept = 16 << 10, 16

// window are these pages. Its zero value is empty. Safe for concurrent use.
type window struct {
	mu    sync.Mutex
	pages [pagesKept]*page
	last  int // the page that was asked for last
	next  int // the page that is replaced next
}

// page is a piece of a pack's file.
type page struct {
	of *pack
	at int64 // a multiple of pageSize
	n  int
	b  [pageSize]byte
}

// read fills buf from a pack's file.
func (w *window) read(p *pack, buf []byte, offset int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(buf) > 0 {
		of, err := w.page(p, offset-offset%pageSize)
		if err != nil {
			return err
		}
		from := int(offset - of.at)
		if from >= of.n {
			return fmt.Errorf("read %s: it ends before byte %d", p.file.Name(), offset)
		}
		n := copy(buf, of.b[from:of.n])
		buf, offset = buf[n:], offset+int64(n)
	}
	return nil
}

// page is the page that begins at an offset; w.mu is held.
func (w *window) page(p *pack, at int64) (*page, error) {
	for i := range pagesKept {
		i = (w.last + i) % pagesKept
		if of := w.pages[i]; of != nil && of.of == p && of.at == at {
			w.last = i
			return of, nil
		}
	}
	of := w.pages[w.next]
	if of == nil {
		of = &page{}
		w.pages[w.next] = of
	}
	of.of = nil // until it is whole
	n, err := p.file.ReadAt(of.b[:], at)
	if n == 0 && err != nil {
		return nil, fmt.Errorf("read %s: %w", p.file.Name(), err)
	}
	of.of, of.at, of.n = p, at, n
	w.last = w.next
	w.next = (w.next + 1) % pagesKept
	return of, nil
}

// forget lets go of all pages.
func (w *window) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.pages[:])
}
