package env

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// auditPolicy has every request logged once, when it has been answered or,
// for a watch, when it has begun. Requests of the cluster's own parts are left
// out: nobody asks about them, and they are most.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  users: ["system:apiserver"]
- level: None
  nonResourceURLs: ["/healthz*", "/livez*", "/readyz*"]
- level: Metadata
`

// Call is one request that a cluster has answered.
type Call struct {
	User, Verb string
	// As is the user that User acted as (impersonation), "" for itself.
	As string
	// Group, Resource, Subresource, Namespace and Name are what was asked for;
	// empty where the request was for none.
	Group, Resource, Subresource, Namespace, Name string
	// URI is the request's, query included.
	URI string
	// Status is the http status of the answer.
	Status int
	// At is when the request was received.
	At time.Time
}

// String is the call in one line, for a test's report.
func (c Call) String() string {
	who := c.User
	if c.As != "" {
		who += " as " + c.As
	}
	return fmt.Sprintf("%s %d %s (%s)", c.Verb, c.Status, c.URI, who)
}

// auditEvent is the part of audit.k8s.io/v1 Event that Call is made of.
type auditEvent struct {
	Stage      string `json:"stage"`
	RequestURI string `json:"requestURI"`
	Verb       string `json:"verb"`
	User       struct {
		Username string `json:"username"`
	} `json:"user"`
	Impersonated struct {
		Username string `json:"username"`
	} `json:"impersonatedUser"`
	ObjectRef struct {
		APIGroup    string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	RequestReceivedTimestamp time.Time `json:"requestReceivedTimestamp"`
}

// Calls returns the requests a user has made to a cluster that was started with
// Audit, in the order of their answers; an empty user stands for all. A call
// that a client has its answer to is in the list.
func (c *Cluster) Calls(user string) ([]Call, error) {
	file, err := os.Open(c.file("audit.log"))
	if err != nil {
		return nil, fmt.Errorf("read the audit log of cluster %s (was it started with Audit?): %w", c.Name, err)
	}
	defer file.Close()
	var calls []Call
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event auditEvent
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return nil, fmt.Errorf("read the audit log of cluster %s: %w", c.Name, err)
		}
		// A watch is logged when it begins and when it ends; count it once.
		ended := event.Verb == "watch" && event.Stage == "ResponseComplete"
		if ended || user != "" && event.User.Username != user {
			continue
		}
		ref := event.ObjectRef
		calls = append(calls, Call{
			User: event.User.Username, As: event.Impersonated.Username, Verb: event.Verb,
			Group: ref.APIGroup, Resource: ref.Resource, Subresource: ref.Subresource,
			Namespace: ref.Namespace, Name: ref.Name,
			URI: event.RequestURI, Status: event.ResponseStatus.Code, At: event.RequestReceivedTimestamp,
		})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the audit log of cluster %s: %w", c.Name, err)
	}
	return calls, nil
}

// auditArgs writes the policy and returns the arguments of kube-apiserver that
// go with it. The log is written before an answer is sent.
func (c *Cluster) auditArgs() ([]string, error) {
	policy := c.file("audit-policy.yaml")
	if err := writeFiles(map[string][]byte{policy: []byte(auditPolicy)}); err != nil {
		return nil, err
	}
	return []string{
		"--audit-policy-file=" + policy,
		"--audit-log-path=" + c.file("audit.log"),
		"--audit-log-mode=blocking-strict",
	}, nil
}
