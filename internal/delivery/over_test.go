package delivery

import (
	"strings"
	"testing"

	"k8s.io/client-go/tools/cache"
)

// A cluster of which an object was not kept is not served: it would count as gone.
func TestSynced_WhatIsNotKept(t *testing.T) {
	c := &conn{informers: map[kind]cache.SharedIndexInformer{}}
	if ok, why := c.synced(); !ok {
		t.Fatal(why)
	}
	c.bounds.Objects = 1
	_ = c.bounds.Keep("Node /a", map[string]any{})
	if ok, why := c.synced(); ok || !strings.Contains(why, "keep Node /a") {
		t.Errorf("synced %t, %q", ok, why)
	}
}
