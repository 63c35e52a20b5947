package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/statefile"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/audit"
	"github.com/fleetbroker/fleetbroker/internal/audit/remedies"
	"github.com/fleetbroker/fleetbroker/internal/cli/outfile"
	"github.com/fleetbroker/fleetbroker/internal/cli/tables"
	"github.com/fleetbroker/fleetbroker/internal/cli/watching"
	"github.com/fleetbroker/fleetbroker/internal/fleet"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo"
	"github.com/fleetbroker/fleetbroker/internal/gitrepo/pubkey"
	"github.com/fleetbroker/fleetbroker/internal/trust"
)

// auditFlags are those of commands that verify a ledger.
type auditFlags struct {
	sourceFlags
	from     string
	state    string
	accepted []string
	bounds   boundsFlags
}

func (f *auditFlags) register(fs *pflag.FlagSet) {
	f.sourceFlags.register(fs)
	f.bounds.register(fs)
	fs.StringVar(&f.from, "from", "", "revision of the ledger that is taken as it stands")
	fs.StringVar(&f.state, "state-dir", "", "state directory of a daemon, whose accepted ledger must be in this one")
	fs.StringSliceVar(&f.accepted, "accept-rewrite", nil, "commit that an operator accepted: of the inputs, though it does not descend from what was acted on before; of the ledger, though that does not hold it any more")
}

// open opens what is named, and says how its history is walked.
func (f *auditFlags) open(ctx context.Context, args []string, s Streams) (src *source, read *fleet.Fleet, opts audit.Options, end func(), err error) {
	if src, read, err = f.openFleet(ctx, args); err != nil {
		return nil, nil, opts, nil, err
	}
	opts, end, err = src.history(read, s, "commits verified")
	if err != nil && !errors.As(err, new(*noLedgerError)) {
		return src, read, opts, end, err
	}
	if kerr := src.stood(&opts, f.state); kerr != nil {
		return src, read, opts, end, kerr
	}
	if err == nil {
		err = f.options(src, &opts)
	}
	return src, read, opts, end, err
}

// gone is the error for a ledger that is not there, where it has stood; err
// elsewhere.
func gone(err error, opts *audit.Options) error {
	var none *noLedgerError
	if !errors.As(err, &none) {
		return err
	}
	known := opts.Known
	if w := opts.Witness; w != nil {
		known = append(known[:len(known):len(known)], audit.Known{By: fmt.Sprintf("the witness has number %d, commit %s", w.Seq, w.Commit)})
	}
	if len(known) == 0 {
		return err
	}
	said := make([]string, len(known))
	for i, k := range known {
		if said[i] = k.By; !k.Commit.IsZero() {
			said[i] += fmt.Sprintf(" (commit %s)", k.Commit)
		}
	}
	return hinted(fmt.Errorf("the ledger's branch %s is gone, which has stood: %s", none.branch, strings.Join(said, "; ")),
		"look whether it was not fetched: "+watching.Command(none.remote, none.branch),
		"stop the daemons, and push the branch back from a clone or a daemon's state directory that has it")
}

// options are what the flags say of a walk over the history.
func (f *auditFlags) options(src *source, opts *audit.Options) (err error) {
	if opts.Bounds, err = f.bounds.read(); err != nil {
		return err
	}
	if f.from != "" {
		if opts.From, err = src.named(f.from); err != nil {
			return hinted(fmt.Errorf("--from: %w", err), "name a commit of the ledger: git log "+opts.Ledger.Short())
		}
	}
	for _, text := range f.accepted {
		h, err := tree.ParseHash(text)
		if err != nil {
			return usagef("--accept-rewrite %q: want the 40 digits of a commit", text)
		}
		opts.AcceptRewrite = append(opts.AcceptRewrite, h)
	}
	return nil
}

