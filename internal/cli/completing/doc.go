// Package completing gives every flag of a command tree its completion by the shell.
//
// Apply walks the tree once it is built: a flag with a closed set offers the set, one
// with names of a fleet repo asks a function that the caller gives, a file or directory
// offers paths, and free text offers nothing, so that the shell never offers files where
// none are meant. What a flag takes is declared here by its name, or by "command flag"
// where commands differ; Missing lists the flags that are declared nowhere, and a test in
// internal/cli and one in cmd/fleet-agent hold that there are none.
//
// internal/cli and cmd/fleet-agent call it, once, before the command line is read.
package completing
