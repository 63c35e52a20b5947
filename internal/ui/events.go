package ui

import (
	"fmt"
	"net/http"
	"sync"
	"time"
)

// Bounds of the streams of events.
const (
	// streamsEach and streamsAll are how many may be open of one viewer, and of all.
	streamsEach = 16
	streamsAll  = 512
	// pace is how often a stream reports at most, beat how often it shows that it lives.
	pace = time.Second
	beat = 20 * time.Second
	// streamLife bounds a stream: identities are looked at again when it is opened again.
	streamLife = 10 * time.Minute
)

// streams are those that are open.
type streams struct {
	mu   sync.Mutex
	all  int
	each map[string]int
	news chan struct{} // closed and replaced by wake
}

func newStreams() *streams {
	return &streams{each: map[string]int{}, news: make(chan struct{})}
}

// wake lets all streams look whether there is something new.
func (s *streams) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.news)
	s.news = make(chan struct{})
}

func (s *streams) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.news
}

// open counts a stream of a viewer, if there may be one more.
func (s *streams) open(who string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all >= streamsAll || s.each[who] >= streamsEach {
		return false
	}
	s.all++
	s.each[who]++
	return true
}

func (s *streams) close(who string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.each[who]--; s.each[who] == 0 {
		delete(s.each, who)
	}
}

// events streams the version of what pages show, at the start and whenever it is
// another. It carries nothing else: who hears of a change fetches their page again.
func (u *UI) events(w http.ResponseWriter, r *http.Request) {
	who := u.opts.Viewer(r).Identity
	if !u.streams.open(who) {
		w.Header().Set("Retry-After", "30")
		u.refuse(w, r, &problem{http.StatusTooManyRequests, "RateLimited", fmt.Sprintf("Too many pages are open: at most %d of one viewer follow the fleet.", streamsEach)})
		return
	}
	defer u.streams.close(who)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	out := http.NewResponseController(w)
	send := func(text string) bool {
		// Beyond the next beat: HTTP/2 ends a stream whose deadline passes. A writer without
		// deadlines, as tests have, needs none.
		_ = out.SetWriteDeadline(time.Now().Add(3 * beat))
		_, err := fmt.Fprint(w, text)
		return err == nil && out.Flush() == nil
	}
	_ = out.SetReadDeadline(time.Time{})
	var stopping <-chan struct{}
	if u.opts.Stopping != nil {
		stopping = u.opts.Stopping(r.Context())
	}
	life, alive := time.NewTimer(streamLife), time.NewTicker(beat)
	defer life.Stop()
	defer alive.Stop()
	news := u.streams.next()
	last := u.version()
	if !send(fmt.Sprintf("retry: 3000\nevent: version\ndata: %s\n\n", last)) {
		return
	}
	for {
		text := ": alive\n\n"
		select {
		case <-r.Context().Done():
			return
		case <-stopping:
			return
		case <-life.C:
			return
		case <-alive.C:
		case <-news:
			news = u.streams.next()
			version := u.version()
			if version == last {
				continue
			}
			last, text = version, fmt.Sprintf("event: version\ndata: %s\n\n", version)
		}
		if !send(text) || !rest(r.Context().Done(), pace) {
			return
		}
	}
}

// rest waits a moment, unless the request ends.
func rest(done <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return false
	case <-t.C:
		return true
	}
}