// stood adds the commits that are known to have been the ledger's head: by the
// daemons' ref, and by the state directory of one, if it is named.
func (s *source) stood(opts *audit.Options, state string) error {
	if ref, err := s.repo.Reference(acceptedLedger, true); err == nil {
		opts.Known = append(opts.Known, audit.Known{Commit: tree.Hash(ref.Hash()), By: acceptedLedger + " names it", Hint: true})
	} else if !errors.Is(err, plumbing.ErrReferenceNotFound) {
		return fmt.Errorf("read %s: %w", acceptedLedger, err)
	}
	if state == "" {
		return nil
	}
	a, err := gitrepo.ReadAccepted(state)
	if err != nil {
		return err
	}
	if !a.Ledger.IsZero() {
		opts.Known = append(opts.Known, audit.Known{Commit: a.Ledger, By: "the daemon of " + state + " has accepted it"})
	}
	return nil
}

// acceptedLedger is where daemons note up to which commit they have accepted
// the ledger.
const acceptedLedger = "refs/fleetbroker/accepted/ledger"

type verifyOptions struct {
	auditFlags
	streams Streams
	args    []string
	witness string
	all     bool
	output  string
	// undone are commits of other accounts that the auditor has looked at, by text
	// and as they are read.
	undoneText []string
	undone     []tree.Hash
}

var verifyForms = []string{"text", "wide", "json", "yaml", "markdown"}

func newCmdAuditVerify(s Streams) *cobra.Command {
	o := verifyOptions{streams: s, auditFlags: auditFlags{sourceFlags: sourceFlags{offers: true}}}
	cmd := &cobra.Command{
		Use:   "verify [DIR|URL]",
		Short: "Verify the ledger's history, commit by commit",
		Long: `Walk the whole history of the ledger and derive it again: signatures, who wrote
generated files, that each contract follows from an intent in the inputs, that no
commit sells more than the figures it records leave, phases, cost, and that the
manifests are what the contracts render to. The first commit that breaks a rule
is reported with the file, the rule and the figures.

Signatures count by the trust root (--trust-root). Without one they count by the
keys that the repository itself names, which the writer of the whole repository
chose; the result says so. --witness FILE demands that the ledger holds the head
that audit export wrote there: a ledger that was set back is seen by nothing else
when the repository's own notes were deleted too.

Manifests are compared where this program knows their rendering (trailer
Renderer); others are named as not compared. --from takes a commit as it stands.

What another account changed and the daemon has undone is listed as undone, with who,
when and by which commit, and ends with 1 until somebody has looked at it
(--accept-undone COMMIT). It is listed afterwards too.

Exit code 0: everything follows; 1: it does not; 3: no rule is broken, but this
program does not know the rendering or the rules of some commits: use the
version that wrote them.`,
		Example: `  fleetbroker audit verify --trust-root trust-root.yaml
  fleetbroker audit verify --all -o json https://git.example.org/acme/fleet.git
  fleetbroker audit verify --witness witness.json --trust-root trust-root.yaml
  fleetbroker audit verify --accept-undone 4f1c2ab09d5e2b7c1f6a8e3d4c5b6a7980123456
  fleetbroker audit verify --from v1.0     # only what came after`,
		Args: atMost(1, "one directory or URL at most"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.args = args
			if err := oneOf("output", o.output, verifyForms...); err != nil {
				return err
			}
			return verifyRun(cmd.Context(), &o)
		},
	}
	o.register(cmd.Flags())
	cmd.Flags().StringVar(&o.witness, "witness", "", "file of audit export, whose head the ledger must hold")
	cmd.Flags().StringSliceVar(&o.undoneText, "accept-undone", nil, "commit of another account, undone by the daemon since, that was looked at: it does not count as a violation")
	cmd.Flags().BoolVar(&o.all, "all", false, "go on after the first commit that breaks a rule")
	outputFlag(cmd, &o.output, verifyForms...)
	return cmd
}

