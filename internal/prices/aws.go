package prices

import (
	"bytes"
	"encoding/json"
	"fmt"
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
// hosts, on demand. Spot prices are not in it.
func AWS(b []byte) (*Answer, error) {
	var doc struct {
		Products  map[string]awsProduct `json:"products"`
		Terms     map[string]map[string]map[string]awsTerm
		PriceList []json.RawMessage
		NextToken string
	}
	if err := decode(b, &doc); err != nil {
		return nil, fmt.Errorf("read the AWS price list: %w", err)
	}
	out := &Answer{Next: doc.NextToken}
	for _, sku := range slices.Sorted(maps.Keys(doc.Products)) {
		if err := out.aws(doc.Products[sku], doc.Terms["OnDemand"][sku]); err != nil {
			return nil, fmt.Errorf("read SKU %s of the AWS price list: %w", sku, err)
		}
	}
	for i, raw := range doc.PriceList {
		// The API puts each product into a string of JSON; some clients unpack it.
		var text string
		if json.Unmarshal(raw, &text) == nil {
			raw = []byte(text)
		}
		var item struct {
			Product awsProduct
			Terms   map[string]map[string]awsTerm
		}
		if err := decode(raw, &item); err != nil {
			return nil, fmt.Errorf("read entry %d of PriceList: %w", i, err)
		}
		if err := out.aws(item.Product, item.Terms["OnDemand"]); err != nil {
			return nil, fmt.Errorf("read entry %d of PriceList: %w", i, err)
		}
	}
	if len(doc.Products)+len(doc.PriceList) == 0 {
		return nil, fmt.Errorf("it has neither products nor a PriceList: is it an offer file of AmazonEC2, or what `aws pricing get-products` prints?")
	}
	return out, nil
}

func (out *Answer) aws(p awsProduct, terms map[string]awsTerm) error {
	a := p.Attributes
	if a.GPU == "" || a.GPU == "0" || a.OperatingSystem != "Linux" || a.Tenancy != "Shared" || a.PreInstalled != "NA" || a.CapacityStatus != "Used" {
		return nil
	}
	family, _, _ := strings.Cut(a.InstanceType, ".")
	name, known := awsModels[family]
	gpus, err := strconv.ParseInt(a.GPU, 10, 64)
	if !known || err != nil || gpus <= 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("%s in %s: %s GPUs of an unknown model or number; left out", a.InstanceType, a.RegionCode, a.GPU))
		return nil
	}
	if strings.HasSuffix(family, "6f") {
		out.Notes = append(out.Notes, a.InstanceType+": it has a part of a card, whose price is not that of a card; left out")
		return nil
	}
	for _, code := range slices.Sorted(maps.Keys(terms)) {
		for _, dim := range slices.Sorted(maps.Keys(terms[code].PriceDimensions)) {
			d := terms[code].PriceDimensions[dim]
			for _, currency := range slices.Sorted(maps.Keys(d.PricePerUnit)) {
				price, err := v1alpha1.ParseDecimal(d.PricePerUnit[currency])
				if err != nil || d.Unit != "Hrs" {
					return fmt.Errorf("%s: %q per %s is no price an hour", a.InstanceType, d.PricePerUnit[currency], d.Unit)
				}
				if price.Sign() <= 0 {
					continue // of reserved capacity, which costs elsewhere
				}
				q := Quote{Region: a.RegionCode, Machine: a.InstanceType, Currency: currency, PerHour: perGPU(price, gpus)}
				out.Quotes = append(out.Quotes, q.of(name, v1alpha1.Amount{}))
			}
		}
	}
	return nil
}

// decode reads JSON with its numbers as they are written.
func decode(b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("it is not the JSON that was expected: %w", err)
	}
	return nil
}
