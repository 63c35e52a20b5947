// Package storetest is a market's store in memory, for tests and simulation: the
// API of package store with the faults that a real one has. Nothing happens by
// itself: what watchers are told is delivered when Deliver is called, so that a
// seed decides the order.
package storetest

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/fleetbroker/fleetbroker/internal/api/marketcrd"
	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/market/store"
)

// ErrOut is what everything fails with while the API is out of reach.
var ErrOut = errors.New("connection refused")

// Objects are the store's, shared by the APIs of all replicas. The zero value is empty.
type Objects struct {
	mu      sync.Mutex
	version int64
	ads     map[string]*marketcrd.Advertisement
	parts   map[string]*marketcrd.AdvertisementPart
	beats   map[string]*marketcrd.Heartbeat
	seen    map[string]*marketcrd.Observation
	// log of changes; watchers read on from where they are.
	log     []event
	written map[string]int
	state   int              // grows with SetBack
	deleted int              // parts
	bytes   map[string]int64 // by provider or cluster
	made    int              // parts
}

// Deleted is how many parts a deletion was asked for.
func (o *Objects) Deleted() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.deleted
}

type event struct {
	ad   *marketcrd.Advertisement
	beat *marketcrd.Heartbeat
	seen *marketcrd.Observation
	gone string // a replica's Heartbeat that was deleted
	lost string // a provider's Advertisement that was
	past string // a cluster's Observation that was
}

// API is one replica's way to the objects.
type API struct {
	objects *Objects

	mu      sync.Mutex
	watcher store.Watcher
	at      int
	state   int // of the objects, as it follows them
	out     bool
	beat    int64 // the version of the Heartbeat that was written last
	// Fault, when set, is asked before each write, by kind; what it returns fails
	// the write, after it was made if made.
	Fault func(kind string) (fails, made bool)
	// Refuse, when set, is asked before each write, by kind and name; an error is the answer.
	Refuse func(kind, name string) error
}

// API gives a replica a way of its own.
func (o *Objects) API() *API { return &API{objects: o} }

// Out makes everything fail, or work again. A watcher is told so at the next Deliver.
func (a *API) Out(out bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.out = out
}

func (a *API) isOut() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.out
}

// Watch implements store.API: it returns when the context ends. What is told comes
// from Deliver.
func (a *API) Watch(ctx context.Context, w store.Watcher) error {
	a.Follow(w)
	<-ctx.Done()
	return nil
}

// Follow makes a watcher be told by Deliver.
func (a *API) Follow(w store.Watcher) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.watcher, a.at = w, -1
}

// Deliver tells the watcher what it has not been told yet, at most so many changes
// (0: all), and gives how many it was.
func (a *API) Deliver(most int) int {
	a.mu.Lock()
	w, out, at := a.watcher, a.out, a.at
	a.mu.Unlock()
	switch {
	case w == nil:
		return 0
	case out:
		w.Broken(ErrOut)
		return 0
	}
	o := a.objects
	o.mu.Lock()
	var events []event
	first := at < 0
	if first {
		for _, name := range slices.Sorted(maps.Keys(o.ads)) {
			events = append(events, event{ad: o.ads[name].DeepCopy()})
		}
		for _, name := range slices.Sorted(maps.Keys(o.seen)) {
			events = append(events, event{seen: o.seen[name].DeepCopy()})
		}
		for _, name := range slices.Sorted(maps.Keys(o.beats)) {
			events = append(events, event{beat: o.beats[name].DeepCopy()})
		}
		at, a.state = len(o.log), o.state
	} else if a.state != o.state { // what it follows tells nothing any more
		at = min(at, len(o.log))
	} else {
		end := len(o.log)
		if most > 0 {
			end = min(end, at+most)
		}
		events, at = slices.Clone(o.log[at:end]), end
	}
	o.mu.Unlock()
	for _, e := range events {
		switch {
		case e.ad != nil:
			w.Advertisement(e.ad.DeepCopy())
		case e.seen != nil:
			w.Observation(e.seen.DeepCopy())
		case e.beat != nil:
			w.Heartbeat(e.beat.DeepCopy())
		case e.lost != "":
			w.AdvertisementGone(e.lost)
		case e.past != "":
			w.ObservationGone(e.past)
		default:
			w.HeartbeatGone(e.gone)
		}
	}
	w.Synced()
	a.mu.Lock()
	a.at = at
	a.mu.Unlock()
	return len(events)
}