func verifyRun(ctx context.Context, o *verifyOptions) error {
	for _, text := range o.undoneText {
		h, err := tree.ParseHash(text)
		if err != nil {
			return usagef("--accept-undone %q: want the 40 digits of a commit", text)
		}
		o.undone = append(o.undone, h)
	}
	src, f, opts, end, err := o.auditFlags.open(ctx, o.args, o.streams)
	if err != nil && !errors.As(err, new(*noLedgerError)) {
		return err
	}
	if o.witness != "" {
		w, werr := readWitness(o.witness)
		if werr != nil {
			return hinted(fmt.Errorf("--witness %s: %w", o.witness, werr), "name the file that was written: fleetbroker audit export -o FILE")
		}
		opts.Witness = w
	}
	if err != nil {
		return gone(err, &opts)
	}
	opts.All = o.all
	rep, err := audit.Verify(ctx, src.objects, opts)
	end()
	if err != nil {
		return err
	}
	if err := printVerified(o, &rep, opts.Root); err != nil {
		return err
	}
	if open := rep.Open(o.undone...); len(open) > 0 {
		if !slices.ContainsFunc(open, func(v audit.Violation) bool { return v.Undone == "" }) {
			fmt.Fprintln(o.streams.Err, "hint: the daemon has undone it, and the ledger follows again; when somebody has looked at it: --accept-undone "+open[0].Commit)
		}
		for _, line := range remedies.Of(open, opts.Root) {
			fmt.Fprintln(o.streams.Err, "hint: "+line)
		}
		if f.Policy.WriteBack.Mode == "pull-request" && len(opts.Offers) == 0 {
			fmt.Fprintln(o.streams.Err, "hint: a squash of the daemon's pull request is known by the pull request's head: git fetch origin '+refs/pull/*/head:refs/pull/*/head' (GitLab: refs/merge-requests)")
		}
		return errFindings
	}
	if len(rep.Unjudged()) > 0 {
		return errUnknown
	}
	return nil
}

func printVerified(o *verifyOptions, rep *audit.Report, root *trust.Root) error {
	switch o.output {
	case "json":
		return escape.WriteJSON(o.streams.Out, rep)
	case "yaml":
		return printYAML(o.streams.Out, rep)
	case "markdown", "wide":
		t := tables.New(o.streams.view(o.output), "COMMIT", "RULE", "PATH", "WHAT")
		for _, v := range rep.Violations {
			t.Row(v.Commit, v.Rule, v.Path, v.Message)
		}
		if o.output == "markdown" {
			return t.Markdown(o.streams.Out)
		}
		return t.Print(o.streams.Out)
	}
	standing := 0
	for _, v := range rep.Violations {
		if v.Undone != "" {
			continue
		}
		standing++
		if _, err := fmt.Fprintln(o.streams.Out, escape.Line(v.String())); err != nil {
			return err
		}
	}
	done := fmt.Sprintf("%s up to %.7s, of which %d changed the ledger: %s made", tables.Count(rep.Commits, "commit"), rep.Head, rep.Decisions, tables.Count(rep.Contracts, "contract"))
	if standing > 0 {
		fmt.Fprintf(o.streams.Err, "fleetbroker: %s in %s%s\n", tables.Count(standing, "violation"), done, unjudged(rep))
		return printHeld(o, o.streams.Err, rep, root)
	}
	but := ""
	if n := len(rep.Incidents); n > 0 {
		but = fmt.Sprintf(", but for %s by other accounts that the daemon has undone", tables.Count(n, "commit"))
	}
	if _, err := fmt.Fprintf(o.streams.Out, "%s%s: %s%s\n", follows(rep), but, done, unjudged(rep)); err != nil {
		return err
	}
	return printHeld(o, o.streams.Out, rep, root)
}

// follows says by what everything follows: never the same for more and for less.
func follows(rep *audit.Report) string {
	out := "everything"
	if len(rep.Unjudged()) > 0 {
		out = "what was judged"
	}
	if rep.From != "" {
		out += fmt.Sprintf(" after %.7s", rep.From)
	}
	out += " follows"
	switch {
	case rep.Rooted:
	case len(rep.Signers) > 0:
		out += " by the keys that the repository names itself"
	case rep.NotJudged > 0:
		out += ", signatures not judged"
	case rep.Unsigned == 0:
		out += ", no signature judged"
	default:
		out += ", signed by nobody"
	}
	return out
}

