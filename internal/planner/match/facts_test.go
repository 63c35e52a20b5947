package match

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fleetbroker/fleetbroker/internal/api/celenv"
	"github.com/fleetbroker/fleetbroker/internal/api/model"
	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
	"github.com/fleetbroker/fleetbroker/internal/planner/inventory"
	"github.com/fleetbroker/fleetbroker/internal/planner/quantity"
)

// Requests with equal factsKey share which offer fails which fact, so that whatever of a
// request sharedFact looks at has to be in it. These are the fields that are not, with why;
// a field that is neither here nor in the key fails the tests below, and so does one that
// is here and is looked at.
var (
	noFactOfIntents = map[string]string{
		"Consumer": "Request.Consumer, which the job chose", "Alternatives": "each is a request of its own",
		"Replicas": "how many", "MinReplicas": "how many", "Gang": "how many at once",
		"Budget": "money", "Weights": "the score", "Objective": "the score", "Purchase": "money", "Data": "money",
		"Schedule": "the term", "Priority": "turns", "Preemption": "who gives way", "Queue": "turns", "Update": "order of changes",
		"Offload": "package rules asks it", "VirtualNode": "package rules asks it", "Stage": "delivery", "Suspend": "settled without offers",
		"Split": "parts are requests of their own", "SLA.MaxTimeToActive": "what exists", "Enforcement": "none but the two that are asked are facts, and those make it \"\"",
		"PerPod": "what nodes have free, which is capacity's", "Resources.PerPod": "the same",
		"Placement.Together": "package rules asks it", "Placement.Apart": "package rules asks it", "Placement.Where": "compiled to Request.Where, own facts",
	}
	noFactOfTenants = map[string]string{
		"Consumers": "Request.Consumer", "Namespaces": "rights, before any offer", "RemoteNamespaces": "rights", "Secrets": "package rules asks it",
		"Quota": "the account", "Budget": "the account", "MaxPriority": "turns", "Weight": "turns", "Approvers": "rights", "Signers": "rights", "Members": "rights", "Notify": "words",
	}
	noFactOfRequests = map[string]string{
		"Need": "a size, which is capacity's", "pod": "what nodes have free, which is capacity's", "Purchase": "money", "Spending": "money", "Weights": "the score",
		"accelerator": "rounding, and equal in a round", "units": "of a part, in CardRequest", "of": "of a part",
		"readsUse": "follows from own and Policies", "answers": "a memo of own facts", "cards": "a memo of GPU", "sizes": "a memo of sizes", "alike": "of the rules, equal in a round", "Where": "own asks it where it is set",
	}
)

// aMarket has a flavor of every provider, one of them a consumer too.
func aMarket(providers ...string) *Matcher {
	n := quantity.NewNames(ReqCapacity)
	var offers []*model.Offer
	for _, p := range providers {
		f := &v1alpha1.Flavor{}
		f.Metadata.Namespace, f.Metadata.Name = p, "a"
		f.Spec.Capacity = v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(64_000)}
		offers = append(offers, &model.Offer{Flavor: f})
	}
	facts := inventory.Facts{Names: n, Blocked: func(*inventory.Offer) string { return "" }}
	in := inventory.New(facts, offers, func(func(*v1alpha1.Contract) bool) {})
	return New(Facts{Names: n, Fleet: &v1alpha1.FleetSpec{}, Asked: true}, in)
}

// aRequest asks for cards of a tenant that is described.
func aRequest(m *Matcher, edit func(*v1alpha1.IntentSpec, *v1alpha1.TenantSpec)) *Request {
	in := &model.Intent{ResourceIntent: &v1alpha1.ResourceIntent{Metadata: v1alpha1.Metadata{Namespace: "vision", Name: "train"}}}
	in.Spec.Resources.GPU = &v1alpha1.GPURequest{}
	tenant := &v1alpha1.TenantSpec{}
	if edit != nil {
		edit(&in.Spec, tenant)
	}
	return m.Request(&Ask{Intent: in, Tenant: tenant, Consumer: "rome", Request: &in.Spec.Resources, Spending: Spending{Replicas: 1}})
}

