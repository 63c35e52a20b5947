//go:build e2e

package install

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/delivery/access"
	"github.com/fleetbroker/fleetbroker/internal/delivery/access/renew"
	"github.com/fleetbroker/fleetbroker/test/env"
	"github.com/fleetbroker/fleetbroker/test/env/envtest"
)

// admin is an administrator's kubeconfig of a cluster, as a file.
func admin(t *testing.T, cluster *env.Cluster) string {
	t.Helper()
	text, err := cluster.KubeconfigFor("admin", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "admin")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// refused runs the command and returns what it said; it must have failed.
func refused(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "fleetbroker"), args...).CombinedOutput()
	if err == nil {
		t.Errorf("fleetbroker %s went well", strings.Join(args, " "))
	}
	return string(out)
}

// TestKubeconfig_OfTheLeastRights: the command makes what the daemon accepts, of an
// account that has the bases' rights, and refuses one that may do everything.
func TestKubeconfig_OfTheLeastRights(t *testing.T) {
	repo := fleetRepo(t, nil)
	rome := bare(t, "rome")
	root, to := admin(t, rome), filepath.Join(t.TempDir(), "rome.kubeconfig")
	make := []string{"kubeconfig", "rome", "-C", repo, "--kubeconfig", root, "--duration", "1h", "-o", to}
	if out := refused(t, make...); !strings.Contains(out, "it has no ServiceAccount fleetbroker/fleetbroker") || !strings.Contains(out, "hint: install it first: fleetbroker install rome -o install/clusters/rome") {
		t.Errorf("before the install: %s", out)
	}
	installed(t, repo, rome)
	if out := program(t, make...); !strings.Contains(out, "the daemon renews it at half of its life") {
		t.Errorf("said %s", out)
	}
	if info, err := os.Stat(to); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info, err)
	}
	text, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	config, err := access.SafeRESTConfig(text)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("the account may not list namespaces: %v", err)
	}
	if _, err := client.CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the account may list Secrets: %v", err)
	}
	if _, err := rome.Kubectl(t.Context(), ".", "-n", "fleetbroker", "delete", "role", "fleetbroker-renew"); err != nil {
		t.Fatal(err)
	}
	if out := program(t, make...); !strings.Contains(out, "and nobody renews it: apply renew.yaml") {
		t.Errorf("without the right to renew: %s", out)
	}
	if _, err := rome.Kubectl(t.Context(), ".", "create", "clusterrolebinding", "too-much", "--clusterrole", "cluster-admin", "--serviceaccount", "fleetbroker:fleetbroker"); err != nil {
		t.Fatal(err)
	}
	if out := refused(t, make...); !strings.Contains(out, "may do everything there") {
		t.Errorf("an administrator's account: %s", out)
	}
	if out := refused(t, "kubeconfig", "oslo", "-C", repo, "--kubeconfig", root); !strings.Contains(out, `there is no cluster "oslo"`) {
		t.Errorf("an unknown cluster: %s", out)
	}
	if out := refused(t, "kubeconfig", "rome", "-C", repo, "--kubeconfig", root, "--server", "http://rome"); !strings.Contains(out, "is not reached by https") {
		t.Errorf("plain http: %s", out)
	}
}