// Again implements store.API.
func (a *API) Again() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at = -1
}

// Behind is how many changes the watcher has not been told.
func (a *API) Behind() int {
	a.mu.Lock()
	at := a.at
	a.mu.Unlock()
	a.objects.mu.Lock()
	defer a.objects.mu.Unlock()
	return len(a.objects.log) - max(at, 0)
}

// write makes a change, with the fault that it is to have.
func (a *API) write(kind, name string, change func() error) error {
	if a.isOut() {
		return ErrOut
	}
	if a.Refuse != nil {
		if err := a.Refuse(kind, name); err != nil {
			return err
		}
	}
	fails, made := false, false
	if a.Fault != nil {
		fails, made = a.Fault(kind)
	}
	if fails && !made {
		return fmt.Errorf("write a %s: %w", kind, ErrOut)
	}
	a.objects.mu.Lock()
	err := change()
	a.objects.mu.Unlock()
	if err == nil && fails {
		return fmt.Errorf("write a %s, answer lost: %w", kind, ErrOut)
	}
	return err
}

func (o *Objects) next() string {
	o.version++
	return strconv.FormatInt(o.version, 10)
}

// Advertisement implements store.API.
func (a *API) Advertisement(_ context.Context, provider string) (*marketcrd.Advertisement, error) {
	if a.isOut() {
		return nil, ErrOut
	}
	a.objects.mu.Lock()
	defer a.objects.mu.Unlock()
	ad := a.objects.ads[provider]
	if ad == nil {
		return nil, store.ErrNotFound
	}
	return ad.DeepCopy(), nil
}

// PutAdvertisement implements store.API.
func (a *API) PutAdvertisement(_ context.Context, ad *marketcrd.Advertisement) (*marketcrd.Advertisement, error) {
	out := ad.DeepCopy()
	o := a.objects
	err := a.write("advertisement", ad.Name, func() error {
		was := o.ads[ad.Name]
		switch {
		case was == nil && ad.ResourceVersion != "":
			return store.ErrNotFound
		case was != nil && was.ResourceVersion != ad.ResourceVersion:
			return store.ErrConflict
		}
		out.ResourceVersion = o.next()
		if o.ads == nil {
			o.ads = map[string]*marketcrd.Advertisement{}
		}
		o.ads[ad.Name] = out.DeepCopy()
		if o.written == nil {
			o.written = map[string]int{}
		}
		o.written[ad.Name]++
		o.count(ad.Name, ad.Spec.Report)
		o.log = append(o.log, event{ad: out.DeepCopy()})
		return nil
	})
	return out, err
}

// Observation implements store.API.
func (a *API) Observation(_ context.Context, cluster string) (*marketcrd.Observation, error) {
	if a.isOut() {
		return nil, ErrOut
	}
	a.objects.mu.Lock()
	defer a.objects.mu.Unlock()
	if seen := a.objects.seen[cluster]; seen != nil {
		return seen.DeepCopy(), nil
	}
	return nil, store.ErrNotFound
}

// PutObservation implements store.API.
func (a *API) PutObservation(_ context.Context, seen *marketcrd.Observation) (*marketcrd.Observation, error) {
	out := seen.DeepCopy()
	o := a.objects
	err := a.write("observation", seen.Name, func() error {
		was := o.seen[seen.Name]
		switch {
		case was == nil && seen.ResourceVersion != "":
			return store.ErrNotFound
		case was != nil && was.ResourceVersion != seen.ResourceVersion:
			return store.ErrConflict
		}
		out.ResourceVersion = o.next()
		if o.seen == nil {
			o.seen = map[string]*marketcrd.Observation{}
		}
		o.seen[seen.Name] = out.DeepCopy()
		o.count(seen.Name, seen.Spec.Report)
		o.log = append(o.log, event{seen: out.DeepCopy()})
		return nil
	})
	return out, err
}

