package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

const name = "fleetbroker: test"

func init() {
	Serve(name, func(request []byte) ([]byte, error) {
		switch what := string(request); what {
		case "refuse":
			return nil, errors.New("refused")
		case "memory":
			var all [][]byte
			for {
				all = append(all, make([]byte, 1<<20))
				for i := range all[len(all)-1] {
					all[len(all)-1][i] = 1
				}
			}
		case "time":
			for n := 0; n >= 0; n = (n + 1) % 1000 {
			}
		case "panic":
			panic("on purpose")
		}
		return append([]byte("answer to "), request...), nil
	})
}

func TestParent_SaysHowAChildEnds(t *testing.T) {
	p := &Parent{Name: name}
	small := Bounds{Memory: 128 << 20, CPU: 60}
	for _, tc := range []struct {
		request, want string
		bounds        Bounds
	}{
		{"memory", "took more than 128 MiB of memory", small},
		{"time", "took more than 1 s of processor time", Bounds{Memory: 128 << 20, CPU: 1}},
		{"panic", "crashed (exit status 2: panic: on purpose", small},
	} {
		if tc.request == "memory" && !dataLimited {
			continue // the race detector reserves more than any bound
		}
		for range 2 {
			_, err := p.Ask([]byte(tc.request), tc.bounds)
			var death *Death
			if !errors.As(err, &death) || !death.Convicts || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: got %v, want %s", tc.request, err, tc.want)
			}
			if out, err := p.Ask([]byte("x"), Default()); err != nil || string(out) != "answer to x" {
				t.Errorf("after %s: got %q, %v", tc.request, out, err)
			}
		}
	}
	var said Refusal
	if _, err := p.Ask([]byte("refuse"), small); !errors.As(err, &said) || err.Error() != "refused" {
		t.Errorf("got %v, want the work's refusal", err)
	}
}

// Bounds are those of each request: a small one before does not bind the next.
func TestParent_BoundsAreOfEachRequest(t *testing.T) {
	p := &Parent{Name: name}
	for _, mib := range []uint64{128, 256, 128} {
		if out, err := p.Ask([]byte("x"), Bounds{Memory: mib << 20, CPU: 1}); err != nil || string(out) != "answer to x" {
			t.Fatalf("%d MiB: got %q, %v", mib, out, err)
		}
	}
}

// A child that another kills, as the kernel does when the machine is out of
// memory, convicts nobody.
func TestParent_KilledByAnotherConvictsNobody(t *testing.T) {
	p := &Parent{Name: name}
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, err := p.Ask([]byte("x"), Default())
	var death *Death
	if !errors.As(err, &death) || death.Convicts || !strings.Contains(err.Error(), "was killed by another") {
		t.Errorf("got %v", err)
	}
	if _, err := p.Ask([]byte("x"), Default()); err != nil {
		t.Errorf("after it: %v", err)
	}
	if death := p.end(Default()); death.Convicts {
		t.Errorf("an end is %v", death)
	}
}

// The child gets nothing of our environment.
func TestParent_ChildHasNoSecrets(t *testing.T) {
	t.Setenv("FLEETBROKER_TOKEN", "secret")
	p := &Parent{Name: name}
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.end(Default()) }()
	environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.cmd.Process.Pid))
	if err != nil || strings.Contains(string(environment), "secret") || strings.Contains(string(environment), "HOME=") {
		t.Errorf("got %q, %v", environment, err)
	}
}

const talker = "fleetbroker: test that tells"

func init() {
	ServeTelling(talker, func(request []byte, tell Tell) ([]byte, error) {
		for i := range 3 {
			tell(fmt.Appendf(nil, "%d of %s", i, request))
		}
		if string(request) == "long" {
			for n := 0; n >= 0; n = (n + 1) % 1000 {
			}
		}
		return []byte("done"), nil
	})
}

// News come before the answer, in order; who ends the context ends the child, and the
// next request has another one.
func TestParent_Follow(t *testing.T) {
	p := &Parent{Name: talker}
	defer p.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var told []string
	_, err := p.Follow(ctx, []byte("long"), Bounds{Memory: 128 << 20, CPU: 60}, func(news []byte) {
		if told = append(told, string(news)); len(told) == 3 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || strings.Join(told, ",") != "0 of long,1 of long,2 of long" {
		t.Errorf("got %v after %q", err, told)
	}
	if out, err := p.Ask([]byte("short"), Default()); err != nil || string(out) != "done" {
		t.Errorf("after it: %q, %v", out, err)
	}
}