// unjudged says in the first line what this program could not judge.
func unjudged(rep *audit.Report) string {
	var parts []string
	for _, n := range rep.Unjudged() {
		parts = append(parts, fmt.Sprintf("%s from %.7s on: %s", tables.Count(n.Commits, "commit"), n.Commit, n.Message))
	}
	if len(parts) == 0 {
		return ""
	}
	return "; not judged: " + escape.Line(strings.Join(parts, "; "))
}

// noKey says why signatures could not be judged.
func noKey(root *trust.Root) string {
	if root != nil && !root.Signed() {
		return root.File + " says unsigned: true, and the repository names no key; take that line out of a copy of the file to have them judged"
	}
	if root != nil {
		return "they are by no key that is in force in " + root.File + ", and the repository names no key"
	}
	return "neither --trust-root nor the repository names a key to judge them by"
}

// printHeld prints the head, whose signatures held, and what was not judged.
func printHeld(o *verifyOptions, w io.Writer, rep *audit.Report, root *trust.Root) error {
	head := rep.Head
	if rep.Seq > 0 {
		head += fmt.Sprintf(", number %d", rep.Seq)
	}
	if rep.Fleet != "" {
		head += " of fleet " + rep.Fleet
	}
	lines := [][2]string{{"head", head}}
	for _, s := range rep.Signers {
		lines = append(lines, [2]string{"signer", fmt.Sprintf("%s %s: %s", s.Principal, pubkey.Fingerprint(s.Key), tables.Count(s.Commits, "commit"))})
	}
	if rep.Unsigned > 0 {
		lines = append(lines, [2]string{"unsigned", tables.Count(rep.Unsigned, "commit") + " by the committer's address alone, which everyone who may push can write"})
	}
	if rep.NotJudged > 0 {
		lines = append(lines, [2]string{"judged", "not the signatures of " + tables.Count(rep.NotJudged, "commit") + ": " + noKey(root)})
	}
	if rep.BeforeRoot > 0 {
		lines = append(lines, [2]string{"before", tables.Count(rep.BeforeRoot, "commit") + " from before the first that a key of the trust root signed"})
	}
	if rep.From != "" {
		lines = append(lines, [2]string{"from", rep.From + " was taken as it stands, with all before it"})
	}
	switch {
	case rep.Rooted:
	case root == nil:
		lines = append(lines, [2]string{"root", "none held: name the fleet's trust root with --trust-root FILE (docs/signing.md)"})
	case !root.Signed():
		lines = append(lines, [2]string{"root", root.File + " asks for no signature: it says unsigned: true"})
	default:
		lines = append(lines, [2]string{"root", "no key of " + root.File + " has signed a commit"})
	}
	for _, d := range rep.Dropped {
		lines = append(lines, [2]string{"dropped", fmt.Sprintf("%s of %s, which an operator let go of: so says %.7s", d.Head, d.Branch, d.Commit)})
	}
	for _, in := range rep.Incidents {
		what := "paths: " + strings.Join(in.Paths[:min(len(in.Paths), 3)], ", ")
		if more := len(in.Paths) - 3; more > 0 {
			what += fmt.Sprintf(" and %d more", more)
		}
		line := fmt.Sprintf("%s by %s at %s (%s), undone by %.7s at %s; %s", in.Commit, in.By, in.At, in.Subject, in.Undone, in.UndoneAt, what)
		if slices.ContainsFunc(o.undone, func(h tree.Hash) bool { return h.String() == in.Commit }) {
			line += "; accepted (--accept-undone)"
		}
		lines = append(lines, [2]string{"undone", line})
	}
	for _, n := range rep.Notes {
		if n.Commits > 0 {
			n.Message += fmt.Sprintf(" (%s from %.7s on)", tables.Count(n.Commits, "commit"), n.Commit)
		}
		lines = append(lines, [2]string{"note", n.Message})
	}
	for _, l := range lines {
		if _, err := fmt.Fprintf(w, "%-8s %s\n", l[0], escape.Line(l[1])); err != nil {
			return err
		}
	}
	return nil
}

