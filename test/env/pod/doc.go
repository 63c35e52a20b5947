// Package pod starts the container of a workload that was applied to a cluster of package
// env, as a kubelet would: with the arguments and the environment that the API server has,
// Secrets mounted where the template says, the account's token and the API server's
// address, the user and the read-only root of an image. There is no kubelet in such a
// cluster, so that what people install would run nowhere.
//
// Only the program itself comes from this machine, and the flags that name addresses,
// because all programs share one loopback interface. A Secret that is missing is an error,
// where a kubelet would wait.
//
// The end-to-end tests of the install guide call it. TestMain of the caller must begin with
// env.BeContainer. Start may be called by several goroutines.
package pod
