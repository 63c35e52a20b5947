// Package flagfile reads the flags of a command from the environment (FLEETBROKER_RUN_REPO)
// and from a YAML file (`run --config FILE`): one mapping of flags' names, without dashes, to
// values; a list where a flag may be given several times.
//
//	repo: https://git.example.org/acme/fleet.git
//	state-dir: /var/lib/fleetbroker
//	kubeconfig-programs: ["/plugins/aws-iam-authenticator token -i *"]
//
// Invariants: what the command line has wins, and then the environment; a name that is no flag of the command, one
// that is there twice, and a value that the flag refuses are errors with the variable, or
// file and line, and a remedy, and then no flag that comes later is set; the file is read once, when the command
// starts. Flags hold no secrets, only the names of their files, and so does this file.
//
// Package cli calls it before the command runs. Nothing is kept, so that calls on different
// flag sets may be concurrent.
package flagfile
