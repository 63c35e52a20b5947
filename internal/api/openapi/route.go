package openapi

import (
	"net/http"
	"reflect"
)

// Ports that routes are served on; they are the tags of the document.
const (
	Agents    = "agents"
	Operators = "operators"
	Webhooks  = "webhooks"
)

// Media types of bodies.
const (
	JSON   = "application/json"
	YAML   = "application/yaml"
	HTML   = "text/html"
	CSV    = "text/csv"
	Text   = "text/plain"
	Events = "text/event-stream"
	Any    = "*/*"
)

// Places of parameters.
const (
	InQuery  = "query"
	InHeader = "header"
)

// Kinds of parameters.
const (
	String  = "string"
	Integer = "integer"
)

// Route is one method of one path.
type Route struct {
	// Method and Path as http.ServeMux has them: "GET", "/contracts/{name}".
	Method, Path string
	// ID names the operation, unlike all others: a verb first, such as "getContract".
	ID string
	// Summary is one line.
	Summary string
	// Ports that serve it: Agents, Operators, Webhooks.
	Ports []string
	// Params beside those of the path.
	Params []Param
	// Body of the request; nil for none.
	Body *Body
	// Answers, without those that refuse: these are wire.Error for every route.
	Answers []Answer
	// Open: it needs neither certificate nor token.
	Open bool
}

// Param is a parameter of a query or a header.
type Param struct {
	Name, In, Text, Kind string
	Required             bool
}

// Body of a request.
type Body struct {
	// Type of the value; nil for what is not read as one.
	Type reflect.Type
	// Media type; "" is JSON.
	Media string
	// Optional: a request without it means something.
	Optional bool
}

// Answer that is not an error.
type Answer struct {
	Status int
	Text   string
	// Type of the value as JSON; nil for none.
	Type reflect.Type
	// Head has fields that stand beside the value, which is then in "data"; nil for none.
	Head reflect.Type
	// Others are media types that the same is given in.
	Others []string
}

// As is the type of a body or an answer.
func As[T any]() reflect.Type { return reflect.TypeFor[T]() }

// OK is the answer 200 with a value.
func OK[T any](text string) []Answer {
	return []Answer{{Status: http.StatusOK, Text: text, Type: As[T]()}}
}

// Done is an answer without a body.
func Done(status int, text string) []Answer { return []Answer{{Status: status, Text: text}} }