func TestFactsKey_AsksForEveryFieldOfIntentsAndTenants(t *testing.T) {
	m := aMarket("paris", "rome")
	plain := aRequest(m, nil).factsKey(m)
	if plain == "" {
		t.Fatal("a plain request shares nothing")
	}
	tried, used := 0, map[string]bool{}
	try := func(typ reflect.Type, kind string, reasons map[string]string, of func(*v1alpha1.IntentSpec, *v1alpha1.TenantSpec) reflect.Value) {
		leaves(typ, "", nil, func(path string, index [][]int) {
			tried++
			key := aRequest(m, func(in *v1alpha1.IntentSpec, tenant *v1alpha1.TenantSpec) {
				set(t, of(in, tenant), path, index)
			}).factsKey(m)
			why := reasonOf(reasons, path, used)
			switch {
			case key == plain && why == "":
				t.Errorf("%s.%s is not in factsKey: requests that differ in it would share which offers fail them; add it in making.go, or with a reason to this test's list if sharedFact does not look at it", kind, path)
			case key != plain && why != "":
				t.Errorf("%s.%s is in factsKey, and listed as no fact (%s): take it off the list", kind, path, why)
			}
		})
		for listed := range reasons {
			if !used[listed] {
				t.Errorf("%s.%s is listed, and there is no such field", kind, listed)
			}
		}
	}
	try(reflect.TypeFor[v1alpha1.IntentSpec](), "intent", noFactOfIntents, func(in *v1alpha1.IntentSpec, _ *v1alpha1.TenantSpec) reflect.Value {
		return reflect.ValueOf(in).Elem()
	})
	try(reflect.TypeFor[v1alpha1.TenantSpec](), "tenant", noFactOfTenants, func(_ *v1alpha1.IntentSpec, tenant *v1alpha1.TenantSpec) reflect.Value {
		return reflect.ValueOf(tenant).Elem()
	})
	if tried < 60 {
		t.Fatalf("only %d fields were tried", tried)
	}
}

// reasonOf is why a path is no fact, by itself or by what it is part of.
func reasonOf(reasons map[string]string, path string, used map[string]bool) string {
	for listed, why := range reasons {
		if path == listed || strings.HasPrefix(path, listed+".") {
			used[listed] = true
			return why
		}
	}
	return ""
}

// set gives a field of a struct a value that is not its zero.
func set(t *testing.T, v reflect.Value, path string, index [][]int) {
	t.Helper()
	for _, i := range index {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.FieldByIndex(i)
	}
	if v.Set(something(t, path, v.Type())); strings.HasSuffix(path, ".ComputeCapability") {
		v.SetString("8.9")
	}
}

// Every field of a Request, and of what it wants of cards, is in the key or listed; both
// are declared here, so that what somebody adds has no entry.
func TestFactsKey_AsksForEveryFieldOfRequests(t *testing.T) {
	m := aMarket("paris", "rome")
	plain := aRequest(m, nil).factsKey(m)
	requests := map[string]func(*Request){
		"Intent":      func(w *Request) { w.Intent.Spec.Placement.Regions = []string{"eu"} }, // field by field above
		"tenant":      func(w *Request) { w.tenant = nil },
		"Consumer":    func(w *Request) { w.Consumer = "paris" },
		"extended":    func(w *Request) { w.extended = []int{9} },
		"GPU":         func(w *Request) { w.GPU = nil },
		"own":         func(w *Request) { w.own = []*requirement{&requirements[0]} },
		"Policies":    func(w *Request) { w.Policies = []model.Policy{{Predicate: (*celenv.Program)(nil)}} },
		"accelerated": func(w *Request) { w.accelerated = !w.accelerated },
	}
	cards := map[string]func(*CardRequest){
		"Count": func(g *CardRequest) { g.Count++ }, "Share": func(g *CardRequest) { g.Share++ },
		"Models": func(g *CardRequest) { g.Models = []string{"h100"} },
		"Memory": func(g *CardRequest) { g.Memory.Min = v1alpha1.AmountOf(7) },
		"vendor": func(g *CardRequest) { g.vendor = "x" }, "architecture": func(g *CardRequest) { g.architecture = "x" },
		"tier": func(g *CardRequest) { g.tier = "x" }, "interconnect": func(g *CardRequest) { g.interconnect = "x" },
		"Profile": func(g *CardRequest) { g.Profile = "x" }, "Sharing": func(g *CardRequest) { g.Sharing = "x" },
		"capability": func(g *CardRequest) { g.capability++ },
	}
	check := func(typ reflect.Type, known func(name string) (change func(*Request), is bool)) {
		for i := range typ.NumField() {
			name := typ.Field(i).Name
			why := noFactOfRequests[name]
			change, is := known(name)
			if !is || why != "" {
				if is == (why != "") {
					t.Errorf("%s.%s: put it into factsKey and change it here, or list with a reason that sharedFact does not look at it", typ.Name(), name)
				}
				continue
			}
			w := aRequest(m, nil)
			if change(w); w.factsKey(m) == plain {
				t.Errorf("%s.%s is not in factsKey", typ.Name(), name)
			}
		}
	}
	check(reflect.TypeFor[Request](), func(name string) (func(*Request), bool) { f, is := requests[name]; return f, is })
	check(reflect.TypeFor[CardRequest](), func(name string) (func(*Request), bool) {
		f, is := cards[name]
		return func(w *Request) { f(w.GPU) }, is
	})
}

