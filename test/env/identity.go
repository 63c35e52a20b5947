package env

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// ConfigFor returns a client configuration that the cluster knows as the user
// in the groups, by certificate. What they may do is RBAC's to say.
func (c *Cluster) ConfigFor(user string, groups ...string) (*rest.Config, error) {
	pair, err := c.ca.client(user, groups...)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host: c.URL,
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   c.CA,
			CertData: pair.cert,
			KeyData:  pair.key,
		},
		QPS: -1, // no client-side limit: a test should meet the server's
	}, nil
}

// KubeconfigFor is ConfigFor as a kubeconfig file's content.
func (c *Cluster) KubeconfigFor(user string, groups ...string) ([]byte, error) {
	config, err := c.ConfigFor(user, groups...)
	if err != nil {
		return nil, err
	}
	return kubeconfigOf(c.Name, config)
}

// KubeconfigForServiceAccount is a kubeconfig with an hour's token of an
// existing ServiceAccount.
func (c *Cluster) KubeconfigForServiceAccount(ctx context.Context, namespace, name string) ([]byte, error) {
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return nil, err
	}
	token, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("get a token of ServiceAccount %s/%s on %s: %w", namespace, name, c.Name, err)
	}
	return kubeconfigOf(c.Name, &rest.Config{
		Host:            c.URL,
		BearerToken:     token.Status.Token,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.CA},
	})
}

// kubeconfigOf writes a configuration as a kubeconfig that needs no other file.
func kubeconfigOf(name string, config *rest.Config) ([]byte, error) {
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters[name] = &clientcmdapi.Cluster{
		Server:                   config.Host,
		CertificateAuthorityData: config.CAData,
	}
	kubeconfig.AuthInfos[name] = &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData,
		ClientKeyData:         config.KeyData,
		Token:                 config.BearerToken,
	}
	kubeconfig.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	kubeconfig.CurrentContext = name
	data, err := clientcmd.Write(*kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("write a kubeconfig for %s: %w", name, err)
	}
	return data, nil
}
