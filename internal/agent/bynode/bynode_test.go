package bynode

import (
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/onnodes"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

const gpu = v1alpha1.GPU

var hasher = NewHasher("0b9c62bb-3a55-4d0f-9a64-2f5f7c9f8f10")

func has(gpus, cpu int64) v1alpha1.Resources {
	return v1alpha1.Resources{gpu: v1alpha1.AmountOf(gpus), v1alpha1.CPU: v1alpha1.AmountOf(cpu * 1000)}
}

// host is an offered one of 8 GPUs that bears its hash.
func host(name string, own v1alpha1.Resources) Host {
	return Host{
		Name: name, Labels: map[string]string{v1alpha1.LabelNode: hasher.Of(name)}, Offered: true, InService: true,
		Allocatable: has(8, 96), Own: own, Runs: map[string]v1alpha1.Resources{},
	}
}

func flavor(hosts ...Host) Flavor {
	return Flavor{Hosts: hosts, Held: map[string]v1alpha1.Resources{}, Accelerator: gpu, MaxPieces: onnodes.MaxPieces, Overcommitted: func(string) bool { return false }}
}

// The hash of a node is the same in every process and another in every cluster, and has the
// form that brokers take.
func TestHasher(t *testing.T) {
	a := hasher.Of("gpu-1")
	for _, tt := range []struct {
		name string
		got  string
		same bool
	}{
		{"again", NewHasher("0b9c62bb-3a55-4d0f-9a64-2f5f7c9f8f10").Of("gpu-1"), true},
		{"another node", hasher.Of("gpu-2"), false},
		{"another cluster", NewHasher("1b9c62bb-3a55-4d0f-9a64-2f5f7c9f8f10").Of("gpu-1"), false},
	} {
		if !onnodes.IsHash(tt.got) || (tt.got == a) != tt.same {
			t.Errorf("%s: %s beside %s", tt.name, tt.got, a)
		}
	}
	seen := map[string]bool{}
	for i := range 20_000 {
		seen[hasher.Of(fmt.Sprint("node-", i))] = true
	}
	if len(seen) != 20_000 {
		t.Errorf("20000 nodes have %d hashes", len(seen))
	}
}

func TestGroups(t *testing.T) {
	rack := func(h Host, rack string) Host {
		h.Labels["topology.kubernetes.io/rack"], h.Labels["topology.kubernetes.io/zone"], h.Labels["kubernetes.io/hostname"] = rack, "a", h.Name
		return h
	}
	dead := host("dead", nil)
	dead.InService, dead.Runs["train"] = false, has(3, 8)
	idle := host("idle", nil)
	idle.InService = false
	bare := host("bare", nil)
	delete(bare.Labels, v1alpha1.LabelNode)
	named := host("named", nil)
	named.Labels["nvidia.com/gpu.clique"] = "named" // its own name
	f := flavor(rack(host("a", nil), "r1"), rack(host("b", has(2, 4)), "r1"), rack(host("c", nil), "r1"), rack(host("d", nil), "r2"), dead, idle, bare, named)
	got := map[string]string{}
	for _, g := range hasher.Tell(f).Nodes.Groups {
		for _, hash := range g.Nodes {
			got[hash] = fmt.Sprint(len(g.Nodes), g.Shape.Canonical(), g.Free.Canonical(), g.Labels)
		}
	}
	want := map[string]string{
		"a":     "2 map[cpu:96 gpu:8] map[] map[topology.kubernetes.io/rack:r1]",
		"c":     "2 map[cpu:96 gpu:8] map[] map[topology.kubernetes.io/rack:r1]",
		"b":     "1 map[cpu:96 gpu:8] map[cpu:92 gpu:6] map[topology.kubernetes.io/rack:r1]",
		"d":     "1 map[cpu:96 gpu:8] map[] map[topology.kubernetes.io/rack:r2]",
		"dead":  "1 map[cpu:8 gpu:3] map[] map[]",
		"named": "1 map[cpu:96 gpu:8] map[] map[]",
	}
	if len(got) != len(want) {
		t.Errorf("%d nodes are reported, want %d: %v", len(got), len(want), got)
	}
	for name, text := range want {
		if got[hasher.Of(name)] != text {
			t.Errorf("%s: %q, want %q", name, got[hasher.Of(name)], text)
		}
	}
}

// A node out of service that a contract names is reported for as long as it is named.
func TestGroups_KeepsWhatIsHeld(t *testing.T) {
	h := host("a", nil)
	h.InService = false
	f := flavor(h)
	if got := hasher.Tell(f).Nodes.Groups; len(got) != 0 {
		t.Errorf("an empty node out of service is offered: %+v", got)
	}
	f.Pieces = []Piece{{Contract: "train", Slice: "train", Ends: true, Nodes: map[string]v1alpha1.Resources{hasher.Of("a"): has(4, 8)}}}
	if got := hasher.Tell(f).Nodes.Groups; len(got) != 1 || got[0].Nodes[0] != hasher.Of("a") || !got[0].Shape[gpu].IsZero() {
		t.Errorf("the node that is held: %+v", got)
	}
}

func TestHeldOn(t *testing.T) {
	a, b := host("a", nil), host("b", nil)
	a.Runs["train"], b.Runs["old"] = has(1, 4), has(2, 2)
	gone := Host{Name: "gone", Runs: map[string]v1alpha1.Resources{"old": has(1, 1)}} // no longer offered
	f := flavor(a, b, gone)
	f.Held = map[string]v1alpha1.Resources{"train": has(6, 16), "old": has(3, 3)}
	f.Pieces = []Piece{
		{Contract: "train", Slice: "train", Nodes: map[string]v1alpha1.Resources{hasher.Of("a"): has(4, 8), hasher.Of("b"): has(8, 8)}},
		{Contract: "new", Slice: "new", Nodes: map[string]v1alpha1.Resources{hasher.Of("b"): has(4, 8)}}, // holds nothing yet
	}
	got := hasher.Tell(f).HeldOn
	for _, tt := range []struct {
		slice, node string
		want        v1alpha1.Resources
	}{
		{"old", "b", has(2, 2)}, {"old", "gone", has(1, 1)},
	} {
		if r := got[tt.slice][hasher.Of(tt.node)]; !r.Equal(tt.want) {
			t.Errorf("%s on %s: %v, want %v", tt.slice, tt.node, r, tt.want)
		}
	}
	onA, onB := got["train"][hasher.Of("a")], got["train"][hasher.Of("b")]
	if sum := onA.Add(onB); !sum.Equal(has(6, 16)) || onA[gpu].Less(has(1, 4)[gpu]) {
		t.Errorf("train is on a with %v, on b with %v: all that it holds, and on a what runs there", onA, onB)
	}
	if len(got) != 2 || len(got["train"]) != 2 || len(got["old"]) != 2 {
		t.Errorf("held on nodes: %v", got)
	}
}

// Own pods that come later take the piece of who has the lowest priority, then of the
// youngest, and never of one whose pods run.
func TestShort(t *testing.T) {
	day := v1alpha1.TimeOf(time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC))
	piece := func(contract string, gpus int64, priority int32) Piece {
		return Piece{Contract: contract, Slice: contract, Priority: priority, Start: day, Nodes: map[string]v1alpha1.Resources{hasher.Of("a"): has(gpus, 8)}}
	}
	young := piece("young", 2, 0)
	young.Start = v1alpha1.TimeOf(day.Add(time.Hour))
	ends := piece("old", 2, 0)
	ends.Ends = true
	// Bare numbers are GPUs of the provider's own pods on a node of eight.
	for name, tt := range map[string]struct {
		own    int64
		runs   map[string]int64
		pieces []Piece
		host   func(*Host)
		want   map[string]string
	}{
		"all there":        {0, nil, []Piece{piece("old", 4, 0), young}, nil, nil},
		"just there":       {2, nil, []Piece{piece("old", 4, 0), young}, nil, nil},
		"youngest":         {3, nil, []Piece{young, piece("old", 4, 0)}, nil, map[string]string{"young": "1 of 2 gpu are left there for contract young: the provider's own pods came later"}},
		"lowest priority":  {3, nil, []Piece{piece("low", 4, -1), young}, nil, map[string]string{"low": "3 of 4 gpu are left there for contract low"}},
		"smaller one fits": {5, nil, []Piece{piece("big", 4, 9), young}, nil, map[string]string{"big": "3 of 4 gpu are left there for contract big"}},
		"running stays":    {3, map[string]int64{"young": 2}, []Piece{young, piece("old", 4, 9)}, nil, map[string]string{"old": "3 of 4 gpu are left there for contract old"}},
		"released":         {7, nil, []Piece{ends}, nil, nil},
		"out of service":   {0, nil, []Piece{young}, func(h *Host) { h.InService = false }, map[string]string{"young": "it is out of service"}},
		"drained, running": {0, map[string]int64{"young": 2}, []Piece{young}, func(h *Host) { h.InService = false }, nil},
		"gone":             {0, nil, []Piece{young}, func(h *Host) { h.Name = "other" }, map[string]string{"young": "it is gone"}},
		"withdrawn":        {0, nil, []Piece{young}, func(h *Host) { h.Offered = false }, map[string]string{"young": "it is not offered any more"}},
	} {
		h := host("a", has(tt.own, tt.own))
		for slice, gpus := range tt.runs {
			h.Runs[slice] = has(gpus, 1)
		}
		if tt.host != nil {
			tt.host(&h)
		}
		f := flavor(h)
		f.Pieces = tt.pieces
		got := hasher.Tell(f).Short
		if len(got) != len(tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
		for contract, want := range tt.want {
			if !strings.HasPrefix(got[contract], "node "+hasher.Of("a")+": "+want) {
				t.Errorf("%s: %s is told %q, want %q of the node", name, contract, got[contract], want)
			}
		}
	}
}

// Only the part of the node that is short is told, and what is sold more than once is
// short nowhere.
func TestShort_OnePartAlone(t *testing.T) {
	f := flavor(host("a", has(0, 0)), host("b", has(8, 0)))
	f.Pieces = []Piece{{Contract: "wide", Slice: "wide", Nodes: map[string]v1alpha1.Resources{hasher.Of("a"): has(8, 200), hasher.Of("b"): has(8, 8)}}}
	f.Overcommitted = func(name string) bool { return name == v1alpha1.CPU }
	if got := hasher.Tell(f).Short; len(got) != 1 || !strings.HasPrefix(got["wide"], "node "+hasher.Of("b")+": 0 of 8 gpu") {
		t.Errorf("short: %v", got)
	}
}

// Whatever runs where, the report passes the broker's check, and is the same in any order
// of nodes.
func TestTell_IsTaken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var hosts []Host
		capacity, held := v1alpha1.Resources{gpu: {}, v1alpha1.CPU: {}}, map[string]v1alpha1.Resources{}
		for i := range rapid.IntRange(0, 6).Draw(t, "nodes") {
			h := host(fmt.Sprint("n", i), has(rapid.Int64Range(0, 9).Draw(t, "own"), 1))
			h.InService = rapid.Bool().Draw(t, "in service")
			h.Labels["nvidia.com/gpu.clique"] = rapid.SampledFrom([]string{"c0", "c1"}).Draw(t, "clique")
			for _, slice := range []string{"s0", "s1"} {
				if gpus := rapid.Int64Range(0, 3).Draw(t, "runs "+slice); gpus > 0 {
					h.Runs[slice] = has(gpus, 1)
					held[slice] = held[slice].Add(h.Runs[slice])
				}
			}
			capacity = capacity.Add(h.shape())
			hosts = append(hosts, h)
		}
		f := flavor(hosts...)
		f.Held = held
		if len(hosts) > 0 {
			f.Pieces = []Piece{{Contract: "s1", Slice: "s1", Nodes: map[string]v1alpha1.Resources{hasher.Of("n0"): has(rapid.Int64Range(0, 9).Draw(t, "piece"), 4)}}}
		}
		told := hasher.Tell(f)
		if err := onnodes.Report(&v1alpha1.FlavorSpec{Capacity: capacity, Held: held, Nodes: told.Nodes, HeldOn: told.HeldOn}); err != nil {
			t.Fatalf("refused: %v", err)
		}
		rand.Shuffle(len(hosts), func(i, j int) { hosts[i], hosts[j] = hosts[j], hosts[i] })
		if again := hasher.Tell(f); fmt.Sprintf("%+v", again.Nodes) != fmt.Sprintf("%+v", told.Nodes) || fmt.Sprint(again.HeldOn, again.Short) != fmt.Sprint(told.HeldOn, told.Short) {
			t.Fatalf("another order, another report:\n%+v\n%+v", again, told)
		}
	})
}

// More pieces than a report takes are not reported: those of the slices on the most nodes are
// left out, in the same order each time, and the others stay.
func TestTell_BoundsPieces(t *testing.T) {
	var hosts []Host
	held := map[string]v1alpha1.Resources{}
	for i := range 6 {
		h := host(fmt.Sprint("gpu-", i), nil)
		for slice, nodes := range map[string]int{"small": 1, "wide": 6, "wider": 6, "middle": 3} {
			if i < nodes {
				h.Runs[slice] = has(1, 1)
				held[slice] = held[slice].Add(has(1, 1))
			}
		}
		hosts = append(hosts, h)
	}
	for most, want := range map[int]string{16: "middle small wide wider", 15: "middle small wider", 9: "middle small", 4: "middle small", 3: "small", 0: ""} {
		f := flavor(hosts...)
		f.Held, f.MaxPieces = held, most
		told := hasher.Tell(f)
		if got := strings.Join(slices.Sorted(maps.Keys(told.HeldOn)), " "); got != want || PiecesOf(told.HeldOn) > most {
			t.Errorf("of %d pieces: %d of %q, want those of %q", most, PiecesOf(told.HeldOn), got, want)
		}
	}
}
