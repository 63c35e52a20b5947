package kustomize

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"

func TestBuild(t *testing.T) {
	cases := map[string]struct {
		reason        string
		kustomization string
		want          string // part of the output
		err           string // part of the error
	}{
		"plain":        {reason: "a local resource", kustomization: "resources: [a.yaml]\nnamePrefix: x-\n", want: "name: x-a"},
		"base":         {reason: "a directory beside it", kustomization: "resources: [../base]\n", want: "name: a"},
		"remote":       {reason: "nothing is fetched", kustomization: "resources: ['https://example.org/a.yaml']\n", err: "nothing is fetched here"},
		"remote git":   {reason: "what is not there is not cloned", kustomization: "resources: ['github.com/example/repo?ref=v1']\n", err: "not fetched"},
		"like a host":  {reason: "kustomize clones a directory that is called like a host", kustomization: "resources: [github.com/a/b]\n", err: "not fetched"},
		"patch url":    {reason: "patches are loaded by URL too", kustomization: "resources: [a.yaml]\npatches: [{path: 'https://example.org/p.yaml'}]\n", err: "patches names a URL"},
		"url in text":  {reason: "an annotation is only text", kustomization: "resources: [a.yaml]\ncommonAnnotations: {see: 'https://example.org'}\n", want: "https://example.org"},
		"absolute":     {reason: "no file of the machine is read", kustomization: "resources: [/etc/passwd]\n", err: "not fetched"},
		"helm":         {reason: "helm is a program", kustomization: "helmCharts: [{name: x, repo: 'https://example.org'}]\n", err: "helmCharts is not allowed"},
		"transformers": {reason: "may be programs", kustomization: "resources: [a.yaml]\ntransformers: [t.yaml]\n", err: "transformers is not allowed"},
		"openapi":      {reason: "would change every later build", kustomization: "resources: [a.yaml]\nopenapi: {path: s.json}\n", err: "openapi is not allowed"},
		"unknown":      {reason: "a typo is not ignored", kustomization: "resource: [a.yaml]\n", err: "unknown field"},
		"missing":      {reason: "and not cloned either", kustomization: "resources: [b.yaml]\n", err: "not a file or directory"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out, err := Build(map[string][]byte{
				"d/kustomization.yaml":                []byte(tc.kustomization),
				"d/a.yaml":                            []byte(configMap),
				"base/kustomization.yaml":             []byte("resources: [a.yaml]\n"),
				"base/a.yaml":                         []byte(configMap),
				"d/github.com/a/b/kustomization.yaml": []byte("resources: []\n"),
			}, "d", OfIntents)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("%s: got %v, want %q", tc.reason, err, tc.err)
				}
				return
			}
			if err != nil || !strings.Contains(string(out), tc.want) {
				t.Fatalf("%s: got %q, %v", tc.reason, out, err)
			}
		})
	}
}

// No kustomization has the daemon's machine ask a server, which may lie in its own
// network, or never answer.
func TestBuild_AsksNoServer(t *testing.T) {
	asked := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		_, _ = io.WriteString(w, configMap)
	}))
	defer server.Close()
	for _, k := range []string{
		"configMapGenerator: [{name: x, files: ['k=%s/files']}]\n",
		"configMapGenerator: [{name: x, files: ['k= %s/space']}]\n",
		"secretGenerator: [{name: x, files: ['k=%s/secret']}]\n",
		"configMapGenerator: [{name: x, files: ['%s/plain']}]\n",
		"configMapGenerator: [{name: x, envs: ['%s/envs']}]\n",
		"configMapGenerator: [{name: x, env: '%s/env'}]\n",
		"resources: [a.yaml]\nreplacements: [{path: '%s/replacements'}]\n",
		"resources: [a.yaml]\npatchesJson6902: [{path: '%s/json', target: {version: v1, kind: ConfigMap, name: a}}]\n",
		"resources: [a.yaml]\ncrds: ['%s/crds']\n",
		"resources: [a.yaml]\nconfigurations: ['%s/configurations']\n",
	} {
		_, err := Build(map[string][]byte{"d/kustomization.yaml": fmt.Appendf(nil, k, server.URL), "d/a.yaml": []byte(configMap)}, "d", OfIntents)
		var refused *Refusal
		if !errors.As(err, &refused) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: got %v, want a refusal", k, err)
		}
	}
	// What the checks of names would miss.
	_, err := built(builder, map[string][]byte{"d/kustomization.yaml": fmt.Appendf(nil, "configMapGenerator: [{name: x, files: ['k=%s/unchecked']}]\n", server.URL)}, "d")
	if err == nil || !strings.Contains(err.Error(), "nothing is fetched here") {
		t.Errorf("unchecked: got %v", err)
	}
	out, err := Build(map[string][]byte{"d/kustomization.yaml": []byte("configMapGenerator: [{name: x, files: [k=a.yaml], literals: ['see=https://example.org']}]\n"), "d/a.yaml": []byte(configMap)}, "d", OfIntents)
	if err != nil || !strings.Contains(string(out), "https://example.org") {
		t.Errorf("a literal: got %q, %v", out, err)
	}
	if len(asked) > 0 {
		t.Errorf("the server was asked for %s and %d more", <-asked, len(asked))
	}
}

func TestBuildsTakeTurns(t *testing.T) {
	files := map[string][]byte{"d/kustomization.yaml": []byte("resources: [a.yaml]\n"), "d/a.yaml": []byte(configMap)}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if _, err := Build(files, "d", OfIntents); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}
