package gpunames

// Figures of a GPU model, of one card as drivers count them.
type Figures struct {
	// TFLOPS at FP16 or BF16 on matrix units, dense (without sparsity), at FP32 accumulation; where a card has no such units, FP16 or else FP32.
	TFLOPS float64
	// Watts is the thermal design power.
	Watts float64
}

// figures are what vendors publish of these cards (nvidia.com/data-center, the
// architecture white papers for consumer cards, amd.com/instinct, habana.ai),
// of the module form (SXM, OAM) where there are several, and halved where the
// published rate is with sparsity. They have not been compared with the data
// sheets one by one; they order offers and cost nobody anything.
var figures = map[string]Figures{
	"nvidia-b300":            {2250, 1100},
	"nvidia-b200":            {2250, 1000},
	"nvidia-h200":            {989, 700},
	"nvidia-gh200":           {989, 1000},
	"nvidia-h100":            {989, 700},
	"nvidia-h800":            {989, 700},
	"nvidia-h20":             {148, 400},
	"nvidia-a100":            {312, 400},
	"nvidia-a800":            {312, 400},
	"nvidia-a30":             {165, 165},
	"nvidia-a40":             {149.7, 300},
	"nvidia-a16":             {17.9, 62.5}, // one of a board's four
	"nvidia-a10g":            {70, 300},
	"nvidia-a10":             {125, 150},
	"nvidia-a2":              {18, 60},
	"nvidia-l40s":            {362, 350},
	"nvidia-l40":             {181, 300},
	"nvidia-l20":             {119.5, 275},
	"nvidia-l4":              {121, 72},
	"nvidia-t4g":             {65, 70},
	"nvidia-t4":              {65, 70},
	"nvidia-v100":            {125, 300},
	"nvidia-p100":            {21.2, 300},
	"nvidia-p40":             {11.8, 250},
	"nvidia-p4":              {5.5, 75},
	"nvidia-k80":             {4.4, 150}, // one of a board's two chips
	"nvidia-m60":             {4.8, 150}, // likewise
	"nvidia-rtx-6000-ada":    {364, 300},
	"nvidia-rtx-a6000":       {154.8, 300},
	"nvidia-rtx-a5000":       {111, 230},
	"nvidia-rtx-a4000":       {76.7, 140},
	"nvidia-quadro-rtx-6000": {130.5, 260},
	"nvidia-quadro-rtx-8000": {130.5, 260},
	"nvidia-rtx-5090":        {209.5, 575},
	"nvidia-rtx-4090":        {165.2, 450},
	"nvidia-rtx-4080":        {97.5, 320},
	"nvidia-rtx-3090":        {71, 350},
	"nvidia-rtx-3080":        {59.5, 320},
	"nvidia-rtx-2080-ti":     {53.8, 250},
	"nvidia-titan-rtx":       {130.5, 280},
	"amd-mi355x":             {2516, 1400},
	"amd-mi350x":             {2307, 1000},
	"amd-mi325x":             {1307, 1000},
	"amd-mi300x":             {1307, 750},
	"amd-mi300a":             {981, 550},
	"amd-mi210":              {181, 300},
	"amd-mi100":              {184.6, 300},
	"amd-mi50":               {26.5, 300},
	"intel-gaudi3":           {1835, 900},
	"intel-gaudi2":           {432, 600},
}

// FiguresOf are the figures of a model in any of its names; ok is false when
// they are not known.
func FiguresOf(model string) (f Figures, ok bool) {
	if f, ok = figures[model]; ok {
		return f, true
	}
	f, ok = figures[Model(model)]
	return f, ok
}
