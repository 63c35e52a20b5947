// Package logs is what all log lines of the daemon and the agent go through.
//
//	events.txt  the code of each message, one a line
//	runbook.txt which entries of the runbook are about an event
//	events.go   codes by message
//	handler.go  adds the code, and leaves out what was said within the minute
//
// Invariants:
//   - A code is one event's for good: it stays when the message is worded otherwise, and is
//     not given to another event. The page docs/logs.md of a fleet repo lists all of them;
//     tests hold code, events.txt and page together (go test ./internal/api/logs -update
//     gives new messages the next code).
//   - A line that is equal to one of the last minute (level, message and all keys) is not
//     written; the next one that is says how many were left out (repeated). At the minute's
//     end the newest of those that were left out is written, at its own time, so that lines
//     and what they say was repeated are together as many as there were; Flush writes them
//     before the process ends. Who differs in
//     any key is another line: no refusal or login hides behind another's. At level debug
//     nothing is left out. What is remembered is bounded, and beyond it all is written.
//   - Errors are under the key "error": those too that libraries (klog, logr) write under
//     "err".
//
// cli and cmd/fleet-agent make the handlers. They are safe for concurrent use.
package logs
