package fleet

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/escape"
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/nearest"
	"github.com/fleetbroker/fleetbroker/internal/api/strictyaml"
	"github.com/fleetbroker/fleetbroker/internal/api/tree"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/fleet/intern"
	"github.com/fleetbroker/fleetbroker/internal/fleet/naming"
	"github.com/fleetbroker/fleetbroker/internal/fleet/sourced"
)

// file is one file, parsed and checked as far as it can be alone. After that
// only checkTogether writes to it, on behalf of the Reader.
type file struct {
	path string
	hash tree.Hash
	sec  section
	// docs are the objects, none when the file is broken.
	docs []document
	// size in bytes, and whether it was parsed: a file of a tenant over its limits
	// is not.
	size   int64
	parsed bool
	// compiled are the bytes of its conditions that had to be compiled.
	compiled int64
	// broken: the file cannot be read, and freezes or keeps what it last named.
	broken bool
	diags  []Diagnostic
	// named are the intents that a broken file seems to name.
	named []string
	// aside is why it is not read, nil when it is.
	aside *Unread
	// made is the directory of the kustomization that made it, "" for a plain file.
	made string

	// What checkTogether found, and against what.
	against  *context
	wrong    bool
	intents  []*model.Intent
	together []Diagnostic
}

// document is one object of a file.
type document struct {
	// index of the document in its file, for finding places again.
	index int
	// object is a pointer to its kind.
	object any
	// Of an intent:
	digest  string
	where   model.Predicate
	problem string
	code    string
}

// kindsOf are the kinds that a section's files hold.
var kindsOf = map[section][]string{
	secFleet:    {v1alpha1.KindFleet},
	secClusters: {v1alpha1.KindCluster},
	secTenants:  {v1alpha1.KindTenant},
	secFlavors:  {v1alpha1.KindFlavor},
	secPrices:   {v1alpha1.KindPriceTable},
	secIntents:  {v1alpha1.KindResourceIntent},
	secRequests: {v1alpha1.KindResourceIntent},
	secSources:  {v1alpha1.KindResourceIntent},
}

// directoryOf is where a kind belongs.
var directoryOf = map[string]string{
	v1alpha1.KindFleet: fleetFile, v1alpha1.KindCluster: clustersDir + "/", v1alpha1.KindTenant: tenantsDir + "/",
	v1alpha1.KindFlavor: flavorsDir + "/<provider>/", v1alpha1.KindPriceTable: pricesDir + "/", v1alpha1.KindResourceIntent: intentsDir + "/<tenant>/",
	v1alpha1.KindContract: "contracts/, which the daemon alone writes", v1alpha1.KindIntentState: "contracts/, which the daemon alone writes", v1alpha1.KindSpend: "contracts/, which the daemon alone writes",
	v1alpha1.KindSourceCopy: "sources/, which the daemon alone writes",
}

// read parses the file from the store. Only failures of the store are errors.
func (f *file) read(store tree.Store, programs *programs) error {
	if f.aside != nil {
		f.parsed = true
		return nil
	}
	content, err := store.File(f.hash, strictyaml.MaxSize)
	if errors.Is(err, tree.ErrTooLarge) {
		f.size, f.parsed = strictyaml.MaxSize, true
		f.breaks(strictyaml.Problem{Line: 1, Column: 1, Message: fmt.Sprintf("the file is larger than %d KiB; split it", strictyaml.MaxSize>>10)})
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", f.path, err)
	}
	f.size, f.parsed = int64(len(content)), true
	f.parse(content, programs)
	return nil
}

// parse decodes and checks the file's documents. A problem of decoding breaks
// the file; a problem of meaning breaks it too, except an intent's.
func (f *file) parse(content []byte, programs *programs) {
	sources, problems := strictyaml.Split(content)
	f.breaks(problems...)
	if len(sources) == 0 && !f.broken {
		f.breaks(strictyaml.Problem{Line: 1, Column: 1, Message: "the file holds no document; delete it or write one"})
	}
	f.decodeAll(sources, programs)
}

// decodeAll reads the documents. One problem breaks them all.
func (f *file) decodeAll(sources []strictyaml.Source, programs *programs) {
	for i, src := range sources {
		doc, problems := strictyaml.Parse(src)
		if len(problems) > 0 {
			f.breaks(problems...)
			continue
		}
		f.decode(i, doc, programs)
	}
	if single := f.sec == secFleet || f.sec == secClusters || f.sec == secTenants; single && len(f.docs) > 1 {
		f.breaks(strictyaml.Problem{Line: sources[1].Line + 1, Column: 1, Message: "one document only belongs in this file"})
	}
	if f.broken {
		for _, d := range f.docs {
			f.name(d.object)
		}
		f.docs = nil
	}
	sortDiagnostics(f.diags)
}

