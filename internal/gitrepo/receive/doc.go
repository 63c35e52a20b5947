// Package receive reads what git-receive-pack reports of a push.
//
//   - receive.go: Judge, which turns a report into what the server refused; Taken, the
//     refs that it moved all the same; Said, the beginning of what its hooks say.
//
// A push of several refs is all or none where the server says that it can do so. git
// itself moves the others of such a push where one of them is a symbolic ref to nothing;
// who pushed takes those back.
//
// Caller: gitrepo. Said is for one session; all else is safe for concurrent use.
package receive
