// Package replicas tests several daemons that share one market on a real
// kube-apiserver, behind one balancer that sends each connection to any of them;
// git over http, agents as programs of the test that speak as agents do.
//
//		go test -tags e2e ./test/e2e/replicas
//
//	  - market: one market in all replicas whatever an agent reaches; a replica
//	    killed, one cut off from the API server, the API server restarted, its objects
//	    deleted: nobody is called silent who reports
//	  - faults: etcd compacted, set back to an older state, full; a quota, a right that is
//	    missing, answers that take five seconds: what is known is never older than what was
//	    acknowledged, what is refused is said, nothing is placed on what was before, and all
//	    goes on
//	  - foreign: another account writes objects as of a time to come: the daemon's next word
//	    is the daemon's
//	  - decides: who decides is killed, cut off from the API server, cut off from
//	    git, frozen: another one decides in time, and each intent is decided once
//	  - limited: the forge asks who decides to be left alone: all replicas do, and nobody
//	    takes over
//	  - balanced: one replica has all agents and gives some away; what one certificate may
//	    have holds behind the balancer
//	  - skewed: a replica whose clock is an hour ahead serves agents and decides nothing
//	  - delivers: each consumer has one replica that delivers to it, and all know what
//	    it sees there; when it is killed another one takes the cluster over
package replicas
