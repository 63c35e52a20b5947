package peering

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Whoever may write the Secret on the consumer has no file of the daemon's machine read: one
// without end would take all memory, and a pipe that nobody writes to would hang it.
func TestStillGood_ReadsNoFile(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	e := &ends{provider: Side{ID: "rome", Namespace: "there"}, consumer: Side{ID: "milan"}, reach: &rest.Config{Host: "https://rome:6443"}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
	secret := func(kubeconfig string) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{annotationAccount: "u", annotationRemote: "there", annotationRenew: now.Add(time.Hour).Format(time.RFC3339)}},
			Data:       map[string][]byte{kubeconfigInSecret: []byte(kubeconfig)},
		}
	}
	made, err := e.kubeconfig("token")
	if err != nil {
		t.Fatal(err)
	}
	if until, good := e.stillGood(secret(string(made)), account, now); !good || !until.Equal(now.Add(time.Hour)) {
		t.Errorf("what was made here: good %t until %s", good, until)
	}
	for name, user := range map[string]string{"token": "tokenFile: " + pipe, "certificate": "client-certificate: " + pipe + ", client-key: " + pipe} {
		text := "apiVersion: v1\nkind: Config\ncurrent-context: x\nclusters: [{name: x, cluster: {server: \"https://rome:6443\"}}]\ncontexts: [{name: x, context: {cluster: x, user: x}}]\nusers: [{name: x, user: {" + user + "}}]\n"
		done := make(chan bool, 1)
		go func() {
			_, good := e.stillGood(secret(text), account, now)
			done <- good
		}()
		select {
		case good := <-done:
			if good {
				t.Errorf("%s: it is taken as good", name)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("%s: the daemon reads the file", name)
		}
	}
}
