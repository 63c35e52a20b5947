package attacks

import (
	"fmt"
	"time"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/gitobj"
)

// evil is a file that no contract renders to.
var evil = map[string][]byte{"manifests/rome/evil.yaml": []byte("kind: Secret\n")}

// All are the attacks that are known, in the order of what they do: merges, names
// and numbers, keys, trees, and what is set back.
func All() []Attack {
	var out []Attack
	for _, list := range [][]Attack{merges(), numbers(), keys(), trees(), setBack()} {
		out = append(out, list...)
	}
	return out
}

func merges() []Attack {
	old := func(t *Target, n int) (tree.Hash, error) {
		log, err := t.log()
		if err != nil {
			return tree.Hash{}, err
		}
		return log[n].Hash, nil
	}
	return []Attack{
		{"rollback by merge", "foreign", "Eve", func(t *Target) error {
			was, err := old(t, 3)
			if err != nil {
				return err
			}
			return t.merge(was, was, t.head())
		}},
		{"rollback by merge, head first", "foreign", "Eve", func(t *Target) error {
			was, err := old(t, 3)
			if err != nil {
				return err
			}
			return t.merge(was, t.head(), was)
		}},
		{"octopus", "foreign", "Eve", func(t *Target) error {
			a, err := old(t, 3)
			if err != nil {
				return err
			}
			b, err := old(t, 2)
			if err != nil {
				return err
			}
			return t.merge(a, b, a, t.head())
		}},
		{"evil merge", "foreign", "evil.yaml", func(t *Target) error {
			was, err := old(t, 2)
			if err != nil {
				return err
			}
			_, err = t.Remote.Merge(t.Ledger, t.eve(), "Merge branch 'ledger'\n", gitobj.Change{Puts: evil}, nil, was)
			return err
		}},
		{"forged dates", "foreign", "evil.yaml", func(t *Target) error {
			was, err := old(t, 1)
			if err != nil {
				return err
			}
			eve := t.eve()
			eve.When = time.Unix(0, 0)
			side, err := t.Remote.Rewrite("attack/side", was, eve, "aside\n", gitobj.Change{Puts: evil})
			if err != nil {
				return err
			}
			t.Remote.SetRef(gitrepo.Branch("attack/side"), tree.Hash{})
			_, err = t.Remote.Merge(t.Ledger, eve, "Merge branch 'side'\n", gitobj.Change{Puts: evil}, nil, side)
			return err
		}},
	}
}

func numbers() []Attack {
	number := func(by int, branch string) func(*Target) error {
		return func(t *Target) error {
			head, err := t.raw(t.head())
			if err != nil {
				return err
			}
			if branch == "" {
				branch = t.Ledger
			}
			return t.numbered(t.Signer, map[string]string{"Ledger": fmt.Sprintf("%s %d", branch, seq(head)+by)})
		}
	}
	return []Attack{
		{"gap in the sequence", "sequence", "the one before", number(3, "")},
		{"fork of the sequence", "sequence", "the one before", number(0, "")},
		{"signature of another branch", "sequence", "names branch other", number(1, "other")},
		{"a proposal's commit on the ledger", "sequence", "has no trailer Ledger", func(t *Target) error {
			return t.next(t.Signer, map[string]string{"Ledger": ""}, evil)
		}},
		{"another fleet's commit", "sequence", "Fleet is b0b0b0b0b0", func(t *Target) error {
			return t.numbered(t.Signer, map[string]string{"Fleet": "b0b0b0b0b0"})
		}},
		{"renamed ledger branch", "sequence", "names branch", func(t *Target) error {
			t.Remote.SetRef(gitrepo.Branch("attack/renamed"), t.head())
			t.As = "attack/renamed"
			return nil
		}},
	}
}

