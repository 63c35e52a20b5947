// Package kubeconfig makes the kubeconfig by which the daemon reaches a cluster: of the
// ServiceAccount that the install bases made there, with a token that ends, or with a
// program of the cloud's that makes tokens.
//
//	administrator's configuration ─► TokenRequest ─► kubeconfig, Made
//
// Invariants:
//   - The result has what the daemon accepts (package access): address by https, authority
//     in the text, no file, no program but the one that was asked for.
//   - The account is asked what it may do before it is given away: one that may do
//     everything is refused.
//   - Nothing of the administrator's credentials is in the result, and no token in an error.
//
// The command `kubeconfig` calls it. All functions are safe for concurrent use.
package kubeconfig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/fleetbroker/fleetbroker/internal/api/hints"
	"github.com/fleetbroker/fleetbroker/internal/api/redirects"
	"github.com/fleetbroker/fleetbroker/internal/delivery/access"
)

// Namespace and Account are those of the install bases.
const (
	Namespace = "fleetbroker"
	Account   = "fleetbroker"
)

// Options say whom to ask, and for what.
type Options struct {
	// Cluster names it in the result.
	Cluster string
	// Admin reaches the cluster as one who may make tokens of the account.
	Admin *rest.Config
	// Server replaces Admin's address, where the daemon reaches the cluster by another.
	Server string
	// Duration is the token's life; the cluster may grant less.
	Duration time.Duration
	// Program makes credentials in place of a token, by this absolute path on the daemon's
	// side, with Args.
	Program string
	Args    []string
}

// Made is a kubeconfig and what is known of it.
type Made struct {
	// Text of it.
	Text []byte
	// Ends is when its token does; zero with a program.
	Ends time.Time
	// Renewed says that the account may ask for tokens of its own, so that the daemon
	// renews it.
	Renewed bool
}

// Admin is the configuration of a context of people's kubeconfig: file, else KUBECONFIG,
// else their home's; the current context where none is named.
func Admin(file, name string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = file
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: name}).ClientConfig()
	if clientcmd.IsEmptyConfig(err) { // client-go's text proposes a variable that this command does not read
		err = errors.New("there is no kubeconfig, or none with a context")
	}
	if err != nil {
		return nil, hints.On(fmt.Errorf("find a way to the cluster: %w", err), "name a context of yours with --context, or a file with --kubeconfig")
	}
	config.Wrap(redirects.Refuse)
	return config, nil
}

// Make asks the cluster and writes the kubeconfig. Errors say what to do.
func Make(ctx context.Context, o Options) (*Made, error) {
	server, ca, err := address(o)
	if err != nil {
		return nil, fmt.Errorf("make a kubeconfig of cluster %s: %w", o.Cluster, err)
	}
	made, user := &Made{}, &clientcmdapi.AuthInfo{}
	var programs []string
	if o.Program != "" {
		if !filepath.IsAbs(o.Program) {
			return nil, hints.On(fmt.Errorf("the program %q has no absolute path", o.Program), "name it as it lies on the daemon's side, as --kubeconfig-programs of the daemon does")
		}
		user.Exec = &clientcmdapi.ExecConfig{APIVersion: "client.authentication.k8s.io/v1", Command: o.Program, Args: o.Args, InteractiveMode: clientcmdapi.NeverExecInteractiveMode}
		programs = []string{o.Program}
	} else if user.Token, err = token(ctx, o, made); err != nil {
		return nil, fmt.Errorf("make a kubeconfig of cluster %s: %w", o.Cluster, err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[o.Cluster] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca, TLSServerName: o.Admin.ServerName}
	config.AuthInfos[Account] = user
	config.Contexts[o.Cluster] = &clientcmdapi.Context{Cluster: o.Cluster, AuthInfo: Account, Namespace: Namespace}
	config.CurrentContext = o.Cluster
	if made.Text, err = clientcmd.Write(*config); err != nil {
		return nil, fmt.Errorf("make a kubeconfig of cluster %s: %w", o.Cluster, err)
	}
	if _, err := access.SafeRESTConfig(made.Text, programs...); err != nil {
		return nil, fmt.Errorf("make a kubeconfig of cluster %s: %w", o.Cluster, err)
	}
	return made, nil
}

// address is the cluster's, and the authority that signed its certificate.
func address(o Options) (server string, ca []byte, err error) {
	server = o.Admin.Host
	if o.Server != "" {
		server = o.Server
	}
	if !strings.HasPrefix(server, "https://") {
		return "", nil, hints.On(fmt.Errorf("the server %q is not reached by https", server), "give its https address with --server")
	}
	if o.Admin.Insecure {
		return "", nil, hints.On(errors.New("your kubeconfig does not verify the server (insecure-skip-tls-verify)"), "put the cluster's certificate authority into it")
	}
	ca = o.Admin.CAData
	if len(ca) == 0 && o.Admin.CAFile != "" {
		if ca, err = os.ReadFile(o.Admin.CAFile); err != nil {
			return "", nil, fmt.Errorf("read the cluster's certificate authority: %w", err)
		}
	}
	return server, ca, nil
}

// token asks for one, and what it may do.
func token(ctx context.Context, o Options, made *Made) (string, error) {
	admin, err := kubernetes.NewForConfig(o.Admin)
	if err != nil {
		return "", err
	}
	seconds := int64(o.Duration.Seconds())
	answer, err := admin.CoreV1().ServiceAccounts(Namespace).CreateToken(ctx, Account, &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", hints.On(fmt.Errorf("it has no ServiceAccount %s/%s", Namespace, Account), fmt.Sprintf("install it first: fleetbroker install %s -o install/clusters/%[1]s && kubectl apply -k install/clusters/%[1]s", o.Cluster), "or see whether --context names another cluster")
	case apierrors.IsForbidden(err):
		return "", hints.On(fmt.Errorf("you may not make tokens of ServiceAccount %s/%s: %w", Namespace, Account, err), "use an administrator's context")
	case err != nil:
		return "", fmt.Errorf("ask for a token of ServiceAccount %s/%s: %w", Namespace, Account, err)
	}
	made.Ends = answer.Status.ExpirationTimestamp.Time
	own := rest.AnonymousClientConfig(o.Admin)
	own.BearerToken = answer.Status.Token
	client, err := kubernetes.NewForConfig(own)
	if err != nil {
		return "", err
	}
	all, err := may(ctx, client, &authorizationv1.ResourceAttributes{Verb: "*", Group: "*", Resource: "*"})
	if err != nil {
		return "", err
	}
	if all {
		return "", hints.On(fmt.Errorf("ServiceAccount %s/%s may do everything there, and needs no more than the install bases give", Namespace, Account), "find what binds it: kubectl get clusterrolebindings -o wide | grep fleetbroker")
	}
	made.Renewed, err = may(ctx, client, &authorizationv1.ResourceAttributes{Verb: "create", Resource: "serviceaccounts", Subresource: "token", Namespace: Namespace, Name: Account})
	return answer.Status.Token, err
}

func may(ctx context.Context, client kubernetes.Interface, what *authorizationv1.ResourceAttributes) (bool, error) {
	review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: what}}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("ask what the account may do: %w", err)
	}
	return review.Status.Allowed, nil
}