// name remembers what a broken file names.
func (f *file) name(object any) {
	if in, ok := object.(*v1alpha1.ResourceIntent); ok && in.Metadata.Name != "" {
		f.named = append(f.named, in.Metadata.Name)
	}
}

func (f *file) breaks(problems ...strictyaml.Problem) {
	for _, p := range problems {
		f.broken = true
		f.diags = append(f.diags, Diagnostic{File: f.path, Line: p.Line, Column: p.Column, Message: escape.Reason(p.Message), Severity: Error, Code: "Unreadable"})
	}
}

// decode reads one document into its kind.
func (f *file) decode(index int, doc *strictyaml.Document, programs *programs) {
	apiVersion, kind := doc.Text("apiVersion"), doc.Text("kind")
	if convert, ok := foreignKinds[foreign{apiVersion, kind, f.sec}]; ok {
		f.convert(index, doc, convert, programs)
		return
	}
	if !f.rightKind(doc, apiVersion, kind) {
		f.nameFrom(doc)
		return
	}
	object := newObject(kind)
	if problems := doc.Decode(object); len(problems) > 0 {
		f.breaks(problems...)
		f.nameFrom(doc)
		return
	}
	f.add(index, doc, object, programs)
}

func (f *file) nameFrom(doc *strictyaml.Document) {
	ns := doc.Text("metadata", "namespace")
	if name := doc.Text("metadata", "name"); f.sec.intents() && name != "" && (ns == "" || ns == owner(f.path)) {
		f.named = append(f.named, name)
	}
}

// add checks a decoded object and keeps it.
func (f *file) add(index int, doc *strictyaml.Document, object any, programs *programs) {
	c := &checker{file: f.path, doc: doc, programs: programs}
	checkIdentity(c, f, object)
	if len(c.diags) > 0 { // what an object is called decides who is affected: a wrong name cannot be refused by name
		f.broken = true
		f.diags = append(f.diags, c.diags...)
		if c.inPlace {
			f.name(object)
		}
		return
	}
	d := document{index: index, object: object}
	switch o := object.(type) {
	case *v1alpha1.ResourceIntent:
		d.where = checkIntent(c, o)
		d.digest = digest(o)
		intern.Intent(o)
		for i := range c.diags {
			c.diags[i].Intent = o.Metadata.Namespace + "/" + o.Metadata.Name
		}
		d.problem, d.code = firstError(c.diags)
	case *v1alpha1.Fleet:
		checkFleet(c, o)
	case *v1alpha1.Tenant:
		checkTenant(c, o)
	case *v1alpha1.Cluster:
		checkCluster(c, o)
	case *v1alpha1.Flavor:
		checkFlavor(c, o)
	case *v1alpha1.PriceTable:
		checkPriceTable(c, o)
	}
	f.compiled += c.compiled
	f.diags = append(f.diags, c.diags...)
	if problem, _ := firstError(c.diags); problem != "" && !f.sec.intents() {
		f.broken = true
	}
	f.docs = append(f.docs, d)
}

// rightKind checks apiVersion and kind against the directory.
func (f *file) rightKind(doc *strictyaml.Document, apiVersion, kind string) bool {
	fail := func(field, format string, args ...any) bool {
		line, column := doc.At(field)
		f.breaks(strictyaml.Problem{Line: line, Column: column, Message: fmt.Sprintf(format, args...)})
		return false
	}
	want := kindsOf[f.sec][0]
	group, _, _ := strings.Cut(apiVersion, "/")
	switch {
	case apiVersion == "":
		return fail("apiVersion", "apiVersion is missing; write apiVersion: %s", v1alpha1.APIVersion)
	case kind == "":
		return fail("kind", "kind is missing; write kind: %s", want)
	case apiVersion != v1alpha1.APIVersion && (group == v1alpha1.Group || kind == want):
		return fail("apiVersion", "apiVersion %q is not supported; write %s", apiVersion, v1alpha1.APIVersion)
	case apiVersion == v1alpha1.APIVersion && kind == want:
		return true
	case apiVersion == v1alpha1.APIVersion && directoryOf[kind] != "":
		return fail("kind", "a %s does not belong here; it belongs in %s", kind, directoryOf[kind])
	case apiVersion == v1alpha1.APIVersion && nearest.Of(kind, []string{want}) != "":
		return fail("kind", "unknown kind %q (did you mean %q?)", kind, want)
	}
	return fail("kind", "%s %s is not read here; this directory holds %s of %s", apiVersion, kind, want, v1alpha1.APIVersion)
}

