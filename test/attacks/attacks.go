package attacks

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/memremote"
)

// Target is a fleet with a ledger of at least four signed commits.
type Target struct {
	Remote *memremote.Remote
	// Ledger is the branch.
	Ledger string
	// At is the time.
	At time.Time
	// Daemon is the daemon's name, whose key is Signer. Revoked is a key that the
	// trust root revokes, Policy one of its list of people.
	Daemon                  gitobj.Person
	Signer, Revoked, Policy gitrepo.Signer
	// Stood are heads of the ledger that are known to have stood; attacks that set
	// it back add what stood.
	Stood []tree.Hash
	// As is the branch that is looked at, where it is not Ledger.
	As string
}

// Attack is one step.
type Attack struct {
	Name string
	// Rule of `audit verify` that finds it; "": the ledger cannot be read at all.
	Rule string
	// Says is part of what is said.
	Says string
	Do   func(*Target) error
}

// eve may push, and has no key that anybody trusts.
func (t *Target) eve() gitobj.Person {
	return gitobj.Person{Name: "Eve", Email: "eve@example.org", When: t.At}
}

func (t *Target) daemon() gitobj.Person {
	d := t.Daemon
	d.When = t.At
	return d
}

func (t *Target) head() tree.Hash { return t.Remote.Head(t.Ledger) }

// log is the ledger's own line, newest first.
func (t *Target) log() ([]memremote.Logged, error) {
	log, err := t.Remote.Log(t.Ledger)
	if err == nil && len(log) < 4 {
		err = errors.New("attack: the ledger is too short")
	}
	return log, err
}

func (t *Target) raw(h tree.Hash) (gitobj.CommitData, error) {
	raw, err := t.Remote.Objects().Commit(h)
	if err != nil {
		return gitobj.CommitData{}, err
	}
	return gitobj.ParseCommit(raw)
}

// commit puts the ledger on a commit, with objects of its own.
func (t *Target) commit(c gitobj.CommitData, objects gitobj.Set, signer gitrepo.Signer) (tree.Hash, error) {
	aside := "attack/aside"
	t.Remote.SetRef(gitrepo.Branch(aside), tree.Hash{})
	var first tree.Hash
	others := c.Parents
	if len(c.Parents) > 0 {
		first, others = c.Parents[0], c.Parents[1:]
		t.Remote.SetRef(gitrepo.Branch(aside), first)
	}
	h, err := t.Remote.CommitTree(aside, c.Committer, c.Message, objects, c.Tree, signer, others...)
	if err == nil {
		t.Remote.SetRef(gitrepo.Branch(t.Ledger), h)
		t.Remote.SetRef(gitrepo.Branch(aside), tree.Hash{})
	}
	return h, err
}

// merge is a commit of Eve's of some parents with the tree of one commit.
func (t *Target) merge(like tree.Hash, parents ...tree.Hash) error {
	c, err := t.raw(like)
	if err != nil {
		return err
	}
	_, err = t.commit(gitobj.CommitData{Tree: c.Tree, Parents: parents, Committer: t.eve(), Message: "Merge branch 'ledger'\n"}, nil, nil)
	return err
}

// numbered is an empty commit with the trailers of the next one of the daemon's,
// but for some.
func (t *Target) numbered(signer gitrepo.Signer, but map[string]string) error {
	return t.next(signer, but, nil)
}

// next is such a commit that changes files.
func (t *Target) next(signer gitrepo.Signer, but map[string]string, files map[string][]byte) error {
	log, err := t.log()
	if err != nil {
		return err
	}
	head, err := t.raw(log[0].Hash)
	if err != nil {
		return err
	}
	trailers := map[string]string{"Plan": "sweep"}
	for _, k := range []string{"Inputs", "Market", "Fleet", "Renderer", "Rules"} {
		if v := gitobj.Trailers(head.Message, k); len(v) > 0 {
			trailers[k] = v[0]
		}
	}
	trailers["Now"] = t.At.UTC().Format(time.RFC3339)
	trailers["Ledger"] = fmt.Sprintf("%s %d", t.Ledger, seq(head)+1)
	maps.Copy(trailers, but)
	message := "sweep\n\n"
	for _, k := range []string{"Inputs", "Market", "Plan", "Now", "Ledger", "Fleet", "Dropped", "Renderer", "Rules"} {
		if trailers[k] != "" {
			message += k + ": " + trailers[k] + "\n"
		}
	}
	_, err = t.Remote.Merge(t.Ledger, t.daemon(), message, gitobj.Change{Puts: files}, signer)
	return err
}

func seq(c gitobj.CommitData) int {
	for _, v := range gitobj.Trailers(c.Message, "Ledger") {
		_, number, _ := strings.Cut(v, " ")
		if n, err := strconv.Atoi(number); err == nil {
			return n
		}
	}
	return 0
}

// put is a commit that changes files.
func (t *Target) put(who gitobj.Person, message string, files map[string][]byte) error {
	_, err := t.Remote.Merge(t.Ledger, who, message, gitobj.Change{Puts: files}, nil)
	return err
}

// entry commits an entry of any kind to contracts/.
func (t *Target) entry(e tree.Entry, objects gitobj.Set) error {
	if objects == nil {
		objects = gitobj.Set{}
	}
	root, err := t.Remote.Tree(t.head())
	if err != nil {
		return err
	}
	sub, err := root.Sub("contracts")
	if err != nil {
		return err
	}
	below, err := sub.Entries()
	if err != nil {
		return err
	}
	below = append([]tree.Entry{e}, below...)
	tree.Sort(below)
	top, err := root.Entries()
	if err != nil {
		return err
	}
	top = append([]tree.Entry{}, top...)
	for i := range top {
		if top[i].Name == "contracts" {
			top[i].Hash = objects.Add(gitobj.Tree, tree.EncodeDir(below))
		}
	}
	_, err = t.commit(gitobj.CommitData{Tree: objects.Add(gitobj.Tree, tree.EncodeDir(top)), Parents: []tree.Hash{t.head()}, Committer: t.eve(), Message: "A typo\n"}, objects, nil)
	return err
}
