package celenv

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// TestComparisons_AnswerAsCEL: what is answered without CEL has the same answer from it, for
// flavors with and without prices and cards, and numbers on either side of a comparison.
func TestComparisons_AnswerAsCEL(t *testing.T) {
	compared := 0
	rapid.Check(t, func(t *rapid.T) {
		number := func(name string) string {
			n := rapid.IntRange(-1, 4).Draw(t, name)
			return []string{"-1", "0", "80", "80.0", "2.5", "9007199254740993"}[n+1]
		}
		source := ""
		for i := range rapid.IntRange(1, 3).Draw(t, "comparisons") {
			fact := rapid.SampledFrom([]string{"flavor.price.hourly", "flavor.gpu.memoryGi", "flavor.gpu.count", "flavor.gpu.tflops"}).Draw(t, "fact")
			op := rapid.SampledFrom([]string{"<", "<=", ">", ">=", "=="}).Draw(t, "operator")
			a, b := fact, number("number")
			if rapid.Bool().Draw(t, "turned") {
				a, b = b, a
			}
			if i > 0 {
				source += rapid.SampledFrom([]string{" && ", " && ", " || "}).Draw(t, "and")
			}
			source += fmt.Sprintf("%s %s %s", a, op, b)
		}
		p, err := Compile(source)
		if err != nil {
			t.Skip(err) // a fact that is none
		}
		flavor := &v1alpha1.Flavor{}
		decimal := func(name string) v1alpha1.Decimal {
			return v1alpha1.DecimalFromInt(int64(rapid.SampledFrom([]int{0, 2, 80}).Draw(t, name)))
		}
		if rapid.IntRange(0, 3).Draw(t, "cards") > 0 {
			flavor.Spec.GPU = &v1alpha1.FlavorGPU{}
			flavor.Spec.GPU.Memory.Amount = v1alpha1.AmountOf(int64(rapid.SampledFrom([]int{0, 79, 80, 81}).Draw(t, "memory")) << 30)
			flavor.Spec.Capacity = v1alpha1.Resources{v1alpha1.GPU: v1alpha1.AmountOf(int64(rapid.SampledFrom([]int{0, 80}).Draw(t, "count")))}
		}
		switch rapid.IntRange(0, 2).Draw(t, "price") {
		case 1:
			flavor.Spec.Price = &v1alpha1.Price{PerHour: v1alpha1.UnitPrices{"gpu": decimal("gpu"), "cpu": decimal("cpu")}}
		case 2:
			flat := decimal("flat")
			flavor.Spec.Price = &v1alpha1.Price{Flat: &flat}
		}
		intent := &v1alpha1.ResourceIntent{}
		intent.Spec.Resources.Named = v1alpha1.Resources{v1alpha1.CPU: v1alpha1.AmountOf(1500)}
		intent.Spec.Resources.GPU = &v1alpha1.GPURequest{Count: 2}
		got, gotErr := p.Eval(intent, flavor, nil)
		if p.comparisons != nil {
			compared++
		}
		asked := &Program{source: p.source, most: p.most} // by CEL alone
		want, wantErr := asked.Eval(intent, flavor, nil)
		if got != want || (gotErr == nil) != (wantErr == nil) {
			t.Fatalf("%s: got %t, %v; CEL says %t, %v", source, got, gotErr, want, wantErr)
		}
	})
	if compared == 0 {
		t.Error("no expression was answered without CEL")
	}
}
