// Package gpuforms knows how people write GPUs: counts, MIG profiles and shares in the
// short form of a GPU request, such as 8xH100, H100:1g.10gb:2 or 0.25, and the names of
// the resources by which pods ask for them, such as nvidia.com/mig-1g.10gb: strings alone,
// without what they mean.
//
// Called by package v1alpha1, which reads intents. Pure; safe for concurrent use.
package gpuforms