func keys() []Attack {
	with := func(key func(*Target) gitrepo.Signer) func(*Target) error {
		return func(t *Target) error { return t.numbered(key(t), nil) }
	}
	// again is the newest signed commit's words with another tree: its signature
	// too, where that is reused.
	again := func(signature bool) func(*Target) error {
		return func(t *Target) error {
			log, err := t.log()
			if err != nil {
				return err
			}
			c, err := t.raw(log[0].Hash)
			if err != nil {
				return err
			}
			old, err := t.raw(log[2].Hash)
			if err != nil {
				return err
			}
			c.Tree, c.Parents = old.Tree, []tree.Hash{log[0].Hash}
			if !signature {
				c.Signature = ""
			}
			var signer gitrepo.Signer
			if signature {
				signer = reused(c.Signature)
			}
			_, err = t.commit(c, nil, signer)
			return err
		}
	}
	return []Attack{
		{"unsigned squash", "signature", "without a signature", again(false)},
		{"signature of another commit", "signature", "without a signature", again(true)},
		{"replayed trailers", "signature", "without a signature", func(t *Target) error {
			c, err := t.raw(t.head())
			if err != nil {
				return err
			}
			return t.put(t.daemon(), c.Message, evil)
		}},
		{"empty commit with trailers", "signature", "without a signature", with(func(*Target) gitrepo.Signer { return nil })},
		{"revoked key", "signature", "is revoked", with(func(t *Target) gitrepo.Signer { return t.Revoked })},
		{"key of the wrong list", "signature", "without a signature", with(func(t *Target) gitrepo.Signer { return t.Policy })},
	}
}

// reused signs whatever it is given with a signature of something else.
type reused string

// Sign implements gitrepo.Signer.
func (r reused) Sign([]byte) (string, error) { return string(r), nil }

func trees() []Attack {
	target := []byte("/etc/passwd")
	return []Attack{
		{"foreign file", "foreign", "evil.yaml", func(t *Target) error { return t.put(t.eve(), "A typo\n", evil) }},
		{"path that looks like another", "foreign", "_intent.yaml", func(t *Target) error {
			return t.put(t.eve(), "A typo\n", map[string][]byte{"contracts/vision/1l/train/_intent.yaml": []byte("x\n")})
		}},
		{"submodule in contracts", "foreign", "vision.git", func(t *Target) error {
			return t.entry(tree.Entry{Name: "vision.git", Kind: tree.Submodule, Hash: t.head()}, nil)
		}},
		{"symlink in contracts", "foreign", "vision.link", func(t *Target) error {
			set := gitobj.Set{}
			return t.entry(tree.Entry{Name: "vision.link", Kind: tree.Symlink, Hash: set.Add(gitobj.Blob, target)}, set)
		}},
		{"broken tree, then whole", "tree", "its tree is broken", func(t *Target) error {
			was := t.head()
			set := gitobj.Set{}
			if err := t.entry(tree.Entry{Name: "../x.yaml", Kind: tree.File, Hash: set.Add(gitobj.Blob, target)}, set); err != nil {
				return err
			}
			return t.merge(was, t.head())
		}},
		{"tag in the ledger's place", "", "", func(t *Target) error {
			set := gitobj.Set{}
			text := fmt.Sprintf("object %s\ntype commit\ntag ledger\ntagger Eve <eve@example.org> 0 +0000\n\nx\n", t.head())
			h := set.Add(gitobj.Tag, []byte(text))
			c, err := t.raw(t.head())
			if err != nil {
				return err
			}
			was := t.head()
			if _, err := t.commit(gitobj.CommitData{Tree: c.Tree, Parents: []tree.Hash{was}, Committer: t.eve(), Message: "x\n"}, set, nil); err != nil {
				return err
			}
			t.Remote.SetRef(gitrepo.Branch(t.Ledger), h)
			return nil
		}},
	}
}

func setBack() []Attack {
	back := func(t *Target, n int) (tree.Hash, error) {
		log, err := t.log()
		if err != nil {
			return tree.Hash{}, err
		}
		t.Stood = append(t.Stood, log[0].Hash)
		t.Remote.SetRef(gitrepo.Branch(t.Ledger), log[n].Hash)
		return log[0].Hash, nil
	}
	return []Attack{
		{"set back", "sequence", "set back or rewritten", func(t *Target) error {
			_, err := back(t, 2)
			return err
		}},
		{"amended head", "sequence", "set back or rewritten", func(t *Target) error {
			was, err := back(t, 1)
			if err != nil {
				return err
			}
			return t.merge(was, t.head())
		}},
		{"dropped history", "sequence", "set back or rewritten", func(t *Target) error {
			was, err := back(t, 1)
			if err != nil {
				return err
			}
			return t.merge(was)
		}},
		{"set back, and said to be let go of", "sequence", "set back or rewritten", func(t *Target) error {
			was, err := back(t, 2)
			if err != nil {
				return err
			}
			return t.numbered(nil, map[string]string{"Dropped": t.Ledger + " " + was.String()})
		}},
	}
}
