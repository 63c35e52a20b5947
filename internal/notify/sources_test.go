package notify

import (
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
)

// Each tenant of a source hears once that it is frozen, not before two minutes, and once
// that it is read again; a restart repeats neither, and takes nothing for repaired that
// it has not read.
func TestSources_AreToldOnceEachWay(t *testing.T) {
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	of := func(frozen string, read time.Time) *Snapshot {
		s := wire.SourceStatus{Name: "own", Tenants: []string{"vision", "ml"}, Frozen: frozen, ReadAt: read}
		if frozen != "" {
			s.Since = noon
		}
		return &Snapshot{Fleet: "acme", Sources: []wire.SourceStatus{s}}
	}
	o := newOutbox()
	said := func(s *Snapshot, after time.Duration) string { return lines(o.changed(s, noon.Add(after))) }
	const frozen = "12:00 [frozen] ml's repository own is frozen since 2026-11-20T12:00:00Z: its history was rewritten. What was copied of it stays in force and nothing new is taken until that is repaired\n" +
		"12:00 [frozen] vision's repository own is frozen since"
	for i, step := range []struct {
		s     *Snapshot
		after time.Duration
		want  string
	}{
		{of("", noon), 0, ""},
		{of("its history was rewritten", noon), time.Minute, ""},
		{of("", noon.Add(90*time.Second)), 90 * time.Second, ""}, // it was a moment
		{of("its history was rewritten", noon), 2 * time.Minute, frozen},
		{of("another reason", noon), 3 * time.Minute, ""},
		{of("", time.Time{}), 4 * time.Minute, ""}, // a restart has not read it yet
		{of("", noon.Add(5*time.Minute)), 5 * time.Minute, "12:05 [frozen] ml's repository own is read again; it was frozen since 2026-11-20T12:00:00Z\n12:05 [frozen] vision's"},
		{of("", noon.Add(6*time.Minute)), 6 * time.Minute, ""},
	} {
		if got := said(step.s, step.after); step.want == "" && got != "" || !strings.Contains(got, step.want) {
			t.Errorf("step %d: got %q, want %q", i, got, step.want)
		}
	}
	// Its entry goes while it is frozen, and comes again in order.
	said(of("gone", noon), 10*time.Minute)
	said(&Snapshot{Fleet: "acme", Sources: []wire.SourceStatus{{Name: "other"}}}, 11*time.Minute)
	if got := said(of("", noon.Add(12*time.Minute)), 12*time.Minute); got != "" {
		t.Errorf("an entry that is new was said to be repaired: %q", got)
	}
	a, b := ofSource(of("x", noon), &wire.SourceStatus{Name: "own", Tenants: []string{"vision"}}, v1alpha1.TimeOf(noon), ReasonSourceFrozen, "x"),
		ofSource(of("x", noon), &wire.SourceStatus{Name: "own", Tenants: []string{"vision"}}, v1alpha1.TimeOf(noon), ReasonSourceRead, "x")
	if a[0].ID == b[0].ID {
		t.Error("both ways have one id")
	}
}

func TestSources_ToldSurvivesARestart(t *testing.T) {
	dir, noon := t.TempDir(), time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	s := &Snapshot{Fleet: "acme", Sources: []wire.SourceStatus{{Name: "own", Tenants: []string{"vision"}, Frozen: "gone", Since: noon}}}
	o := newOutbox()
	if got := o.changed(s, noon.Add(settled)); len(got) != 1 {
		t.Fatalf("told %d times", len(got))
	}
	if err := o.save(dir); err != nil {
		t.Fatal(err)
	}
	again := load(Options{Dir: dir, Now: func() time.Time { return noon }})
	s.Sources[0].Since = noon.Add(time.Hour) // since when this process sees it
	if got := again.changed(s, noon.Add(2*time.Hour)); len(got) != 0 {
		t.Errorf("told again after a restart: %+v", got)
	}
	s.Sources[0].Frozen, s.Sources[0].ReadAt = "", noon.Add(3*time.Hour)
	if got := again.changed(s, noon.Add(3*time.Hour)); len(got) != 1 || got[0].Reason != ReasonSourceRead {
		t.Errorf("got %+v", got)
	}
}