type exportOptions struct {
	auditFlags
	streams Streams
	args    []string
	output  string
}

func newCmdAuditExport(s Streams) *cobra.Command {
	o := exportOptions{streams: s, auditFlags: auditFlags{sourceFlags: sourceFlags{offers: true}}}
	cmd := &cobra.Command{
		Use:   "export [DIR|URL]",
		Short: "Write the ledger's signed head for a witness to keep",
		Long: `Verify the ledger and write its newest commit of the daemon's, with its signature,
to a file. Who keeps the file where the repository's writers cannot reach (on
another machine, in a ConfigMap, an object store) sees with audit verify
--witness that a ledger was set back behind it. A ledger that breaks a rule is not
exported, and a file with a head that the ledger does not hold is not replaced.`,
		Example: `  fleetbroker audit export -o witness.json --trust-root trust-root.yaml
  fleetbroker audit export -o witness.json https://git.example.org/acme/fleet.git
  fleetbroker audit export -o witness.json --from 4f1c2ab   # only what came after is verified`,
		Args: atMost(1, "one directory or URL at most"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.args = args
			return exportRun(cmd.Context(), &o)
		},
	}
	o.register(cmd.Flags())
	cmd.Flags().StringVarP(&o.output, "output", "o", "-", "file to write; -: standard output")
	return cmd
}

func exportRun(ctx context.Context, o *exportOptions) error {
	src, _, opts, end, err := o.auditFlags.open(ctx, o.args, o.streams)
	if err != nil && !errors.As(err, new(*noLedgerError)) {
		return err
	}
	if o.output != "-" {
		if err := outfile.Check(o.output); err != nil {
			return err
		}
		old, oerr := readWitness(o.output)
		switch {
		case oerr == nil:
			opts.Witness = old // what it bears witness to is not lost
		case !errors.Is(oerr, fs.ErrNotExist) && !errors.Is(oerr, errEmpty):
			return hinted(fmt.Errorf("write %s: what is there is no witness, and is left as it is: %w", o.output, oerr), "name another file with -o, or move this one away")
		}
	}
	if err != nil {
		return gone(err, &opts)
	}
	w, rep, err := audit.Export(ctx, src.objects, opts)
	end()
	if err != nil {
		if errors.Is(err, audit.ErrViolations) {
			more := []string{"--all"}
			if opts.Witness != nil {
				more = append(more, "--witness", o.output)
			}
			err = hinted(err, "look at it: "+o.retyped(len(rep.Signers) > 0, o.args...).Verify(more...))
		}
		return fmt.Errorf("export the head: %w", err)
	}
	if o.output == "-" {
		return w.Encode(o.streams.Out)
	}
	if err := statefile.Replace(o.output, 0o600, w.Encode); err != nil {
		return fmt.Errorf("export the head: %w", err)
	}
	fmt.Fprintf(o.streams.Err, "wrote %s\n", o.output)
	if w.Commit != rep.Head {
		fmt.Fprintf(o.streams.Err, "witness  %s, number %d: the newest commit of the daemon's\n", w.Commit, w.Seq)
	}
	return printHeld(&verifyOptions{}, o.streams.Err, &rep, opts.Root)
}

// errEmpty is a file without content, as mktemp makes it.
var errEmpty = errors.New("the file is empty")

// readWitness reads a file of audit export.
func readWitness(name string) (*audit.Witness, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read the witness: %w", err)
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() && info.Size() == 0 {
		return nil, fmt.Errorf("read the witness: %w", errEmpty)
	}
	return audit.ReadWitness(file)
}