// What is listed as no fact is looked at by nothing that sharedFact calls.
func TestFactsKey_ListsOnlyWhatIsNotLookedAt(t *testing.T) {
	fset := token.NewFileSet()
	functions := map[string]*ast.FuncDecl{}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, e.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, is := d.(*ast.FuncDecl); is {
				functions[nameOf(f)] = f
			}
		}
	}
	looked := lookedAt(functions, "Matcher.sharedFact")
	for _, path := range []string{"GPU", "Consumer", "tenant.Providers", "Intent.Spec.Placement.Regions", "Intent.Spec.Placement.AllowAccelerators", "accelerated"} {
		if !slices.Contains(looked, path) {
			t.Errorf("sharedFact was not seen to look at %s: it looks at %q", path, looked)
		}
	}
	used := map[string]bool{}
	for _, path := range looked {
		why := noFactOfRequests[path]
		if spec, is := strings.CutPrefix(path, "Intent.Spec."); is {
			why = reasonOf(noFactOfIntents, spec, used)
		} else if of, is := strings.CutPrefix(path, "tenant."); is {
			why = reasonOf(noFactOfTenants, of, used)
		}
		if why != "" && path != "cards" {
			t.Errorf("sharedFact looks at %s, which is listed as no fact (%s): it belongs into factsKey", path, why)
		}
	}
}

// nameOf is a function's name, after that of its receiver's type.
func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	return typeName(f.Recv.List[0].Type) + "." + f.Name.Name
}

func typeName(e ast.Expr) string {
	if star, is := e.(*ast.StarExpr); is {
		e = star.X
	}
	if id, is := e.(*ast.Ident); is {
		return id.Name
	}
	return ""
}

// lookedAt are the fields of a *Request that a function of the package selects, itself or
// by what it calls.
func lookedAt(functions map[string]*ast.FuncDecl, name string) (paths []string) {
	seen := map[string]bool{name: true}
	for queue := []string{name}; len(queue) > 0; queue = queue[1:] {
		f := functions[queue[0]]
		types := map[string]string{} // of what is handed to the function, by name
		alias := map[string]string{} // what a name of it stands for, from the request on
		for _, list := range []*ast.FieldList{f.Recv, f.Type.Params} {
			if list == nil {
				continue
			}
			for _, field := range list.List {
				for _, n := range field.Names {
					if types[n.Name] = typeName(field.Type); types[n.Name] == "Request" {
						alias[n.Name] = ""
					}
				}
			}
		}
		calls := func(fun ast.Expr) string {
			switch fun := fun.(type) {
			case *ast.Ident:
				return fun.Name
			case *ast.SelectorExpr:
				if id, is := fun.X.(*ast.Ident); is {
					return types[id.Name] + "." + fun.Sel.Name
				}
				if path, known := pathOf(fun.X, alias); known && path == "GPU" {
					return "CardRequest." + fun.Sel.Name
				}
			}
			return ""
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for i := range min(len(n.Lhs), len(n.Rhs)) {
					id, is := n.Lhs[i].(*ast.Ident)
					if path, known := pathOf(n.Rhs[i], alias); is && known {
						alias[id.Name] = path
					}
				}
			case *ast.CallExpr:
				if next := calls(n.Fun); functions[next] != nil && !seen[next] {
					seen[next] = true
					queue = append(queue, next)
				}
			case *ast.SelectorExpr:
				if path, known := pathOf(n, alias); known && !slices.Contains(paths, path) {
					paths = append(paths, path)
				}
			}
			return true
		})
	}
	return paths
}

// pathOf is which field of a request an expression is, as its fields' names with dots.
func pathOf(e ast.Expr, alias map[string]string) (path string, known bool) {
	switch e := e.(type) {
	case *ast.UnaryExpr:
		return pathOf(e.X, alias)
	case *ast.Ident:
		path, known = alias[e.Name]
		return path, known
	case *ast.SelectorExpr:
		if path, known = pathOf(e.X, alias); known {
			path = strings.TrimPrefix(path+"."+e.Sel.Name, ".")
		}
		return path, known
	}
	return "", false
}
