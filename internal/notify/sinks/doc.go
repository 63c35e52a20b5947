// Package sinks has receivers of notifications with formats of their own: Microsoft Teams
// (an Adaptive Card at a workflow's webhook) and PagerDuty (Events API v2).
//
// Texts are of other people's making: cards show them as plain runs of text, in which
// nothing is a link or a mention. Errors may name the URL, which holds a secret: the caller,
// package notify, takes it out. Nothing is kept; safe for concurrent use.
package sinks
