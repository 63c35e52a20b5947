//go:build e2e && full

package liqo

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/test/env/rigtest"
)

// What people and crashes take away comes back, and is the intent's own again.
func TestWhatIsTakenAwayComesBack(t *testing.T) {
	f := start(t, "paris")
	f.Put("vision", "train", intent("vision", "train", 2))
	node := f.Contract("vision", "train", "Active")
	f.apply("rome", rigtest.Deployment("vision", 2))
	f.runs("rome", "vision", node, 2)

	for _, kind := range []string{"virtualnodes.offloading.liqo.io", "resourceslices.authentication.liqo.io"} {
		was := f.uid(kind, node)
		if _, err := f.kubectl("rome", "delete", kind, node, "-n", "liqo-tenant-paris", "--wait=false"); err != nil {
			t.Fatal(err)
		}
		f.Eventually(kind+" is there again", func() error {
			out, err := f.kubectl("rome", "get", kind, node, "-n", "liqo-tenant-paris", "-o", "jsonpath={.metadata.uid} {.metadata.deletionTimestamp}")
			if err == nil && (strings.HasPrefix(out, was) || len(strings.Fields(out)) != 1) {
				err = fmt.Errorf("it is %s, was %s", out, was)
			}
			return err
		})
		f.ready(node, "vision.train")
		f.runs("rome", "vision", node, 2)
	}

	// The Secret from which Liqo reaches the provider, and what is behind it.
	out, err := f.kubectl("paris", "delete", "serviceaccount", "liqo-consumer-rome", "-n", "liqo-tenant-rome")
	if err != nil {
		t.Fatal(err, out)
	}
	if err := errors.Join(f.daemon.Kill(), f.daemon.Restart(f.ctx)); err != nil { // it looks at peerings when it starts
		t.Fatal(err)
	}

	// Liqo itself: what was asked for meanwhile is granted when it is back.
	if err := errors.Join(f.Liqos["rome"].Kill("liqo-controller-manager"), f.Liqos["paris"].Kill("liqo-controller-manager")); err != nil {
		t.Fatal(err)
	}
	f.Put("nlp", "serve", intent("nlp", "serve", 1))
	f.Contract("nlp", "serve", "Peering")
	if err := errors.Join(f.Liqos["rome"].Start(f.ctx, "liqo-controller-manager"), f.Liqos["paris"].Start(f.ctx, "liqo-controller-manager")); err != nil {
		t.Fatal(err)
	}
	f.ready(f.Contract("nlp", "serve", "Active"), "nlp.serve")
	f.runs("rome", "vision", node, 2)
	f.Sound()
}
