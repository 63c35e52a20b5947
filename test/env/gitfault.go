package env

import (
	"bytes"
	"cmp"
	"context"
	"net/http"
	"sync"
	"time"
)

// Fault is a way for a GitServer to fail.
type Fault int

// The faults. Those of pushes leave every other request alone.
const (
	// FaultNone is a server in good health.
	FaultNone Fault = iota
	// FaultRefuse answers every request with 503: nothing is persisted.
	FaultRefuse
	// FaultHang holds every request until the fault is cleared.
	FaultHang
	// FaultStallBody does what is asked, sends half of each answer's body and holds
	// the rest until the fault is cleared; then the connection is closed.
	FaultStallBody
	// FaultCutBody does what is asked, sends half of each answer's body and closes
	// the connection.
	FaultCutBody
	// FaultPushRefused answers a push with 500 before git has seen it:
	// not persisted.
	FaultPushRefused
	// FaultPushCut closes a push's connection before git has seen it:
	// not persisted.
	FaultPushCut
	// FaultPushHang holds a push before git has seen it; once the fault is
	// cleared it goes on.
	FaultPushHang
	// FaultPushNoRoom lets git take a push but write no file, as on a full
	// disk: not persisted, and git says so itself.
	FaultPushNoRoom
	// FaultPushAnswerLost lets git take a push and answers 500: persisted
	// though it failed.
	FaultPushAnswerLost
	// FaultPushAnswerCut lets git take a push and closes the connection:
	// persisted though it failed.
	FaultPushAnswerCut
	// FaultPushAnswerHeld lets git take a push and holds the answer until the
	// fault is cleared, and then answers 500: persisted though it failed.
	FaultPushAnswerHeld
)

// onlyPush says that a fault leaves requests that are no push alone.
func (f Fault) onlyPush() bool { return f >= FaultPushRefused }

// after says that a fault strikes when git has done its work.
func (f Fault) after() bool { return f >= FaultPushAnswerLost }

// inBody says that a fault strikes in the middle of an answer.
func (f Fault) inBody() bool { return f == FaultStallBody || f == FaultCutBody }

// SetFault makes the server fail so until another call; FaultNone heals it and
// lets held requests go on.
func (s *GitServer) SetFault(f Fault) { s.faults.set(f) }

// FailNext makes the next n requests that the fault concerns fail, and then no
// more. Requests being held stay so until SetFault(FaultNone).
func (s *GitServer) FailNext(f Fault, n int) { s.faults.next(f, n) }

// WaitHeld returns once n requests are held by a hanging fault.
func (s *GitServer) WaitHeld(ctx context.Context, n int) error {
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for s.faults.holding() < n {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
	return nil
}

// faultSwitch is what SetFault and FailNext set; the zero value is healthy.
type faultSwitch struct {
	mu      sync.Mutex
	fault   Fault
	left    int           // requests still to fail; negative is all of them
	cleared chan struct{} // closed by set; nil when nothing is held
	held    int
}

func (s *faultSwitch) set(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault, s.left = f, -1
	if s.cleared != nil {
		close(s.cleared)
		s.cleared = nil
	}
}

func (s *faultSwitch) next(f Fault, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault, s.left = f, n
}

// take returns the fault that a request is to suffer, and counts it.
func (s *faultSwitch) take(push bool) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left == 0 || s.fault.onlyPush() && !push {
		return FaultNone
	}
	if s.left > 0 {
		s.left--
	}
	return s.fault
}

// hold waits until the switch is set anew or the client has gone; it reports
// whether the request should go on.
func (s *faultSwitch) hold(ctx context.Context) bool {
	s.mu.Lock()
	if s.cleared == nil {
		s.cleared = make(chan struct{})
	}
	cleared := s.cleared
	s.held++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.held--
		s.mu.Unlock()
	}()
	select {
	case <-cleared:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *faultSwitch) holding() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held
}

// failBefore strikes before git sees a request; it reports whether to go on.
func (s *GitServer) failBefore(w http.ResponseWriter, r *http.Request, fault Fault) bool {
	switch fault {
	case FaultRefuse:
		http.Error(w, "the server is down for maintenance", http.StatusServiceUnavailable)
		return false
	case FaultPushRefused:
		http.Error(w, "the push was lost", http.StatusInternalServerError)
		return false
	case FaultPushCut:
		cut()
	case FaultHang, FaultPushHang:
		return s.faults.hold(r.Context())
	}
	return true
}

// failAfter strikes when git has taken a push.
func (s *GitServer) failAfter(w http.ResponseWriter, r *http.Request, fault Fault) {
	switch fault {
	case FaultPushAnswerCut:
		cut()
	case FaultPushAnswerHeld:
		if !s.faults.hold(r.Context()) {
			return
		}
	}
	http.Error(w, "the answer was lost", http.StatusInternalServerError)
}

// half sends the first half of an answer, and ends the connection at once or once
// the fault is cleared.
func (s *GitServer) half(w http.ResponseWriter, r *http.Request, fault Fault, whole *recorded) {
	for name, values := range whole.header {
		w.Header()[name] = values
	}
	w.Header().Del("Content-Length")
	w.WriteHeader(cmp.Or(whole.code, http.StatusOK))
	_, _ = w.Write(whole.body.Bytes()[:whole.body.Len()/2])
	_ = http.NewResponseController(w).Flush()
	if fault == FaultStallBody {
		s.faults.hold(r.Context())
	}
	cut()
}

// recorded is an answer that is kept.
type recorded struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (r *recorded) Header() http.Header         { return r.header }
func (r *recorded) Write(p []byte) (int, error) { return r.body.Write(p) }
func (r *recorded) WriteHeader(code int)        { r.code = code }
