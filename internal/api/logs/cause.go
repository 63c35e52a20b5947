package logs

import "regexp"

// ownPort is the port of this end of a connection, as errors of the network write it.
var ownPort = regexp.MustCompile(`:[0-9]+->`)

// Cause is an error's text without what differs each time the same thing fails: the port
// of our own end. Who tries again for as long as it takes tells one cause once.
func Cause(err error) string { return ownPort.ReplaceAllString(err.Error(), "->") }
