// Package envtest ties what package env starts to a test: it is stopped when
// the test ends, and when the test has failed the end of its logs is shown.
//
// Only tests import it. Its functions must be called from the test's own
// goroutine, because they end the test when something cannot be started;
// Clusters starts several at once.
package envtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/test/env"
)

// startTimeout is how long servers may take to start, on a busy machine; it
// does not cover building them.
const startTimeout = 2 * time.Minute

// patience is how long Eventually waits.
const patience = 3 * time.Minute

// Cluster starts a cluster for a test.
func Cluster(t testing.TB, options env.ClusterOptions) *env.Cluster {
	t.Helper()
	return Clusters(t, options)[0]
}

// Clusters starts several clusters at once for a test, in the order of the
// options.
func Clusters(t testing.TB, options ...env.ClusterOptions) []*env.Cluster {
	t.Helper()
	if err := env.BuildTools(t.Context(), os.Stderr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	clusters, errs := make([]*env.Cluster, len(options)), make([]error, len(options))
	var starting sync.WaitGroup
	for i, o := range options {
		if o.Dir == "" {
			o.Dir = t.TempDir()
		}
		starting.Go(func() { clusters[i], errs[i] = env.StartCluster(ctx, o) })
	}
	starting.Wait()
	for _, cluster := range clusters {
		if cluster != nil {
			t.Cleanup(func() { stopCluster(t, cluster) })
		}
	}
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return clusters
}

func stopCluster(t testing.TB, cluster *env.Cluster) {
	if err := cluster.Stop(); err != nil {
		t.Error(err)
	}
	if t.Failed() {
		t.Log(cluster.Logs())
	}
}

// Git starts a git http server for a test, with the given empty repositories.
func Git(t testing.TB, repos ...string) *env.GitServer {
	t.Helper()
	server, err := env.StartGitHTTP(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	for _, repo := range repos {
		if err := server.Init(t.Context(), repo); err != nil {
			t.Fatal(err)
		}
	}
	return server
}

// SSH starts a git ssh server on the repositories of a directory for a test.
func SSH(t testing.TB, dir string) *env.SSHServer {
	t.Helper()
	server, err := env.StartSSH(t.Context(), dir, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// Team clones a repository for somebody called name.
func Team(t testing.TB, url, name string, environment ...string) *env.Team {
	t.Helper()
	team, err := env.CloneTeam(t.Context(), url, filepath.Join(t.TempDir(), "clone"), name, environment...)
	if err != nil {
		t.Fatal(err)
	}
	return team
}

// Eventually asks real servers until a condition holds; what names it when it
// does not within some minutes, which a busy machine may take.
func Eventually(t testing.TB, what string, condition func(context.Context) bool) {
	t.Helper()
	_, err := env.Until(t.Context(), patience, func() error {
		if condition(t.Context()) {
			return nil
		}
		return errNotYet
	})
	if err != nil {
		t.Fatalf("wait for %s: %v", what, err)
	}
}

var errNotYet = errors.New("it does not hold")
