//go:build e2e

package install

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/wire"
	"github.com/fleetbroker/fleetbroker/internal/pki"
	"github.com/fleetbroker/fleetbroker/test/env/rig"
)

const openFleet = `apiVersion: fleetbroker.io/v1alpha1
kind: Fleet
metadata: {name: acme}
spec:
  currency: EUR
  enrollment: %s
  writeBack: {mode: push, inputs: main, branch: ` + rig.Ledger + `, author: {name: fleetbroker, email: fleetbroker@example.org}}
`

// visitor is an agent that the test plays.
type visitor struct {
	f      *fleet
	client *http.Client
	url    string
	n      int
	// flavors that it reports, in JSON.
	flavors string
}

func (f *fleet) visitor(d *rig.Daemon, name string) *visitor {
	f.t.Helper()
	bundle, err := f.Authority().Issue(pki.Request{Name: name})
	if err != nil {
		f.t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(bundle.Cert, bundle.Key)
	if err != nil {
		f.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle.CA)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}}
	f.t.Cleanup(transport.CloseIdleConnections)
	return &visitor{
		f: f, client: &http.Client{Transport: transport}, url: "https://" + d.Agents + wire.FlavorsPath(name),
		flavors: `{"metadata":{"name":"l4"},"spec":{"capacity":{"cpu":"8"}}}`,
	}
}

// report sends a flavor and returns the answer's status and reason.
func (v *visitor) report() (int, string, error) {
	v.n++
	r, err := http.NewRequestWithContext(v.f.ctx, http.MethodPut, v.url, strings.NewReader(`{"flavors":[`+v.flavors+`]}`))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set(wire.HeaderGeneration, fmt.Sprintf("7.%d", v.n))
	answer, err := v.client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, "", err
	}
	var e wire.Error
	if len(body) > 0 {
		err = json.NewDecoder(bytes.NewReader(body)).Decode(&e)
	}
	return answer.StatusCode, e.Reason, err
}

// await reports until the answer is the expected one.
func (v *visitor) await(status int, reason string) {
	v.f.t.Helper()
	v.f.eventually(fmt.Sprintf("the answer %d %s", status, reason), func() error {
		gotStatus, gotReason, err := v.report()
		if err == nil && (gotStatus != status || gotReason != reason) {
			err = fmt.Errorf("answered %d %s", gotStatus, gotReason)
		}
		return err
	})
}

// awaitShut reports until the handshake is refused.
func (v *visitor) awaitShut() {
	v.f.t.Helper()
	v.f.eventually("a handshake that is refused", func() error {
		status, reason, err := v.report()
		if err == nil {
			return fmt.Errorf("answered %d %s", status, reason)
		}
		if !strings.Contains(err.Error(), "bad certificate") {
			return err
		}
		return nil
	})
}

// TestAStrangerIsProposedMergedAndRevoked: the way of a cluster into the fleet
// and out of it, with a real daemon and a real git server, all by commits.
func TestAStrangerIsProposedMergedAndRevoked(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	r, err := rig.Start(ctx, rig.Options{Dir: t.TempDir(), Bin: bin, Inputs: map[string]string{
		"fleet.yaml":          fmt.Sprintf(openFleet, "closed"),
		"tenants/vision.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Tenant\nmetadata: {name: vision}\nspec: {}\n",
	}})
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{Rig: r, t: t, ctx: ctx}
	t.Cleanup(func() {
		if t.Failed() {
			f.logs()
		}
		if err := r.Stop(); err != nil {
			t.Error(err)
		}
	})
	if f.team, err = r.Team(ctx, "ada"); err != nil {
		t.Fatal(err)
	}
	d, err := f.Daemon(ctx, "one", "--poll-interval", "200ms")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.AwaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	oslo := f.visitor(d, "oslo")
	oslo.await(403, "NotEnrolled")
	if out, err := f.ledger("branch", "--list", "enroll/*"); err != nil || out != "" {
		t.Errorf("a closed fleet has branches %s %v", out, err)
	}
	f.push("Open the fleet", map[string]string{"fleet.yaml": fmt.Sprintf(openFleet, "open")})
	oslo.await(403, "EnrollmentProposed")
	oslo.await(403, "EnrollmentProposed")
	if out, err := f.ledger("log", "--format=%s", "main..enroll/oslo"); err != nil || out != "Enroll cluster oslo\n" {
		t.Errorf("the branch has %q %v", out, err)
	}
	if out, err := f.ledger("diff", "--name-status", "main...enroll/oslo"); err != nil || out != "A\tclusters/oslo.yaml\n" {
		t.Errorf("the branch changes %q %v", out, err)
	}
	rome := f.visitor(d, "rome")
	rome.flavors = "" // it has nothing to sell
	rome.await(403, "EnrollmentProposed")
	for cluster, role := range map[string]string{"oslo": "provider", "rome": "consumer"} {
		if out, err := f.ledger("show", "enroll/"+cluster+":clusters/"+cluster+".yaml"); err != nil || !strings.Contains(out, "\n  roles: ["+role+"]\n") {
			t.Errorf("%s is proposed as\n%s%v", cluster, out, err)
		}
	}
	for _, args := range [][]string{{"fetch", "-q", "origin"}, {"merge", "-q", "--no-edit", "origin/enroll/oslo"}, {"merge", "-q", "--no-edit", "origin/enroll/rome"}, {"push", "-q", "origin", "HEAD:main"}} {
		if _, err := f.team.Git(ctx, args...); err != nil {
			t.Fatal(err)
		}
	}
	oslo.await(204, "")
	rome.await(204, "")

	if _, err := r.Authority().Revoke("oslo"); err != nil {
		t.Fatal(err)
	}
	if err := r.Authority().WriteCRL(filepath.Join(f.team.Dir, "pki", pki.RevokedFile)); err != nil {
		t.Fatal(err)
	}
	crl, err := r.Authority().CRL()
	if err != nil {
		t.Fatal(err)
	}
	f.push("Revoke oslo", map[string]string{"pki/revoked.crl": string(crl)})
	oslo.awaitShut()
	f.push("Break the list", map[string]string{"pki/revoked.crl": "nonsense"})
	f.push("And something else", map[string]string{"tenants/nlp.yaml": "apiVersion: fleetbroker.io/v1alpha1\nkind: Tenant\nmetadata: {name: nlp}\nspec: {}\n"})
	head, err := f.ledger("rev-parse", "main")
	if err != nil {
		t.Fatal(err)
	}
	renewed := f.visitor(d, "oslo") // a new certificate, which is not in the list
	renewed.n = oslo.n
	renewed.await(204, "")
	if status, reason, err := oslo.report(); err == nil {
		t.Errorf("with a broken list at %s: answered %d %s", head, status, reason)
	}
	if err := d.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := d.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	oslo.awaitShut()
}
