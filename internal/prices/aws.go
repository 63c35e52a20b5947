package prices

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/v1alpha1"
)

// awsProduct is a product of the AWS Price List (docs.aws.amazon.com,
// "Reading the service price list file").
type awsProduct struct {
	Attributes struct {
		InstanceType    string `json:"instanceType"`
		RegionCode      string `json:"regionCode"`
		OperatingSystem string `json:"operatingSystem"`
		Tenancy         string `json:"tenancy"`
		PreInstalled    string `json:"preInstalledSw"`
		CapacityStatus  string `json:"capacitystatus"`
		GPU             string `json:"gpu"`
	} `json:"attributes"`
}

// awsTerm is an offer's term: what a unit costs.
type awsTerm struct {
	PriceDimensions map[string]struct {
		Unit         string            `json:"unit"`
		PricePerUnit map[string]string `json:"pricePerUnit"`
	} `json:"priceDimensions"`
}

// awsModels are the GPUs of EC2's families, which the price list does not
// name (after aws.amazon.com/ec2/instance-types).
var awsModels = map[string]string{
	"p2": "K80", "p3": "V100-16GB", "p3dn": "V100-32GB", "p4d": "A100-40GB", "p4de": "A100-80GB", "p5": "H100-80GB", "p5e": "H200", "p5en": "H200",
	"p6-b200": "B200", "p6-b300": "B300", "g3": "M60", "g3s": "M60", "g4dn": "T4", "g4ad": "V520", "g5": "A10G", "g5g": "T4G",
	"g6": "L4", "g6f": "L4", "gr6": "L4", "gr6f": "L4", "g6e": "L40S", "g7e": "RTX PRO 6000",
}

// AWS reads an offer file of AmazonEC2 (the bulk API's index.json) or what
// `aws pricing get-products --service-code AmazonEC2` prints: Linux on shared
// hosts, on demand. Spot prices are not in it. An offer file has its products before its
// terms, and nothing is kept of what has no GPUs.
func AWS(in io.Reader) (*Answer, error) {
	r := &awsReader{entries: entriesOf(in, offerLimits), out: &Answer{}, machines: map[string]awsMachine{}}
	if err := r.object(r.part); err != nil {
		return nil, fmt.Errorf("read the AWS price list: %w", err)
	}
	if r.seen == 0 {
		return nil, fmt.Errorf("it has neither products nor a PriceList: is it an offer file of AmazonEC2, or what `aws pricing get-products` prints?")
	}
	return r.out, nil
}

// awsReader reads a price list.
type awsReader struct {
	*entries
	out *Answer
	// machines with GPUs by SKU.
	machines map[string]awsMachine
	// seen is how many products there are.
	seen  int
	terms bool
}

// awsMachine is what a product with GPUs is.
type awsMachine struct {
	region, machine, model string
	gpus                   int64
}

// part reads one part of the list.
func (r *awsReader) part(name string) error {
	switch name {
	case "products":
		return r.object(r.product)
	case "terms":
		r.terms = true
		return r.object(func(kind string) error {
			return r.object(func(sku string) error { return r.term(kind, sku) })
		})
	case "PriceList":
		return r.list(r.entry)
	case "NextToken":
		return r.decode(&r.out.Next)
	}
	return r.skip()
}

func (r *awsReader) product(sku string) error {
	if r.terms {
		return fmt.Errorf("its terms come before its products: give it with its keys in order, as jq -S writes it")
	}
	r.seen++
	var p awsProduct
	if err := r.decode(&p); err != nil {
		return fmt.Errorf("read SKU %s: %w", sku, err)
	}
	m, ok := r.out.awsMachine(&p)
	if ok {
		r.machines[sku] = m
	}
	return r.out.bounded(len(r.machines))
}

// term reads what a product costs.
func (r *awsReader) term(kind, sku string) error {
	m, known := r.machines[sku]
	if kind != "OnDemand" || !known {
		return r.skip()
	}
	var terms map[string]awsTerm
	if err := r.decode(&terms); err != nil {
		return fmt.Errorf("read the terms of SKU %s: %w", sku, err)
	}
	if err := r.out.aws(m, terms); err != nil {
		return fmt.Errorf("read SKU %s: %w", sku, err)
	}
	return nil
}

// entry reads a product with its terms. The API puts each into a string of JSON; some clients
// unpack it.
func (r *awsReader) entry(i int) error {
	r.seen++
	var item awsItem
	if err := r.decode(&item); err != nil {
		return fmt.Errorf("read entry %d of PriceList: %w", i, err)
	}
	m, ok := r.out.awsMachine(&item.Product)
	if !ok {
		return r.out.bounded(0)
	}
	if err := r.out.aws(m, item.Terms["OnDemand"]); err != nil {
		return fmt.Errorf("read entry %d of PriceList: %w", i, err)
	}
	return nil
}

// awsItem is an entry of a PriceList.
type awsItem struct {
	Product awsProduct
	Terms   map[string]map[string]awsTerm
}

// UnmarshalJSON reads an object, or one in a string.
func (i *awsItem) UnmarshalJSON(b []byte) error {
	type plain awsItem
	if b[0] != '"' {
		return json.Unmarshal(b, (*plain)(i))
	}
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	return json.NewDecoder(textOf(strings.NewReader(s), pageLimits)).Decode((*plain)(i)) // what is in quotes was not counted
}

// awsMachine is the machine of a product; false where it has no GPUs, or none that are known.
func (out *Answer) awsMachine(p *awsProduct) (awsMachine, bool) {
	a := p.Attributes
	if a.GPU == "" || a.GPU == "0" || a.OperatingSystem != "Linux" || a.Tenancy != "Shared" || a.PreInstalled != "NA" || a.CapacityStatus != "Used" {
		return awsMachine{}, false
	}
	family, _, _ := strings.Cut(a.InstanceType, ".")
	name, known := awsModels[family]
	gpus, err := strconv.ParseInt(a.GPU, 10, 64)
	if !known || err != nil || gpus <= 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("%s in %s: %s GPUs of an unknown model or number; left out", a.InstanceType, a.RegionCode, a.GPU))
		return awsMachine{}, false
	}
	if strings.HasSuffix(family, "6f") {
		out.Notes = append(out.Notes, a.InstanceType+": it has a part of a card, whose price is not that of a card; left out")
		return awsMachine{}, false
	}
	return awsMachine{a.RegionCode, a.InstanceType, name, gpus}, true
}

// aws takes over what a machine costs.
func (out *Answer) aws(m awsMachine, terms map[string]awsTerm) error {
	for _, code := range slices.Sorted(maps.Keys(terms)) {
		for _, dim := range slices.Sorted(maps.Keys(terms[code].PriceDimensions)) {
			d := terms[code].PriceDimensions[dim]
			for _, currency := range slices.Sorted(maps.Keys(d.PricePerUnit)) {
				price, err := v1alpha1.ParseDecimal(d.PricePerUnit[currency])
				if err != nil || d.Unit != "Hrs" {
					return fmt.Errorf("%s: %q per %s is no price an hour", m.machine, d.PricePerUnit[currency], d.Unit)
				}
				if price.Sign() <= 0 {
					continue // of reserved capacity, which costs elsewhere
				}
				q := Quote{Region: m.region, Machine: m.machine, Currency: currency, PerHour: perGPU(price, m.gpus)}
				if err := out.add(q.of(m.model, v1alpha1.Amount{})); err != nil {
					return fmt.Errorf("%s: %w", m.machine, err)
				}
			}
		}
	}
	return nil
}