// DeleteAdvertisement implements store.API.
func (a *API) DeleteAdvertisement(_ context.Context, provider, version string) error {
	o := a.objects
	return a.write("advertisement", provider, func() error {
		if was := o.ads[provider]; was == nil || was.ResourceVersion != version {
			return store.ErrConflict
		}
		delete(o.ads, provider)
		o.log = append(o.log, event{lost: provider})
		return nil
	})
}

// DeleteObservation implements store.API.
func (a *API) DeleteObservation(_ context.Context, cluster, version string) error {
	o := a.objects
	return a.write("observation", cluster, func() error {
		if was := o.seen[cluster]; was == nil || was.ResourceVersion != version {
			return store.ErrConflict
		}
		delete(o.seen, cluster)
		o.log = append(o.log, event{past: cluster})
		return nil
	})
}

// Names are the clusters that have an Advertisement, and those that have an Observation.
func (o *Objects) Names() (advertisements, observations []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(maps.Keys(o.ads)), slices.Sorted(maps.Keys(o.seen))
}

// Part implements store.API.
func (a *API) Part(_ context.Context, name string) (*marketcrd.AdvertisementPart, error) {
	if a.isOut() {
		return nil, ErrOut
	}
	a.objects.mu.Lock()
	defer a.objects.mu.Unlock()
	p := a.objects.parts[name]
	if p == nil {
		return nil, store.ErrNotFound
	}
	return p.DeepCopy(), nil
}

// PutPart implements store.API.
func (a *API) PutPart(_ context.Context, p *marketcrd.AdvertisementPart) error {
	o := a.objects
	return a.write("part", p.Name, func() error {
		if o.parts[p.Name] != nil {
			return store.ErrConflict
		}
		if o.parts == nil {
			o.parts = map[string]*marketcrd.AdvertisementPart{}
		}
		o.parts[p.Name] = p.DeepCopy()
		o.count(p.Spec.Provider, p.Spec.Report)
		o.made++
		return nil
	})
}

// Parts implements store.API.
func (a *API) Parts(context.Context) ([]string, error) {
	if a.isOut() {
		return nil, ErrOut
	}
	a.objects.mu.Lock()
	defer a.objects.mu.Unlock()
	return slices.Sorted(maps.Keys(a.objects.parts)), nil
}

// DeletePart implements store.API.
func (a *API) DeletePart(_ context.Context, name string) error {
	return a.write("part", name, func() error {
		delete(a.objects.parts, name)
		a.objects.deleted++
		return nil
	})
}

// PutHeartbeat implements store.API.
func (a *API) PutHeartbeat(_ context.Context, h *marketcrd.Heartbeat) (string, error) {
	o := a.objects
	out := h.DeepCopy()
	err := a.write("heartbeat", h.Name, func() error {
		if was := o.beats[h.Name]; a.beat > 0 && (was == nil || versionOf(was) < a.beat) {
			a.beat = 0
			return store.ErrSetBack
		}
		out.ResourceVersion = o.next()
		if o.beats == nil {
			o.beats = map[string]*marketcrd.Heartbeat{}
		}
		o.beats[h.Name] = out
		a.beat = versionOf(out)
		o.log = append(o.log, event{beat: out.DeepCopy()})
		return nil
	})
	return out.ResourceVersion, err
}

// DeleteHeartbeat implements store.API.
func (a *API) DeleteHeartbeat(_ context.Context, replica string) error {
	o := a.objects
	return a.write("heartbeat", replica, func() error {
		if o.beats[replica] != nil {
			delete(o.beats, replica)
			o.log = append(o.log, event{gone: replica})
		}
		return nil
	})
}

// Forge puts an Advertisement there as somebody would who may write the objects.
func (o *Objects) Forge(ad *marketcrd.Advertisement) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ads == nil {
		o.ads = map[string]*marketcrd.Advertisement{}
	}
	ad = ad.DeepCopy()
	ad.ResourceVersion = o.next()
	o.ads[ad.Name] = ad
	o.log = append(o.log, event{ad: ad.DeepCopy()})
}

