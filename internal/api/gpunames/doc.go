// Package gpunames is the one table by which names and memory sizes of GPUs
// become comparable: what drivers report, what clouds and traces write, and
// what people ask for all come to one model, such as nvidia-h100, and one
// marketed memory size, such as 80Gi.
//
// A model here is the chip's commercial name without form factor: an A100 for
// SXM4 and one for PCIe are both nvidia-a100 and differ by memory. GB and GiB
// mean the same class, because vendors sell "80 GB" cards whose drivers report
// 81,559 MiB.
//
// Agents, price lists and intents all go through it. It holds no state and is
// safe for concurrent use.
package gpunames
