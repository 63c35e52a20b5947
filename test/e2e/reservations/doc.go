// Package reservations tests what clusters ask for over the network, with the
// daemon as a process, git over http, and no clusters: nothing is delivered.
//
//		go test -tags e2e ./test/e2e/reservations
//
//	  - v1: the exchange of an agent of the first form, route by route, as a
//	    golden file (testdata/v1.txt; `-update` writes it anew)
//	  - client: a program that imports schemas/client alone, on both ports
//	  - linear: 64 clients reserve and release through three replicas that share a
//	    market, behind a balancer that sends each connection to any of them. The one that
//	    decides is killed again and again, the API server and etcd of the store crash in between, on a
//	    git server that loses answers of both kinds; the history
//	    that they saw must be linearizable, and what they were told must be what
//	    the repository holds
package reservations