// TestTokens_AreRenewed: at half of its life the account asks for a successor, which a
// restart finds again, and which ends with the kubeconfig that it began with.
func TestTokens_AreRenewed(t *testing.T) {
	repo := fleetRepo(t, nil)
	rome := bare(t, "rome")
	installed(t, repo, rome)
	dir, state := t.TempDir(), filepath.Join(t.TempDir(), "tokens")
	write := func(duration string) {
		t.Helper()
		program(t, "kubeconfig", "rome", "-C", repo, "--kubeconfig", admin(t, rome), "--duration", duration, "-o", filepath.Join(dir, "rome.kubeconfig"))
	}
	write("1h")
	now, log := time.Now(), &bytes.Buffer{}
	keeper := func() access.Kubeconfigs {
		return access.Kubeconfigs{Dir: dir, Tokens: &renew.Keeper{Dir: state, Now: func() time.Time { return now }, Log: slog.New(slog.NewTextHandler(log, nil))}}
	}
	cluster := &v1alpha1.Cluster{Metadata: v1alpha1.Metadata{Name: "rome"}}
	// used is the id of the token that reaches the cluster.
	used := func(k access.Kubeconfigs) (string, *rest.Config) {
		t.Helper()
		config, err := k.RESTConfig(t.Context(), cluster)
		if err != nil {
			t.Fatal(err)
		}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		review, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(review.Status.UserInfo.Extra["authentication.kubernetes.io/credential-id"]), config
	}
	first, config := used(keeper())
	if _, err := os.Stat(filepath.Join(state, "rome.token")); err == nil {
		t.Error("a fresh token was renewed")
	}
	now = now.Add(31 * time.Minute)
	k := keeper()
	second, later := used(k)
	if second == first {
		t.Error("at half of its life the token is the same")
	}
	if config.BearerToken != later.BearerToken {
		t.Error("a connection would be made again for a renewed token")
	}
	info, err := os.Stat(filepath.Join(state, "rome.token"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the token's file: %v, %v", info, err)
	}
	if again, _ := used(k); again != second {
		t.Error("it is renewed again at once")
	}
	now = time.Now()
	if restarted, _ := used(keeper()); restarted != second {
		t.Error("a restart does not find the renewed token")
	}
	write("1h")
	if third, _ := used(k); third == first || third == second {
		t.Error("a new kubeconfig's token is not used")
	}

	// Whoever may not renew goes on with what there is, and says so once.
	if _, err := rome.Kubectl(t.Context(), ".", "-n", "fleetbroker", "delete", "role", "fleetbroker-renew"); err != nil {
		t.Fatal(err)
	}
	write("1h")
	now = time.Now().Add(31 * time.Minute)
	denied := keeper()
	before, _ := used(denied)
	now = now.Add(time.Minute)
	if after, _ := used(denied); after != before {
		t.Error("another token without the right to renew")
	}
	if n := strings.Count(log.String(), "token of a kubeconfig not renewed"); n != 1 || !strings.Contains(log.String(), "forbidden") {
		t.Errorf("logged %d times:\n%s", n, log)
	}
	if strings.Contains(log.String(), "eyJ") {
		t.Errorf("a token is in the log:\n%s", log)
	}

	// A cluster that nothing asks for is kept too.
	installed(t, repo, rome)
	now = now.Add(time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	if err := os.RemoveAll(state); err != nil {
		t.Fatal(err)
	}
	go func() { keeper().Renew(ctx, time.Hour); close(done) }()
	envtest.Eventually(t, "a token that is renewed by itself", func(context.Context) bool {
		_, err := os.Stat(filepath.Join(state, "rome.token"))
		return err == nil
	})
	cancel()
	<-done
}

// standIn is a cloud's program for credentials: it prints the token of its file, and
// writes down that it was called.
func standIn(t *testing.T, dir, token string) string {
	t.Helper()
	answer, err := json.Marshal(map[string]any{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": map[string]any{"token": token}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "cloud-credentials")
	script := fmt.Sprintf("#!/bin/sh\necho \"$@\" >> %s/calls\necho '%s'\n", dir, answer)
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	return path
}

// TestADaemonReachesAClusterByAProgram: a daemon whose kubeconfig of the consumer has a
// program, and of the provider a token of the command's, does the main story's first half;
// one that does not allow the program reaches nothing.
func TestADaemonReachesAClusterByAProgram(t *testing.T) {
	f := start(t)
	token, err := kubernetes.NewForConfigOrDie(f.Clusters["rome"].Config).CoreV1().ServiceAccounts("fleetbroker").CreateToken(f.ctx, "fleetbroker", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cloud := standIn(t, dir, token.Status.Token)
	rome, paris := filepath.Join(f.Dir, "kubeconfigs", "rome.kubeconfig"), filepath.Join(f.Dir, "kubeconfigs", "paris.kubeconfig")
	program(t, "kubeconfig", "rome", "-C", f.Laid, "--kubeconfig", admin(t, f.Clusters["rome"]), "--program", cloud, "--arg", "token", "--arg=--cluster=rome", "-o", rome)
	program(t, "kubeconfig", "paris", "-C", f.Laid, "--kubeconfig", admin(t, f.Clusters["paris"]), "--duration", "1h", "-o", paris)
	if text, err := os.ReadFile(rome); err != nil || strings.Contains(string(text), "token: ey") {
		t.Errorf("a token is in the kubeconfig with a program (%v)", err)
	}
	if _, err := (access.Kubeconfigs{Dir: filepath.Dir(rome), Programs: []string{"/usr/bin/other"}}).RESTConfig(f.ctx, &v1alpha1.Cluster{Metadata: v1alpha1.Metadata{Name: "rome"}}); err == nil || !strings.Contains(err.Error(), "which is not allowed here") {
		t.Errorf("a program that is not allowed: %v", err)
	}
	d, err := f.Daemon(f.ctx, "one", "--poll-interval", "1s", "--kubeconfig-programs", cloud)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Agent(f.ctx, "paris", d); err != nil {
		t.Fatal(err)
	}
	if err := d.AwaitReady(f.ctx); err != nil {
		t.Fatal(err)
	}
	f.push("Ask", map[string]string{"intents/vision/train.yaml": train})
	f.eventually("the slice on the consumer", func() error {
		out, err := f.Clusters["rome"].Kubectl(f.ctx, f.Dir, "get", "resourceslices.authentication.liqo.io", "-n", "liqo-tenant-paris", "-o", "name")
		if err == nil && !strings.Contains(out, "vision-train-0-") {
			err = fmt.Errorf("there are %q", out)
		}
		return err
	})
	if calls, err := os.ReadFile(filepath.Join(dir, "calls")); err != nil || !strings.HasPrefix(string(calls), "token --cluster=rome\n") {
		t.Errorf("the program was called with %q (%v)", calls, err)
	}
	f.nothingDenied("rome", "fleetbroker")
	f.nothingDenied("paris", "fleetbroker")
}
