// Package reading reads the objects of a manifest file.
//
// What is no Kubernetes object (no name, kind or apiVersion) and kustomize's own
// configuration is left out; lists are taken apart. Who calls it bounds the text, which is
// untrusted. Pure; safe for concurrent use.
package reading

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
)

// Objects are those of a stream of YAML or JSON documents, in order.
func Objects(text []byte) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	take := func(o runtime.Object) error {
		if u, ok := o.(*unstructured.Unstructured); ok && IsObject(u) {
			out = append(out, u)
		}
		return nil
	}
	for reader := yamlutil.NewYAMLOrJSONDecoder(bytes.NewReader(text), 2048); ; {
		u := &unstructured.Unstructured{}
		if err := reader.Decode(u); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return out, err
		}
		var err error
		if u.IsList() {
			err = u.EachListItem(take)
		} else {
			err = take(u)
		}
		if err != nil {
			return out, err
		}
	}
}

// IsObject reports whether a document is an object of a cluster.
func IsObject(u *unstructured.Unstructured) bool {
	if u.GetName() == "" || u.GetKind() == "" || u.GetAPIVersion() == "" {
		return false
	}
	return !strings.EqualFold(u.GetKind(), "kustomization") || !strings.HasPrefix(u.GetAPIVersion(), "kustomize.config.k8s.io/")
}