func newObject(kind string) any {
	switch kind {
	case v1alpha1.KindFleet:
		return new(v1alpha1.Fleet)
	case v1alpha1.KindCluster:
		return new(v1alpha1.Cluster)
	case v1alpha1.KindTenant:
		return new(v1alpha1.Tenant)
	case v1alpha1.KindFlavor:
		return new(v1alpha1.Flavor)
	case v1alpha1.KindPriceTable:
		return new(v1alpha1.PriceTable)
	}
	return new(v1alpha1.ResourceIntent)
}

// owner is the directory under the section's that a path lies in: the tenant
// of an intent, the provider of a flavor.
func owner(p string) string {
	if _, below, ok := sourced.Split(p); ok {
		p = below
	}
	parts := strings.SplitN(p, "/", 3)
	if len(parts) < 3 {
		return ""
	}
	return parts[1]
}

// checkIdentity holds names against the layout.
func checkIdentity(c *checker, f *file, object any) {
	switch o := object.(type) {
	case *v1alpha1.ResourceIntent:
		c.inPlace = c.belongs(o.Metadata, owner(f.path), "tenant")
	case *v1alpha1.Flavor:
		c.belongs(o.Metadata, owner(f.path), "provider")
	case *v1alpha1.Tenant:
		c.named(o.Metadata, f.path)
		if o.Metadata.Name == "namespaces" {
			c.errorf(at("metadata", "name"), "BadName", "no tenant may be called namespaces: manifests/<consumer>/namespaces/ is taken")
		}
		if o.Metadata.Name == v1alpha1.FleetTenant {
			c.errorf(at("metadata", "name"), "BadName", "no tenant may be called %s: the fleet's own warm slices belong to it", v1alpha1.FleetTenant)
		}
	case *v1alpha1.Cluster:
		c.named(o.Metadata, f.path)
	case *v1alpha1.Fleet:
		c.named(o.Metadata, "")
	case *v1alpha1.PriceTable:
		c.named(o.Metadata, "")
	}
}

// belongs checks an object whose namespace is the directory it lies in, and
// says whether it lies in the right one.
func (c *checker) belongs(m v1alpha1.Metadata, dir, what string) bool {
	if why := naming.Bad("metadata.name", m.Name); why != "" {
		c.errorf(at("metadata", "name"), "BadName", "%s", why)
	}
	switch {
	case dir == "":
		c.errorf(at("metadata", "namespace"), "BadPlace", "the file must lie in a directory named after its %s", what)
	case m.Namespace == "":
		c.errorf(at("metadata", "namespace"), "BadName", "metadata.namespace is missing; write namespace: %s", dir)
	case m.Namespace != dir:
		c.errorf(at("metadata", "namespace"), "BadName", "metadata.namespace is %q, but the directory is that of %s %q", m.Namespace, what, dir)
	default:
		return true
	}
	return false
}

// named checks an object without a namespace; with a path, its name must be
// the file's.
func (c *checker) named(m v1alpha1.Metadata, p string) {
	if why := naming.Bad("metadata.name", m.Name); why != "" {
		c.errorf(at("metadata", "name"), "BadName", "%s", why)
		return
	}
	if m.Namespace != "" {
		c.errorf(at("metadata", "namespace"), "BadName", "this kind has no namespace; leave it out")
	}
	if base := strings.TrimSuffix(path.Base(p), path.Ext(p)); p != "" && base != m.Name {
		c.errorf(at("metadata", "name"), "BadName", "metadata.name is %q, but the file is %s; rename one of them", m.Name, path.Base(p))
	}
}

// digest is over the canonical form of what an intent asks for: its
// specification and labels.
func digest(in *v1alpha1.ResourceIntent) string {
	b, err := json.Marshal(struct {
		Labels map[string]string   `json:"labels,omitempty"`
		Spec   v1alpha1.IntentSpec `json:"spec"`
	}{in.Metadata.Labels, in.Spec})
	if err != nil { // no kind holds what JSON cannot
		panic(fmt.Sprintf("encode intent %s/%s: %v", in.Metadata.Namespace, in.Metadata.Name, err))
	}
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func firstError(diags []Diagnostic) (problem, code string) {
	best := -1
	for i, d := range diags {
		if d.Severity == Error && (best < 0 || d.Line < diags[best].Line) {
			best = i
		}
	}
	if best < 0 {
		return "", ""
	}
	return diags[best].String(), diags[best].Code
}
