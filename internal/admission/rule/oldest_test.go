package rule

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
)

// What the oldest clusters apply has CEL that they can compile: the conditions of validating
// policies and webhooks, and the rules of definitions, in the install bases and in what the
// daemon applies.
func TestExpressionsAreOfKubernetes130(t *testing.T) {
	env := oldest(t)
	seen := map[string]int{}
	for _, root := range []string{"../../manifests/policies", "../../../fleet-repo-template/install"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			decoder := yaml.NewDecoder(strings.NewReader(string(text)))
			for {
				var doc map[string]any
				if err := decoder.Decode(&doc); errors.Is(err, io.EOF) {
					return nil
				} else if err != nil {
					return err
				}
				kind, _ := doc["kind"].(string)
				fields := map[string]bool{"expression": true, "messageExpression": true, "valueExpression": true}
				switch kind {
				case "ValidatingAdmissionPolicy", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
				case "CustomResourceDefinition":
					fields = map[string]bool{"rule": true, "messageExpression": true}
				default:
					continue
				}
				expressions(doc, fields, func(expression string) {
					seen[kind]++
					if _, issues := env.Compile(expression); issues.Err() != nil {
						t.Errorf("%s, %s: %v", path, kind, issues.Err())
					}
				})
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen["ValidatingAdmissionPolicy"] < 50 || seen["CustomResourceDefinition"] == 0 || seen["MutatingWebhookConfiguration"] == 0 {
		t.Errorf("only %v were found", seen)
	}
}

// The check is of that version: newer functions do not compile.
func TestExpressionsAreOfKubernetes130_NewerAreFound(t *testing.T) {
	env := oldest(t)
	for expression, want := range map[string]bool{
		`object.metadata.name.startsWith("a") && variables.x`: true,
		`!format.dns1123Label().validate("a").hasValue()`:     false, // 1.31 and newer
	} {
		if _, issues := env.Compile(expression); (issues.Err() == nil) != want {
			t.Errorf("%s: compiles %t, want %t: %v", expression, !want, want, issues.Err())
		}
	}
}

func oldest(t *testing.T) *cel.Env {
	t.Helper()
	env, err := environment.MustBaseEnvSet(version.MajorMinor(1, 30)).Env(environment.NewExpressions)
	if err != nil {
		t.Fatal(err)
	}
	var variables []cel.EnvOption
	for _, name := range []string{"object", "oldObject", "request", "params", "namespaceObject", "authorizer", "variables", "self", "oldSelf"} {
		variables = append(variables, cel.Variable(name, cel.DynType))
	}
	if env, err = env.Extend(variables...); err != nil {
		t.Fatal(err)
	}
	return env
}

// expressions visits the texts of some fields, however deep.
func expressions(at any, fields map[string]bool, visit func(string)) {
	switch at := at.(type) {
	case map[string]any:
		for name, v := range at {
			if text, is := v.(string); is && fields[name] {
				visit(text)
			} else {
				expressions(v, fields, visit)
			}
		}
	case []any:
		for _, v := range at {
			expressions(v, fields, visit)
		}
	}
}
