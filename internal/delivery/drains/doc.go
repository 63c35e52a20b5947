// Package drains tells what stands between a contract's release and its end on a
// consumer: pods that are left on a Node that Liqo drains, and virtual nodes that
// Argo CD does not prune. It reads and never writes; delivery, which calls it, deletes.
//
// # Virtual nodes beside Argo CD
//
// Argo CD prunes no object that has an owner (gitops-engine, GetManagedLiveObjs:
// len(o.OwnerRefs) == 0), and Liqo makes a slice the owner of the virtual node that it
// fills in (virtualnodecreator controller: SetControllerReference). No rendering helps:
//
//   - Server-side apply takes no owner away that another manager wrote.
//   - A VirtualNode with createNode false has its Node drained by Liqo, but without its
//     virtual kubelet from the start: the Node falls to NotReady, and its pods are deleted
//     past their budgets.
//   - As a hook with a delete policy it is made anew by each sync, and hooks wait for the
//     health of everything else of the tenant.
//   - The slice's deletion, in the foreground too, has Liqo take back what the provider
//     granted before anything was drained.
//
// So the daemon deletes these virtual nodes, and only these (Unpruned).
//
// All functions may be called from any goroutine.
package drains