// ForgeSeen puts an Observation there as somebody would who may write the objects.
func (o *Objects) ForgeSeen(cluster string, g wire.Generation, report wire.Observed) {
	text, err := json.Marshal(report)
	if err != nil {
		panic(err) // a report can be written
	}
	seen := &marketcrd.Observation{Spec: marketcrd.ObservationSpec{Generation: g.String(), Replica: "forged", Report: zip(text)}}
	seen.Name = cluster
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen == nil {
		o.seen = map[string]*marketcrd.Observation{}
	}
	seen.ResourceVersion = o.next()
	o.seen[cluster] = seen
	o.log = append(o.log, event{seen: seen.DeepCopy()})
}

// Wipe deletes all, as who deletes the namespace does.
func (o *Objects) Wipe() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for name := range o.beats {
		o.log = append(o.log, event{gone: name})
	}
	for name := range o.ads {
		o.log = append(o.log, event{lost: name})
	}
	for name := range o.seen {
		o.log = append(o.log, event{past: name})
	}
	o.ads, o.parts, o.beats, o.seen = nil, nil, nil, nil
}

// Versions is how often a provider's Advertisement was written.
func (o *Objects) Versions(provider string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.written[provider]
}

// PartNames are the parts there are.
func (o *Objects) PartNames() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(maps.Keys(o.parts))
}

// Packed is an Advertisement that has a report, as a replica writes it; its name
// and generation are missing.
func Packed(r *wire.FlavorReport) *marketcrd.Advertisement {
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // a report can be written
	}
	sum := sha256.Sum256(text)
	return &marketcrd.Advertisement{Spec: marketcrd.AdvertisementSpec{Replica: "forged", Digest: hex.EncodeToString(sum[:]), Report: zip(text)}}
}

// Bomb is so many bytes in a few.
func Bomb(size int) []byte { return zip(make([]byte, size)) }

func zip(text []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(text)
	if err := errors.Join(err, w.Close()); err != nil {
		panic(err) // memory takes whatever is written
	}
	return out.Bytes()
}

// versionOf is an object's version as a number.
func versionOf(h *marketcrd.Heartbeat) int64 {
	n, _ := strconv.ParseInt(h.ResourceVersion, 10, 64)
	return n
}

// Skip makes the watcher never be told what it has not been told yet.
func (a *API) Skip() {
	a.objects.mu.Lock()
	end := len(a.objects.log)
	a.objects.mu.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at = end
}

// Snapshot is all that there is, for Restore and SetBack.
func (o *Objects) Snapshot() map[string]*marketcrd.Advertisement {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.ads)
}

// Backup is the whole state, for SetBack.
func (o *Objects) Backup() *Objects {
	o.mu.Lock()
	defer o.mu.Unlock()
	return &Objects{version: o.version, ads: maps.Clone(o.ads), parts: maps.Clone(o.parts), beats: maps.Clone(o.beats), seen: maps.Clone(o.seen)}
}

// SetBack makes the state that of a Backup, versions too: watchers are told nothing,
// because theirs are of another state, until they ask Again.
func (o *Objects) SetBack(to *Objects) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.version, o.ads, o.parts, o.beats, o.seen = to.version, maps.Clone(to.ads), maps.Clone(to.parts), maps.Clone(to.beats), maps.Clone(to.seen)
	o.state++
	o.log = nil
}

// Bump makes the versions of what is written from now on higher by a number, as etcd's
// --bump-revision does with a backup.
func (o *Objects) Bump(by int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.version += by
}

// Restore puts Advertisements back as they were, as who restores etcd does; watchers
// see them change.
func (o *Objects) Restore(ads map[string]*marketcrd.Advertisement) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ads = map[string]*marketcrd.Advertisement{}
	for _, name := range slices.Sorted(maps.Keys(ads)) {
		ad := ads[name].DeepCopy()
		ad.ResourceVersion = o.next()
		o.ads[name] = ad
		o.log = append(o.log, event{ad: ad.DeepCopy()})
	}
}

// Deafen makes the watcher be told nothing, as by a watch of a state that is no more,
// until it asks Again.
func (a *API) Deafen() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.state--
}

// Asked reports whether all was asked for Again and has not been told yet; it then waits
// for the next time.
func (a *API) Asked() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	asked := a.at < 0
	a.at = max(a.at, 0)
	return asked
}
